"""Change attention, and see how the output of a model changes.

    >>> outcome = intervene.run(model, "The black dog runs.", intervene.Uniform())
    >>> outcome.free.translation, outcome.total_variation

A change (`Uniform`, `Permuted`, `Hide` …) is a value; a `Scope` says at which steps, and in which layer and head of a
Transformer. `run` has both translations; `effects` changes one step at a time; `rewrite` replaces a source word.
"""

from attnviz.intervene.changed import Scope
from attnviz.intervene.changes import (
    KINDS,
    Change,
    Given,
    Hide,
    Identity,
    KeepLargest,
    LastOnly,
    OnlyLargest,
    Permuted,
    Place,
    Stacked,
    Temperature,
    Uniform,
    ZeroLargest,
    parse,
)
from attnviz.intervene.run import (
    MASK,
    Outcome,
    Rewritten,
    StepEffect,
    Word,
    effect_on_label,
    effects,
    effects_on_labels,
    effects_together,
    replaced,
    rewrite,
    run,
    total_variation,
    words,
)

__all__ = [
    "KINDS",
    "MASK",
    "Change",
    "Given",
    "Hide",
    "Identity",
    "KeepLargest",
    "LastOnly",
    "OnlyLargest",
    "Outcome",
    "Permuted",
    "Place",
    "Rewritten",
    "Scope",
    "Stacked",
    "StepEffect",
    "Temperature",
    "Uniform",
    "Word",
    "ZeroLargest",
    "effect_on_label",
    "effects",
    "effects_on_labels",
    "effects_together",
    "parse",
    "replaced",
    "rewrite",
    "run",
    "total_variation",
    "words",
]
