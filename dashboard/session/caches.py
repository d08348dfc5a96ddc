"""Values that all sessions share because they cannot change: models and traces. One page has its own in its folder.

Models are traced by the model service, in processes of their own (`attnviz.service`). Here trained models are loaded
only for operations that change them, such as switching heads off; those of the transformers library never are.

Each function takes names and texts. Behind it is a cached one that also takes a stamp of the model's files, so that a
model whose files have changed is read again.
"""

import contextlib
import functools
import math
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import streamlit as st

from attnviz import service, storage
from attnviz.across import reference as references
from attnviz.data import MOST_PIECES
from attnviz.mechanisms import MECHANISMS
from attnviz.models import checkpoint_files, checkpoint_values, weights_header
from attnviz.models.names import CARD, RUN, HuggingFaceName, ModelName, is_hugging_face
from attnviz.service import Request
from dashboard.choices import settings
from dashboard.choices.options import LIMIT
from dashboard.session import catalogue
from dashboard.session.traces import Requested, Traces, size

Value = TypeVar("Value")
_LOOK = 0.1  # s between two looks at the steps of work
_SLICE = 0.3  # s of heads that are measured in one go
_BLOCK = 32  # tokens written at once
_ONE_AT_A_TIME = threading.RLock()  # two first visitors would start two services


def model(name: str):
    """A trained model, ready to trace. Raises ValueError."""
    return _trained(*key(name))


def work(name: str, function: str, *arguments, on_step: Callable[[], None] | None = None, **options):
    """What is done with any model (`service.Work`, whose `language` and `steps` may be among the options): here, or of
    a model of the transformers library in its own process. on_step : called at each step; an exception that it raises
    ends the work. Raises ValueError."""
    how = {part: options.pop(part, "") for part in ("language", "steps")}
    wanted = service.Work(function, arguments, tuple(options.items()), **how)
    if not is_hugging_face(name):
        return wanted.done(model(name), on_step or (lambda: None))
    (future,), done = model_service().submit([replace(request(name, "", None, 1), work=wanted)]), 0
    try:
        while wait([future], _LOOK).not_done and on_step:
            for _ in range(future.steps - done):
                done += 1
                on_step()
        return future.result()
    except BaseException:  # the run of the page ends, as when a person has typed again
        model_service().stop(future)
        raise


def guest(name: str) -> service.Guest:
    """What is known of a model of the transformers library before it reads a text. Raises ValueError."""
    with st.spinner("Reading the model …"):
        return answers().get(replace(request(name, "", None, 1), described=True))


def ask(names: Sequence[str], text: str, target: str | None = None, beam: int = 1) -> Requested:
    """Request traces of a text from models, all at once; `trace` then returns each. Raises ServiceError."""
    return answers().ask([request(name, text, target, beam) for name in names])


def trace(name: str, text: str, target: str | None = None, beam: int = 1):
    """The trace of a text by any model, with its own output (translation, label, or none), or forced to `target`;
    computed once. Raises ValueError."""
    return answers().get(request(name, text, target, beam))


def start_models() -> None:
    """Start the model service before the first request. If it fails to start, the first request reports
    the error."""
    with contextlib.suppress(service.ServiceError):
        model_service()


def state_of(futures: Sequence[Future]) -> str:
    """The state of requests: see `attnviz.service.Service`."""
    return model_service().state_of(futures)


def windows(trace) -> tuple[tuple[float, float], ...]:
    """Where local attention predicts its place at each step of a trace (`inside.windows`); () for other mechanisms."""
    local = not is_hugging_face(trace.model) and MECHANISMS[trace.mechanism].local
    return _windows(*key(trace.model), trace.text, trace.translation, trace.forced, trace) if local else ()


