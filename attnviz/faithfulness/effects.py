"""The effect of attention and source tokens on the output: attention changed at one step, and source tokens erased.

Changed: is the token preserved, and how much does the distribution change? Erased in order of importance (DeYoung et
al. 2020, sec. 4):

    comprehensiveness   p(y_t | source) - p(y_t | source without the most important)   high: they were needed
    sufficiency         p(y_t | source) - p(y_t | only the most important)             low: they are enough

Erased tokens are deleted from the ids. Such a source is unlike the training data. <eos> and other special tokens always
stay. Letters: T target tokens, S source tokens.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch

from attnviz import function_words, intervene
from attnviz.arguments import checked
from attnviz.faithfulness.subject import Subject
from attnviz.function_words import OTHER
from attnviz.intervene import Change, Permuted, Uniform
from attnviz.intervene.changes import Stacked
from attnviz.models.huggingface.writing import WritingModel
from attnviz.models.translator import Translator
from attnviz.models.writer import Writer
from attnviz.trace import Trace

CHANGES: tuple[Change, ...] = (
    intervene.Uniform(),
    intervene.ZeroLargest(),
    intervene.OnlyLargest(),
    intervene.KeepLargest(),
    intervene.Permuted(0),
    intervene.LastOnly(),
)
SHARES = (0.01, 0.05, 0.1, 0.2, 0.5)  # of the source tokens; DeYoung et al. 2020


@checked
def preserved(subject: Subject, changes: Sequence[Change] = CHANGES) -> pd.DataFrame:
    """One row per target token and change: columns step, token, kind, change, preserved, total_variation. Moradi et al.
    2019.

    Attention is changed at that step alone; earlier steps are unchanged. preserved : the token is the model's first
    choice with and without the change (a forced token, or the <eos> that ended a loop, may be neither). kind :
    function, content or other, of the word in the target's language; other for a label, and for a language without a
    list.

    >>> subject = faithfulness.subject(model, "The black dog runs.")
    >>> faithfulness.preserved(subject, [intervene.Uniform()])[["token", "kind", "preserved"]].head(4)
       token      kind  preserved
    0     Le  function       True
    1  chien   content       True
    2   noir   content       True
    3  court   content      False
    """
    return preserved_together([subject], changes)[0]


@checked
def written(model: Writer | WritingModel, trace: Trace, changes: Sequence[Change] = CHANGES) -> pd.DataFrame:
    """`preserved` for a text that a model wrote, prompt included: one row per token and change, with columns step,
    token, change, preserved, total_variation. Self-attention is changed in the row of that token alone, in all layers
    and heads. preserved : the model's first choice is unchanged, whether or not it is the token. ValueError for another
    model's trace.

    >>> text = writer.write("The dog", steps=3, temperature=0)
    >>> faithfulness.written(writer, text, [intervene.Uniform()])["step"].tolist()
    [0, 1, 2, 3]
    """
    rows = []
    for change in changes:
        for step, _, plain, changed in intervene.written_effects(model, trace, change):
            variation = float(intervene.total_variation(plain, changed)[0])
            same = bool(plain.argmax() == changed[0].argmax())
            rows.append((step, trace.target[step].text, str(change), same, variation))
    return pd.DataFrame(rows, columns=["step", "token", "change", "preserved", "total_variation"])


@checked
def preserved_together(subjects: Sequence[Subject], changes: Sequence[Change] = CHANGES) -> list[pd.DataFrame]:
    """`preserved` of several subjects of one model in one batch. ValueError unless their sources have one length.

    A permutation depends on the subject's place in the batch.

    >>> subjects = faithfulness.subjects(model, ["The black dog runs.", "The white dog runs."])
    >>> [len(frame) for frame in faithfulness.preserved_together(subjects)]
    [36, 36]
    """
    for name, given in (("subjects", subjects), ("changes", changes)):
        if not len(given):
            raise ValueError(f"{name} must not be empty")
    if len({len(subject.source) for subject in subjects}) > 1:
        raise ValueError("the sources must have one length; group the subjects by it")
    stacked = Stacked(tuple((change, len(subjects)) for change in changes))
    best, variations = [], []
    for effect in subjects[0].effects_together(subjects, stacked, len(changes)):
        subjects[0].on_step()
        best.append(subjects[0].best(effect.changed))  # (changes, subjects)
        variations.append(intervene.total_variation(effect.plain, effect.changed))
    choices, moved = (torch.stack(steps).permute(2, 1, 0).numpy() for steps in (best, variations))
    return [_frame(subject, changes, *rows) for subject, *rows in zip(subjects, choices, moved, strict=True)]


def _frame(subject: Subject, changes: Sequence[Change], choices: np.ndarray, variations: np.ndarray) -> pd.DataFrame:
    """choices, variations (changes, steps); there may be more steps than the target has."""
    target, kinds, count = subject.trace.target, _kinds(subject), len(subject.target)
    columns = {
        "step": np.tile(np.arange(count), len(changes)),
        "token": [token.text for token in target] * len(changes),
        "kind": kinds * len(changes),
        "change": np.repeat([str(change) for change in changes], count),
        "preserved": (choices[:, :count] == np.array(subject.target)).ravel(),
        "total_variation": variations[:, :count].ravel(),
    }
    return pd.DataFrame(columns)


def _kinds(subject: Subject) -> list[str]:
    trace = subject.trace
    model = subject.model
    language = getattr(model, "language", "")
    if isinstance(model, Translator | Writer):
        language = model.task.target or model.task.source
    if language not in function_words.languages():
        return [OTHER] * len(trace.target)
    return function_words.kinds(trace.translation, trace.target, language)


@checked
def variation(subject: Subject, count: int = 100, seed: int = 0) -> pd.DataFrame:
    """One row per target token: columns step, token, max_weight, median, low, high, uniform. Jain and Wallace 2019,
    sec. 4.2.1.

    Total variation (0 to 1) between the next-token distribution as it is and with permuted attention: the median over
    `count` permutations, run as one batch, with the quartiles; and with uniform attention (Wiegreffe and Pinter 2019).
    max_weight : the largest weight of the step. A large weight did not matter if moving it changes nothing.

    >>> subject = faithfulness.subject(model, "The black dog runs.")
    >>> faithfulness.variation(subject, count=20)[["token", "max_weight", "uniform"]].round(1).head(3)
       token  max_weight  uniform
    0     Le         0.5      0.0
    1  chien         0.7      0.5
    2   noir         0.8      0.8
    """
    if count < 1:
        raise ValueError(f"count must be at least 1; got {count}")
    steps, moved = [], []
    for effect in subject.effects(Stacked(((Permuted(seed), count), (Uniform(), 1))), count + 1):
        steps.append(effect.step)
        moved.append(intervene.total_variation(effect.plain, effect.changed))
    *permuted, uniform = torch.stack(moved, dim=1).double().numpy()  # (steps,) each
    low, median, high = np.quantile(permuted, (0.25, 0.5, 0.75), axis=0)
    columns = {
        "step": steps,
        "token": [subject.trace.target[step].text for step in steps],
        "max_weight": subject.attention[steps].max(-1),
        "median": median,
        "low": low,
        "high": high,
        "uniform": uniform,
    }
    return pd.DataFrame(columns)


@checked
def erasure(subject: Subject, importance: np.ndarray, shares: Sequence[float] = SHARES) -> pd.DataFrame:
    """One row per target token and share: columns step, share, count, comprehensiveness, sufficiency (of probability,
    -1 to 1).

    importance (T, S) : the largest is erased first; its sign counts. count : the number of tokens erased or kept: the
    share of those that may be erased, rounded, at least 1. ValueError for another shape, or a share that is not above 0
    and at most 1.

    >>> subject = faithfulness.subject(model, "The black dog runs.")
    >>> faithfulness.erasure(subject, subject.attention, [0.2]).round(1).iloc[1:3]
       step  share  count  comprehensiveness  sufficiency
    1     1    0.2      1                1.0          0.2
    2     2    0.2      1                1.0          0.1
    """
    return erasures(subject, {"": importance}, shares)[""]


@checked
def erasures(
    subject: Subject, importance: dict[str, np.ndarray], shares: Sequence[float] = SHARES
) -> dict[str, pd.DataFrame]:
    """`erasure` for several named orders. Their sources go through the model in one batch, every source once."""
    if not len(shares) or not all(0 < share <= 1 for share in shares):
        raise ValueError(f"shares must be above 0 and at most 1; got {tuple(shares)}")
    places: dict[tuple[int, ...], int] = {}  # of each source among those that are read
    frames = {name: _erased(subject, np.asarray(values), shares, places) for name, values in importance.items()}
    read = pd.concat(frames.values())
    rows = read[["without", "alone"]].to_numpy()  # of each cell two places
    steps = np.repeat(read["step"].to_numpy(), 2)
    chances = subject.log_probs_at(list(places), rows.ravel().tolist(), steps.tolist()).exp().numpy().reshape(-1, 2)
    whole = subject.log_probs([subject.source])[0].exp().numpy()
    lost = iter(np.split(whole[read["step"]][:, None] - chances, len(frames)))
    names = ["comprehensiveness", "sufficiency"]
    return {
        name: frame.drop(columns=["without", "alone"]).assign(**dict(zip(names, next(lost).T)))
        for name, frame in frames.items()
    }


def _erased(subject: Subject, importance: np.ndarray, shares: Sequence[float], places: dict) -> pd.DataFrame:
    """One row per target token and share: columns step, share, count, and the places (new ones are added) of the source
    `without` the most important tokens, and of these `alone`."""
    wanted = len(subject.target), len(subject.source)
    if importance.shape != wanted:
        raise ValueError(f"importance must have shape {wanted}; got {importance.shape}")
    free = np.array([place for place, token in enumerate(subject.trace.source) if not token.special])
    rows = []
    for step, row in enumerate(importance):
        order = free[np.argsort(-row[free], kind="stable")].tolist()
        for share in shares:
            count = max(1, round(share * len(free)))
            pair = (_without(subject, order[:count]), _without(subject, order[count:]))
            rows.append((step, share, count, *(places.setdefault(source, len(places)) for source in pair)))
    return pd.DataFrame(rows, columns=["step", "share", "count", "without", "alone"])


def _without(subject: Subject, erased: Sequence[int]) -> tuple[int, ...]:
    """The ids of the source without the tokens at these places."""
    return tuple(number for place, number in enumerate(subject.source) if place not in set(erased))


@checked
def random_importance(subject: Subject, seed: int = 0) -> np.ndarray:
    """(T, S) random numbers from a seed, the source and the target: the baseline for any importance. The numbers differ
    between texts and between models with different translations, so that their errors are independent.

    >>> subject = faithfulness.subject(model, "The black dog runs.")
    >>> faithfulness.random_importance(subject).shape
    (6, 6)
    """
    generator = np.random.default_rng((seed, *subject.source, *subject.target))
    return generator.random((len(subject.target), len(subject.source)))
