"""Which sentences of a corpus the models read: those with something visible, of at most LONGEST pieces."""

from dataclasses import replace

from attnviz.corpora import Corpus, Pairs, pieces
from attnviz.text import Text
from attnviz.trained import LONGEST


def readable(corpus: Corpus, text: Text) -> tuple[Corpus, list[str]]:
    """The corpus without those pairs of train and val of which no model can read both sides, and their sources; its tests
    stay whole.

    ValueError when none is left of train or of val.
    """
    kept, left_out = {}, []
    for name in ("train", "val"):
        pairs = getattr(corpus, name)
        fits = _fits(pairs, corpus.labelled, text)
        kept[name] = [pair for pair, fit in zip(pairs, fits) if fit]
        left_out += [pair[0] for pair, fit in zip(pairs, fits) if not fit]
        if not kept[name]:
            raise ValueError(f"no sentence of {name} has something visible and at most {LONGEST} pieces, which is what the models read; "
                             "give others, or shorter ones")  # fmt: skip
    return replace(corpus, **kept), left_out


def _fits(pairs: Pairs, labelled: bool, text: Text) -> list[bool]:
    """Has each side as many pieces as a model reads? Every side has an <eos>; a label always fits."""
    return [all(1 < len(ids) <= LONGEST for ids in row) for row in pieces(pairs, text, labelled)]
