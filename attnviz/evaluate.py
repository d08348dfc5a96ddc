"""How well a model translates and how it attends: sacreBLEU, chrF, entropy and maximum weight; and the model card.

Letters: B batch, H heads, T target rows, S source positions.
"""

import platform
import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from sacrebleu.metrics import BLEU, CHRF
from torch import Tensor, nn
from tqdm import tqdm

from attnviz import __version__, checkpoints, corpora, decode
from attnviz.text import PAD, Text
from attnviz.translator import BEAMS, LONGEST, TextError, Translator

BATCH = 3000  # source pieces decoded at once, padding included

# A batch: indices of its sentences, their steps, and how many of these each sentence has when it is alone.
Decoded = Iterator[tuple[list[int], decode.Unrolled, list[int]]]


def translate(model: nn.Module, text: Text, sentences: list[str], device: str | torch.device) -> list[str]:
    """Greedy translations, in batches of like lengths."""
    result = [""] * len(sentences)
    for chosen, unrolled, lengths in _greedy(model, text.batch_ids(sentences), range(len(sentences)), device):
        for i, translation in zip(chosen, _spell(text, unrolled, lengths)):
            result[i] = translation
    return result


def score(
    translator: Translator, sources: Sequence[str], references: Sequence[str], beam: int = 1, progress: bool = False
) -> dict:
    """Translate `sources`, compare with `references` (aligned), and measure the cross-attention on the way.

    bleu, bleu_lc, chrf            sacreBLEU 13a cased, the same lower-cased, chrF; each with its `_signature`
    sentences, beam, seconds       an empty source counts, and gets an empty translation
    sentences_per_second           sentences with text / seconds of tokenising, decoding with the weights kept, and spelling
    entropy_nats, max_weight       of every cross-attention row of the translations, <eos> row included, in every head
                                   and layer; the mean of them all, that is of each head's own mean. None without a row.

    Greedy runs in batches; a beam of 2 or more goes sentence by sentence. progress : a bar on standard error.
    Raises ValueError for texts that are not aligned, for none at all and for a beam out of range; TextError for a long one.
    """
    if not 1 <= beam <= BEAMS:
        raise ValueError(f"beam must be from 1 to {BEAMS}; got {beam}")
    if len(sources) != len(references):
        raise ValueError(f"sources and references must be aligned; got {len(sources)} and {len(references)}")
    started = time.perf_counter()
    ids = translator.text.batch_ids(list(sources))
    seconds = time.perf_counter() - started
    filled = _filled(ids)
    model, device = translator.model, next(translator.model.parameters()).device
    decoded = _greedy(model, ids, filled, device) if beam == 1 else _beam(model, ids, filled, device, beam)
    found, sums = [""] * len(ids), torch.zeros(3, dtype=torch.float64)
    with tqdm(total=len(filled), desc=translator.name, unit="sentence", disable=not progress) as bar:
        started = time.perf_counter()
        for chosen, unrolled, lengths in decoded:
            for i, translation in zip(chosen, _spell(translator.text, unrolled, lengths)):
                found[i] = translation
            seconds += time.perf_counter() - started
            sums += attention_sums(unrolled.cross, lengths)
            bar.update(len(chosen))
            started = time.perf_counter()
    entropy, largest, rows = sums.tolist()
    return {
        "model": translator.name, "sentences": len(ids), "beam": beam, **_overlap(found, references),
        "seconds": round(seconds, 3), "sentences_per_second": round(len(filled) / seconds, 2),
        "entropy_nats": entropy / rows, "max_weight": largest / rows,
    }  # fmt: skip


def attention_sums(layers: Sequence[Tensor], lengths: Sequence[int]) -> Tensor:
    """Entropy (nats) and maximum weight summed over the real rows of all heads and layers, and their number: (3,).

    layers : weights (B, H, T, S) of each. lengths : rows of each sentence; what comes after them does not count.
    """
    weights = torch.stack(list(layers)).double().cpu()  # (layers, B, H, T, S)
    real = torch.arange(weights.shape[3]) < torch.tensor(lengths).unsqueeze(1)  # (B, T)
    weights = weights.movedim(2, -2)[:, real]  # (layers, real rows, H, S)
    entropy = torch.special.entr(weights / weights.sum(-1, keepdim=True)).sum(-1)  # padding's 0 adds 0
    return torch.stack([entropy.sum(), weights.amax(-1).sum(), torch.tensor(float(entropy.numel())).double()])


