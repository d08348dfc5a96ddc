"""A batch of requests through the models; both services run this code in the processes with the models."""

import importlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from attnviz import loading
from attnviz.models.measured import TraceStatistics
from attnviz.models.model import Trained
from attnviz.models.names import is_hugging_face
from attnviz.models.translator import Translator
from attnviz.networks.cpu import found_at_once, quick_products
from attnviz.service.request import Guest, Request, Stopped
from attnviz.trace import Hypothesis, Trace

KEPT, GUESTS = 32, 2  # models in memory; of the transformers library, which are large
FEW = 3  # texts that are sooner checked one by one than decoded together

# a trace, its statistics, samples or hypotheses; or why there are none. What work gives may be anything else
Answer = Trace | TraceStatistics | Guest | tuple[str, ...] | tuple[Hypothesis, ...] | str

# pair and text -> models, and what each wrote: guesses at what another model will write, which costs it less then
Translations = dict[tuple[str, str], dict[str, str]]


class Models:
    """The most recently used models in memory; a model whose files have changed is read again.

    report : called with the key of a model before its files are read, and with None afterwards. on_step : called at
    each step of work; an exception that it raises stops the work.
    """

    def __init__(
        self, report: Callable[[tuple | None], None] = lambda key: None, on_step: Callable[[], None] = lambda: None
    ):
        self._report, self.on_step = report, on_step
        self._models: OrderedDict[tuple, tuple[Any, int]] = OrderedDict()  # each with its `step_weights`

    def model_for(self, request: Request):
        """The model that a request names. Raises ValueError."""
        name, root = request.model, request.root
        key = request.model_key
        if key not in self._models:
            for old in [other for other in self._models if other[:2] == (name, root)]:
                del self._models[old]
            self._report(key)
            try:
                model = _read(name, root)
            finally:
                self._report(None)
            if isinstance(model, Trained):
                found_at_once(model.model)
            self._models[key] = model, _step_weights(model)
        self._models.move_to_end(key)
        while len(self._models) > (GUESTS if is_hugging_face(name) else KEPT):
            self._models.popitem(last=False)
        return self._models[key][0]

    def step_weights(self, request: Request) -> int:
        """Approximate number of weights that a step of a model reads: all but those of its encoder. 0 if it is not in
        memory."""
        return self._models.get(request.model_key, (None, 0))[1]


def _read(name: str, root: str | None) -> Any:
    if is_hugging_face(name):
        importlib.import_module("torch._meta_registrations")  # left out by process.py, and the library needs it first
        return loading.load_from(root or "", name)
    return loading.load_checkpoint(name, Path(root) if root else None)


def _step_weights(model: Any) -> int:
    named = model.model.named_parameters()
    return sum(weights.numel() for name, weights in named if not name.startswith("encoder"))


def answers(models: Models, requests: Sequence[Request]) -> Iterator[tuple[int, Answer]]:
    """(place, answer) of each request, in groups of requests that differ only in their texts. The model with the
    cheapest steps comes first, because it takes every step; the others only verify translations as guesses.

    A batch of one text for one model has the numbers of the library bit for bit; any other, equal up to rounding.
    """
    translations: Translations = {}
    quick = len({request.model for request in requests}) > 1
    for places in sorted(_groups(requests), key=lambda places: models.step_weights(requests[places[0]])):
        group = [requests[place] for place in places]
        yield from zip(places, _group(models, group, translations, quick), strict=True)


def _groups(requests: Sequence[Request]) -> Iterable[list[int]]:
    """Groups of the requests' places; one call of a model answers a group."""
    groups: dict[Request, list[int]] = {}
    for place, request in enumerate(requests):
        key = replace(request, text="", target=None if request.target is None else "")  # all else
        groups.setdefault(key, []).append(place)
    return groups.values()


def _group(models: Models, group: Sequence[Request], translations: Translations, quick: bool) -> Iterable[Answer]:
    first = group[0]
    targets = None if first.target is None else [request.target for request in group]
    options: dict[str, Any] = {} if first.beam == 1 else {"beam": first.beam}
    options |= {"keep": ("statistics",)} if first.statistics else {}
    if first.sample_count or first.hypotheses or first.described or first.work:
        return (_several(models, request) for request in group)
    try:
        model = models.model_for(first)
        texts = [request.text for request in group]
        guesses = [_guesses(model, text, translations) for text in texts]
        with quick_products() if quick else nullcontext():
            if len(group) <= FEW and first.beam == 1 and targets is None and all(guesses):
                pairs = zip(texts, guesses, strict=True)
                traces = [trace for text, likely in pairs for trace in model.traces([text], guesses=likely, **options)]
            else:
                traces = list(model.traces(texts, targets, **options))
        for trace in traces:
            if isinstance(model, Translator) and not isinstance(trace, Exception):
                translations.setdefault((model.pair, trace.text), {})[model.name] = trace.translation
        return [str(trace) if isinstance(trace, Exception) else trace for trace in traces]
    except ValueError as error:  # a checkpoint that cannot be read, a target or a beam that does not apply
        return [str(error)] * len(group)


def _guesses(model: Any, text: str, translations: Translations) -> list[str]:
    """Other models' translations of the text."""
    of_text = translations.get((model.pair, text), {}) if isinstance(model, Translator) else {}
    return list(dict.fromkeys(guess for name, guess in of_text.items() if name != model.name))


def _several(models: Models, request: Request) -> Answer:
    """The answer to a request that is no trace: hypotheses of the beam, samples, a description of the model, or the
    result of a `Work`."""
    try:
        model = models.model_for(request)
        if request.described:
            return _guest(model)
        if request.work:
            return request.work.done(model, models.on_step)
        if not isinstance(model, Translator):
            return f"{request.model} does not translate, so it has no other translations"
        if request.hypotheses:
            return model.hypotheses(request.text, request.beam)
        return model.samples(request.text, request.sample_count)
    except (ValueError, Stopped) as error:
        return str(error)


def _guest(model: Any) -> Guest:
    why_no_ablation = ""
    try:
        model.projections()
    except ValueError as error:  # of a family that is not known well enough
        why_no_ablation = str(error)
    heads = model.head_counts.get("cross") or model.head_counts.get("decoder", (1,))
    return Guest(
        model.head_kinds,
        (len(heads), max(heads)),
        getattr(model, "languages", ()),
        model.reads_pairs,
        model.limit,
        model.context if hasattr(model, "reduced") else model.limit,
        sum(next(iter(model.head_counts.values()))),
        hasattr(model, "write"),
        why_no_ablation,
        model.why_no_log_prob,
    )
