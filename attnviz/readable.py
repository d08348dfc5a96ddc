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
        if name == "val" and corpus.parts:
            kept["parts"] = tuple(part for part, fit in zip(corpus.parts, fits) if fit)
        left_out += [pair[0] for pair, fit in zip(pairs, fits) if not fit]
        if not kept[name]:
            raise ValueError(f"no sentence of {name} has something visible and at most {LONGEST} pieces, which is what the models read; "
                             "give others, or shorter ones")  # fmt: skip
    return replace(corpus, **kept), left_out


def _fits(pairs: Pairs, labelled: bool, text: Text) -> list[bool]:
    """Does a model read each side? A label always fits."""
    return [all(map(_fit, row)) for row in pieces(pairs, text, labelled)]


def fits(sentences: list[str], text: Text) -> list[bool]:
    """Of each sentence: is there something visible, and at most LONGEST pieces?"""
    return list(map(_fit, text.batch_ids(sentences)))


def _fit(ids: list[int]) -> bool:
    return 1 < len(ids) <= LONGEST  # one of them is <eos>
