"""What else the scores of a step could have been: other temperatures, other score functions, other widths."""

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from attnviz import stats
from attnviz.arguments import checked
from attnviz.attention import Attention, dot_scores, scaled_dot_scores
from attnviz.inside.values import Step, softmax
from attnviz.models.model import Trained

TEMPERATURES = (0.25, 0.5, 1.0, 2.0, 4.0)
WIDTHS = (4, 8, 16, 32, 64, 128, 256, 512)


@checked
def temperatures(opened: Step, values: Sequence[float] = TEMPERATURES) -> pd.DataFrame:
    """One row per temperature, with columns temperature, entropy_nats, max_weight of the same scores divided by it."""
    weights = np.stack([opened.weights_at(value) for value in values])
    measured = stats.rows(weights, visible=np.broadcast_to(opened.mask, weights.shape))
    return measured[["entropy_nats", "max_weight"]].assign(temperature=list(values)).reset_index(drop=True)


@checked
def other_scores(opened: Step, others: Iterable[Trained] = ()) -> pd.DataFrame:
    """One query and its annotations through other score functions: columns score, trained_with, mechanism, key, token,
    value, weight.

    Dot and scaled dot are always there; of `others`, recurrent translators, the learnt score of each whose widths fit.
    trained_with, mechanism : the model whose weights the score has, and its mechanism; None where there is nothing to
    learn. Such weights were learnt with other states, so what they say here is a comparison of formulas, not of models.
    No window: of local attention the general score.

    Dot products need queries and annotations of one width. An annotation twice as wide as the query is forward and
    backward state, concatenated; then the two are added, as the dot-product models of this project do. ValueError
    for any other width.
    """
    query, annotations = torch.from_numpy(opened.query.copy()), torch.from_numpy(opened.values.copy())
    summed = _summed(query, annotations)
    rows: list[tuple[str, str | None, str | None, Tensor]] = [
        ("dot", None, None, dot_scores(query[None], summed)[0]),
        ("scaled dot", None, None, scaled_dot_scores(query[None], summed)[0]),
    ]
    for model in others:
        attention = getattr(model.model, "attention", None)
        if attention is not None and attention.widths == (query.shape[-1], annotations.shape[-1]):
            scores = _scored(attention, query, annotations)
            rows.append((attention.name, model.name, model.mechanism, scores))
    return pd.concat([_frame(opened, *row) for row in rows], ignore_index=True)


def _summed(query: Tensor, annotations: Tensor) -> Tensor:
    """Annotations (S, D or 2D) as wide as the query (D,)."""
    width = query.shape[-1]
    if annotations.shape[-1] == width:
        return annotations
    if annotations.shape[-1] != 2 * width:
        raise ValueError(
            f"annotations must be as wide as the query, {width}, or twice that, to be scored by a dot product; "
            f"got {annotations.shape[-1]}"
        )
    return annotations.unflatten(-1, (2, -1)).sum(-2)


@torch.inference_mode()
def _scored(attention: Attention, query: Tensor, annotations: Tensor) -> Tensor:
    return attention.score(query[None, None], attention.prepare(annotations[None]))[0, 0]


def _frame(opened: Step, score: str, trained_with: str | None, mechanism: str | None, values: Tensor) -> pd.DataFrame:
    numbers = values.double().numpy()
    return pd.DataFrame(
        {
            "score": score,
            "trained_with": trained_with,
            "mechanism": mechanism,
            "key": range(len(opened.keys)),
            "token": [token.text for token in opened.keys],
            "value": numbers,
            "weight": softmax(numbers, np.ones(len(numbers), dtype=bool)),
        }
    )


@checked
def spread(widths: Sequence[int] = WIDTHS, keys: int = 10, samples: int = 1000, seed: int = 0) -> pd.DataFrame:
    """How far dot products spread as vectors get wider, with the root of the width and without: SAMPLED, from no model.

    Queries and keys have independent standard normal components, so that a dot product has the variance of the width
    (Vaswani et al. 2017, footnote 4). One row per width and `scaled`, with columns width, scaled, deviation (standard
    deviation of the scores) and max_weight (mean largest weight among `keys` keys, over `samples` queries).
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
