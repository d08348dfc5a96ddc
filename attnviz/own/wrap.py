"""A user's attention as a mechanism: it is trained in a decoder, loaded, traced and drawn like the shipped ones."""

import copy
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attnviz import mechanisms, storage
from attnviz.attention import Attention
from attnviz.mechanisms import Mechanism
from attnviz.own.capture import ShapeChanged, Subject
from attnviz.own.checks import LIMIT, shares
from attnviz.own.forms import BEFORE, OUTPUT, Inputs
from attnviz.own.matrices import is_lazy
from attnviz.own.recognise import recognise
from attnviz.own.source import Sizes, in_words, load
from attnviz.python_file import ANYTHING

NAME = "yours"
_TRAINED = "attnviz.own.trained:network"  # imported when it is built: it needs the models, and they the mechanisms
SCORES = "Its scores are those that go into its softmax."
NO_SCORES = "It shows no scores of one head, so the logarithms of its weights stand in their place."
OF_THE_LAST = (
    " It reads the encoder's states and, as a last token, the decoder's state: its weights are those of this token on "
    "the others."
)
AT_FIRST = " The weights of the steps before are zeros at every step, so what reads them does not train."
DIVIDED = " Rows that sum to less than 1 are divided by their sums."
_ORDERS = {"previous": "before", "current": "after"}
_FREE = 128  # width of a decoder whose attention takes any
# Of a class that is built for a decoder: keys twice as wide as the query, or else as wide.
_OF_A_DECODER = (Sizes(64, 128, 128, 64, 2, 128, dropout=0.0), Sizes(64, 64, 64, 64, 2, 128, dropout=0.0))


def widened(x: Tensor, width: int) -> Tensor:
    """x (..., D) padded with zeros to a width; unchanged if it is not narrower."""
    return F.pad(x, (0, width - x.shape[-1])) if x.shape[-1] < width else x


def _divided(weights: Tensor) -> Tensor:
    return weights / weights.sum(dim=-1, keepdim=True).clamp_min(1e-30)


class Yours(Attention):
    """A score whose weights are those of a user's module, the mean of its heads. If the module takes no mask, the
    weights of visible keys are divided by their sum in each head, which equals a softmax over these keys. divided : so
    are those of every row, as of a module with a sink, whose rows sum to less than 1. sparse : some keys get exactly 0,
    so a module without a mask reads each sentence by itself. A self-attention reads the keys and, after the last
    visible one, the query: its weights are those of this token on the others, divided by their sum."""

    name = NAME

    def __init__(self, subject: Subject, dropout: float = 0.0, divided: bool = False, sparse: bool = False):
        super().__init__(dropout)
        self.divided, self.sparse = divided, sparse
        self.subject = Subject(copy.deepcopy(subject.target), subject.form, subject.title)
        self.module = self.subject.module  # registered, so that its parameters train and are saved
        if self.module is not None:
            self.module.to(torch.empty(0).device)  # where the network is built: on `meta` for shapes alone
        self.widths = subject.form.widths[:2] if self.module else None

    def _apply(self, fn, recurse=True):
        """As of nn.Module, but the person's module keeps single precision: what it makes itself, such as a tensor of a
        root, does not turn into bfloat16 with the decoder."""
        super()._apply(fn, recurse)
        if self.module is not None:
            self.module.float()
        return self

    def score(self, query: Tensor, prepared: Tensor) -> Tensor:
        """The input of the module's softmax, captured there. For several heads, or without a softmax of PyTorch, the
        logarithms of the weights, whose softmax is the weights."""
        itself = self.subject.form.itself
        tokens = self._with_last(query, prepared, None)[0] if itself else prepared
        scores = self.subject.run(self._inputs(tokens if itself else query, tokens)).scores
        if scores is None or scores.shape[1] > 1:
            return self._weights(query, prepared, None).clamp_min(1e-30).log()
        return scores[:, 0, -1, :-1].view(*query.shape[:2], -1) if itself else scores[:, 0]

    def read(self, query, prepared, values, mask=None, reweigh=None):
        weights = self._weights(query, prepared, mask).to(values.dtype)
        if reweigh is not None:
            weights = reweigh(weights, mask)
        return weights @ values, weights

    def _weights(self, query: Tensor, keys: Tensor, mask: Tensor | None) -> Tensor:
        """query (B, T, Dq), keys (B, S, Dk), mask (B, 1, S) -> weights (B, T, S), the mean of its heads."""
        itself, queries, visible = self.subject.form.itself, query.shape[1], None if mask is None else mask[:, 0]
        if itself:
            query, place = self._with_last(query, keys, visible)
            keys, visible = query, None if visible is None else torch.arange(query.shape[1]) <= place.unsqueeze(1)
        inputs = self._inputs(query, keys, visible)
        read = self.subject.weights if self.training else self._evaluated
        unread = visible if inputs.visible is None else None
        if self.sparse and unread is not None and not bool(unread.all()):
            weights = self._apart(read, inputs, unread)
        else:
            weights = read(inputs)
        if itself:
            rows = weights[:, :, 0] if weights.shape[2] == 1 else weights[torch.arange(len(place)), :, place]
            rows = rows[..., :-1] * (torch.arange(rows.shape[-1] - 1) < place.unsqueeze(1)).unsqueeze(1)
            weights = rows.unflatten(0, (-1, queries)).transpose(1, 2)
        elif unread is not None:
            weights = weights * unread[:, None, None]
        if not (self.divided or unread is not None or itself):
            return weights.mean(dim=1)
        return _divided(_divided(weights).mean(dim=1))

    def _with_last(self, query: Tensor, keys: Tensor, visible: Tensor | None) -> tuple[Tensor, Tensor]:
        """query (B, T, D), keys (B, S, D), visible (B, S) -> the tokens (B * T, S + 1, D) of a self-attention, in which
        the query follows the visible keys, and its place (B * T)."""
        batch, queries = query.shape[:2]
        place = torch.full((batch,), keys.shape[1]) if visible is None else visible.sum(dim=-1)
        place = place.repeat_interleave(queries)
        tokens = F.pad(keys, (0, 0, 0, 1)).repeat_interleave(queries, 0)
        return tokens.index_put((torch.arange(len(place)), place), query.flatten(0, 1)), place

    def _apart(self, read: Callable, inputs: Inputs, visible: Tensor) -> Tensor:
        """The weights (B, H, T, S) of sentences that the module reads without their hidden keys, which might get all
        the weight that there is; of a self-attention those of its last token. visible (B, S)."""
        parts, itself = [], self.subject.form.itself
        for row, seen in enumerate(visible):
            keys, values = inputs.keys[row, seen][None], inputs.values[row, seen][None]
            weights = read(Inputs(keys if itself else inputs.query[row, None], keys, values))[0]
            weights = weights[:, -1:] if itself else weights
            parts.append(weights.new_zeros(*weights.shape[:2], len(seen)).masked_scatter(seen, weights))
        return torch.stack(parts)

    def _inputs(self, query: Tensor, keys: Tensor, visible: Tensor | None = None) -> Inputs:
        """query (B, T, Dq), keys (B, S, Dk), visible (B, S) -> the module's inputs."""
        form = self.subject.form
        query, keys = widened(query, form.widths[0]).float(), widened(keys, form.widths[1]).float()
        own = keys.new_zeros(*keys.shape[:2], form.widths[2]) if form.separate else keys
        takes = form.mask is not None and "B" in form.mask.axes
        return Inputs(query, keys, own, visible if takes else None)

    def _evaluated(self, inputs: Inputs) -> Tensor:
        """The weights without dropout, even if a module applies it in evaluation mode."""
        return self.subject.run(inputs).weights