def card(root: Path, name: str, corpus: corpora.Corpus, command: str) -> dict:
    """The card of the trained checkpoint `name` below `root`: what it was trained on, how, and what it scores.

    Reads what the run recorded in training.safetensors; what an earlier version did not record is None. The scores are
    those of the weights as shipped, greedy. Raises CheckpointError.
    """
    pair, mechanism = name.split("/")
    state = checkpoints.load_metadata(Path(root) / name / "training.safetensors", "settings", "seconds", "history")
    history, settings = state["history"], state["settings"]
    translator = Translator.load(name, root)
    splits = {"val": corpus.val, **corpus.tests}
    peaks = [epoch["peak_memory_mb"] for epoch in history if epoch.get("peak_memory_mb")]
    return {
        "pair": pair, "mechanism": mechanism, "data": corpus.files, "seed": settings["seed"], "command": command,
        "settings": settings, "weights_sha256": checkpoints.fingerprint(name, root),
        "tokenizer_sha256": checkpoints.fingerprint_text(pair, root),
        "parameters": sum(p.numel() for p in translator.model.parameters()),
        "epochs": len(history), "seconds": round(state["seconds"]),
        "peak_memory_mb": max(peaks, default=None), "device": history[-1].get("device"),
        "precision": history[-1].get("precision"),
        "versions": {"attnviz": __version__, "python": platform.python_version(), "torch": torch.__version__},
        "best": max(history, key=lambda epoch: epoch["val_bleu_lc"]),
        "scores": {split: score(translator, *zip(*pairs)) for split, pairs in splits.items()},
        "history": history,
    }  # fmt: skip


def _filled(ids: list[list[int]]) -> list[int]:
    """Indices of the sentences that hold something. Raises ValueError when none does, TextError when one is too long."""
    for number, row in enumerate(ids, start=1):
        if len(row) > LONGEST:
            raise TextError(f"sentence {number} is too long: {len(row)} pieces with the end mark, and the models read at "
                            f"most {LONGEST}; shorten it or leave it out")  # fmt: skip
    filled = [i for i, row in enumerate(ids) if len(row) > 1]
    if not filled:
        raise ValueError(f"sources must hold at least one sentence with visible text; got none in {len(ids)} lines")
    return filled


def _greedy(model: nn.Module, ids: list[list[int]], chosen: Sequence[int], device: str | torch.device) -> Decoded:
    if not chosen:
        return
    for batch in corpora.batches([len(ids[i]) for i in chosen], BATCH, random.Random(0)):
        indices = [chosen[place] for place in batch]
        source = corpora.pad([ids[i] for i in indices]).to(device)
        unrolled = decode.greedy(model, source, source != PAD)
        alone = [decode.limit(len(ids[i])) for i in indices]  # a longer neighbour must not let a sentence ramble on
        yield indices, unrolled, [min(pair) for pair in zip(unrolled.lengths(), alone)]


def _beam(model: nn.Module, ids: list[list[int]], chosen: Sequence[int], device, width: int) -> Decoded:
    for i in chosen:
        source = torch.tensor([ids[i]], device=device)
        best = decode.beam(model, source, width)
        yield [i], decode.forced(model, source, torch.tensor([best], device=device)), [len(best)]


def _spell(text: Text, unrolled: decode.Unrolled, lengths: list[int]) -> list[str]:
    """One text for each sentence of a batch."""
    return [text.decode(row[:length]) for row, length in zip(unrolled.tokens.tolist(), lengths)]


def _overlap(found: list[str], references: Sequence[str]) -> dict:
    """BLEU cased and lower-cased and chrF, each with its sacreBLEU signature."""
    result = {}
    for name, metric in (("bleu", BLEU()), ("bleu_lc", BLEU(lowercase=True)), ("chrf", CHRF())):
        result[name] = round(metric.corpus_score(found, [list(references)]).score, 2)
        result[f"{name}_signature"] = str(metric.get_signature())
    return result
