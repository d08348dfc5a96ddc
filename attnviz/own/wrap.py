"""A person's attention as a mechanism: it trains in a decoder, is loaded, traced and drawn like those that ship."""

import copy
from collections.abc import Callable, Mapping
from functools import partial

import torch
from torch import Tensor

from attnviz import mechanisms
from attnviz.attention import Attention
from attnviz.mechanisms import Mechanism
from attnviz.own.forms import Inputs, Subject
from attnviz.own.recognise import recognise
from attnviz.own.source import Sizes, load

NAME = "yours"
_ORDERS = {"previous": "before", "current": "after"}
_FREE = 128  # width of a decoder whose attention takes any
# Of a class that is built for a decoder: keys twice as wide as the query, or else as wide.
_OF_A_DECODER = (Sizes(64, 128, 128, 64, dropout=0.0), Sizes(64, 64, 64, 64, dropout=0.0))


class Yours(Attention):
    """A score whose weights are those of a person's module. Where it takes no mask, the weights of visible keys are
    divided by their sum: what a softmax over these keys gives."""

    name = NAME

    def __init__(self, subject: Subject, dropout: float = 0.0):
        super().__init__(dropout)
        self.subject = Subject(copy.deepcopy(subject.target), subject.form, subject.title)
        self.module = self.subject.module  # registered, so that its parameters train and are saved
        if self.module is not None:
            self.module.to(torch.empty(0).device)  # where the network is built: on `meta` for shapes alone
        self.widths = subject.form.widths[:2] if self.module else None

    def score(self, query: Tensor, prepared: Tensor) -> Tensor:
        """The logarithms of the weights: softmax gives the weights back, whatever the module computes within."""
        return self._weights(query, prepared, None).clamp_min(1e-30).log()

    def read(self, query, prepared, values, mask=None, reweigh=None):
        weights = self._weights(query, prepared, mask)
        if reweigh is not None:
            weights = reweigh(weights, mask)
        return weights @ values, weights

    def _weights(self, query: Tensor, keys: Tensor, mask: Tensor | None) -> Tensor:
        """query (B, T, Dq), keys (B, S, Dk), mask (B, 1, S) -> weights (B, T, S), the mean of its heads."""
        form = self.subject.form
        own = keys.new_zeros(*keys.shape[:2], form.widths[2]) if form.separate else keys
        takes = form.mask is not None and "B" in form.mask.axes
        visible = mask[:, 0] if mask is not None and takes else None
        inputs = Inputs(query, keys, own, visible)
        weights = (self.subject.weights if self.training else self._evaluated)(inputs).mean(dim=1)
        if mask is not None and not takes:
            weights = weights * mask
            weights = weights / weights.sum(dim=-1, keepdim=True).clamp_min(1e-30)
        return weights

    def _evaluated(self, inputs: Inputs) -> Tensor:
        """The weights without dropout, also that which a module leaves on in evaluation."""
        return self.subject.run(inputs).weights


def wrap(module: Callable, name: str = NAME, order: str = "current", title: str = "") -> Mechanism:
    """Add a module as the mechanism `name`, and return it. Then `training_config` and `train` take its name.

    title : what the module is called, by default its class.

    order : the query is the decoder's `previous` state, as Bahdanau has it, or the `current` one, as Luong has it. The
    decoder has the width of the module's query; keys are as wide, or twice as wide. Only its weights are used: the
    decoder weights its own values, so a projection of values or of the context does not train.
    ValueError for self-attention and other widths; NotRecognised.
    """
    if order not in _ORDERS:
        raise ValueError(f"order must be {' or '.join(_ORDERS)}; got {order!r:.80}")
    if isinstance(module, type) or not callable(module):
        raise ValueError(f"module must be a module that is built, or a function; got {module!r:.80}")
    with torch.no_grad():
        subject = recognise(module, title)
    query, keys = subject.form.widths[:2]
    if subject.form.itself:
        raise ValueError(f"{subject.title} is self-attention: it has no query for the state of a decoder")
    if keys not in (query, 2 * query):
        raise ValueError(f"keys must be as wide as the query, or twice as wide; got {keys} and {query}")
    learns = subject.module is not None and any(True for _ in subject.module.parameters())
    size = {"width": query if learns else _FREE, "embedding_width": 64, "dropout": 0.0}
    mechanism = Mechanism(
        name,
        f"Yours · {subject.title}",
        words=f"An attention of your own, {subject.title}.",
        asks=_ORDERS[order],
        score=partial(_score, subject),
        summed=keys == query,
        training=mechanisms.RECURRENT | {"options": size},
        training_on={"reverse": {"epochs": 6, "learning_rate": 1e-3, "options": size}},
    )
    return mechanisms.add(mechanism)


def of_file(place: str, settings: Mapping[str, object] | None = None, order: str = "current") -> Mechanism:
    """The module that `FILE.py:Class` names as the mechanism `yours`, in sizes that a decoder can take.

    ValueError where the file does not run, or where no sizes fit; then settings may.
    """
    import torch._prims.rng_prims  # noqa: F401, the process of the models leaves it out, and torch.Generator needs it

    problems = []
    for sizes in _OF_A_DECODER:
        built = load(place, settings, sizes)
        try:
            return wrap(built.target, NAME, order, built.title)
        except ValueError as error:
            problems.append(error)
    raise problems[-1]


def _score(subject: Subject, dropout: float = 0.0) -> Attention:
    return Yours(subject, dropout)
