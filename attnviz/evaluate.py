"""How well a model translates and how it attends: the metrics of its pair, entropy and maximum weight; and the model card."""

import platform
import random
import statistics
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from torch import nn
from tqdm import tqdm

from attnviz import __version__, alignment, checkpoints, corpora, decode, evaluate_labels, gold, loading, metrics
from attnviz.classify import Classifier
from attnviz.models import options
from attnviz.tallies import AntiDiagonal, Spread
from attnviz.text import PAD, Text
from attnviz.trained import LONGEST, TextError
from attnviz.translator import BEAMS, Translator

BATCH = 3000  # source pieces decoded at once, padding included
BEAM = 5  # hypotheses of the card's second score on every test, as papers have them
TIMED = 100  # sentences that are timed for the card
TALLIES = {"reverse": (AntiDiagonal,)}  # what of attention is measured beside `Spread`, by task

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

    sentences, beam     an empty source counts, and gets an empty translation
    bleu, ...           the metrics of the model's pair (`metrics.of`), each with its `_signature`
    and the figures of `translations`, whose errors it raises; ValueError too for texts that are not aligned.
    """
    if len(sources) != len(references):
        raise ValueError(f"sources and references must be aligned; got {len(sources)} and {len(references)}")
    found, beside = translations(translator, sources, beam, progress)
    return _entry(translator, found, references, beam) | beside


def translations(
    translator: Translator, sources: Sequence[str], beam: int = 1, progress: bool = False, also: Sequence[type] = ()
) -> tuple[list[str], dict]:
    """Translations of `sources`, words apart in every script, and what was measured on the way:

    seconds                     of tokenising, decoding with the weights kept, and spelling
    sentences_per_second, ms_per_sentence   of the sentences with text
    entropy_nats, max_weight    of every cross-attention row of the translations, <eos> row included, in every head
                                and layer; the mean of them all, that is of each head's own mean. None without attention.
    antidiagonal                see `AntiDiagonal`; for the task of reversal only
    and the figures of `also`, kinds of tallies.

    Greedy runs in batches; a beam of 2 or more goes sentence by sentence. progress : a bar on standard error.
    Raises ValueError for no text at all and for a beam out of range; TextError for a long one.
    """
    if not 1 <= beam <= BEAMS:
        raise ValueError(f"beam must be from 1 to {BEAMS}; got {beam}")
    started = time.perf_counter()
    ids = translator.text.batch_ids(list(sources))
    seconds = time.perf_counter() - started
    filled, text = _filled(ids), translator.text.spaced()
    model, device = translator.model, next(translator.model.parameters()).device
    decoded = _greedy(model, ids, filled, device) if beam == 1 else _beam(model, ids, filled, device, beam)
    kinds = (Spread, *TALLIES.get(_pair(translator), ()), *also)
    found, tallies = [""] * len(ids), [kind() for kind in kinds]
    with tqdm(total=len(filled), desc=translator.name, unit="sentence", disable=not progress) as bar:
        started = time.perf_counter()
        for chosen, unrolled, lengths in decoded:
            for i, translation in zip(chosen, _spell(text, unrolled, lengths)):
                found[i] = translation
            seconds += time.perf_counter() - started
            for tally in tallies:
                tally.add(unrolled, lengths, [len(ids[i]) for i in chosen])
            bar.update(len(chosen))
            started = time.perf_counter()
    speed = {"seconds": round(seconds, 3), "sentences_per_second": round(len(filled) / seconds, 2),
             "ms_per_sentence": round(1000 * seconds / len(filled), 3)}  # fmt: skip
    return found, {name: value for part in (speed, *(tally.figures() for tally in tallies)) for name, value in part.items()}


def card(root: Path, name: str, corpus: corpora.Corpus, command: str, progress: bool = False) -> dict:
    """The card of the trained checkpoint `name` below `root`: what it was trained on, how, and what it scores.

    Reads what the run recorded in training.safetensors; what an earlier version did not record is None. The scores are
    those of the weights as shipped, see `figures` and `evaluate_labels.figures`. Raises CheckpointError.
    """
    pair, mechanism = name.split("/")
    state = checkpoints.load_metadata(Path(root) / name / "training.safetensors", "settings", "seconds", "history")
    history, settings = state["history"], state["settings"]
    model = loading.load(name, root)
    peaks = [epoch["peak_memory_mb"] for epoch in history if epoch.get("peak_memory_mb")]
    return {
        "pair": pair, "mechanism": mechanism, "data": corpus.files, "seed": settings["seed"], "command": command,
        "settings": settings, "options": options(mechanism) | checkpoints.read_config(name, root).options,
        "weights_sha256": checkpoints.fingerprint(name, root),
        "tokenizer_sha256": checkpoints.fingerprint_text(pair, root),
        "parameters": sum(p.numel() for p in model.model.parameters()),
        "epochs": len(history), "seconds": round(state["seconds"]),
        "peak_memory_mb": max(peaks, default=None), "device": history[-1].get("device"),
        "precision": history[-1].get("precision"),
        "versions": {"attnviz": __version__, "python": platform.python_version(), "torch": torch.__version__},
        "best": max(history, key=lambda epoch: epoch[f"val_{corpus.metric}"]),
        **FIGURES[type(model)](model, corpus, progress), "history": history,
    }  # fmt: skip


def figures(translator: Translator, corpus: corpora.Corpus, progress: bool = False) -> dict:
    """What the card says of a translator beside its run.

    scores : greedy on every split, and with a beam of 5 on the tests (`..._beam_5`); `unseen` is the score on those
    sentences of a test that are not among the training sources, where some are. alignment : see `alignment.report`.
    ms_per_sentence : median of 100 of val, one at a time, greedy.
    """
    seen = {source for source, _ in corpus.train}
    scores = {"val": score(translator, *zip(*corpus.val), progress=progress)}
    for split, pairs in corpus.tests.items():
        for beam, suffix in ((1, ""), (BEAM, f"_beam_{BEAM}")):
            scores[split + suffix] = _measured(translator, pairs, seen, beam, progress)
    return {"scores": scores, "ms_per_sentence": latency(translator, [source for source, _ in corpus.val[:TIMED]]),
            "alignment": alignment.report(translator, gold.shipped(_pair(translator)))}  # fmt: skip


FIGURES = {Translator: figures, Classifier: evaluate_labels.figures}


def latency(translator: Translator, sentences: Sequence[str]) -> float:
    """Median time (ms) to translate one sentence, greedy, with the weights kept."""
    times = []
    for sentence in sentences:
        started = time.perf_counter()
        translations(translator, [sentence])
        times.append(1000 * (time.perf_counter() - started))
    return round(statistics.median(times), 2)


def _pair(translator: Translator) -> str:
    return translator.name.split("/")[0]


def _entry(translator: Translator, found: Sequence[str], references: Sequence[str], beam: int) -> dict:
    scores = metrics.score(_pair(translator), found, references)
    return {"model": translator.name, "sentences": len(found), "beam": beam, **scores}


def _measured(translator: Translator, pairs: corpora.Pairs, seen: set[str], beam: int, progress: bool) -> dict:
    """`score` of a test, and its metrics on the sentences that training has not seen."""
    sources, references = zip(*pairs)
    found, beside = translations(translator, sources, beam, progress)
    result = _entry(translator, found, references, beam) | beside
    new = [i for i, source in enumerate(sources) if source not in seen]
    if 0 < len(new) < len(pairs):
        texts = ([side[i] for i in new] for side in (found, references))
        result["unseen"] = {"sentences": len(new), **metrics.score(_pair(translator), *texts)}
    return result


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
        unrolled = decode.greedy(model, source, source != PAD, end_loops=True)
        alone = [decode.limit(len(ids[i])) for i in indices]  # a longer neighbour must not let a sentence ramble on
        yield indices, unrolled, [min(pair) for pair in zip(unrolled.lengths(), alone)]


def _beam(model: nn.Module, ids: list[list[int]], chosen: Sequence[int], device, width: int) -> Decoded:
    for i in chosen:
        source = torch.tensor([ids[i]], device=device)
        best = decode.beam(model, source, width, end_loops=True)
        yield [i], decode.forced(model, source, torch.tensor([best], device=device)), [len(best)]


def _spell(text: Text, unrolled: decode.Unrolled, lengths: list[int]) -> list[str]:
    """One text for each sentence of a batch."""
    return [text.decode(row[:length]) for row, length in zip(unrolled.tokens.tolist(), lengths)]