def wrap(module: Callable, name: str = NAME, order: str = "current", title: str = "") -> Mechanism:
    """Add a module as the mechanism `name`, and return it. Then `training_config` and `train` take its name.

    title : what the module is called, by default its class. order : the query is the decoder's `previous` state, as
    Bahdanau has it, or the `current` one, as Luong has it. The decoder has the width of the module's query; keys are as
    wide, or twice as wide (with lazy layers 64 and 128). Only its weights are used: the decoder weights its own values,
    so a projection of values or of the context does not train. A self-attention reads the encoder's states and, as a
    last token, the decoder's state.
    ValueError for pooling, which has no query, for other widths, and none of the forms that `check` supports.

    >>> own.wrap(lambda query, keys: (query @ keys.mT).softmax(-1), "mine", title="dot product").title
    'Yours · dot product'
    >>> mechanisms.remove("mine")
    """
    if order not in _ORDERS:
        raise ValueError(f"order must be {' or '.join(_ORDERS)}; got {order!r:.80}")
    if isinstance(module, type) or not callable(module):
        raise ValueError(f"module must be a module that is built, or a function; got {module!r:.80}")
    with torch.no_grad():
        subject = recognise(module, title)
        subject = _for_a_decoder(module, subject)
    query, keys = subject.form.widths[:2]
    if keys not in (query, 2 * query):
        raise ValueError(f"keys must be as wide as the query, or twice as wide; got {keys} and {query}")
    divided, sparse, notes = _rows(subject)
    learns = subject.module is not None and any(True for _ in subject.module.parameters())
    size = {"width": query if learns else _FREE, "embedding_width": 64, "dropout": 0.0}
    mechanism = Mechanism(
        name,
        f"Yours · {subject.title.partition('(')[0]}",
        words=f"An attention of your own, {subject.title}. {notes}",
        asks=_ORDERS[order],
        score=partial(Yours, subject, divided=divided, sparse=sparse),
        summed=keys == query,
        training=mechanisms.RECURRENT | {"options": size},
        training_on={"reverse": {"epochs": 6, "learning_rate": 1e-3, "options": size}},
    )
    return mechanisms.add(mechanism)


def _for_a_decoder(module: Callable, subject: Subject) -> Subject:
    """The subject; of lazy layers in the widths of a decoder. ValueError where it takes no vector as the query."""
    if subject.form.pools:
        raise ValueError(f"{subject.title} pools: it has no query for the state of a decoder")
    if subject.form.keys == "BS":
        raise ValueError(f"{subject.title} reads numbers, and the state of a decoder is a vector")
    if not is_lazy(module):
        return subject
    widths = _OF_A_DECODER[0].query, _OF_A_DECODER[0].key, _OF_A_DECODER[0].key
    made = Subject(copy.deepcopy(module), replace(subject.form, widths=widths), subject.title)
    made.run(made.inputs(1, 1, 2))  # which makes the layers
    return made


