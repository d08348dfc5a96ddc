"""A batch of requests through the models: what both services run where the models are."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from attnviz import loading
from attnviz.models.measured import TraceStatistics
from attnviz.models.translator import Translator
from attnviz.service.request import Request
from attnviz.trace import Hypothesis, Trace

KEPT = 32  # models in memory

# a trace, its statistics, samples or hypotheses; or why there are none
Answer = Trace | TraceStatistics | tuple[str, ...] | tuple[Hypothesis, ...] | str

# pair and text -> a model, and what it wrote: a guess at what another model will write, which costs it less then
Translations = dict[tuple[str, str], tuple[str, str]]


class Models:
    """Models in memory, those used last; one whose files have changed is read again.

    report : is called with the key of a model before its files are read, and with None after that.
    """

    def __init__(self, report: Callable[[tuple | None], None] = lambda key: None):
        self._report = report
        self._models: OrderedDict[tuple, Any] = OrderedDict()

    def model_for(self, request: Request):
        """The model that a request names. Raises ValueError."""
        name, root = request.model, request.root
        key = request.model_key
        if key not in self._models:
            for old in [other for other in self._models if other[:2] == (name, root)]:
                del self._models[old]
            self._report(key)
            try:
                self._models[key] = loading.load_checkpoint(name, Path(root) if root else None)
            finally:
                self._report(None)
        self._models.move_to_end(key)
        while len(self._models) > KEPT:
            self._models.popitem(last=False)
        return self._models[key]

    def step_weights(self, request: Request) -> int:
        """How many weights a step of a model reads, about: all but those of its encoder. 0 if it is not in memory."""
        model = self._models.get(request.model_key)
        named = model.model.named_parameters() if model else ()
        return sum(weights.numel() for name, weights in named if not name.startswith("encoder"))


def answers(models: Models, requests: Sequence[Request]) -> Iterator[tuple[int, Answer]]:
    """(place, answer) of each request, in groups of requests that differ only in their texts: first what takes the
    shortest steps, for it has to take them all; the others check its translation."""
    translations: Translations = {}
    for places in sorted(_groups(requests), key=lambda places: models.step_weights(requests[places[0]])):
        group = [requests[place] for place in places]
        yield from zip(places, _group(models, group, translations), strict=True)


def _groups(requests: Sequence[Request]) -> Iterable[list[int]]:
    """Places of the requests that one call of a model can answer."""
    groups: dict[Request, list[int]] = {}
    for place, request in enumerate(requests):
        key = replace(request, text="", target=None if request.target is None else "")  # all else
        groups.setdefault(key, []).append(place)
    return groups.values()


def _group(models: Models, group: Sequence[Request], translations: Translations) -> Iterable[Answer]:
    first = group[0]
    targets = None if first.target is None else [request.target for request in group]
    options: dict[str, Any] = {} if first.beam == 1 else {"beam": first.beam}
    options |= {"keep": ("statistics",)} if first.statistics else {}
    if first.sample_count or first.hypotheses:
        return (_several(models, request) for request in group)
    try:
        model = models.model_for(first)
        if isinstance(model, Translator):
            name, guess = translations.get((model.pair, first.text), ("", ""))
            options["guess"] = guess if len(group) == 1 and name != model.name else ""
        traces = list(model.traces([request.text for request in group], targets, **options))
        translations |= {
            (model.pair, trace.text): (model.name, trace.translation)
            for trace in traces
            if not isinstance(trace, Exception)
        }
        return [str(trace) if isinstance(trace, Exception) else trace for trace in traces]
    except ValueError as error:  # a checkpoint that cannot be read, a target or a beam that does not apply
        return [str(error)] * len(group)


def _several(models: Models, request: Request) -> Answer:
    """Other translations of a text: what the beam ends with, or samples."""
    try:
        model = models.model_for(request)
        if not isinstance(model, Translator):
            return f"{request.model} does not translate, so it has no other translations"
        if request.hypotheses:
            return model.hypotheses(request.text, request.beam)
        return model.samples(request.text, request.sample_count)
    except ValueError as error:
        return str(error)
