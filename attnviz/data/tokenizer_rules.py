"""Checks of a tokenizer.json. It is read as data, before the tokenizers library builds anything from it.

A tokenizer is a small program: a pattern can run for ever, a replacement can turn a sentence into gigabytes, padding
can demand a billion tokens. Only the steps listed here, which are safe on any text, are accepted. `check` returns the
content without padding, truncation and dropout, which traces do not use.

Each step has a growth: how many times as long as before a text may get. A pattern that matches between two characters
puts its replacement between all of them.
"""

import base64
import binascii
import contextlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnviz import storage
from attnviz.data import regex_rules, styles
from attnviz.data.regex_rules import RegexError

LARGEST = 64 * 2**20  # bytes of the file
PIECES = 2_000_000
LETTERS = 4 * 2**20  # bytes of all pieces of a Unigram model, and of all added tokens
PARTS = ("version", "added_tokens")  # of the file, beside its model and the kinds of steps
WORD = 1000  # characters of a word that WordPiece tries to divide
CHARACTERS = 20_000  # of a text that is given to a tokenizer
_MODELS = {"BPE", "Unigram", "WordLevel", "WordPiece"}
STEPS = 64  # of one kind
LONG = 200  # characters of a text that a step adds or looks for
GROWTH = 400  # times as long as the text that was typed it may get in this process
PATTERNS = 8_000  # characters of all its regular expressions: a set of letters takes kilobytes
MOST = 4_000  # times as long in another process, which has little time and memory
_NORMAL_FORMS = {"NFC": 3, "NFD": 4, "NFKC": 18, "NFKD": 18, "Nmt": 1, "Lowercase": 3, "StripAccents": 1, "Strip": 1}
_NORMALIZERS = {**_NORMAL_FORMS, "BertNormalizer": 12, "ByteLevel": 4, "Prepend": 1, "Replace": 0, "Precompiled": 0}
_PRE_TOKENIZERS = {
    **dict.fromkeys(("BertPreTokenizer", "CharDelimiterSplit", "Digits", "FixedLength", "Punctuation", "Split"), 1),
    **dict.fromkeys(("UnicodeScripts", "Whitespace", "WhitespaceSplit"), 1),
    "ByteLevel": 5,  # a character for each byte, and a space before a word
    "Metaspace": 2,  # a mark before each part
}
_DECODERS = {
    **dict.fromkeys(("ByteFallback", "ByteLevel", "Fuse", "Metaspace", "Strip"), 1),
    **dict.fromkeys(("BPEDecoder", "CTC", "WordPiece"), 2),  # a space in each place of a text that may be ""
    "Replace": 0,
}
_POST_PROCESSORS = {"BertProcessing", "ByteLevel", "RobertaProcessing", "TemplateProcessing"}
KINDS = ("normalizer", "pre_tokenizer", "post_processor", "decoder")
_LISTS = {"normalizers", "pretokenizers", "processors", "decoders"}


class TokenizerError(ValueError):
    """A tokenizer that is not safe, or damaged; the message says why."""


def read(path: Path) -> tuple[dict, bool]:
    """The content of a tokenizer.json as `check` returns it. Raises TokenizerError, OSError."""
    try:
        content = storage.parse_json(storage.read(path, LARGEST))
    except ValueError as error:
        raise TokenizerError(str(error)) from None
    return check(content)


@contextlib.contextmanager
def contained() -> Iterator[None]:
    """In this block, errors of the tokenizers library become TokenizerError. The library raises plain Exception, and
    PanicException (a BaseException) if its Rust code panics."""
    try:
        yield
    except BaseException as error:  # PanicException has no other base and no public name; the rest goes on
        if type(error) is Exception or type(error).__name__ == "PanicException":
            raise TokenizerError(f"the tokenizer failed: {' '.join(str(error).split())[:80]}") from None
        raise


def check(content: object, rows: int = PIECES) -> tuple[dict, bool]:
    """The content without padding, truncation and dropout; and whether every step takes time linear in the text.

    rows : of the embedding; every piece id must be below it. Raises TokenizerError for a step that is not known to
    be safe.
    """
    if not isinstance(content, dict):
        raise TokenizerError(f"it must be a JSON object; got {type(content).__name__}")
    model = _model(content.get("model"))
    linear = check_steps(content)
    _added(content.get("added_tokens") or [])
    check_numbers(_numbers(content, model), rows)
    steps = {name: content[name] for name in (*PARTS, *KINDS) if name in content}
    return {**steps, "model": model, "truncation": None, "padding": None}, linear


