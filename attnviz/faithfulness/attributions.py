"""How much each source token matters for each target token: gradients, integrated gradients, and leave-one-out; and the
agreement of two such measures: Kendall's tau-b and the same first token, for each target token.

Gradients are Captum's, of f: rows in place of the source's embeddings, with the forced prefix -> log p(y_t).
They are summed over the embedding's width, so an attribution is one number for each source token: positive if the
token makes y_t more probable, negative if less. Letters: T target tokens, S source tokens, E embedding width.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from attnviz.arguments import brief, checked
from attnviz.faithfulness.subject import Subject
from attnviz.trace import Token

POINTS = 32  # of the path of integrated gradients
ROWS = 128  # of a batch that gradients are taken of


class Integrated(NamedTuple):
    """values (T, S); delta (T,) : how far the values of a row miss the change of log p(y_t) from baseline to input
    (completeness, Sundararajan et al. 2017, proposition 1); 0 for an exact integral.

    >>> subject = faithfulness.subject(model, "The black dog runs.")
    >>> faithfulness.integrated_gradients(subject, steps=[2])
    Integrated(values=ndarray 1 × 6, delta=ndarray 1)
    """

    values: np.ndarray
    delta: np.ndarray

    def __repr__(self) -> str:
        return brief(self)


@checked
def gradient_times_input(subject: Subject, steps: Sequence[int] | None = None) -> np.ndarray:
    """(T, S): gradient of log p(y_t) with respect to each source embedding, times that embedding, of all steps or of
    some.

    >>> subject = faithfulness.subject(model, "The black dog runs.")
    >>> subject.trace.source[faithfulness.gradient_times_input(subject)[2].argmax()].text
    'black'
    """
    from captum.attr import InputXGradient  # takes as long to import as torch: only for those who ask

    parts = []
    for group in _groups(subject, steps, ROWS):
        subject.on_step()
        vectors, at = _inputs(subject, group)
        products = InputXGradient(subject.of_vectors).attribute(vectors, additional_forward_args=at)
        parts.append(products.detach().sum(-1).numpy())
    return np.concatenate(parts)


@checked
def integrated_gradients(subject: Subject, steps: Sequence[int] | None = None, points: int = POINTS) -> Integrated:
    """Gradients averaged along the straight path from zero embeddings to the input, times their difference.
    Sundararajan et al. 2017, eq. 1.

    points : on the path (Gauss-Legendre). The baseline, zeros for every source token, is unlike any text the model has
    read.

    >>> subject = faithfulness.subject(model, "The black dog runs.")
    >>> subject.trace.source[faithfulness.integrated_gradients(subject, steps=[2]).values.argmax()].text
    'black'
    """
    from captum.attr import IntegratedGradients

    if points < 1:
        raise ValueError(f"points must be at least 1; got {points}")
    parts = []
    for group in _groups(subject, steps, max(1, ROWS // points)):
        subject.on_step()
        vectors, at = _inputs(subject, group)
        values, delta = IntegratedGradients(subject.of_vectors).attribute(
            vectors,
            torch.zeros_like(vectors),
            additional_forward_args=at,
            n_steps=points,
            return_convergence_delta=True,
        )
        parts.append(Integrated(values.detach().sum(-1).numpy(), delta.numpy()))
    return Integrated(*map(np.concatenate, zip(*parts)))


@checked
def leave_one_out(subject: Subject) -> np.ndarray:
    """(T, S): log p(y_t) of the whole source, minus that without source token s (its id is deleted; the text is not
    tokenised again).

    <eos> is left out in its turn too.

    >>> subject = faithfulness.subject(model, "The black dog runs.")
    >>> round(float(faithfulness.leave_one_out(subject)[2, 1]))  # nats that "noir" loses without "black"
    11
    """
    whole = subject.log_probs([subject.source])
    without = [subject.source[:place] + subject.source[place + 1 :] for place in range(len(subject.source))]
    return (whole - subject.log_probs(without)).T.numpy()


def _inputs(subject: Subject, steps: Sequence[int]) -> tuple[Tensor, Tensor]:
    """The source's embeddings once for each step (N, S, E), and the steps (N,)."""
    return subject.vectors.repeat(len(steps), 1, 1).requires_grad_(), torch.tensor(steps)


def _groups(subject: Subject, steps: Sequence[int] | None, size: int) -> list[list[int]]:
    """The steps in batches of neighbouring steps, so that no batch is decoded far beyond its steps."""
    chosen = list(_steps(subject, steps))
    return [chosen[start : start + size] for start in range(0, len(chosen), size)]


def _steps(subject: Subject, steps: Sequence[int] | None) -> Sequence[int]:
    count = len(subject.target)
    steps = range(count) if steps is None else steps
    if not len(steps) or not 0 <= min(steps) <= max(steps) < count:
        raise ValueError(f"steps must be from 0 to {count - 1}, at least one; got {list(steps)[:9]}")
    return steps


@checked
def tau_b(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a, b (T, S) -> (T,): Kendall's tau-b of each row (Kendall 1945), -1 to 1; NaN where all numbers of a row are
    equal.

    >>> faithfulness.tau_b(np.array([[0.1, 0.2, 0.7]]), np.array([[5, 6, 4]]))
    array([-0.33333333])
    """
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape or a.ndim != 2:
        raise ValueError(f"both must have shape (target tokens, source tokens); got {a.shape} and {b.shape}")
    signs = [np.sign(x[:, :, None] - x[:, None, :]) for x in (np.asarray(a, np.float64), np.asarray(b, np.float64))]
    pairs = [np.abs(sign).sum((1, 2)) for sign in signs]  # pairs that are not tied, each counted twice
    with np.errstate(invalid="ignore"):  # 0 / 0 is NaN
        return (signs[0] * signs[1]).sum((1, 2)) / np.sqrt(pairs[0] * pairs[1])


@checked
def spread_of_tau(size: int) -> float:
    """Standard deviation of tau between independent orders of `size` tokens (Kendall 1938): sqrt(2 (2n + 5) / 9n (n -
    1)).

    >>> round(faithfulness.spread_of_tau(6), 2)
    0.35
    """
    if size < 2:
        raise ValueError(f"size must be at least 2; got {size}")
    return (2 * (2 * size + 5) / (9 * size * (size - 1))) ** 0.5


@checked
def agreement(attention: np.ndarray, attributions: dict[str, np.ndarray], tokens: tuple[Token, ...]) -> pd.DataFrame:
    """One row per target token and method: columns step, token, method, tau_b, top1.

    attention (T, S); attributions : method -> (T, S), compared by absolute value, because weights have no
    sign.
    top1 : do both have their largest value on the same source token?

    >>> subject = faithfulness.subject(model, "The black dog runs.")
    >>> left_out = {"leave-one-out": faithfulness.leave_one_out(subject)}
    >>> faithfulness.agreement(subject.attention, left_out, subject.trace.target)[["token", "top1"]].tail(2)
       token  top1
    4      .  True
    5  <eos>  True
    """
    attention, rows = np.asarray(attention), []
    if len(tokens) != len(attention):
        raise ValueError(f"tokens must be as many as the rows of attention, {len(attention)}; got {len(tokens)}")
    for method, values in attributions.items():
        size = np.abs(values)
        for step, (tau, same) in enumerate(zip(tau_b(attention, size), attention.argmax(-1) == size.argmax(-1))):
            rows.append((step, tokens[step].text, method, float(tau), bool(same)))
    return pd.DataFrame(rows, columns=["step", "token", "method", "tau_b", "top1"])
