"""Training: from a corpus to a checkpoint with its card. It is seeded, and resumes after a stop.

The epoch with the best score on validation is saved.
"""

import math
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from attnviz import storage
from attnviz.data import MOST_PIECES, augmentation, corpora, tasks
from attnviz.data.corpora import length_filter
from attnviz.data.tokenizer import SubwordTokenizer
from attnviz.evaluation.language import BITS
from attnviz.models import checkpoint_files, checkpoints, machine
from attnviz.models.classifier import Classifier
from attnviz.models.names import CARD, CONFIG, TOKENIZER, WEIGHTS
from attnviz.moments import due, keep
from attnviz.progress import bar as progress_bar
from attnviz.storage import folders
from attnviz.training import card, classifiers, initial, saved_run, validation
from attnviz.training.classifiers import ClassifierTrainer
from attnviz.training.optimizer import device_name, peak_memory_mb
from attnviz.training.recipes import TrainingConfig
from attnviz.training.trainer import Diverged, Trainer, WriterTrainer
from attnviz.training.validation import best_epoch, epochs_since_best, score_key, validate


def train(
    config: TrainingConfig,
    corpus: corpora.Corpus,
    root: Path,
    pair: str,
    *,
    command: str = "",
    save_every: float = 60.0,
    compile: bool = True,
    restart: bool = False,
    start: Path | None = None,
    teachers: Sequence[Path] = (),
    moments: Path | None = None,
    threads: int = machine.THREADS,
    patience: int | None = None,
) -> Path:
    """Train a model in `root/pair/mechanism`, or resume the run there, and write its card; returns that folder.

    command : repeats the training, for the card. save_every : seconds between saves. compile : see `Trainer`.
    restart : begin again; when the new run saves its first model, a finished model is moved to the folder `before`.
    start : folder of the checkpoint with the first weights and the tokenizer (fine-tuning); None for random weights.
    teachers : folders of classifiers from which a classifier learns instead of from the labels (classifiers.py).
    moments : folder for the weights at some updates. threads : see `models.machine`.
    patience : end the run after this number of epochs without improvement on validation; 0 ends it after the first
    epoch, or a stopped run at once, with its best epoch so far. ValueError when the folder holds a finished model
    without its run, or a run with different settings or data, or when another process trains there; CheckpointError;
    Diverged.
    """
    machine.use_threads(threads)
    folder = Path(root) / pair / config.mechanism
    config = _with_fingerprints(config, folder, start, teachers)
    with folders.locked(folder, "training"):
        origins = card.read_origins(start, teachers)
        trainer, tokenizer, corpus = _prepared(config, corpus, folder, compile, restart, start, teachers)
        _run_epochs(trainer, tokenizer, corpus, folder, save_every, moments, patience)
        if not (folder / CARD).exists():
            card.write(f"{pair}/{config.mechanism}", root, corpus, command, origins)
    return folder


def _prepared(
    config: TrainingConfig,
    corpus: corpora.Corpus,
    folder: Path,
    compile: bool,
    restart: bool,
    start: Path | None,
    teachers: Sequence[Path],
) -> tuple[Trainer, SubwordTokenizer, corpora.Corpus]:
    """The trainer, new or resumed from the run in the folder; its tokenizer, which is saved; its corpus."""
    resumes, tokenizer_path = not restart and _resumes(folder), folder.parent / TOKENIZER
    tokenizer = initial.choose_tokenizer(tokenizer_path, corpus, config.vocabulary, start)
    corpus = _length_filtered(corpus, tokenizer)
    trainer = _trainer(config, tokenizer, corpus, folder.parent.name, compile, teachers)
    _set_state(trainer, folder if resumes else None, start)
    best_epoch(trainer.history, corpus)  # the metric must be the same
    initial.save_tokenizer(tokenizer_path, tokenizer, start)
    if restart:
        (folder / saved_run.FILE).unlink(missing_ok=True)  # all checks have passed
    return trainer, tokenizer, corpus