def _model(model: object) -> dict:
    if not isinstance(model, dict):
        raise TokenizerError("it has no model")
    if not isinstance(kind := model.get("type", "BPE"), str) or kind not in _MODELS:
        raise TokenizerError(f"its model is of a kind that is not known: {str(model.get('type'))[:80]!r}")
    vocabulary = model.get("vocab")
    if not isinstance(vocabulary, dict | list) or len(vocabulary) > PIECES:
        raise TokenizerError(f"its vocabulary must be a list or an object of at most {PIECES:,} pieces")
    if isinstance(vocabulary, list):  # of Unigram, which keeps it as a table of characters
        _check_letters((piece[0] for piece in vocabulary if isinstance(piece, list) and piece), "pieces")
    for name in ("continuing_subword_prefix", "end_of_word_suffix", "unk_token"):
        short_text(model.get(name) or "", name)
    word = model.get("max_input_chars_per_word", 0)
    if type(word) is not int or not word >= 0:
        raise TokenizerError(f"max_input_chars_per_word must be a whole number; got {str(word)[:80]!r}")
    return {
        **model,
        **({"dropout": None} if "dropout" in model else {}),
        **({"max_input_chars_per_word": min(word, WORD)} if word else {}),
    }


def _added(tokens: object) -> None:
    """TokenizerError if the search table of the added tokens, which holds all their characters, would be too large."""
    if not isinstance(tokens, list) or len(tokens) > PIECES:
        raise TokenizerError("its added tokens must be a list")
    _check_letters((token.get("content") if isinstance(token, dict) else None for token in tokens), "added tokens")


def check_numbers(numbers: Iterable[object], rows: int) -> None:
    """Raise TokenizerError for a piece id without a row in the embedding.

    The tokenizers library makes tables as long as the largest id, and ends the process if memory runs out.
    """
    for number in numbers:
        if type(number) is not int or not 0 <= number < min(rows, PIECES):
            shown = f"{number:,}" if type(number) is int and abs(number) < 10**15 else repr(number)[:40]
            raise TokenizerError(
                f"it gives a piece the number {shown}, and those of this model are 0 to {min(rows, PIECES) - 1:,}; "
                "they do not belong together"
            )


def _numbers(content: dict, model: dict) -> Iterator[object]:
    """Every piece id in it."""
    vocabulary = model["vocab"]
    yield from vocabulary.values() if isinstance(vocabulary, dict) else ()
    yield from (model[name] for name in ("unk_id",) if model.get(name) is not None)
    for token in content.get("added_tokens") or []:
        yield from (token[name] for name in ("id",) if isinstance(token, dict) and name in token)
    yield from numbers(content)


def _check_letters(texts: Iterable[object], what: str) -> None:
    """TokenizerError for more text than LETTERS: each byte takes up to 280 bytes in a table of the library."""
    count = sum(len(text.encode("utf-8", "replace")) for text in texts if isinstance(text, str))
    if count > LETTERS:
        raise TokenizerError(f"its {what} have {count:,} bytes of text, and at most {LETTERS:,} are read")


@dataclass
class _Cost:
    """growth : of all steps so far. linear : does each take time linear in the length of the text?"""

    growth: int = 1
    linear: bool = True

    def add(self, growth: int, linear: bool) -> None:
        self.growth, self.linear = self.growth * growth, self.linear and linear

    def checked(self, what: str) -> bool:
        """Can this process run all steps safely? TokenizerError for steps that are unsafe in any process."""
        if self.growth > MOST:
            raise TokenizerError(
                f"its {what} can make a text {self.growth:,} times as long, and at most {MOST:,} is safe"
            )
        return self.linear and self.growth <= GROWTH


def check_steps(content: dict) -> bool:
    """Does every step take time linear in the text, and little memory? TokenizerError for an unsafe step."""
    _check_patterns(content)
    before, after = _Cost(), _Cost()
    for step in _steps(content, "normalizer"):
        before.add(*_normalizer(step))
    for step in _steps(content, "pre_tokenizer"):
        before.add(*_pre_tokenizer(step))
    for step in _steps(content, "post_processor"):
        _is_one_of(step, _POST_PROCESSORS, "post-processor")
        _template(step)
    for step in _steps(content, "decoder"):
        _is_one_of(step, _DECODERS, "decoder")
        after.add(*(_replace(step) if step["type"] == "Replace" else (_DECODERS[step["type"]], True)))
    quick_before, quick_after = before.checked("normalizer"), after.checked("decoder")
    return quick_before and quick_after


def _check_patterns(content: dict) -> None:
    length = sum(len(text) for text in _patterns([content.get(name) for name in KINDS]) if isinstance(text, str))
    if length > PATTERNS:
        raise TokenizerError(f"its regular expressions have {length:,} characters, and at most {PATTERNS:,} are read")


def _steps(content: dict, name: str) -> list[dict]:
    """The steps of one kind, in order, taken out of their sequences."""
    steps, waiting = [], [content.get(name)]
    while waiting:
        step = waiting.pop(0)
        if step is None:
            continue
        if not isinstance(step, dict) or not isinstance(step.get("type"), str):
            raise TokenizerError(f"its {name} must be an object with a type")
        if step["type"] == "Sequence":
            inner = next((step[key] for key in _LISTS if isinstance(step.get(key), list)), None)
            if inner is None:
                raise TokenizerError(f"its {name} is an empty sequence")
            waiting = inner + waiting
        else:
            steps.append(step)
        if len(steps) + len(waiting) > STEPS:
            raise TokenizerError(f"its {name} has more than {STEPS} steps")
    return steps


