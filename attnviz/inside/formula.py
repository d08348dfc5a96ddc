"""A mechanism's formula with the numbers of one score and weight put in, in LaTeX."""

from attnviz import mechanisms
from attnviz.arguments import checked
from attnviz.inside.values import MEAN, Step

SHOWN = 3  # differences written out


@checked
def symbols(opened: Step) -> str:
    """What each letter of `formula` stands for, a sentence."""
    letters = mechanisms.find(opened.mechanism).letters
    return (
        "e is the score and α the weight of source token j at step t, both counted from 1"
        f"{'; ' if letters else ''}{letters}. The brace has the part of every token’s sum that the softmax "
        "does not see. The numbers after it are differences from that part."
    )


@checked
def formula(opened: Step, key: int, reference: str = MEAN, temperature: float = 1.0) -> str:
    """LaTeX of the score and the weight of one key (0-based): symbols, the score of the reference (`Step.compared`),
    the largest differences from it, the result; then the weight, at a temperature above 0.

    t and j count from 1. ValueError for a key or a reference that is not there.
    """
    compared = opened.compared(key, reference)
    place, query = f"{opened.step + 1},{key + 1}", opened.step + 1
    written = compared.largest(SHOWN)
    below = r"\text{mean of all}" if compared.other is None else f"e_{{{query},{compared.other + 1}}}"
    terms = rf"\underbrace{{{compared.constant:.3f}}}_{{{below}}}"
    terms += "".join(f"{value:+.3f}" for _, value in written)
    rest = opened.parts.terms.shape[1] - len(written)
    terms += rf" + \cdots \text{{ ({rest} more)}}" if rest else ""
    if opened.window:
        terms += rf" {compared.gaussian:+.3f} \text{{ (Gaussian)}}"
    sums = [part for part in (mechanisms.find(opened.mechanism).terms, terms, f"{opened.scores[key]:.3f}") if part]
    score = rf"e_{{{place}}} = {' = '.join(sums)}"
    if not opened.mask[key]:
        return rf"{score} \qquad \alpha_{{{place}}} = 0 \text{{ (outside the window)}}"
    divided = "" if temperature == 1 else f" / {temperature:g}"
    above, under = rf"\exp({opened.scores[key]:.3f}{divided})", rf"\sum_k \exp(e_{{{query},k}}{divided})"
    weight = opened.weights_at(temperature)[key]
    return rf"{score} \qquad \alpha_{{{place}}} = \frac{{{above}}}{{{under}}} = {weight:.3f}"


def paper(opened: Step) -> str:
    """Where the mechanism's formula is from."""
    return mechanisms.find(opened.mechanism).paper