def _resumes(folder: Path) -> bool:
    """Does the folder hold a run? ValueError if it holds a finished model without its run."""
    exists = saved_run.exists(folder)
    if not exists and (folder / CARD).exists():
        raise ValueError(
            f"{folder} holds a finished model without a training run to resume; choose another --out, or use --restart"
        )
    return exists


def _with_fingerprints(
    config: TrainingConfig, folder: Path, start: Path | None, teachers: Sequence[Path]
) -> TrainingConfig:
    """The configuration with the SHA-256 of the initial weights and of the teachers. ValueError, CheckpointError."""
    starts = [start] if start else []
    for other in (*starts, *teachers):
        if Path(other).resolve() == folder.resolve():
            raise ValueError(f"{other} is the folder to train in, which would be overwritten; choose another --out")
    classifiers.check_teachers(config, teachers)
    digests: dict[str, Any] = {
        name: " ".join(checkpoint_files.fingerprint(*checkpoint_files.locate(folder)) for folder in folders)
        for name, folders in (("start", starts), ("teachers", teachers))
    }
    return replace(config, **{name: digest for name, digest in digests.items() if digest})


def _length_filtered(corpus: corpora.Corpus, tokenizer: SubwordTokenizer) -> corpora.Corpus:
    """The corpus without sentences that the models cannot read; their number is printed to standard error."""
    if corpus.metric == BITS:
        return corpus  # a text may be longer than the context
    total = len(corpus.train) + len(corpus.val)
    corpus, left_out = length_filter(corpus, tokenizer)
    if left_out:
        tqdm.write(
            f"{len(left_out)} of {total} sentences are left out: more than {MOST_PIECES} pieces, or no visible "
            f"character, on one side; the first is {left_out[0][:80]!r}",
            file=sys.stderr,
        )
    return corpus


def _trainer(
    config: TrainingConfig,
    tokenizer: SubwordTokenizer,
    corpus: corpora.Corpus,
    pair: str,
    compile: bool,
    teachers: Sequence[Path],
) -> Trainer:
    device, labels = "cuda" if torch.cuda.is_available() else "cpu", tasks.find(pair).labels
    augment = augmentation.for_pair(corpus.train, pair, config.augment, config.seed) if config.augment else None
    pairs = augmentation.repeated(corpus.train, pair) if config.augment else corpus.train
    arguments = config, tokenizer, pairs, device, compile
    if teachers:
        networks = [Classifier.load(*checkpoint_files.locate(teacher)) for teacher in teachers]
        return classifiers.DistillationTrainer(*arguments, labels=labels, teachers=networks)
    if tasks.find(pair).writes:
        return WriterTrainer(*arguments)
    if labels:
        return ClassifierTrainer(*arguments, labels=labels)
    return Trainer(*arguments, augment=augment)


def _set_state(trainer: Trainer, saved: Path | None, start: Path | None) -> None:
    """Continue the run saved in a folder, or begin with the weights of a checkpoint, or with random weights."""
    if saved:
        _resume(trainer, saved)
    elif start:
        _start_from(trainer, start)


def _resume(trainer: Trainer, folder: Path) -> None:
    try:
        saved_run.restore(trainer, folder)
    except checkpoint_files.CheckpointError as error:
        raise checkpoint_files.CheckpointError(f"{error}; --restart begins again") from None
    if trainer.history and not (folder / WEIGHTS).is_file():
        raise ValueError(
            f"{folder} holds a training run, but its model.safetensors is missing; restore that file, or use --restart"
        )


def _start_from(trainer: Trainer, start: Path) -> None:
    weights, random = initial.taken_from(start, trainer.model_config, trainer.optimizer.master.state_dict())
    if random:
        tqdm.write(
            f"{start} has another mechanism; these weights begin at random: {', '.join(random)}", file=sys.stderr
        )
    trainer.optimizer.start_from(weights)


