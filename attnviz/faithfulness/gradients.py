"""How much each source token matters for each target token: gradients, integrated gradients, and leave-one-out.

Gradients are Captum's, of f: rows in place of the source's embeddings, with the forced prefix -> log p(y_t).
They are summed over the embedding's width, so an attribution is one number for each source token: positive if the
token makes y_t more probable, negative if less. Letters: T target tokens, S source tokens, E
embedding width.
"""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from captum.attr import InputXGradient, IntegratedGradients

from attnviz.arguments import checked
from attnviz.faithfulness.subject import Subject

POINTS = 32  # of the path of integrated gradients


class Integrated(NamedTuple):
    """values (T, S); delta (T,) : how far the values of a row miss the change of log p(y_t) from baseline to input
    (completeness, Sundararajan et al. 2017, proposition 1); 0 for an exact integral."""

    values: np.ndarray
    delta: np.ndarray


@checked
def gradient_times_input(subject: Subject, steps: Sequence[int] | None = None) -> np.ndarray:
    """(T, S): gradient of log p(y_t) with respect to each source embedding, times that embedding, of all steps or of
    some."""
    method = partial(_gradient_times_input, subject)
    return np.stack([method(step) for step in _steps(subject, steps)])


def _gradient_times_input(subject: Subject, step: int) -> np.ndarray:
    vectors = subject.vectors.clone().requires_grad_()
    products = InputXGradient(partial(subject.of_vectors, step=step)).attribute(vectors)
    return products.detach().sum(-1)[0].numpy()


@checked
def integrated_gradients(subject: Subject, steps: Sequence[int] | None = None, points: int = POINTS) -> Integrated:
    """Gradients along the straight path from embeddings of zeros, times the way. Sundararajan et al. 2017, eq. 1.

    points : of the path (Gauss-Legendre). The baseline, zeros for every source token, is unlike any text the model has
    read.
    """
    if points < 1:
        raise ValueError(f"points must be at least 1; got {points}")
    rows = [_integrated(subject, step, points) for step in _steps(subject, steps)]
    return Integrated(np.stack([values for values, _ in rows]), np.array([delta for _, delta in rows]))


def _integrated(subject: Subject, step: int, points: int) -> tuple[np.ndarray, float]:
    vectors = subject.vectors.clone()
    values, delta = IntegratedGradients(partial(subject.of_vectors, step=step)).attribute(
        vectors, torch.zeros_like(vectors), n_steps=points, return_convergence_delta=True
    )
    return values.detach().sum(-1)[0].numpy(), float(delta)


@checked
def leave_one_out(subject: Subject) -> np.ndarray:
    """(T, S): log p(y_t) of the whole source, minus that without source token s (its id is deleted, the text is not
    read anew).

    <eos> is left out in its turn too; that source has no end.
    """
    whole = subject.log_probs([subject.source])
    without = [subject.source[:place] + subject.source[place + 1 :] for place in range(len(subject.source))]
    return (whole - subject.log_probs(without)).T.numpy()


def _steps(subject: Subject, steps: Sequence[int] | None) -> Sequence[int]:
    count = len(subject.target)
    steps = range(count) if steps is None else steps
    if not len(steps) or not 0 <= min(steps) <= max(steps) < count:
        raise ValueError(f"steps must be from 0 to {count - 1}, at least one; got {list(steps)[:9]}")
    return steps
