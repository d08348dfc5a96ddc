"""Change attention, and see how the output of a model changes.

    >>> outcome = intervene.run(model, "The black dog runs.", intervene.Uniform())
    >>> outcome.free.translation, outcome.total_variation

A change (`Uniform`, `Permuted`, `Hide` …) is a value; a `Scope` limits it to some steps, and to a layer and head of a
Transformer. `run` has both translations; `effects` changes one step at a time; `rewrite` replaces a source word.
`written`, `written_effects` and `written_after` are the same for a model that writes.
"""

from attnviz.intervene.changed import MASK, Scope, Word, replaced, total_variation, words
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
    Temperature,
    Uniform,
    ZeroLargest,
    parse,
)
from attnviz.intervene.run import (
    Outcome,
    Rewritten,
    StepEffect,
    effects,
    rewrite,
    run,
    written,
    written_after,
    written_effects,
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
    "StepEffect",
    "Temperature",
    "Uniform",
    "Word",
    "ZeroLargest",
    "effects",
    "parse",
    "replaced",
    "rewrite",
    "run",
    "total_variation",
    "words",
    "written",
    "written_after",
    "written_effects",
]
