"""Leave out the sentences that no model can read: those without visible text, and those of more than LONGEST pieces."""

from collections.abc import Sequence
from dataclasses import replace

from attnviz.data.batching import pieces
from attnviz.data.corpora import Corpus
from attnviz.data.limits import LONGEST
from attnviz.data.tokenizer import SubwordTokenizer


def length_filter(corpus: Corpus, tokenizer: SubwordTokenizer) -> tuple[Corpus, list[str]]:
    """The corpus with only those pairs of train and val that fit on both sides (a label always fits), and the sources
    of the pairs left out. The tests are not filtered.

    ValueError when no pair of train, or none of val, fits.
    """
    splits, left_out = {}, []
    for name in ("train", "val"):
        pairs = getattr(corpus, name)
        fitting = [all(map(_fits, ids)) for ids in pieces(pairs, tokenizer, corpus.labelled)]
        splits[name] = [pair for pair, fits in zip(pairs, fitting) if fits]
        if name == "val" and corpus.parts:
            splits["parts"] = tuple(part for part, fits in zip(corpus.parts, fitting) if fits)
        left_out += [pair[0] for pair, fits in zip(pairs, fitting) if not fits]
        if not splits[name]:
            raise ValueError(
                f"no sentence of {name} has visible text and at most {LONGEST} pieces, the limit of the models; "
                "give other or shorter sentences"
            )
    return replace(corpus, **splits), left_out


def fits(sentences: Sequence[str], tokenizer: SubwordTokenizer) -> list[bool]:
    """For each sentence: does it have visible text, and at most LONGEST pieces?"""
    return [_fits(ids) for ids in tokenizer.batch_ids(list(sentences))]


def _fits(ids: list[int]) -> bool:
    return 1 < len(ids) <= LONGEST  # <eos> is one of them
