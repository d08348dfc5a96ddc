"""How well a model translates: the metrics of its pair, and statistics of its cross-attention.

An attention metric has `add(unrolled, lengths, source_lengths)` for each batch, and `result()` at the end. lengths :
target rows of each sentence; later rows do not count. source_lengths : pieces of each source, <eos> included.
Letters: L layers, B batch, H heads, T target rows, S source positions.
"""

import random
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

import torch
from torch import Tensor

from attnviz.data import MOST_PIECES, batching
from attnviz.data.tokenizer import EOS, PAD, SubwordTokenizer
from attnviz.evaluation import metrics
from attnviz.models.model import TextError
from attnviz.models.translator import Translator, check_beam
from attnviz.networks import Network, decode
from attnviz.networks.decode import Unrolled
from attnviz.progress import bar as progress_bar
from attnviz.trace import Trace

BATCH = 3000  # source pieces decoded at once, padding included
# A batch: the indices of its sentences, their steps, and the number of steps that each sentence has when it is alone.
Decoded = Iterator[tuple[list[int], decode.Unrolled, list[int]]]


class Translating(Protocol):
    """A model that translates one text at a time."""

    @property
    def name(self) -> str: ...

    def trace(self, text: str, target: str | None = None, beam: int = 1) -> Trace: ...


class AttentionMetric(Protocol):
    def add(self, unrolled: Unrolled, lengths: Sequence[int], source_lengths: Sequence[int]) -> None: ...

    def result(self) -> dict: ...


def attention_sums(layers: Sequence[Tensor], lengths: Sequence[int]) -> Tensor:
    """(3,): the sum of the entropies (nats), the sum of the maximum weights, and the number of rows, in all heads and
    layers.

    layers : weights (B, H, T, S) of each layer. lengths : rows of each sentence; later rows do not count.
    """
    if not layers:
        return torch.zeros(3, dtype=torch.float64)
    weights = torch.stack(list(layers)).double().cpu()  # (L, B, H, T, S)
    real = torch.arange(weights.shape[3]) < torch.tensor(lengths).unsqueeze(1)  # (B, T)
    weights = weights.movedim(2, -2)[:, real]  # (L, real rows, H, S)
    entropy = torch.special.entr(weights / weights.sum(-1, keepdim=True)).sum(-1)  # the 0 of padding adds 0
    return torch.stack([entropy.sum(), weights.amax(-1).sum(), torch.tensor(float(entropy.numel())).double()])


class MeanEntropy:
    """entropy_nats, max_weight : means over all rows, heads and layers. None without attention."""

    def __init__(self):
        self.sums = torch.zeros(3, dtype=torch.float64)

    def add(self, unrolled: Unrolled, lengths: Sequence[int], source_lengths: Sequence[int]) -> None:
        self.sums += attention_sums(unrolled.cross, lengths)

    def result(self) -> dict:
        entropy, max_weight, rows = self.sums.tolist()
        return {"entropy_nats": entropy / rows if rows else None, "max_weight": max_weight / rows if rows else None}


class EntropyBySentence:
    """by_sentence : for each sentence, in the order of decoding, the number of source pieces (<eos> included) and the
    mean entropy (nats) of its rows in all heads and layers. None without attention."""

    def __init__(self):
        self.sentences: list[tuple[int, float]] = []

    def add(self, unrolled: Unrolled, lengths: Sequence[int], source_lengths: Sequence[int]) -> None:
        if not unrolled.cross:
            return
        for i, (length, pieces) in enumerate(zip(lengths, source_lengths)):
            entropy, _, rows = attention_sums([layer[i : i + 1] for layer in unrolled.cross], [length]).tolist()
            self.sentences.append((pieces, entropy / rows))

    def result(self) -> dict:
        return {"by_sentence": self.sentences or None}


