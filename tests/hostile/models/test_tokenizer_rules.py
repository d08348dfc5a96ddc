"""Which steps of a tokenizer are read: not what would take for ever, fill the memory or end the process."""

import json

import pytest
from families import BYTES, in_sequence, replace, split, tokenizer_file
from tokenizers import Tokenizer

from attnviz.data import regex_rules, tokenizer_rules
from attnviz.data.tokenizer_rules import TokenizerError

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
    "a{1,2}+b",  # no possessive count: the count is repeated
    "a{1,2}?+b",
    "a+?+b",
    "(?x)(?:a+#)(?:\n)+b",  # a comment hides the bracket
    r"(?:a+|\c)(?:\c(z))+b",  # a control character hides it
    r"[\c]]+",
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


@pytest.mark.parametrize(
    "steps, message",
    [
        ({"pre_tokenizer": split({"Regex": "(a+)+b"})}, "its regular expression '(a+)+b' is not known to be safe"),
        ({"normalizer": replace({"String": "a"}, "a" * 201)}, "what it replaces with must be a text of at most 200"),
        (
            {"normalizer": {"type": "Sequence", "normalizers": [replace({"String": "a"}, "a" * 100)] * 4}},
            "its normalizer can make a text 500,000,000 times as long, and at most 4,000 is safe",
        ),
        *[  # which matches between characters
            (
                {"normalizer": {"type": "Sequence", "normalizers": [replace({"Regex": pattern}, "a")] * 30}},
                "its normalizer can make a text 5,368,709,120 times as long",
            )
            for pattern in ("x*", "(?=a)", "^", r"\b", "(?:x|y?)", "(?<!a)")
        ],
        ({"pre_tokenizer": in_sequence("pretokenizers", BYTES, 30)}, "its normalizer can make a text"),
        ({"decoder": in_sequence("decoders", {"type": "BPEDecoder", "suffix": ""}, 30)}, "its decoder can make a text"),
        ({"decoder": in_sequence("decoders", {"type": "CTC", "word_delimiter_token": ""}, 30)}, "its decoder can make"),
        ({"pre_tokenizer": {"type": "FixedLength", "length": 0}}, "the length of its parts must be a whole number"),
        (
            {"pre_tokenizer": in_sequence("pretokenizers", split({"Regex": r"\p{L}" * 700}), 3)},
            "its regular expressions have 10,500 characters, and at most 8,000 are read",
        ),
        (
            {"model": {"type": "Unigram", "vocab": [["a" * 2**22, 0.0], ["b", 0.0]]}},
            "its pieces have 4,194,305 bytes of text, and at most 4,194,304 are read",
        ),
        (
            {"added_tokens": [{"id": 0, "content": "é" * 2**21}, {"id": 1, "content": "b"}]},
            "its added tokens have 4,194,305 bytes of text, and at most 4,194,304 are read",
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
        tokenizer_rules.check(tokenizer_file(**steps))
    assert str(error.value).startswith(message)


def test_growth_for_the_other_process_only():
    """As ALBERT's: if each step did its most, a text would be 3,240 times as long. It is read, but tried elsewhere."""
    forms = [{"type": "NFKD"}, {"type": "BertNormalizer"}, {"type": "Lowercase"}]
    _, linear = tokenizer_rules.check(tokenizer_file(normalizer={"type": "Sequence", "normalizers": forms}))
    assert not linear


def test_steps_that_lie_deep():
    step = {"type": "NFC"}
    for _ in range(900):
        step = {"type": "Sequence", "normalizers": [step]}
    assert tokenizer_rules.check(tokenizer_file(normalizer=step))[1]


def test_parts_that_no_tokenizer_has_are_left_out():
    assert "bomb" not in tokenizer_rules.check(tokenizer_file(bomb=[[]] * 100))[0]


def test_padding_truncation_and_chance_are_taken_off():
    padding = {"strategy": {"Fixed": 10**9}, "direction": "Right", "pad_to_multiple_of": None}
    padding |= {"pad_id": 0, "pad_type_id": 0, "pad_token": "x"}
    content = tokenizer_file(padding=padding)
    content["model"]["dropout"] = 0.5
    checked, linear = tokenizer_rules.check(content)
    assert (
        checked["padding"] is None and checked["truncation"] is None and checked["model"]["dropout"] is None and linear
    )
    assert len(Tokenizer.from_str(json.dumps(checked)).encode("the dog").ids) == 2


def test_a_panic_of_the_library_is_an_error():
    class PanicException(BaseException):
        pass

    for error in (PanicException("index out of bounds"), Exception("plain")):
        with pytest.raises(TokenizerError, match="^the tokenizer failed: "), tokenizer_rules.contained():
            raise error
    with pytest.raises(KeyboardInterrupt), tokenizer_rules.contained():
        raise KeyboardInterrupt