def _run_epochs(
    trainer: Trainer,
    tokenizer: SubwordTokenizer,
    corpus: corpora.Corpus,
    folder: Path,
    save_every: float,
    moments: Path | None,
    patience: int | None,
) -> None:
    sentence, name = validation.example(corpus.val), f"{folder.parent.name}/{folder.name}"
    total, updates = trainer.batches.total, trainer.optimizer.updates
    with progress_bar(total=total, initial=updates, desc=name, unit="batch", smoothing=0.05) as bar:
        while trainer.epoch < trainer.config.epochs and not _is_enough(trainer.history, corpus, patience):
            _run_epoch(trainer, folder, corpus, bar, save_every, moments)
            _finish_epoch(trainer, folder, tokenizer, corpus)
            bar.write(validation.report(trainer, tokenizer, name, sentence))
    if moments:
        _keep(trainer, moments)


def _is_enough(history: list[dict], corpus: corpora.Corpus, patience: int | None) -> bool:
    """Has validation not improved for `patience` epochs?"""
    return patience is not None and bool(history) and epochs_since_best(history, corpus) >= patience


def _run_epoch(
    trainer: Trainer, folder: Path, corpus: corpora.Corpus, bar: tqdm, save_every: float, moments: Path | None
) -> None:
    """The remaining batches of the current epoch; the run is saved every `save_every` seconds."""
    trainer.optimizer.working.train()
    started = saved = time.monotonic()
    best = best_epoch(trainer.history, corpus)
    for indices in trainer.batches.order(trainer.epoch)[trainer.batch :]:
        if moments and trainer.optimizer.updates in due(trainer.batches.total):
            _keep(trainer, moments)
        loss = float(trainer.update(indices))
        total, count = trainer.losses[0] + loss, trainer.losses[1] + 1
        trainer.losses, trainer.batch = (total, count), trainer.batch + 1
        bar.update()
        shown = {"loss": f"{total / count:.3f}", score_key(corpus): "–" if best is None else best[score_key(corpus)]}
        bar.set_postfix(epoch=trainer.epoch + 1, **shown, refresh=False)
        now = time.monotonic()
        if now - saved > save_every:
            trainer.seconds, started, saved = trainer.seconds + now - started, now, now
            saved_run.save(trainer, folder)
    trainer.seconds += time.monotonic() - started


def _keep(trainer: Trainer, moments: Path) -> None:
    keep(moments, trainer.optimizer.updates, trainer.model_config, trainer.optimizer.average)


def _finish_epoch(trainer: Trainer, folder: Path, tokenizer: SubwordTokenizer, corpus: corpora.Corpus) -> None:
    """Validate, keep the model when it is the best so far, and save the run."""
    started = time.monotonic()
    trainer.epoch, trainer.batch = trainer.epoch + 1, 0
    score = validate(trainer, tokenizer, corpus)
    if not math.isfinite(score["val_loss"]):
        raise Diverged(trainer.epoch, f"the loss on validation is {score['val_loss']}")
    if best_epoch([*trainer.history, score], corpus) is score:
        if (folder / CARD).exists():  # of a finished model from an earlier run
            _move_to_before(folder)
        checkpoints.save_model(folder, trainer.model_config, trainer.optimizer.average)
    trainer.seconds += time.monotonic() - started
    total, count = trainer.losses
    trainer.history.append(
        score
        | {
            "train_loss": round(total / max(count, 1), 4),
            "seconds": round(trainer.seconds),
            "peak_memory_mb": peak_memory_mb(),
            "device": device_name(trainer.device),
            "precision": trainer.optimizer.precision,
        }
    )
    trainer.losses = (0.0, 0)
    saved_run.save(trainer, folder)


def _move_to_before(folder: Path) -> None:
    """Move a finished model to the folder `before`, which the page does not read, because its card does not fit the new
    weights."""
    for path in [folder / name for name in (WEIGHTS, CONFIG, CARD)]:
        if path.is_file():  # a damaged checkpoint may lack one
            storage.replace(folder / "before" / path.name, lambda temporary: shutil.copyfile(path, temporary))
    (folder / CARD).unlink()
