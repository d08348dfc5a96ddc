"""A mechanism's formula with the numbers of one score and weight put in, in LaTeX."""

from typing import NamedTuple

from attnviz import mechanisms
from attnviz.arguments import checked
from attnviz.inside.values import Step

SHOWN = 3  # terms written out


class Sum(NamedTuple):
    """A score as a sum. terms : in LaTeX, with i for the dimension or hidden unit. letters : what they stand for."""

    terms: str
    letters: str


_RECURRENT = "s is the decoder’s state, h an annotation (the encoder’s state)"
SUMS = {  # by mechanism
    "bahdanau": Sum(
        r"\sum_i v_i \tanh(W s_{t-1} + U h_j)_i", f"{_RECURRENT}; W, U and v are learnt; i counts hidden units"
    ),
    "luong-dot": Sum(r"\sum_i s_{t,i} \, h_{j,i}", f"{_RECURRENT}; i counts dimensions"),
    "luong-general": Sum(r"\sum_i s_{t,i} \, (W h_j)_i", f"{_RECURRENT}; W is learnt; i counts dimensions"),
    "luong-concat": Sum(
        r"\sum_i v_i \tanh(W [s_t; h_j])_i",
        f"{_RECURRENT}; [s; h] is both, one after the other; W and v are learnt; i counts hidden units",
    ),
    "luong-local": Sum(
        r"\sum_i s_{t,i} \, (W h_j)_i + \ln g_j",
        f"{_RECURRENT}; W is learnt; i counts dimensions; g is the Gaussian of the window",
    ),
    "scaled-dot": Sum(
        r"\sum_i s_{t,i} \, h_{j,i} / \sqrt{d}", f"{_RECURRENT}; d is the width of both; i counts dimensions"
    ),
    "transformer": Sum(
        r"\sum_i q_{t,i} \, k_{j,i} / \sqrt{d}",
        "q is the query, k a key; d is the width of both; i counts dimensions",
    ),
    "self-attention": Sum(
        r"\sum_i v_i \tanh(W h_j + b)_i", "h is a token’s state; W, b and v are learnt; i counts hidden units"
    ),
}


@checked
def symbols(opened: Step) -> str:
    """What each letter of `formula` stands for, a sentence."""
    return (
        "e is the score and α the weight of source token j at step t, both counted from 1; "
        f"{SUMS[opened.mechanism].letters}."
    )


@checked
def formula(opened: Step, key: int) -> str:
    """LaTeX of the score and the weight of one key (0-based): symbols, then the largest terms, then the results.

    t and j count from 1. ValueError for a key that is not there.
    """
    if not 0 <= key < len(opened.keys):
        raise ValueError(f"key must be from 0 to {len(opened.keys) - 1}; got {key}")
    place = f"{opened.step + 1},{key + 1}"
    total, written = len(opened.parts.terms[key]), opened.parts.largest(key, SHOWN)
    terms = "".join(f"{value:+.3f}" for _, value in written).removeprefix("+")
    rest = total - len(written)
    terms += rf" + \cdots \text{{ ({rest} more)}}" if rest else ""
    if opened.window:
        terms += rf" + \ln {opened.window.gaussian[key]:.3f}"
    score = rf"e_{{{place}}} = {SUMS[opened.mechanism].terms} = {terms} = {opened.scores[key]:.3f}"
    if not opened.mask[key]:
        return rf"{score} \qquad \alpha_{{{place}}} = 0 \text{{ (outside the window)}}"
    shown = rf"\frac{{\exp({opened.scores[key]:.3f})}}{{\sum_k \exp(e_{{{opened.step + 1},k}})}}"
    return rf"{score} \qquad \alpha_{{{place}}} = {shown} = {opened.weights[key]:.3f}"


def paper(opened: Step) -> str:
    """Where the mechanism's formula is from."""
    return mechanisms.find(opened.mechanism).paper