def _is_one_of(step: dict, safe: set[str] | dict, what: str) -> None:
    if step["type"] not in safe:
        raise TokenizerError(f"its {what} {step['type'][:80]!r} is not one that is known to be safe")


def _normalizer(step: dict) -> tuple[int, bool]:
    """How many times longer a text can become, and whether this takes time linear in its length."""
    _is_one_of(step, _NORMALIZERS, "normalizer")
    if step["type"] == "Replace":
        return _replace(step)
    if step["type"] == "Precompiled":
        return _longest_mapping(step.get("precompiled_charsmap")), True
    if step["type"] == "Prepend":
        short_text(step.get("prepend", ""), "what its normalizer prepends")
    return _NORMALIZERS[step["type"]], True


def _pre_tokenizer(step: dict) -> tuple[int, bool]:
    _is_one_of(step, _PRE_TOKENIZERS, "pre-tokenizer")
    if step["type"] == "FixedLength" and (type(step.get("length")) is not int or step["length"] < 1):
        raise TokenizerError("the length of its parts must be a whole number of at least 1")
    return _PRE_TOKENIZERS[step["type"]], "pattern" not in step or _pattern(step)


def _replace(step: dict) -> tuple[int, bool]:
    content = short_text(step.get("content", ""), "what it replaces with")
    linear = _pattern(step)
    ((kind, text),) = step["pattern"].items()
    shortest = len(text) if kind == "String" else regex_rules.shortest_match(text)
    return max(1, -(-len(content) // shortest) if shortest else 1 + len(content)), linear


def _pattern(step: dict) -> bool:
    """Does the pattern of a step take time linear in the text? TokenizerError for an unsafe pattern."""
    pattern = step.get("pattern")
    kind, text = next(iter(pattern.items())) if isinstance(pattern, dict) and len(pattern) == 1 else (None, None)
    if kind not in ("String", "Regex") or not isinstance(text, str) or not text:
        raise TokenizerError("it looks for a pattern that is neither a text nor a regular expression")
    if kind == "String":
        short_text(text, "what it looks for")
        return True
    if text in OUR_PATTERNS:
        return True
    try:
        return regex_rules.is_linear(text)
    except RegexError as error:
        raise TokenizerError(f"its regular expression {text[:80]!r} is not known to be safe: {error}") from None


def _longest_mapping(charsmap: Any) -> int:
    """The size in bytes of the longest replacement of a character in a compiled table of sentencepiece.

    The table is the size of its index (four bytes, little-endian), the index, and the texts, each with a zero byte
    after it."""
    try:
        table = base64.b64decode(charsmap or "", validate=True)
    except (binascii.Error, TypeError, ValueError):
        raise TokenizerError("its table of characters is not base64") from None
    if not table:
        return 1
    start = 4 + int.from_bytes(table[:4], "little")
    if start > len(table):
        raise TokenizerError("its table of characters is incomplete")
    return max(1, *map(len, table[start:].split(b"\0")))


def _template(step: dict) -> None:
    """Check that the template holds the text at most once, with few tokens around it."""
    for name in ("single", "pair"):
        template = step.get(name, [])
        if not isinstance(template, list) or len(template) > STEPS:
            raise TokenizerError(f"its template must have at most {STEPS} parts")
        texts = [str(part["Sequence"]) for part in template if isinstance(part, dict) and "Sequence" in part]
        if len(texts) > len(set(texts)):
            raise TokenizerError("its template repeats the text")
    added = step.get("special_tokens", {})
    values = added.values() if isinstance(added, dict) else []
    if len(values) > STEPS or any(isinstance(value, dict) and len(value.get("ids") or []) > STEPS for value in values):
        raise TokenizerError(f"its template adds more than {STEPS} tokens in a place")


def numbers(content: dict) -> Iterator[object]:
    """The ids of the pieces that its post-processor puts around a text."""
    for step in _steps(content, "post_processor"):
        added = step.get("special_tokens", {})
        for token in added.values() if isinstance(added, dict) else added if isinstance(added, list) else ():
            yield from (token.get("ids") or []) if isinstance(token, dict) else ()
        for name in ("sep", "cls"):  # of BERT and RoBERTa: a piece and its number
            yield from step[name][1:2] if isinstance(step.get(name), list) else ()


def short_text(text: object, what: str) -> str:
    """A text of at most LONG characters. Raises TokenizerError."""
    if not isinstance(text, str) or len(text) > LONG:
        raise TokenizerError(f"{what} must be a text of at most {LONG} characters")
    return text


def _patterns(value: object) -> list:
    """Every regular expression in the JSON of steps, with repetitions."""
    patterns, waiting = [], [value]  # no calls within calls: JSON may be as deep as Python allows
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict) and "Regex" in part:
            patterns.append(part["Regex"])
        elif isinstance(part, dict | list):
            waiting += part.values() if isinstance(part, dict) else part
    return patterns


def _ours() -> frozenset[str]:
    steps = [step for style in styles.STYLES.values() for step in (style.normalizer, style.pre_tokenizer)]
    return frozenset(_patterns([json.loads(step.__getstate__()) for step in steps]))


OUR_PATTERNS = _ours()  # of the writing styles; all take time in proportion to the text
