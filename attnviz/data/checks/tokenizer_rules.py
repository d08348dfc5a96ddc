"""Checks of a tokenizer.json. It is read as data, before the tokenizers library builds anything from it.

A tokenizer is a small program: a pattern can take for ever, a replacement can make gigabytes of a sentence, padding can
ask for a billion tokens. Only the steps listed here, which are safe on any text, are accepted. `check` returns the
content without padding, truncation and dropout, which traces do not use.
"""

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from attnviz import storage
from attnviz.data.checks import tokenizer_steps
from attnviz.data.checks.tokenizer_steps import TokenizerError, short_text

LARGEST = 64 * 2**20  # bytes of the file
PIECES = 2_000_000
LETTERS = 4 * 2**20  # bytes of all pieces of a Unigram model, and of all added tokens
PARTS = ("version", "added_tokens")  # of the file, beside its model and the kinds of steps
WORD = 1000  # characters of a word that WordPiece tries to divide
CHARACTERS = 20_000  # of a text that is given to a tokenizer

_MODELS = {"BPE", "Unigram", "WordLevel", "WordPiece"}


def read(path: Path) -> tuple[dict, bool]:
    """The content of a tokenizer.json as `check` returns it. Raises TokenizerError, OSError."""
    try:
        content = storage.parse_json(storage.read(path, LARGEST))
    except ValueError as error:
        raise TokenizerError(str(error)) from None
    return check(content)


@contextlib.contextmanager
def contained() -> Iterator[None]:
    """For calls of the tokenizers library, which raises plain Exception, and PanicException (a BaseException) where its
    Rust code panics. Both become TokenizerError."""
    try:
        yield
    except BaseException as error:  # PanicException has no other base and no public name; the rest goes on
        if type(error) is Exception or type(error).__name__ == "PanicException":
            raise TokenizerError(f"the tokenizer failed: {' '.join(str(error).split())[:80]}") from None
        raise


def check(content: object, rows: int = PIECES) -> tuple[dict, bool]:
    """The content without padding, truncation and dropout; and whether every step takes time linear in the text.

    rows : of the embedding; every number of a piece is below it. Raises TokenizerError for a step that is not known to
    be safe.
    """
    if not isinstance(content, dict):
        raise TokenizerError(f"it must be a JSON object; got {type(content).__name__}")
    model = _model(content.get("model"))
    linear = tokenizer_steps.check(content)
    _added(content.get("added_tokens") or [])
    check_numbers(_numbers(content, model), rows)
    kept = {name: content[name] for name in (*PARTS, *tokenizer_steps.KINDS) if name in content}
    return {**kept, "model": model, "truncation": None, "padding": None}, linear


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
    if type(word) is not int or not 0 <= word:
        raise TokenizerError(f"max_input_chars_per_word must be a whole number; got {str(word)[:80]!r}")
    return {
        **model,
        **({"dropout": None} if "dropout" in model else {}),
        **({"max_input_chars_per_word": min(word, WORD)} if word else {}),
    }


def _added(tokens: object) -> None:
    """The library searches a text for all of them at once, with a table of all their characters."""
    if not isinstance(tokens, list) or len(tokens) > PIECES:
        raise TokenizerError("its added tokens must be a list")
    _check_letters((token.get("content") if isinstance(token, dict) else None for token in tokens), "added tokens")


def check_numbers(numbers: Iterable[object], rows: int) -> None:
    """Raise TokenizerError for a number of a piece that no row of the embedding has.

    The tokenizers library makes tables as long as the largest number, and ends the process where it has no memory.
    """
    for number in numbers:
        if type(number) is not int or not 0 <= number < min(rows, PIECES):
            shown = f"{number:,}" if type(number) is int and abs(number) < 10**15 else repr(number)[:40]
            raise TokenizerError(
                f"it gives a piece the number {shown}, and those of this model are 0 to {min(rows, PIECES) - 1:,}; "
                "they do not belong together"
            )


def _numbers(content: dict, model: dict) -> Iterator[object]:
    """Every number of a piece in it."""
    vocabulary = model["vocab"]
    yield from vocabulary.values() if isinstance(vocabulary, dict) else ()
    yield from (model[name] for name in ("unk_id",) if model.get(name) is not None)
    for token in content.get("added_tokens") or []:
        yield from (token[name] for name in ("id",) if isinstance(token, dict) and name in token)
    yield from tokenizer_steps.numbers(content)


def _check_letters(texts: Iterable[object], what: str) -> None:
    """Of a table of characters, each of which takes up to 280 bytes."""
    count = sum(len(text.encode("utf-8", "replace")) for text in texts if isinstance(text, str))
    if count > LETTERS:
        raise TokenizerError(f"its {what} have {count:,} bytes of text, and at most {LETTERS:,} are read")