def written(name: str, text: str, writing):
    """The trace of a text with its continuation (`options.Writing`). Steps are written in blocks, and cut to those
    shown. Raises ValueError."""
    if not writing.steps:
        return trace(name, text)
    from attnviz.models.writer import beginning

    steps = -(-writing.steps // _BLOCK) * _BLOCK
    how = {"top_k": writing.top_k, "top_p": writing.top_p, "seed": writing.seed, "choices": dict(writing.choices)}
    value_key = ("written", key(name), text, replace(writing, steps=steps))
    whole = keep(value_key, lambda: work(name, ":write", text, steps, writing.temperature, **how))
    return beginning(whole, whole.given + writing.steps)


def candidates(name: str, trace, writing):
    """The tokens that may come next after a trace (`Writer.candidates`)."""
    from attnviz.networks.writing import Sampling

    how = Sampling(writing.temperature, writing.top_k, writing.top_p, writing.seed)
    return work(name, ":candidates", trace, None, how)


def stream(name: str, trace) -> tuple:
    """The predictions of a model that writes after each layer, the parts of each logit (or the reason why there are
    none), and the logit of the last token from a full pass. Raises ValueError."""
    layers = work(name, ":lens", trace)
    try:
        return layers, work(name, ":contributions", trace), work(name, ":logit", trace)
    except ValueError as error:  # of a family that is not known well enough
        return layers, str(error), None


def uploaded(file, reading=None):
    """The trace in a file that was uploaded (Streamlit's), read once while there is room. reading : of arrays, see
    `attnviz.trace.uploads`. Raises ValueError."""
    from attnviz.trace import uploads

    reading = reading or uploads.Reading()
    return keep(("file", file.file_id, reading), lambda: uploads.unpack(file.getvalue(), file.name, reading))


def effect(name: str, text: str, off: tuple, target: str | None = None):
    """A model's output for a text without some heads (`attnviz.heads.Head`), computed once. target : the output, if
    forced."""

    def measure():
        with st.spinner("Computing again without them …"):
            return work(name, "ablation:effect", off, text, target)

    value_key = ("effect", key(name), text, off, target)
    return keep(value_key, measure, lambda made: sum(map(size, (made.before, made.after, made.free))))


def keep(value_key: tuple, maker: Callable[[], Value], taken: Callable[[Value], int] = size) -> Value:
    """The result of `maker`, a large value, stored in the shared cache of traces. taken : its bytes. Raises what
    `maker` raises."""
    return answers().make(value_key, maker, taken)


def importance(name: str, text: str, target: str | None, only: list):
    """The heads of `only` switched off in turn: an iterator that can be stopped at any time."""
    from attnviz import ablation

    if not is_hugging_face(name):
        yield from ablation.importance(model(name), text, target, only)
    while is_hugging_face(name) and only:
        some = work(name, "ablation:some_importance", text, _with_all(name, text, target), only, _SLICE)
        yield from some
        only = only[len(some) :]


def _with_all(name: str, text: str, target: str | None) -> tuple[str | None, float]:
    """The output that is measured, and its log-probability with all heads, computed once."""
    value_key = ("all heads", key(name), text, target)
    return keep(value_key, lambda: work(name, "ablation:with_all", text, target), lambda made: 99)


def measure(choices, shown):
    """The table of heads (`HeadsChoices` and the trace at the level shown), computed once; not to be written to."""
    return _table(
        (*choices.source.key, choices.output, choices.writing),
        choices.text,
        choices.kind,
        choices.words,
        choices,
        shown,
    )


def nearest(choices, shown, head):
    """The other heads by their distance from one head, of the trace at the level shown; computed once; not to be
    written to."""
    return _nearest((*choices.source.key, choices.output, choices.writing), choices.text, choices.words, head, shown)


def fingerprint(name: str) -> str:
    """SHA-256 of a trained model's weights; "" of other models."""
    return "" if is_hugging_face(name) else _fingerprint(*key(name))


def context_width(name: str) -> int:
    """The width of the vector that represents the sentence in a model without attention."""
    return weights_header.shapes(checkpoint_files.weights(name, catalogue.root_of(name)))["summary.weight"][0]


def card(name: str) -> dict:
    """The card of a model, and `bytes` of its weights; {} when the card cannot be read."""
    return _card(*card_key(name))


@catalogue.once
def card_key(name: str) -> tuple[str, str, tuple]:
    """Like `key`, for the files that the card describes."""
    root = catalogue.root_of(name)
    weights = checkpoint_files.weights(name, root)
    return name, str(root), storage.stamp(root / name / CARD, weights, root / name / RUN)


def study(name: str) -> dict:
    """The results of a study of the shipped models (`attnviz.studies`); {} if it has not been run or cannot be read."""
    file = catalogue.study_file(name)
    return _study(str(file), storage.stamp(file))


def parse(text: str, facts):
    """The dependencies of an English text (`attnviz.syntax.Parse`): the shipped ones, or spaCy's if installed; None if
    there are none. facts : the task, which has the language."""
    from attnviz import syntax

    shipped = syntax.shipped().get(text) or syntax.examples().get(text)
    return shipped or (_parsed(text) if facts.source == "en" else None)


def one_by_one(models: Sequence[str], text: str) -> tuple[str, ...]:
    """The sentences of a text that is longer than those that one of the models learnt from (`sentences.one_by_one`);
    () if the text is read whole, or the files of the models cannot be read."""
    from attnviz.data import sentences

    if not models or len(text) > LIMIT:
        return ()
    limits = (card(model).get("longest") for model in models)
    longest = min((limit for limit in limits if type(limit) is int and limit > 0), default=MOST_PIECES)
    name = ModelName.parse(models[0])

    def pieces(whole: str) -> int:
        from attnviz.data.tokenizer_rules import contained
        from attnviz.models import checkpoints

        with contained():
            tokenizer = checkpoints.load_tokenizer(name.pair, catalogue.root_of(models[0]))
            return len(sentences.read(whole, tokenizer).ids)

    try:
        return sentences.one_by_one(text, pieces, longest, name.task.source)
    except ValueError:  # whoever traces the text says what is wrong
        return ()


def ask_all(models: Sequence[str], texts: Sequence[str], beam: int) -> Requested:
    """Request traces of several texts from several trained models, all at once. Raises ServiceError."""
    return answers().ask([request(name, text, None, beam) for name in models for text in texts])


def ask_hypotheses(models: Sequence[str], text: str, beam: int) -> Requested:
    """Request the final hypotheses of a beam from trained models, all at once. Raises ServiceError."""
    return answers().ask([_hypotheses(name, text, beam) for name in models])


def hypotheses(name: str, text: str, beam: int) -> tuple:
    """The final hypotheses of a model's beam (`attnviz.trace.Hypothesis`), the best first; () unless available."""
    return answers().if_there(_hypotheses(name, text, beam)) or ()


def _hypotheses(name: str, text: str, beam: int) -> Request:
    return replace(request(name, text, None, beam), hypotheses=True)


def translations(name: str, texts: Sequence[str], beam: int) -> list[str]:
    """A model's translations of requested texts; [] unless all are available."""
    traces = [answers().if_there(request(name, text, None, beam)) for text in texts]
    return [trace.translation for trace in traces] if all(traces) else []


@catalogue.once
def key(name: str) -> tuple[str, str, tuple]:
    """Name, root (of a model of the transformers library its place), and a stamp that changes when a file of the model
    does."""
    if is_hugging_face(name):
        place = catalogue.place_of(name)
        return name, place, storage.stamp(*HuggingFaceName(place).files(checkpoint_files.ROOT))
    root = catalogue.root_of(name)
    return name, str(root), storage.stamp(*ModelName.parse(name).files(root))


@st.cache_resource(show_spinner="Reading the trained models …", max_entries=32)
def _trained(name: str, root: str, stamp: tuple):
    from attnviz import loading
    from attnviz.models import machine

    return loading.load_checkpoint(name, Path(root), machine.THREADS)


# These two last as long as the server, so they are in no cache of Streamlit, which can be cleared.
def model_service() -> service.Service:
    """The single service of this server. Raises ServiceError if it cannot start."""
    with _ONE_AT_A_TIME:
        return _opened_service()


def answers() -> Traces:
    """The answers of the model service, for all sessions."""
    with _ONE_AT_A_TIME:
        return _empty_answers()


@functools.cache
def _opened_service() -> service.Service:
    return service.open_service(settings.value(settings.IDLE) or math.inf)


@functools.cache
def _empty_answers() -> Traces:
    return Traces(model_service, settings.bytes_of(settings.CACHE))


def request(name: str, text: str, target: str | None, beam: int) -> Request:
    name, root, stamp = key(name)
    return Request(name, text, target, beam, root, stamp)


@st.cache_resource(show_spinner=False, max_entries=64)
def _windows(name: str, root: str, stamp: tuple, text: str, translation: str, forced: bool, _trace):
    from attnviz import inside

    return inside.windows(_trained(name, root, stamp), _trace)


@st.cache_resource(show_spinner="Measuring every head …", max_entries=64)
def _table(source: tuple, text: str, kind: str, words: bool, _choices, _shown):
    from attnviz import heads

    return heads.table(_shown, _choices.kind)


@st.cache_resource(show_spinner=False, max_entries=64)
def _nearest(source: tuple, text: str, words: bool, head, _shown):
    from attnviz import heads

    return heads.nearest(_shown, head)


@st.cache_resource(show_spinner=False, max_entries=32)
def _fingerprint(name: str, root: str, stamp: tuple) -> str:
    from attnviz.models import checkpoint_files

    return checkpoint_files.fingerprint(name, Path(root))


@st.cache_resource(show_spinner="Parsing the sentence …", max_entries=256)
def _parsed(text: str):
    from attnviz import syntax

    return syntax.parse_with_spacy(text) if syntax.spacy_models() else None


@functools.lru_cache(64)  # asked for at every edit: Streamlit's caches take ten times as long to find a value
def _card(name: str, root: str, stamp: tuple) -> dict:
    _, weights, _ = stamp
    card: dict = {}
    with catalogue.without_damaged(name):
        card = checkpoint_files.read_card(name, Path(root))
    return card | ({"bytes": weights[0]} if weights else {})


@st.cache_resource(show_spinner=False, max_entries=8)
def _study(file: str, stamp: tuple) -> dict:
    if stamp[0] is None:
        return {}
    with catalogue.without_damaged(file):
        return checkpoint_values.study(checkpoint_files.read_json(Path(file)))
    return {}


@catalogue.once
def reference(name: str) -> references.Reference | None:
    """The statistics of a model on its test set; None if there are none, or if they were measured with other
    weights."""
    file = catalogue.root_of(name) / name / references.FILE
    measured = _reference(str(file), storage.stamp(file)) if file.is_file() else None
    return measured if measured and measured.weights_sha256 == card(name).get("weights_sha256") else None


@functools.lru_cache(64)
def _reference(file: str, stamp: tuple) -> references.Reference | None:
    with catalogue.without_damaged(file):
        return references.read(Path(file))
    return None
