"""Checks of a tokenizer.json. It is read as data, before the tokenizers library builds anything from it.

A tokenizer is a small program: a pattern can take for ever, a replacement can make gigabytes of a sentence, padding can
ask for a billion tokens. Only the steps listed here, which are safe on any text, are accepted. `check` returns the
content without padding, truncation and dropout, which traces do not use.
"""

import base64
import binascii
import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

from attnviz.data import styles
from attnviz.data.checks import regex_rules
from attnviz.data.checks.regex_rules import RegexError
from attnviz.storage import json_text, regular_files

LARGEST = 64 * 2**20  # bytes of the file
PIECES = 2_000_000
STEPS = 64  # of one kind
LONG = 200  # characters of a text that a step adds or looks for
GROWTH = 400  # times as long as the text that was typed it may get
WORD = 1000  # characters of a word that WordPiece tries to divide
CHARACTERS = 20_000  # of a text that is given to a tokenizer

_NORMAL_FORMS = {"NFC": 3, "NFD": 4, "NFKC": 18, "NFKD": 18, "Nmt": 1, "Lowercase": 3, "StripAccents": 1, "Strip": 1}
_NORMALIZERS = {**_NORMAL_FORMS, "BertNormalizer": 12, "ByteLevel": 4, "Prepend": 1, "Replace": 0, "Precompiled": 0}
_PRE_TOKENIZERS = {
    *(
        "BertPreTokenizer",
        "ByteLevel",
        "CharDelimiterSplit",
        "Digits",
        "FixedLength",
        "Metaspace",
        "Punctuation",
        "Split",
    ),
    *("UnicodeScripts", "Whitespace", "WhitespaceSplit"),
}
_POST_PROCESSORS = {"BertProcessing", "ByteLevel", "RobertaProcessing", "TemplateProcessing"}
_DECODERS = {"BPEDecoder", "ByteFallback", "ByteLevel", "CTC", "Fuse", "Metaspace", "Replace", "Strip", "WordPiece"}
_MODELS = {"BPE", "Unigram", "WordLevel", "WordPiece"}
_LISTS = {"normalizers", "pretokenizers", "processors", "decoders"}


class TokenizerError(ValueError):
    """A tokenizer that is not safe, or damaged; the message says why."""


def read(path: Path) -> tuple[dict, bool]:
    """The content of a tokenizer.json as `check` returns it. Raises TokenizerError, OSError."""
    try:
        content = json_text.parse(regular_files.read(path, LARGEST))
    except ValueError as error:
        raise TokenizerError(str(error)) from None
    return check(content)


@contextlib.contextmanager
def contained() -> Iterator[None]:
    """For calls of the tokenizers library, which raises plain Exception, and PanicException (a BaseException) where its
    Rust code panics. Both become TokenizerError."""
    try:
        yield
    except BaseException as error:
        if type(error) is Exception or type(error).__name__ == "PanicException":
            raise TokenizerError(f"the tokenizer broke off: {' '.join(str(error).split())[:80]}") from None
        raise


def check(content: object) -> tuple[dict, bool]:
    """The content without padding, truncation and dropout; and whether every step takes time linear in the text.

    Raises TokenizerError for a step that is not known to be safe.
    """
    if not isinstance(content, dict):
        raise TokenizerError(f"it must be a JSON object; got {type(content).__name__}")
    model = _model(content.get("model"))
    growth, linear = 1, True
    for step in _steps(content, "normalizer"):
        grown, quick = _normalizer(step)
        growth, linear = growth * grown, linear and quick
    if growth > GROWTH:
        raise TokenizerError(f"its normalizer can make a text {growth:,} times as long, and at most {GROWTH} is safe")
    for step in _steps(content, "pre_tokenizer"):
        _is_one_of(step, _PRE_TOKENIZERS, "pre-tokenizer")
        linear = _pattern(step) and linear if "pattern" in step else linear
    for step in _steps(content, "post_processor"):
        _is_one_of(step, _POST_PROCESSORS, "post-processor")
        _template(step)
    growth = 1
    for step in _steps(content, "decoder"):
        _is_one_of(step, _DECODERS, "decoder")
        if step["type"] == "Replace":
            grown, quick = _replace(step)
            growth, linear = growth * grown, linear and quick
    if growth > GROWTH:
        raise TokenizerError(f"its decoder can make a text {growth:,} times as long, and at most {GROWTH} is safe")
    added = content.get("added_tokens") or []
    if not isinstance(added, list) or len(added) > PIECES:
        raise TokenizerError("its added tokens must be a list")
    return {**content, "model": model, "truncation": None, "padding": None}, linear