def _rows(subject: Subject) -> tuple[bool, bool, str]:
    """Are rows of weights, or those with a mask, to be divided by their sums, do some keys get exactly 0, and what is
    shown, in words. ValueError if it cannot be asked for a step of a decoder."""
    try:
        with torch.no_grad():
            inputs = subject.inputs(12, 1, 9)
            divided = shares(subject).verdict == LIMIT and not subject.form.weights.log
            weights = subject.run(inputs).weights
            if subject.form.mask is not None and "B" in subject.form.mask.axes:  # it may come after the softmax
                masked = subject.run(replace(inputs, visible=(torch.arange(9) < 5).expand(12, 9))).weights
                sums = masked.sum(dim=-1), weights.sum(dim=-1)
                divided |= bool((masked >= 0).all()) and not torch.allclose(*sums, atol=1e-3)
            scores = subject.run(subject.inputs(1, 1, 3)).scores
    except ShapeChanged as error:
        words = f"{subject.title} loses an axis of length 1, as a squeeze() without dim does: {error}"
        raise ValueError(words) from None
    except ANYTHING as error:  # a person's code may raise anything
        raise ValueError(
            f"{subject.title} cannot read 9 keys with one query: {in_words(error, 'it raises ')}"
        ) from None
    if bool((weights < -1e-6).any()):
        raise ValueError(
            f"{subject.title} gives numbers below 0, as scores are: take their softmax over the keys in it"
        )
    if bool((weights[:, :, -1, 1:] == 0).all()):
        raise ValueError(
            f"{subject.title} hides all keys but the first from one query, as a causal mask does over them"
        )
    notes = SCORES if scores is not None and scores.shape[1] == 1 else NO_SCORES
    notes += DIVIDED * divided + OF_THE_LAST * subject.form.itself + AT_FIRST * (BEFORE in subject.form.roles.values())
    if OUTPUT in subject.form.reads[:-1]:
        notes += f" The decoder's state is its {' and its '.join(map(subject.form.name_of, subject.form.reads))}."
    return divided, bool((weights[:, :, -1] == 0).any()), notes


def of_file(
    place: str, settings: Mapping[str, object] | None = None, order: str = "current", trained_as: str = ""
) -> Mechanism:
    """The module that `FILE.py:Class` names as the mechanism `yours`, in sizes that fit a decoder.

    trained_as : `digest` of the file when its models were trained, which are not opened with another.
    ValueError if the file fails, or no sizes fit (settings may then help).
    """
    problems = []
    for sizes in _OF_A_DECODER:
        built = load(place, settings, sizes)
        try:
            yours = wrap(built.target, NAME, order, built.title)
        except ValueError as error:
            problems.append(error)
        else:
            score: Any = yours.score  # a function, and no name of one
            same = partial(_as_trained, place, trained_as, score)
            return mechanisms.add(replace(yours, score=same)) if trained_as else yours
    raise problems[-1]


def digest(place: str) -> str:
    """SHA-256 of the file of `FILE.py:Class`."""
    file = place.rpartition(":")[0]
    return storage.sha256(file if file.endswith(".py") else place)


def _as_trained(place: str, trained_as: str, score: Callable, dropout: float = 0.0) -> Attention:
    """ValueError if the file is another than when it was trained: the same weights might then mean something else."""
    if digest(place) != trained_as:
        raise ValueError(
            f"{place} has changed since it was trained: run `python -m attnviz try` again, and then start this again"
        )
    return score(dropout=dropout)


def of_trained(place: str, settings: Mapping[str, object], like: str, notes: str) -> Mechanism:
    """The trained model of a mechanism `like`, with the module that `FILE.py:Class` names in it, as the mechanism
    `yours-trained`: its checkpoint is traced and drawn like those that ship. notes : of `trained.network`."""
    ours = mechanisms.find(like)
    return mechanisms.add(
        Mechanism(
            f"{NAME}-trained",
            f"Yours, trained · {Path(place.rpartition(':')[2]).stem}",
            formula=ours.formula,
            paper=ours.paper,
            words=f"Your attention in the trained model {ours.title}, with its matrices{notes and '; '}{notes}.",
            kinds=ours.kinds,
            multi_head=ours.multi_head,
            asks=ours.asks,
            network=partial(_network, place, tuple(settings.items())),
        )
    )


def _network(place: str, settings: tuple, vocabulary: int) -> nn.Module:
    """The network of `of_trained`, built once, in a thread, because loading a checkpoint activates torch modes (meta
    device, no initialisation), which do not apply in a new thread."""
    from attnviz.networks.registry import named

    with ThreadPoolExecutor(1) as alone:
        _, network, _ = alone.submit(named(_TRAINED), place, settings).result()
    return copy.deepcopy(network).to(torch.get_default_device())
