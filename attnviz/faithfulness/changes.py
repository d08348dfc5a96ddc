"""The effect of a change of attention at one step: is the token preserved, and how far does the distribution move?"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from attnviz.arguments import checked
from attnviz import function_words, intervene
from attnviz.faithfulness.subject import Labelled, Subject
from attnviz.function_words import OTHER
from attnviz.intervene import Change, Permuted, Stacked, Uniform
from attnviz.networks import decode

CHANGES: tuple[Change, ...] = (
    intervene.Uniform(),
    intervene.ZeroLargest(),
    intervene.OnlyLargest(),
    intervene.KeepLargest(),
    intervene.Permuted(0),
    intervene.LastOnly(),
)


@checked
def preserved(subject: Subject, changes: Sequence[Change] = CHANGES) -> pd.DataFrame:
    """One row a target token and change: columns step, token, kind, change, preserved, total_variation. Moradi et al.
    2019.

    Attention is changed at that step alone; the steps before it stay. preserved : the token is the model's first
    choice with and without the change (a forced token may be neither, and so may the <eos> that
    ended a loop). kind : function,
    content or other, of the word in the target's language; other for a label, and where the language has no list.
    """
    kinds, order = _kinds(subject), {str(change): place for place, change in enumerate(changes)}
    rows = []
    for effect in subject.effects(Stacked(tuple((change, 1) for change in changes)), len(changes)):
        token, kind = subject.trace.target[effect.step].text, kinds[effect.step]
        best = _best(subject, effect.changed).tolist()
        variations = intervene.total_variation(effect.plain, effect.changed).tolist()
        for change, said, variation in zip(changes, best, variations):
            rows.append((effect.step, token, kind, str(change), said == subject.target[effect.step], variation))
    rows.sort(key=lambda row: order[row[3]])  # change by change, each step by step
    return pd.DataFrame(rows, columns=["step", "token", "kind", "change", "preserved", "total_variation"])


def _best(subject: Subject, logits):
    return logits.argmax(-1) if isinstance(subject, Labelled) else decode.best(0, logits)


def _kinds(subject: Subject) -> list[str]:
    trace, language = subject.trace, subject.model.task.target
    if isinstance(subject, Labelled) or language not in function_words.languages():
        return [OTHER] * len(trace.target)
    return function_words.kinds(trace.translation, trace.target, language)


@checked
def variation(subject: Subject, count: int = 100, seed: int = 0) -> pd.DataFrame:
    """One row a target token: columns step, token, max_weight, median, low, high, uniform. Jain and Wallace 2019, sec.
    4.2.1.

    Total variation (0 to 1) between the next-token distribution as it is and with permuted attention: the median over
    `count` permutations, run as one batch, with the quartiles; and with uniform attention (Wiegreffe and Pinter 2019).
    max_weight : the largest weight of the step. A large weight did not matter if moving it changes nothing.
    """
    if count < 1:
        raise ValueError(f"count must be at least 1; got {count}")
    rows = []
    for effect in subject.effects(Stacked(((Permuted(seed), count), (Uniform(), 1))), count + 1):
        *permuted, uniform = intervene.total_variation(effect.plain, effect.changed).tolist()
        low, median, high = map(float, np.quantile(permuted, (0.25, 0.5, 0.75)))
        token, largest = subject.trace.target[effect.step].text, subject.attention[effect.step].max()
        rows.append((effect.step, token, float(largest), median, low, high, uniform))
    return pd.DataFrame(rows, columns=["step", "token", "max_weight", "median", "low", "high", "uniform"])