def _model(model: object) -> dict:
    if not isinstance(model, dict):
        raise TokenizerError("it has no model")
    if not isinstance(kind := model.get("type", "BPE"), str) or kind not in _MODELS:
        raise TokenizerError(f"its model is of a kind that is not known: {str(model.get('type'))[:80]!r}")
    vocabulary = model.get("vocab")
    if not isinstance(vocabulary, dict | list) or len(vocabulary) > PIECES:
        raise TokenizerError(f"its vocabulary must be a list or an object of at most {PIECES:,} pieces")
    for name in ("continuing_subword_prefix", "end_of_word_suffix", "unk_token"):
        _short(model.get(name) or "", name)
    word = model.get("max_input_chars_per_word", 0)
    if type(word) is not int or not 0 <= word:
        raise TokenizerError(f"max_input_chars_per_word must be a whole number; got {str(word)[:80]!r}")
    return {
        **model,
        **({"dropout": None} if "dropout" in model else {}),
        **({"max_input_chars_per_word": min(word, WORD)} if word else {}),
    }


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
                raise TokenizerError(f"its {name} is a sequence of nothing")
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
        _short(step.get("prepend", ""), "what its normalizer prepends")
    return _NORMALIZERS[step["type"]], True


def _replace(step: dict) -> tuple[int, bool]:
    content = _short(step.get("content", ""), "what it replaces with")
    linear = _pattern(step)
    given = step["pattern"].get("String")
    return max(1, -(-len(content) // len(given)) if given else len(content) + 1 if len(content) > 1 else 1), linear


def _pattern(step: dict) -> bool:
    """Does the pattern of a step take time linear in the text? TokenizerError for one that is not safe."""
    pattern = step.get("pattern")
    kind, text = next(iter(pattern.items())) if isinstance(pattern, dict) and len(pattern) == 1 else (None, None)
    if kind not in ("String", "Regex") or not isinstance(text, str) or not text:
        raise TokenizerError("it looks for a pattern that is neither a text nor a regular expression")
    if kind == "String":
        _short(text, "what it looks for")
        return True
    if text in OUR_PATTERNS:
        return True
    try:
        return regex_rules.is_linear(text)
    except RegexError as error:
        raise TokenizerError(f"its regular expression {text[:80]!r} is not known to be safe: {error}") from None


def _longest_mapping(charsmap: object) -> int:
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
        raise TokenizerError("its table of characters is not whole")
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


def _short(text: object, what: str) -> str:
    if not isinstance(text, str) or len(text) > LONG:
        raise TokenizerError(f"{what} must be a text of at most {LONG} characters")
    return text


def _patterns(value: object) -> set[str]:
    """Every regular expression in the JSON of a step."""
    if isinstance(value, list):
        return {pattern for part in value for pattern in _patterns(part)}
    if not isinstance(value, dict):
        return set()
    return {value["Regex"]} if "Regex" in value else {pattern for part in value.values() for pattern in _patterns(part)}


def _ours() -> frozenset[str]:
    steps = [step for style in styles.STYLES.values() for step in (style.normalizer, style.pre_tokenizer)]
    return frozenset(_patterns([json.loads(step.__getstate__()) for step in steps]))


OUR_PATTERNS = _ours()  # of the writing styles; all take time in proportion to the text
