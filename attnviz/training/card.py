"""The model card, card.json: what a model was trained on, how, and how it scores. A run writes it when it ends."""

import platform
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from attnviz import __version__, evaluation, loading
from attnviz.confidence import calibration, lexicon, training_words
from attnviz.confidence.lexicon import Lexicon
from attnviz.confidence.training_words import TrainingWords
from attnviz.data import corpora
from attnviz.evaluation import evaluate
from attnviz.models import checkpoint_files, checkpoints
from attnviz.models.names import CARD, ModelName
from attnviz.models.translator import Translator
from attnviz.networks.registry import options
from attnviz.training import saved_run, validation
from attnviz.training.validation import best_epoch

LONGER = 1000  # one training text in so many may be longer than `longest` says


def write(name: str, root: Path, corpus: corpora.Corpus, command: str, origins: dict) -> None:
    """Write the card of the checkpoint `name` below `root`. origins : see `read_origins`."""
    content = card(name, root, corpus, command) | {"training_pairs": len(corpus.train)} | origins
    model = loading.load_checkpoint(name, root)
    content |= typed_sentences(model, corpus, root) if isinstance(model, Translator) else {}
    checkpoints.write_json(Path(root) / name / CARD, content)


def typed_sentences(translator: Translator, corpus: corpora.Corpus, root: Path) -> dict:
    """What a card says about sentences that visitors type: `longest` (`Translator.longest`), `examples` (sentences of
    the validation set), `confidence` and `copied`, see `evaluation.copied`.

    Also writes the words of training beside the tokenizer. Only the first two for a model that does not translate from
    English, and for fewer validation sentences than a calibration needs.
    """
    content = {"longest": _longest(translator, corpus), "examples": validation.examples(corpus.val)}
    if translator.task.source != "en" or len(corpus.val) < calibration.FEWEST:
        return content
    translator = replace(translator, card=translator.card | content)
    known_words = TrainingWords.learn(source for source, _ in corpus.train)
    known_words.save(Path(root) / translator.pair / training_words.FILE)
    target_words = _target_words(translator, corpus, root)
    usual = Lexicon.learn(corpus.train, translator.task.source, translator.task.target)
    usual.save(Path(root) / translator.pair / lexicon.FILE)
    samplers = _samplers(translator, root)
    prints = {sampler.name: checkpoints.fingerprint(sampler.name, root) for sampler in samplers}
    fitted = evaluation.confidence(translator, corpus.val, known_words, samplers, target_words, usual)
    confidence = replace(fitted, samplers=prints)
    return content | {"copied": evaluation.copied(translator), "confidence": confidence.to_dict()}


def _longest(translator: Translator, corpus: corpora.Corpus) -> int:
    """The pieces (<eos> included) that training texts have at most, but for one in LONGER."""
    different = sorted({source for source, _ in corpus.train})
    lengths = sorted(map(len, translator.tokenizer.batch_ids(different)))
    return lengths[len(lengths) - 1 - len(lengths) // LONGER]


def _target_words(translator: Translator, corpus: corpora.Corpus, root: Path) -> TrainingWords | None:
    """The words of the translations in training, in a file beside the tokenizer; None where no spaces divide them."""
    if not translator.task.copies_names:
        return None
    words = TrainingWords.learn(target for _, target in corpus.train)
    words.save(Path(root) / translator.pair / training_words.TARGET_FILE)
    return words


def _samplers(translator: Translator, root: Path) -> list[Translator]:
    """The models that draw translations for the sign of confidence; none where one of them is missing, damaged or not
    trained to its end, so without a card."""
    names = [str(ModelName(translator.pair, mechanism)) for mechanism in translator.task.samplers]
    if not all(name == translator.name or (Path(root) / name / CARD).is_file() for name in names):
        return []
    try:
        return [translator if name == translator.name else loading.load_translator(name, root) for name in names]
    except checkpoints.CheckpointError:
        return []


def read_origins(start: Path | None, teachers: Sequence[Path]) -> dict:
    """What a card says of the run of the initial weights and of the teachers, from their cards. Raises
    CheckpointError."""
    return checkpoint_files.begun(start) | checkpoint_files.taught(teachers)


def card(name: str, root: Path, corpus: corpora.Corpus, command: str) -> dict:
    """The card of a checkpoint with its training run. The scores are those of the weights as shipped, in fp16.

    corpus : what the run read. command : what repeats the run. What the run did not record is None. Raises
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
        "options": options(model_name.mechanism) | checkpoints.read_config(name, root).options,
        "weights_sha256": checkpoints.fingerprint(name, root),
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
