"""The model card, card.json: what a model was trained on, how, and how it scores. Training writes it at the end."""

import functools
import logging
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch

from attnviz import __version__, evaluation, loading
from attnviz.confidence import calibration, lexicon, training_words
from attnviz.confidence.lexicon import Lexicon
from attnviz.confidence.signs import SAMPLES
from attnviz.confidence.training_words import TrainingWords
from attnviz.data import corpora
from attnviz.evaluation import evaluate
from attnviz.models import checkpoint_files, checkpoints
from attnviz.models.names import CARD, ModelName
from attnviz.models.translator import Translator
from attnviz.networks.registry import options
from attnviz.trace.visible import WORD
from attnviz.training import saved_run, validation
from attnviz.training.validation import best_epoch

LONGER = 1000  # one training text in so many may be longer than `longest` says


def write(name: str, root: Path, corpus: corpora.Corpus, command: str, origins: dict) -> None:
    """Write the card of the checkpoint `name` below `root`, with sentences of the validation set as `examples`.

    origins : see `read_origins`.
    """
    content = card(name, root, corpus, command) | {"training_pairs": len(corpus.train)} | origins
    model = loading.load_checkpoint(name, root)
    if isinstance(model, Translator):
        content |= {"examples": validation.examples(corpus.val)} | typed_sentences(model, learn(model, corpus, root))
    checkpoint_files.write_json(Path(root) / name / CARD, content)


@dataclass(frozen=True)
class Learnt:
    """The data of a language pair for the sign of confidence, shared by all its models.

    known_words, target_words, lexicon : of the training sentences; of Japanese, target_words has those in katakana.
    All are None if no model of the pair is judged. samplers : name and SHA-256 of the weights of the models that draw
    translations. draw : text -> drawn translations.
    """

    corpus: corpora.Corpus
    known_words: TrainingWords | None = None
    target_words: TrainingWords | None = None
    lexicon: Lexicon | None = None
    samplers: dict[str, str] = field(default_factory=dict)
    draw: Callable[[str], Sequence[str]] = lambda text: ()


def learn(translator: Translator, corpus: corpora.Corpus, root: Path) -> Learnt:
    """Learn from the corpus of a translator's pair; writes the words of training beside the tokenizer.

    Nothing is learnt for a model that does not translate from English, nor from fewer validation sentences than a
    calibration needs.
    """
    root, task = Path(root), translator.task
    if task.source != "en" or len(corpus.val) < calibration.FEWEST:
        return Learnt(corpus)
    known_words = TrainingWords.learn(source for source, _ in corpus.train)
    known_words.save(root / translator.pair / training_words.FILE)
    pattern = WORD if task.copies_names else training_words.KATAKANA
    target_words = TrainingWords.learn((target for _, target in corpus.train), pattern)
    target_words.save(root / translator.pair / training_words.TARGET_FILE)
    usual = Lexicon.learn(corpus.train, task.source, task.target)
    usual.save(root / translator.pair / lexicon.FILE)
    samplers = _samplers(translator, root)

    @functools.cache  # all models of the pair are compared with the same
    def draw(text: str) -> tuple[str, ...]:
        return tuple(sample for sampler in samplers for sample in sampler.samples(text, SAMPLES))

    prints = {sampler.name: checkpoint_files.fingerprint(sampler.name, root) for sampler in samplers}
    return Learnt(corpus, known_words, target_words, usual, prints, draw)


def typed_sentences(translator: Translator, learnt: Learnt) -> dict:
    """The entries of a card about sentences that visitors type: `longest` (`Translator.longest`), and if words were
    learnt `confidence` and `copied`, see `evaluation.copied`.
    """
    corpus = learnt.corpus
    content: dict = {"longest": _longest(translator, corpus)}
    if learnt.known_words is None:
        return content
    translator = replace(translator, card=translator.card | content)
    fitted = evaluation.confidence(
        translator, corpus.val, learnt.known_words, learnt.draw, learnt.target_words, learnt.lexicon
    )
    confidence = replace(fitted, samplers=learnt.samplers)
    copied = translator.card.get("copied") or evaluation.copied(translator)  # a card is of the weights beside it
    return content | {"copied": copied, "confidence": confidence.to_dict()}


def _longest(translator: Translator, corpus: corpora.Corpus) -> int:
    """The largest number of pieces (<eos> included) of training texts, except one in LONGER."""
    different = sorted({source for source, _ in corpus.train})
    lengths = sorted(map(len, translator.tokenizer.batch_ids(different)))
    return lengths[len(lengths) - 1 - len(lengths) // LONGER]


def _samplers(translator: Translator, root: Path) -> list[Translator]:
    """The models that draw translations for the sign of confidence; none if one of them is missing, unfinished (without
    a card) or damaged, which the log says."""
    names = [str(ModelName(translator.pair, mechanism)) for mechanism in translator.task.samplers]
    if not all(name == translator.name or (Path(root) / name / CARD).is_file() for name in names):
        return []
    try:
        return [translator if name == translator.name else loading.load_translator(name, root) for name in names]
    except checkpoint_files.CheckpointError as error:
        logging.getLogger(__name__).warning(
            "the confidence of %s is judged without samples: %s", translator.name, error
        )
        return []


def read_origins(start: Path | None, teachers: Sequence[Path]) -> dict:
    """The card entries on the initial weights and the teachers, from their cards. Raises CheckpointError."""
    return checkpoint_files.begun(start) | checkpoint_files.taught(teachers)


def card(name: str, root: Path, corpus: corpora.Corpus, command: str) -> dict:
    """The card of a checkpoint with its training run. The scores are those of the weights as shipped, in fp16.

    corpus : of the training. command : repeats the training. Values that were not recorded are None. Raises
        CheckpointError.
    """
    model_name = ModelName.parse(name)
    run = saved_run.read(Path(root) / name)
    history, settings = run["history"], run["settings"]
    model = loading.load_checkpoint(name, root)
    peaks = [epoch["peak_memory_mb"] for epoch in history if epoch.get("peak_memory_mb")]
    return {
        "pair": model_name.pair,
        "mechanism": model_name.mechanism,
        "data": corpus.files,
        "seed": settings["seed"],
        "command": command,
        "settings": settings,
        "options": options(model_name.mechanism) | checkpoint_files.read_config(name, root).options,
        "weights_sha256": checkpoint_files.fingerprint(name, root),
        "tokenizer_sha256": checkpoints.fingerprint_tokenizer(model_name.pair, root),
        "parameters": sum(parameter.numel() for parameter in model.model.parameters()),
        "epochs": len(history),
        "seconds": round(run["seconds"]),
        "peak_memory_mb": max(peaks, default=None),
        "device": history[-1].get("device"),
        "precision": history[-1].get("precision"),
        "versions": {"attnviz": __version__, "python": platform.python_version(), "torch": torch.__version__},
        "best": best_epoch(history, corpus),
        **evaluate(model, corpus, progress=True),
        "history": history,
    }
