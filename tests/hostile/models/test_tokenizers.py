"""Tokenizers in the folder of a foreign model: refused, or tried in another process."""

import json
import time

import families
import pytest
from families import split, template, whole

import attnviz
from attnviz.models.huggingface.load import ModelError
from attnviz.models.huggingface.tokenizers import trial
from attnviz.models.trained import TextError

pytestmark = pytest.mark.xdist_group("hf")  # one process imports the library


@pytest.fixture
def bomb(tmp_path):
    """family, steps of its tokenizer -> a folder of a model with them."""

    def write(family, **steps):
        place = families.write(tmp_path / family, family)
        path = place / "tokenizer.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | steps))
        return place

    return write


def test_a_bomb_in_a_folder_is_refused_in_a_sentence(bomb):
    place = bomb("gpt2", pre_tokenizer=split({"Regex": "(a+)+b"}))
    with pytest.raises(ModelError, match="its tokenizer cannot be read: its regular expression .* repeats a group"):
        attnviz.load(f"hf:{place}")


def test_padding_in_a_folder_is_not_read(bomb):
    place = bomb("gpt2", padding={"strategy": {"Fixed": 10**9}, "direction": "Right", "pad_to_multiple_of": None,
                                    "pad_id": 0, "pad_type_id": 0, "pad_token": "<pad>"})  # fmt: skip
    assert len(attnviz.load(f"hf:{place}").trace("the dog").source) == 2


def test_settings_cannot_name_another_file(bomb, tmp_path):
    place = bomb("gpt2")
    other = tmp_path / "bomb.json"
    other.write_text(json.dumps(whole(pre_tokenizer=split({"Regex": "(a+)+b"}))))
    settings = json.loads((place / "tokenizer_config.json").read_text())
    settings |= {"tokenizer_file": str(other), "fast_tokenizer_files": ["bomb.json"], "model_max_length": "many"}
    (place / "tokenizer_config.json").write_text(json.dumps(settings))
    assert len(attnviz.load(f"hf:{place}").trace("the dog").source) == 2


def test_a_pattern_that_may_be_slow_is_tried_elsewhere(bomb, monkeypatch):
    r"""`\s*[\r\n]+` takes the square of a run of spaces: here the other process has no time, this one goes on."""
    place = bomb("gpt2", pre_tokenizer={"type": "Sequence", "pretokenizers": [
        split({"Regex": r"x*[xy]+z|\s*[\r\n]+"}), whole()["pre_tokenizer"]]})  # fmt: skip
    model = attnviz.load(f"hf:{place}")
    assert isinstance(model.tokenizer, trial.Tried)
    assert [token.text for token in model.trace("the dog").source] == ["the", "dog"] or model.trace("the dog").maps
    monkeypatch.setattr(trial, "SECONDS", 1)
    started = time.monotonic()
    with pytest.raises(TextError):
        model.read("x" * 20_000)
    assert time.monotonic() - started < 30
    assert model.trace("the dog").maps  # the process is started again


def test_pieces_that_the_model_of_a_folder_does_not_know(bomb):
    model = attnviz.load(f"hf:{bomb('gpt2', post_processor=template(10**8))}")
    with pytest.raises(TextError) as error:
        model.trace("the dog")
    assert str(error.value) == (
        f"{model.name} cannot read the text: its tokenizer gives piece number 100,000,000, but the model has 346; "
        "they do not belong together"
    )


def test_pieces_that_only_the_model_knows(bomb):
    """Real models have more rows than pieces. One that a model with random weights produces has a number for a name."""
    place = bomb("t5")
    content = json.loads((place / "tokenizer.json").read_text())
    content["model"]["vocab"] = content["model"]["vocab"][:12]
    (place / "tokenizer.json").write_text(json.dumps(content))
    trace = attnviz.load(f"hf:{place}").trace("the dog runs")
    assert any(token.piece and token.piece.startswith("#") for token in trace.target)


@pytest.mark.parametrize("name, content", [("vocab.txt", b"\n" * 2_000_001), ("x.vocab", b"\n" * 2_000_001)])
def test_lists_of_pieces_are_limited(bomb, name, content):
    place = bomb("bert")
    (place / name).write_bytes(content)
    with pytest.raises(ModelError, match=f"its {name} has 2,000,001 entries, and at most 2,000,000 are read"):
        attnviz.load(f"hf:{place}")


def test_a_text_is_limited_before_it_is_read(load):
    with pytest.raises(TextError, match="^the text is too long: 1,000,000 characters, and at most 20,000 are read"):
        load("bert").trace("a" * 1_000_000)


@pytest.mark.parametrize(
    "content, reason",
    [
        ("null", "it must be a JSON object; got NoneType"),
        ("[" * 5000, "its lists or objects are nested too deeply"),
    ],
)
def test_settings_of_generation_are_an_object(tmp_path, content, reason):
    folder = families.write(tmp_path / "t5", "t5")
    (folder / "generation_config.json").write_text(content, encoding="utf-8")
    with pytest.raises(ValueError) as error:
        attnviz.load(f"hf:{folder}")
    assert str(error.value) == f"hf:{folder}: its generation_config.json cannot be read: {reason}"


def test_a_limit_below_one_token_is_none(tmp_path):
    folder = families.write(tmp_path / "t5", "t5")
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"model_max_length": 0.5}), encoding="utf-8")
    assert attnviz.load(f"hf:{folder}").limit > 1
