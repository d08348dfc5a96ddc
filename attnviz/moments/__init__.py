"""Moments of a model on its way from untrained to trained.

    >>> moments.moments("en-fr/bahdanau")     # update and loss of each one that ships
    >>> moments.restore("en-fr/bahdanau", 3)  # the model as it was at the fourth; 0 is the untrained one

A run keeps about forty (`train --moments DIR`); `python -m attnviz moments` packs a dozen of them.
"""

from attnviz.moments.kept import due, files, keep, spaced
from attnviz.moments.packed import Moment, moments, pack, path_for, restore, untrained

__all__ = [
    "Moment",
    "due",
    "files",
    "keep",
    "moments",
    "pack",
    "path_for",
    "restore",
    "spaced",
    "untrained",
]
