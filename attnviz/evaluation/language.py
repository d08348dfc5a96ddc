"""How well a language model predicts a text, in bits per character, which do not depend on the vocabulary.

A text longer than the context is read in windows. A window begins with <bos> and with pieces of the previous window,
whose predictions were counted there.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch.nn import functional as F

from attnviz.data.batching import pad
from attnviz.data.tokenizer import BOS, PAD, SubwordTokenizer
from attnviz.models.writer import Writer
from attnviz.networks.decoder_only import DecoderOnly

BITS = "bits_a_character"  # chooses the best epoch of a model that writes: the lower, the better
BATCH = 4096  # tokens read at once


@dataclass(frozen=True)
class Surprise:
    """For some texts: nats (the sum over their pieces), and the numbers of pieces and characters. <eos> counts as a
    piece and a character: the end of the line."""

    nats: float
    pieces: int
    characters: int

    @property
    def bits_a_character(self) -> float:
        return self.nats / math.log(2) / self.characters

    @property
    def nats_a_character(self) -> float:
        return self.nats / self.characters

    @property
    def nats_a_piece(self) -> float:
        return self.nats / self.pieces


Window = tuple[list[int], list[int], int]  # what is read, what is predicted, and how many of these were counted before


def windows(ids: Sequence[int], longest: int, stride: int) -> Iterator[Window]:
    """The ids of a text in windows of at most `longest`, each `stride` after the one before it."""
    start, counted = 0, 0
    while counted < len(ids):
        target = list(ids[start : start + longest])
        yield [BOS, *target[:-1]], target, counted - start
        counted, start = start + len(target), start + stride


def spread(tokenizer: SubwordTokenizer, texts: Sequence[str], longest: int, count: int) -> list[list[int]]:
    """At most `count` windows of `longest` pieces, spread evenly over the texts, which are joined. ValueError for less
    text than a window."""
    ids = [number for ids in tokenizer.batch_ids(list(texts)) for number in ids]
    starts = range(0, len(ids) - longest + 1, longest)
    if not starts:
        raise ValueError(f"the texts must have {longest} tokens; they have {len(ids)}")
    chosen = torch.linspace(0, len(starts) - 1, min(len(starts), count)).long().tolist()
    return [ids[starts[place] : starts[place] + longest] for place in chosen]


@torch.inference_mode()
def surprise(
    model: DecoderOnly, tokenizer: SubwordTokenizer, texts: Sequence[str], stride: int | None = None
) -> Surprise:
    """How much texts surprise a network in evaluation mode.

    stride : of the windows, in pieces; None for windows that do not overlap. With half the context, a piece of a long
        text is predicted from at least half a context.
    """
    rows, device = tokenizer.batch_ids(list(texts)), next(model.parameters()).device
    step = stride or model.longest
    waiting = sorted((w for ids in rows for w in windows(ids, model.longest, step)), key=lambda w: len(w[1]))
    nats = 0.0
    while waiting:
        count = max(1, BATCH // len(waiting[-1][1]))
        batch, waiting = waiting[-count:], waiting[:-count]
        source = pad([read for read, _, _ in batch]).to(device)
        target = pad([predicted for _, predicted, _ in batch]).to(device)
        for row, (_, _, counted) in zip(target, batch):
            row[:counted] = PAD
        logits = model.logits(model.readouts(source)).float()
        nats += float(F.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=PAD, reduction="sum"))
    characters = sum(len(tokenizer.spelled(ids)) + 1 for ids in rows)
    return Surprise(nats, sum(map(len, rows)), characters)


def score(writer: Writer, texts: Sequence[str]) -> dict:
    """How well a model predicts texts: bits and nats a character, nats a piece, pieces, characters, and their number.

    Windows overlap by half a context. Values with `_alone` are for windows that do not overlap, as in papers on
    character models; there a piece has on average half a context before it.
    """
    measured = surprise(writer.model, writer.tokenizer, texts, writer.limit // 2)
    alone = surprise(writer.model, writer.tokenizer, texts)
    return {
        "bits_a_character": round(measured.bits_a_character, 4),
        "nats_a_character": round(measured.nats_a_character, 4),
        "nats_a_character_alone": round(alone.nats_a_character, 4),
        "nats_a_piece": round(measured.nats_a_piece, 4),
        "pieces": measured.pieces,
        "characters": measured.characters,
        "texts": len(texts),
    }
