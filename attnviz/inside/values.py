"""The results of `inside.step`, and its formula with the numbers put in. No torch here, because drawing these values
does not need it.

Letters: S source tokens, D width of query and keys, V width of values, N terms of a score.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from attnviz import lazy_pandas as pd
from attnviz import mechanisms, stats
from attnviz.arguments import brief, checked, within
from attnviz.figures.wording import listed
from attnviz.trace import Alternative, Token

SHOWN = 3  # differences written out


def _freeze(value) -> None:
    """Make every array of a frozen dataclass read-only."""
    for field in fields(value):
        array = getattr(value, field.name)
        if isinstance(array, np.ndarray):
            array.setflags(write=False)


@dataclass(frozen=True, eq=False)
class Window:
    """Where local attention looks. Luong et al. 2015, eq. 9 and 10.

    centre : the predicted place, in keys from 0. reach : keys on either side (the paper's D). gaussian (S,) : the
    factor of each key's weight before the row is divided by its sum, exp(-(s - centre)^2 / 2 (reach / 2)^2).

    >>> inside.step(model, trace, step=2).window is None  # Bahdanau's attention sees all tokens
    True
    """

    centre: float
    reach: float
    gaussian: np.ndarray

    def __post_init__(self):
        _freeze(self)


@dataclass(frozen=True, eq=False)
class Parts:
    """The score of each key as a sum of terms.

    terms (S, N) : row s sums to the score of key s (of local attention: to the score before the Gaussian's logarithm
    is added). A score function without `terms` has a single term, the score itself.
    unit : what a term belongs to, "dimension" of a dot product or "hidden unit" of v . tanh(...). extra : the names of
    the last terms, which belong to none, such as `u · h` of a biaffine score.

    >>> parts = inside.step(model, trace, step=2).parts
    >>> parts.unit, parts.terms.shape
    ('hidden unit', (6, 256))
    """

    terms: np.ndarray
    unit: str
    extra: tuple[str, ...] = ()

    __repr__ = brief

    def __post_init__(self):
        _freeze(self)

    @property
    def whole(self) -> bool:
        """Is the score a single term?"""
        return self.terms.shape[1] == 1

    @property
    def units(self) -> int:
        """The number of dimensions or hidden units."""
        return self.terms.shape[1] - len(self.extra)

    @property
    def words(self) -> str:
        """What the terms are: `128 dimensions, u · h and b`."""
        counted = f"{self.units} {self.unit}{'' if self.units == 1 else 's'}"
        return listed([counted, *self.extra])

    def name(self, number: int) -> str:
        """The name of a term: `dimension 3`, counted from 1, one of `extra`, or `the whole score`. number : from 0."""
        if number >= self.units:
            return self.extra[number - self.units]
        return "the whole score" if self.whole else f"{self.unit} {number + 1}"

    def largest(self, key: int, count: int = 10) -> list[tuple[int, float]]:
        """(number of the term, its value) of one key: all of `extra`, then the `count` others furthest from 0, the
        largest first."""
        row = self.terms[key]
        order = np.argsort(-np.abs(row[: self.units]), kind="stable")[:count]
        return [(int(place), float(row[place])) for place in (*range(self.units, len(row)), *order)]


MEAN, RUNNER_UP = "mean", "runner-up"


REFERENCES = {MEAN: "the mean of all visible tokens", RUNNER_UP: "the other token with the largest weight"}


@dataclass(frozen=True, eq=False)
class Comparison:
    """One score compared with a reference: the shared part, and the difference term by term.

    score of the key = constant + sum of `differences.terms` + gaussian. The softmax depends only on differences: a part
    that all tokens share cancels.

    reference : of REFERENCES. other : the key (from 0) whose score is the reference; None for a mean. constant : the
    score of the reference. differences (1, N) : terms of the key minus those of the reference. gaussian : the same
    difference for the logarithm of local attention's Gaussian; 0 without one.

    >>> inside.step(model, trace, step=2).compared(key=2, reference="runner-up").other
    1
    """

    reference: str
    other: int | None
    constant: float
    differences: Parts
    gaussian: float

    __repr__ = brief

    def largest(self, count: int = 10) -> list[tuple[int, float]]:
        """(number of the term, its difference), as of `Parts`."""
        return self.differences.largest(0, count)


@dataclass(frozen=True, eq=False)
class Step:
    """The computation of one head for one query, as the model does it.

    step : place of `token`, the target token that is produced, from 0. keys : the source tokens; of a model that
    writes, the tokens up to the one that it read last.
    query (D,), projected in a Transformer. asks : which state it is: "before" the step (Bahdanau), "after" it (Luong),
    "layer" (what a Transformer's layer reads), "text" (the same in a model that writes, whose keys are of that text
    too), or "always" (one query for all sentences, the classifier's).
    states : state of the decoder before and after the step, (W,) each; () where there is none.
    scores (S,) : before the softmax, with the logarithm of local attention's Gaussian. mask (S,) bool, True = visible.
    weights (S,), values (S, V), context (V,) = weights @ values.
    alternatives : the most probable next tokens, and labels of a classifier. window : of local attention, else None.
    before : the target token before it; () at the first step.
    scaling : for a Hugging Face model, the factor of q . k in the score; else None.

    >>> inside.step(model, trace, step=2).weights.round(1)
    array([0. , 0.8, 0.1, 0.1, 0. , 0. ], dtype=float32)
    """

    model: str
    mechanism: str
    step: int
    layer: int
    head: int
    token: Token
    keys: tuple[Token, ...]
    query: np.ndarray
    asks: str
    states: tuple[np.ndarray, ...]
    scores: np.ndarray
    mask: np.ndarray
    weights: np.ndarray
    values: np.ndarray
    context: np.ndarray
    parts: Parts
    alternatives: tuple[Alternative, ...]
    window: Window | None = None
    before: tuple[Token, ...] = ()
    scaling: float | None = None

    def __repr__(self) -> str:
        """One line: which step of which model, and the token that it looks at most."""
        most = self.keys[int(np.argmax(np.where(self.mask, self.weights, -1)))].text
        place = f"step {self.step}, layer {self.layer}, head {self.head}"
        return f"Step({self.model}, {place}: {self.token.text!r} looks at {most!r} ({self.weights.max():.2f}) most)"

    def __post_init__(self):
        _freeze(self)

    @property
    def weighted(self) -> np.ndarray:
        """(S, V): each value times its weight; they sum to the context."""
        return self.weights[:, None] * self.values

    def compared(self, key: int, reference: str = MEAN) -> Comparison:
        """The score of a key (from 0) beside the mean of all visible keys, or beside the runner-up: the other visible
        key with the largest weight (the key itself if there is no other).

        ValueError for a key or a reference that is not there.
        """
        within("key", key, 0, len(self.keys) - 1)
        if reference not in REFERENCES:
            raise ValueError(f"reference must be one of {', '.join(REFERENCES)}; got {reference!r:.80}")
        others = np.flatnonzero(self.mask & (np.arange(len(self.keys)) != key))
        other = int(others[self.weights[others].argmax()]) if len(others) else key
        places = np.flatnonzero(self.mask) if reference == MEAN else np.array([other])
        terms = self.parts.terms.astype(np.float64)
        logs = np.zeros(len(self.keys)) if self.window is None else self.scores - terms.sum(-1)
        return Comparison(
            reference,
            None if reference == MEAN else other,
            float(self.scores[places].mean(dtype=np.float64)),
            replace(self.parts, terms=terms[[key]] - terms[places].mean(0)),
            float(logs[key] - logs[places].mean()),
        )

    def at_temperature(self, temperature: float) -> Step:
        """The same step with the weights at that temperature (`weights_at`), and the resulting context."""
        weights = self.weights_at(temperature).astype(self.weights.dtype)
        return self if temperature == 1 else replace(self, weights=weights, context=weights @ self.values)

    def weights_at(self, temperature: float) -> np.ndarray:
        """(S,): softmax of the same scores divided by a temperature above 0; 1 gives the model's weights."""
        if not temperature > 0:  # nor NaN
            raise ValueError(f"temperature must be above 0; got {temperature}")
        return softmax(self.scores.astype(np.float64) / temperature, self.mask)


def softmax(scores: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """scores (..., S), mask (S,) bool -> weights (..., S): 0 where the mask is False; rows sum to 1."""
    visible = np.where(mask, scores, -np.inf)
    shifted = np.exp(visible - visible.max(-1, keepdims=True))
    return shifted / shifted.sum(-1, keepdims=True)


def _written(opened: Step) -> tuple[str, str, str]:
    """The score as a sum in LaTeX, the meaning of its letters, and the paper."""
    if opened.scaling is None:
        mechanism = mechanisms.find(opened.mechanism)
        return mechanism.terms, mechanism.letters, mechanism.paper
    root, plain = math.isclose(opened.scaling, len(opened.query) ** -0.5, rel_tol=1e-3), opened.scaling == 1
    factor = r" / \sqrt{d}" if root else "" if plain else rf" \cdot {opened.scaling:.4g}"
    letters = f"q is the query, k a key; {'d is the width of both; ' if root else ''}i counts dimensions"
    return rf"\sum_i q_{{t,i}} \, k_{{j,i}}{factor}", letters, "Vaswani et al. 2017, eq. 1"


@checked
def symbols(opened: Step) -> str:
    """The meaning of each letter of `formula`, as a sentence.

    >>> inside.symbols(inside.step(model, trace, step=2)).split("; ")[2]
    'W, U and v are learnt'
    """
    _, letters, _ = _written(opened)
    begun = ", of which <bos> is the first," if opened.scaling is None else ""  # of a model of the project
    tokens = f"token j{begun}" if opened.asks == "text" else "source token j"
    return (
        f"e is the score and α the weight of {tokens} at step t, both counted from 1"
        f"{'; ' if letters else ''}{letters}. The brace has the part of every token’s score that the softmax "
        "does not see. The numbers after it are differences from that part."
    )


@checked
def formula(opened: Step, key: int, reference: str = MEAN, temperature: float = 1.0) -> str:
    r"""LaTeX of the score and the weight of one key (0-based): symbols, the score of the reference (`Step.compared`),
    the largest differences from it, the result; then the weight, at a temperature above 0.

    t and j count from 1. ValueError for a key or a reference that is not there.

    >>> print(inside.formula(inside.step(model, trace, step=2), key=1).split(r" = \underbrace")[0])
    e_{3,2} = \sum_i v_i \tanh(W s_{t-1} + U h_j)_i
    """
    compared, parts = opened.compared(key, reference), opened.parts
    place, query = f"{opened.step + 1},{key + 1}", opened.step + 1
    written = compared.largest(SHOWN)
    below = r"\text{mean of all}" if compared.other is None else f"e_{{{query},{compared.other + 1}}}"
    terms = rf"\underbrace{{{compared.constant:.3f}}}_{{{below}}}"
    for number, value in written:
        terms += f"{value:+.3f}" + (rf" \text{{ ({parts.name(number)})}}" if number >= parts.units else "")
    rest = parts.terms.shape[1] - len(written)
    terms += rf" + \cdots \text{{ ({rest} more)}}" if rest else ""
    if opened.window:
        terms += rf" {compared.gaussian:+.3f} \text{{ (Gaussian)}}"
    sums = [part for part in (_written(opened)[0], terms, f"{opened.scores[key]:.3f}") if part]
    score = rf"e_{{{place}}} = {' = '.join(sums)}"
    if not opened.mask[key]:
        return rf"{score} \qquad \alpha_{{{place}}} = 0 \text{{ (outside the window)}}"
    divided = "" if temperature == 1 else f" / {temperature:g}"
    above, under = rf"\exp({opened.scores[key]:.3f}{divided})", rf"\sum_k \exp(e_{{{query},k}}{divided})"
    weight = opened.weights_at(temperature)[key]
    return rf"{score} \qquad \alpha_{{{place}}} = \frac{{{above}}}{{{under}}} = {weight:.3f}"


def paper(opened: Step) -> str:
    """The source of the mechanism's formula."""
    return _written(opened)[2]


TEMPERATURES = (0.25, 0.5, 1.0, 2.0, 4.0)


@checked
def temperatures(opened: Step, values: Sequence[float] = TEMPERATURES) -> pd.DataFrame:
    """One row per temperature: columns temperature, and entropy_nats and max_weight of the softmax of the scores
    divided by it.

    >>> inside.temperatures(inside.step(model, trace, step=2), [0.5, 2]).round(1)
       entropy_nats  max_weight  temperature
    0           0.1         1.0          0.5
    1           1.5         0.5          2.0
    """
    weights = np.stack([opened.weights_at(value) for value in values])
    measured = stats.rows(weights, visible=np.broadcast_to(opened.mask, weights.shape))
    return measured[["entropy_nats", "max_weight"]].assign(temperature=list(values)).reset_index(drop=True)


WIDTHS = (4, 8, 16, 32, 64, 128, 256, 512)


@checked
def spread(widths: Sequence[int] = WIDTHS, keys: int = 10, samples: int = 1000, seed: int = 0) -> pd.DataFrame:
    """The spread of dot products by the width of the vectors, with and without division by its root. SAMPLED: no model
    is involved.

    Queries and keys have independent standard normal components, so that a dot product has the variance of the width
    (Vaswani et al. 2017, footnote 4). One row per width and `scaled`, with columns width, scaled, deviation (standard
    deviation of the scores) and max_weight (mean largest weight among `keys` keys, over `samples` queries).

    >>> inside.spread([4, 64], samples=100)[["width", "scaled", "deviation"]].round(1)
       width  scaled  deviation
    0      4   False        2.0
    1      4    True        1.0
    2     64   False        8.1
    3     64    True        1.0
    """
    generator, rows = np.random.default_rng(seed), []
    for width in widths:
        queries = generator.standard_normal((samples, 1, width))
        products = (queries * generator.standard_normal((samples, keys, width))).sum(-1)
        for scaled in (False, True):
            scores = products / np.sqrt(width) if scaled else products
            weights = softmax(scores, np.ones(keys, dtype=bool))
            rows.append((width, scaled, float(scores.std()), float(weights.max(-1).mean())))
    return pd.DataFrame(rows, columns=["width", "scaled", "deviation", "max_weight"])