class AntiDiagonal:
    """The share (%) of steps that attend most to the correct piece when a sequence is reversed: step t of n to piece n
    - 1 - t.

    antidiagonal : of the best head. antidiagonal_heads : of each head, by layer. None without attention. <eos> rows do
    not count. A step beyond the length of the source counts as wrong.
    """

    def __init__(self):
        self.correct, self.steps = None, 0

    def add(self, unrolled: Unrolled, lengths: Sequence[int], source_lengths: Sequence[int]) -> None:
        if not unrolled.cross:
            return
        attended = torch.stack(unrolled.cross).argmax(-1).cpu()  # (L, B, H, T)
        steps = torch.arange(attended.shape[-1])
        real = (steps < torch.tensor(lengths).unsqueeze(1)) & (unrolled.tokens.cpu() != EOS)  # (B, T)
        expected = torch.tensor(source_lengths).unsqueeze(1) - 2 - steps  # (B, T); length - 2 is the piece before <eos>
        correct = ((attended == expected.unsqueeze(1)) & real.unsqueeze(1)).sum((1, 3))  # (L, H)
        self.correct = correct if self.correct is None else self.correct + correct
        self.steps += int(real.sum())

    def result(self) -> dict:
        if self.correct is None or not self.steps:
            return {"antidiagonal": None, "antidiagonal_heads": None}
        shares = 100 * self.correct.double() / self.steps
        return {
            "antidiagonal": round(shares.max().item(), 2),
            "antidiagonal_heads": [[round(share, 2) for share in layer] for layer in shares.tolist()],
        }


# Those that a task may name in the table of tasks.
ATTENTION_METRICS: dict[str, type[AttentionMetric]] = {"antidiagonal": AntiDiagonal}


def translate(
    model: Network, tokenizer: SubwordTokenizer, sentences: list[str], device: str | torch.device
) -> list[str]:
    """Greedy translations, in batches of similar length."""
    result = [""] * len(sentences)
    for indices, unrolled, lengths in _greedy(model, tokenizer.batch_ids(sentences), range(len(sentences)), device):
        for i, translation in zip(indices, _texts(tokenizer, unrolled, lengths)):
            result[i] = translation
    return result


def score(
    translator: Translator, sources: Sequence[str], references: Sequence[str], beam: int = 1, progress: bool = False
) -> dict:
    """Translate `sources`, compare with `references` line by line, and measure the cross-attention.

    sentences, beam     an empty source counts, and gets an empty translation
    bleu, ...           the metrics of the model's pair (`metrics.for_pair`), each with its `_signature` and what
                        `translations` measures. Raises what `translations` raises, and ValueError if the numbers of
                        texts differ.
    """
    if len(sources) != len(references):
        raise ValueError(f"sources and references must be aligned; got {len(sources)} and {len(references)}")
    hypotheses, measured = translations(translator, sources, beam, progress)
    return scores(translator, hypotheses, references, beam) | measured


