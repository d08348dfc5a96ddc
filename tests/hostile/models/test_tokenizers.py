"""Tokenizers in the folder of a foreign model: refused, or tried in another process."""

import json
import time

import families
import pytest
from families import split, template, tokenizer_file

import attnviz
from attnviz.models.huggingface import folder_rules, tokenizer_trial
from attnviz.models.huggingface.load import ModelError
from attnviz.models.model import TextError

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
    other.write_text(json.dumps(tokenizer_file(pre_tokenizer=split({"Regex": "(a+)+b"}))))
    settings = json.loads((place / "tokenizer_config.json").read_text())
    settings |= {"tokenizer_file": str(other), "fast_tokenizer_files": ["bomb.json"], "model_max_length": "many"}
    (place / "tokenizer_config.json").write_text(json.dumps(settings))
    assert len(attnviz.load(f"hf:{place}").trace("the dog").source) == 2


def test_a_pattern_that_may_be_slow_is_tried_elsewhere(bomb, monkeypatch):
    r"""`\s*[\r\n]+` takes the square of a run of spaces: here the other process has no time, this one goes on."""
    place = bomb("gpt2", pre_tokenizer={"type": "Sequence", "pretokenizers": [
        split({"Regex": r"x*[xy]+z|\s*[\r\n]+"}), tokenizer_file()["pre_tokenizer"]]})  # fmt: skip
    model = attnviz.load(f"hf:{place}")
    assert isinstance(model.tokenizer, tokenizer_trial.Tried)
    assert [token.text for token in model.trace("the dog").source] == ["the", "dog"] or model.trace("the dog").maps
    monkeypatch.setattr(tokenizer_trial, "SECONDS", 1)
    started = time.monotonic()
    with pytest.raises(TextError):
        model.read("x" * 20_000)
    assert time.monotonic() - started < 30
    assert model.trace("the dog").maps  # the process is started again


HUGE = (4_294_967_290, 400_000_000, 346, -1, 10**30, 1.5)
PLACES = {"added": "bert gpt2 t5", "vocabulary": "bert gpt2", "template": "bert gpt2 t5", "ends": "bert gpt2 t5",
          "unknown": "t5", "settings": "bert gpt2 t5", "table": "bert gpt2 t5"}  # fmt: skip
NUMBERS = [
    (where, family, number)
    for where, families_with_it in PLACES.items()
    for family in families_with_it.split()
    for number in HUGE
    if where != "table" or type(number) is int  # the library reads only whole numbers there
]


@pytest.mark.parametrize("where, family, number", NUMBERS)
def test_numbers_that_no_row_of_the_embedding_has(tmp_path, family, where, number):
    """4,294,967,290 ended the process, and 400,000,000 took 1.8 GB."""
    folder = families.write(tmp_path / family, family)
    path, name = folder / "tokenizer.json", "new"
    content = json.loads(path.read_text())
    model = content["model"]
    if where == "added":
        content["added_tokens"].append({"id": number, "content": name, "special": True} | FLAGS)
    elif where == "vocabulary":
        model["vocab"][name] = number
    elif where == "template":
        content["post_processor"] = template(number)
    elif where == "ends":
        content["post_processor"] = {"type": "BertProcessing", "sep": ["a", number], "cls": ["a", 1]}
    elif where == "unknown":
        model["unk_id"] = number
    elif where == "settings":
        settings = json.loads((folder / "tokenizer_config.json").read_text())
        settings["added_tokens_decoder"] = {str(number): {"content": name, "special": True} | FLAGS}
        (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    else:
        (folder / "added_tokens.json").write_text(json.dumps({name: number}))
    path.write_text(json.dumps(content))
    with pytest.raises(ModelError, match="gives a piece the number|do not belong together|cannot be read"):
        attnviz.load(f"hf:{folder}")


@pytest.mark.parametrize("file", ["tokenizer_config.json", "special_tokens_map.json"])
@pytest.mark.parametrize("key", ["extra_ids", "offset", "num_madeup_words"])
def test_pieces_that_a_setting_asks_for_without_end(tmp_path, file, key):
    """The library of transformers made a billion names before anything was compared."""
    folder = families.write(tmp_path / "t5", "t5")
    path = folder / file
    content = json.loads(path.read_text()) if path.exists() else {"eos_token": "</s>"}
    path.write_text(json.dumps(content | {"tokenizer_class": "T5Tokenizer", key: 10**9}))
    with pytest.raises(ModelError, match=f"its {file} says {key} = 1000000000, and its embedding has at most .* rows"):
        attnviz.load(f"hf:{folder}")


FLAGS = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}


def test_what_the_library_aborts_on_ends_another_process(bomb, monkeypatch):
    """Were a rule missing, this process would go on all the same."""
    monkeypatch.setattr(folder_rules.tokenizer_rules, "check_numbers", lambda numbers, rows: None)
    model = json.loads((bomb("gpt2") / "tokenizer.json").read_text())["model"]
    model["vocab"]["new"] = 4_294_967_290
    with pytest.raises(ModelError, match="its tokenizer cannot be read: the tokenizer takes more than 4 GB for it$"):
        attnviz.load(f"hf:{bomb('gpt2', model=model)}")


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
