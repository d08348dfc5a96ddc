"""How well a model translates: the metrics of its pair, and statistics of its cross-attention on the way."""

import random
import time
from collections.abc import Iterator, Sequence

import torch
from torch import nn

from attnviz.progress import bar as progress_bar
from attnviz.data import batching
from attnviz.data.limits import LONGEST
from attnviz.data.tokenizer import PAD, SubwordTokenizer
from attnviz.evaluation import metrics
from attnviz.evaluation.attention_metrics import ATTENTION_METRICS, AttentionMetric, MeanEntropy
from attnviz.models.model import TextError
from attnviz.models.translator import BEAMS, Translator
from attnviz.networks import decode

BATCH = 3000  # source pieces decoded at once, padding included

# A batch: the indices of its sentences, their steps, and the number of steps that each sentence has when it is alone.
Decoded = Iterator[tuple[list[int], decode.Unrolled, list[int]]]


def translate(model: nn.Module, text: SubwordTokenizer, sentences: list[str], device: str | torch.device) -> list[str]:
    """Greedy translations, in batches of similar length."""
    result = [""] * len(sentences)
    for indices, unrolled, lengths in _greedy(model, text.batch_ids(sentences), range(len(sentences)), device):
        for i, translation in zip(indices, _texts(text, unrolled, lengths)):
            result[i] = translation
    return result


def score(
    translator: Translator, sources: Sequence[str], references: Sequence[str], beam: int = 1, progress: bool = False
) -> dict:
    """Translate `sources`, compare with `references` line by line, and measure the cross-attention.

    sentences, beam     an empty source counts, and gets an empty translation
    bleu, ...           the metrics of the model's pair (`metrics.of`), each with its `_signature`
    and what `translations` measures. Raises what it raises, and ValueError for texts that are not aligned.
    """
    if len(sources) != len(references):
        raise ValueError(f"sources and references must be aligned; got {len(sources)} and {len(references)}")
    hypotheses, measured = translations(translator, sources, beam, progress)
    return scores(translator, hypotheses, references, beam) | measured


def scores(translator: Translator, hypotheses: Sequence[str], references: Sequence[str], beam: int) -> dict:
    """The metrics of a model's translations, with the name of the model."""
    values = metrics.score(translator.pair, hypotheses, references)
    return {"model": translator.name, "sentences": len(hypotheses), "beam": beam, **values}


def translations(
    translator: Translator,
    sources: Sequence[str],
    beam: int = 1,
    progress: bool = False,
    also: Sequence[type[AttentionMetric]] = (),
) -> tuple[list[str], dict]:
    """Translations of `sources`, with spaces between words in every script, and what was measured on the way:

    seconds                     of tokenizing, decoding with the attention weights kept, and joining pieces to texts
    sentences_per_second, ms_per_sentence   over the sentences with visible text
    entropy_nats, max_weight    see `MeanEntropy`; the <eos> row counts. A mean over all heads is the mean of each
    head's mean
    antidiagonal                see `AntiDiagonal`; for the toy task of reversal only
    and the results of the attention metrics in `also`.

    Greedy decoding runs in batches, a beam sentence by sentence. progress : show a bar on standard error.
    Raises ValueError for no text at all and for a beam out of range, TextError for a text that is too long.
    """
    if not 1 <= beam <= BEAMS:
        raise ValueError(f"beam must be from 1 to {BEAMS}; got {beam}")
    started = time.perf_counter()
    ids = translator.tokenizer.batch_ids(list(sources))
    nonempty, seconds = _nonempty(ids), time.perf_counter() - started
    of_task = (ATTENTION_METRICS[key] for key in translator.task.attention_metrics)
    attention_metrics = [metric() for metric in (MeanEntropy, *of_task, *also)]
    result, text = [""] * len(ids), translator.tokenizer.spaced()
    with progress_bar(total=len(nonempty), desc=translator.name, unit="sentence", disable=not progress) as bar:
        started = time.perf_counter()
        for indices, unrolled, lengths in _decoded(translator.model, ids, nonempty, beam):
            for i, translation in zip(indices, _texts(text, unrolled, lengths)):
                result[i] = translation
            seconds += time.perf_counter() - started
            for metric in attention_metrics:
                metric.add(unrolled, lengths, [len(ids[i]) for i in indices])
            bar.update(len(indices))
            started = time.perf_counter()
    results = [_speed(seconds, len(nonempty)), *(metric.result() for metric in attention_metrics)]
    return result, {name: value for part in results for name, value in part.items()}


def _speed(seconds: float, sentences: int) -> dict:
    return {
        "seconds": round(seconds, 3),
        "sentences_per_second": round(sentences / seconds, 2),
        "ms_per_sentence": round(1000 * seconds / sentences, 3),
    }


def _nonempty(ids: list[list[int]]) -> list[int]:
    """The indices of the sentences with text. Raises ValueError when none has, TextError when one is too long."""
    for number, row in enumerate(ids, start=1):
        if len(row) > LONGEST:
            raise TextError(
                f"sentence {number} is too long: {len(row)} pieces with <eos>, and the models read at "
                f"most {LONGEST}; shorten it or leave it out"
            )
    nonempty = [i for i, row in enumerate(ids) if len(row) > 1]
    if not nonempty:
        raise ValueError(f"sources must hold at least one sentence with visible text; got none in {len(ids)} lines")
    return nonempty


def _decoded(model: nn.Module, ids: list[list[int]], indices: list[int], beam: int) -> Decoded:
    device = next(model.parameters()).device
    return _greedy(model, ids, indices, device) if beam == 1 else _beam(model, ids, indices, device, beam)


def _greedy(model: nn.Module, ids: list[list[int]], indices: Sequence[int], device: str | torch.device) -> Decoded:
    if not indices:
        return
    for places in batching.batches([len(ids[i]) for i in indices], BATCH, random.Random(0)):
        batch = [indices[place] for place in places]
        source = batching.pad([ids[i] for i in batch]).to(device)
        unrolled = decode.greedy(model, source, source != PAD, end_loops=True)
        limits = [decode.limit(len(ids[i])) for i in batch]  # each sentence stops where it would stop alone
        yield batch, unrolled, [min(pair) for pair in zip(unrolled.lengths(), limits)]


def _beam(
    model: nn.Module, ids: list[list[int]], indices: Sequence[int], device: str | torch.device, width: int
) -> Decoded:
    for i in indices:
        source = torch.tensor([ids[i]], device=device)
        best = decode.beam(model, source, width, end_loops=True)
        yield [i], decode.forced(model, source, torch.tensor([best], device=device)), [len(best)]


def _texts(text: SubwordTokenizer, unrolled: decode.Unrolled, lengths: list[int]) -> list[str]:
    """The translation of each sentence of a batch."""
    return [text.decode(row[:length]) for row, length in zip(unrolled.tokens.tolist(), lengths)]
