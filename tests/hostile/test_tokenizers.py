"""Tokenizers that would take for ever, fill the memory or end the process: refused, or tried in another process."""

import json
import time

import families
import pytest
from tokenizers import Tokenizer

import attnviz
from attnviz.data.checks import regex_rules, tokenizer_rules
from attnviz.data.checks.tokenizer_rules import TokenizerError
from attnviz.models.huggingface.load import ModelError
from attnviz.models.huggingface.tokenizers import trial
from attnviz.models.trained import TextError

pytestmark = pytest.mark.xdist_group("hf")  # one process imports the library
BACKTRACKING = [
    "(a+)+b",
    "(a|a)*b",
    "(?:a?){30}a{30}",
    "a?" * 30 + "a" * 30,
    "a*a*a*a*b",
    "(.*)*x",
    r"(a+)\1+b",
    "((a{90}){90}){90}",
    "a{0,99}a{0,99}a{0,99}b",
    "(?>(a+)+)b",
    "(?~a)*",
    "(?<x>a|b\\g<x>c)*",
    "(" * 50 + "a" + ")" * 50,
]


@pytest.mark.parametrize("pattern", BACKTRACKING)
def test_patterns_that_backtrack(pattern):
    with pytest.raises(regex_rules.RegexError):
        regex_rules.is_linear(pattern)


@pytest.mark.parametrize(
    "pattern, linear",
    [
        (r"\s+", True),
        (r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}", True),
        (r"\s*[\r\n]+", False),
        (r"\p{N}{1,3}(?=(?:\p{N}{3})*(?:\P{N}|$))", False),
        (r"[一-龥぀-ゟ゠-ヿ]+", True),
        (r"[[a-z]&&[^aeiou]]+", True),
    ],
)
def test_patterns_of_tokenizers_that_people_use(pattern, linear):
    assert regex_rules.is_linear(pattern) is linear


def whole(**steps):
    """A tokenizer.json of bytes with other steps."""
    return json.loads(families.byte_pairs()[0].to_str()) | steps


def split(pattern):
    return {"type": "Split", "pattern": pattern, "behavior": "Isolated", "invert": False}


def replace(pattern, content):
    return {"type": "Replace", "pattern": pattern, "content": content}


@pytest.mark.parametrize(
    "steps, message",
    [
        ({"pre_tokenizer": split({"Regex": "(a+)+b"})}, "its regular expression '(a+)+b' is not known to be safe"),
        ({"normalizer": replace({"String": "a"}, "a" * 201)}, "what it replaces with must be a text of at most 200"),
        (
            {"normalizer": {"type": "Sequence", "normalizers": [replace({"String": "a"}, "a" * 100)] * 4}},
            "its normalizer can make a text 100,000,000 times as long, and at most 400 is safe",
        ),
        ({"normalizer": {"type": "Mine"}}, "its normalizer 'Mine' is not one that is known to be safe"),
        ({"pre_tokenizer": split({"String": ""})}, "it looks for a pattern that is neither"),
        (
            {
                "post_processor": {
                    "type": "TemplateProcessing",
                    "single": [{"Sequence": {"id": "A", "type_id": 0}}] * 50,
                    "pair": [],
                    "special_tokens": {},
                }
            },
            "its template repeats the text",
        ),
        (
            {"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAAAGFh" + "YWFh" * 400}},
            "its normalizer can make",
        ),
        ({"model": {"type": "BPE"}}, "its vocabulary must be"),
        ({"model": []}, "it has no model"),
        (
            {"decoder": {"type": "Sequence", "decoders": [replace({"String": "a"}, "b" * 200)] * 2}},
            "its decoder can make",
        ),
    ],
)
def test_steps_that_are_refused(steps, message):
    with pytest.raises(TokenizerError) as error:
        tokenizer_rules.check(whole(**steps))
    assert str(error.value).startswith(message)


def test_padding_truncation_and_chance_are_taken_off():
    padding = {"strategy": {"Fixed": 10**9}, "direction": "Right", "pad_to_multiple_of": None}
    padding |= {"pad_id": 0, "pad_type_id": 0, "pad_token": "x"}
    content = whole(padding=padding)
    content["model"]["dropout"] = 0.5
    checked, linear = tokenizer_rules.check(content)
    assert (
        checked["padding"] is None and checked["truncation"] is None and checked["model"]["dropout"] is None and linear
    )
    assert len(Tokenizer.from_str(json.dumps(checked)).encode("the dog").ids) == 2


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


def test_a_text_is_limited_before_it_is_read(load):
    with pytest.raises(TextError, match="^the text is too long: 1,000,000 characters, and at most 20,000 are read"):
        load("bert").trace("a" * 1_000_000)


def test_a_panic_of_the_library_is_an_error():
    class PanicException(BaseException):
        pass

    for error in (PanicException("index out of bounds"), Exception("plain")):
        with pytest.raises(TokenizerError, match="^the tokenizer broke off: "), tokenizer_rules.contained():
            raise error
    with pytest.raises(KeyboardInterrupt), tokenizer_rules.contained():
        raise KeyboardInterrupt