def score_traces(model: Translating, sources: Sequence[str], references: Sequence[str], beam: int = 1) -> dict:
    """`score` of any model that translates, such as one of the transformers library: one sentence after the other, with
    the metrics that fit every language (`metrics.ANY`). Raises TextError for a text that it cannot read."""
    entropies, hypotheses, started = torch.zeros(3, dtype=torch.float64), [], time.perf_counter()
    texts = [source for source in sources if source.strip()]
    for source in progress_bar(sources, desc=model.name, unit="sentence"):
        trace = model.trace(source, beam=beam) if source.strip() else None
        hypotheses.append(trace.translation if trace else "")
        for attention in trace.maps if trace else ():
            if attention.kind == "cross":
                weights = torch.from_numpy(attention.weights.copy())[None]
                entropies += attention_sums([weights], [weights.shape[2]])
    seconds = time.perf_counter() - started
    entropy, most, rows = entropies.tolist()
    result = {"model": model.name, "sentences": len(hypotheses), "beam": beam}
    result |= metrics.measured(metrics.ANY, hypotheses, references) | _speed(seconds, len(texts))
    return result | {"entropy_nats": entropy / rows, "max_weight": most / rows}


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
    """Translations of `sources`, with spaces between words in every script, and measurements:

    seconds                     of tokenizing, decoding with the attention weights kept, and joining pieces to texts
    sentences_per_second, ms_per_sentence   over the sentences with visible text
    entropy_nats, max_weight    see `MeanEntropy`; the <eos> row counts. A mean over all heads is the mean of each
    head's mean
    antidiagonal                see `AntiDiagonal`; for the toy task of reversal only
    and the results of the attention metrics in `also`.

    Greedy decoding runs in batches, a beam sentence by sentence. progress : show a bar on standard error.
    Raises ValueError for no text at all and for a beam out of range, TextError for a text that is too long.
    """
    check_beam(beam)
    started = time.perf_counter()
    ids = translator.tokenizer.batch_ids(list(sources))
    nonempty, seconds = _nonempty(ids), time.perf_counter() - started
    of_task = [ATTENTION_METRICS[key] for key in translator.task.attention_metrics]
    kinds: list[type[AttentionMetric]] = [MeanEntropy, *of_task, *also]
    attention_metrics = [metric() for metric in kinds]
    result, tokenizer = [""] * len(ids), translator.tokenizer.spaced()
    with progress_bar(total=len(nonempty), desc=translator.name, unit="sentence", disable=not progress) as bar:
        started = time.perf_counter()
        for indices, unrolled, lengths in _decoded(translator.model, ids, nonempty, beam):
            for i, translation in zip(indices, _texts(tokenizer, unrolled, lengths)):
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


def check_lengths(ids: Iterable[Sequence[int]]) -> None:
    """TextError for a sentence that is too long for the models. ids : the pieces of each."""
    for number, row in enumerate(ids, start=1):
        if len(row) > MOST_PIECES:
            raise TextError(
                f"sentence {number} is too long: {len(row)} pieces with <eos>, and the models read at most "
                f"{MOST_PIECES}; shorten it or leave it out"
            )


def _nonempty(ids: list[list[int]]) -> list[int]:
    """The indices of the sentences with text. Raises ValueError when none has, TextError when one is too long."""
    check_lengths(ids)
    nonempty = [i for i, row in enumerate(ids) if len(row) > 1]
    if not nonempty:
        raise ValueError(f"sources must hold at least one sentence with visible text; got none in {len(ids)} lines")
    return nonempty


def _decoded(model: Network, ids: list[list[int]], indices: list[int], beam: int) -> Decoded:
    device = next(model.parameters()).device
    return _greedy(model, ids, indices, device) if beam == 1 else _beam(model, ids, indices, device, beam)


def _greedy(model: Network, ids: list[list[int]], indices: Sequence[int], device: str | torch.device) -> Decoded:
    if not indices:
        return
    for places in batching.batches([len(ids[i]) for i in indices], BATCH, random.Random(0)):
        batch = [indices[place] for place in places]
        source = batching.pad([ids[i] for i in batch]).to(device)
        unrolled = decode.greedy(model, source, source != PAD, end_loops=True)
        limits = [decode.limit(len(ids[i])) for i in batch]  # each sentence stops where it would stop alone
        yield batch, unrolled, [min(pair) for pair in zip(unrolled.lengths(), limits)]


def _beam(
    model: Network, ids: list[list[int]], indices: Sequence[int], device: str | torch.device, width: int
) -> Decoded:
    for i in indices:
        source = torch.tensor([ids[i]], device=device)
        best = decode.beam(model, source, width, end_loops=True)
        yield [i], decode.forced(model, source, torch.tensor([best], device=device)), [len(best)]


def _texts(tokenizer: SubwordTokenizer, unrolled: decode.Unrolled, lengths: list[int]) -> list[str]:
    """The translation of each sentence of a batch."""
    return [tokenizer.decode(row[:length]) for row, length in zip(unrolled.tokens.tolist(), lengths)]
