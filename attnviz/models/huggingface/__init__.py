"""Models for the transformers library, from a folder or from the Hugging Face hub; here their errors, in one sentence
each."""

import contextlib
import re
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from attnviz.arguments import cut
from attnviz.data import tokenizer_rules
from attnviz.data.tokenizer_rules import TokenizerError

# What the library raises where the settings of a tokenizer or a model are not what it expects, ValueError apart.
LIBRARY_ERRORS = (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, RuntimeError)
_MORE_THAN_TEXT = re.compile(  # in errors of models
    r"(?:missing \d+ required positional arguments?:|[Ee]xactly (?:1|one) of|to specify either) ([\w'`, ]+)"
)
_NEAR = 1e-3  # of sums of weights


class ModelError(ValueError):
    """A model that cannot be shown; the message says why and, where there is a way, what to do."""


class FileError(ValueError):
    """A file of a model that is refused; the message names it and says why."""


def why_no_weights(layer: Any) -> str:
    """Why a layer's output cannot be one row of weights per token, in words; "" if it can."""
    if not hasattr(layer, "ndim"):
        return (
            "each layer returns several arrays, of blocks of tokens and of global ones, and not one row of weights for "
            "each token"
        )
    if layer.ndim == 3:
        return f"the library returns one vector for each token, {tuple(layer.shape)}, in place of weights"
    if layer.ndim != 4:
        blocks = "it attends within blocks, and " if layer.ndim == 5 else ""
        words = f"{blocks}the library returns arrays of {layer.ndim} axes, {tuple(layer.shape)}, whose rows are not"
        return f"{words} those of the tokens"
    below = "the library returns numbers below 0, such as scores before the softmax, and no weights"
    return below if (layer < 0).any() else ""


def why_rows_lack(sums: dict[str, list[Any]]) -> str:
    """Why rows of weights sum to less than 1, in words; "" if none do. sums : kind -> sums (1, H, Q) of each layer."""
    decoder, cross = (sums.get(kind, []) for kind in ("decoder", "cross"))
    if cross and all((own + source - 1).abs().max() < _NEAR for own, source in zip(decoder, cross, strict=True)):
        return "its decoder has one softmax over its own tokens and the source, so the rows of neither alone sum to 1"
    if any((of_layer < 1 - _NEAR).any() for layers in sums.values() for of_layer in layers):
        return "the library leaves out some of the weights, such as those on tokens that the model puts before a text"
    return ""


def read(name: str, what: str, reader: Callable[[], Any]) -> Any:
    """The result of `reader`; all its errors become a ModelError. name : of the model. what : what is read, in
    words."""
    try:
        with tokenizer_rules.contained():
            return reader()
    except Exception as error:  # the files are a stranger's, and four libraries read them: any class of error may come
        if "trust_remote_code" in str(error):
            raise ModelError(
                f"{name}: it needs its own code, which is never run here; only models that are part of the "
                "transformers library can be shown"
            ) from None
        if "ignore_mismatched_sizes" in str(error):
            raise ModelError(
                f"{name}: its config.json and its weights disagree on the sizes of the model; they do not belong "
                "together"
            ) from None
        if wanted := _MORE_THAN_TEXT.search(str(error)):
            inputs = re.sub(r" has to be.*|['`]", "", wanted[1]).strip()
            raise ModelError(f"{name}: it reads more than a text, such as {inputs}, so it cannot be shown") from None
        if isinstance(error, ImportError) and (library := re.search(r"requires the (\w+) library", str(error))):
            raise ModelError(f"{name}: it needs the {library[1]} library: pip install {library[1]}") from None
        if unknown := re.search(r"model type `([^`]+)`", str(error)):
            raise ModelError(
                f"{name}: this version of the transformers library has no models of type {unknown[1]:.80}; a newer "
                "one may"
            ) from None
        if unknown := re.search(r"Unrecognized configuration class <class '[\w.]*?(\w+)'>", str(error)):
            raise ModelError(
                f"{name}: no automatic class of the transformers library takes a {unknown[1]}; it may be a part of a "
                "larger model, which can be tried, or read something else than text"
            ) from None
        raise ModelError(f"{name}: {what} cannot be read: {one_line(error)}") from None


@contextlib.contextmanager
def naming(name: str) -> Iterator[None]:
    """In this block, errors in the files of a model become a ModelError with the name of the model."""
    try:
        yield
    except FileError as error:
        raise ModelError(f"{name}: {error}") from None
    except TokenizerError as error:
        raise ModelError(f"{name}: its tokenizer cannot be read: {error}") from None


@contextlib.contextmanager
def quiet(library: ModuleType) -> Iterator[None]:
    """In this block the library's reports and progress bars are silent; its errors are raised."""
    log = library.utils.logging
    before, bars = log.get_verbosity(), log.is_progress_bar_enabled()
    log.set_verbosity(log.CRITICAL)
    log.disable_progress_bar()
    try:
        yield
    finally:
        log.set_verbosity(before)
        if bars:
            log.enable_progress_bar()


def one_line(error: Exception) -> str:
    """An error in one line of at most 200 characters."""
    text = f"{error} is missing in it" if isinstance(error, KeyError) else str(error)
    text = " ".join(text.split()).rstrip(".") or type(error).__name__
    return cut(text, 200)
