"""Training: pairs of a corpus to a checkpoint. Seeded, resumable where it stood; the best epoch on validation ships."""

import math
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch
from torch import nn
from tqdm import tqdm

from attnviz import checkpoints, corpora, decode, files, progress, recipes, teaching, vocabularies
from attnviz.classify import Classifier
from attnviz.devices import device_name, peak_memory_mb
from attnviz.label_run import LabelRun
from attnviz.mechanisms import CLASSIFIERS, LABELS, MECHANISMS, Config
from attnviz.metrics import METRICS
from attnviz.models import build
from attnviz.readable import readable
from attnviz.run import Diverged, Run, token_loss
from attnviz.text import SPECIALS, Text
from attnviz.trained import LONGEST
from attnviz.typed_run import TypedRun

RUNS = dict.fromkeys(MECHANISMS, Run) | dict.fromkeys(CLASSIFIERS, LabelRun)

_SMALL = {"width": 128, "embedding_width": 64}
# What a pair changes in the recipes: for every mechanism (""), and for one.
PAIRS = {
    "en-de": {"": {"vocabulary": 6000}},
    "en-ja": {"": {"vocabulary": 6000}},
    # One right answer, and as many sentences as one likes: small models, nothing to smooth or to drop.
    "reverse": {
        "": {"epochs": 10, "batch_tokens": 1000, "learning_rate": 3e-3, "warmup": 100, "label_smoothing": 0.0, "average": 0.99,
             "rates": {}, "options": {"dropout": 0.0}},
        **{name: {"options": _SMALL} for name in recipes.RECIPES},
        # At a higher rate it learns as well, and looks where it need not: at the neighbour of the letter that it says.
        "bahdanau": {"epochs": 6, "learning_rate": 5e-4, "options": _SMALL},
        "luong-general": {"epochs": 8, "learning_rate": 2e-3, "options": _SMALL},
        "transformer": {"epochs": 12, "learning_rate": 2e-3, "warmup": 200,
                        "options": {"width": 64, "hidden": 256, "layers": 2, "heads": 4}},
    },
}  # fmt: skip


def plan(pair: str, mechanism: str, options: dict | None = None, **changes) -> recipes.Settings:
    """The mechanism's recipe, with what the pair changes in it, then `changes`; `options` of the model join its others.

    ValueError when there is no such recipe, no such model, or a mechanism that is for another task.
    """
    base = recipes.settings(mechanism)
    if (mechanism in CLASSIFIERS) != (pair in corpora.LABELLED):
        fit = CLASSIFIERS if pair in corpora.LABELLED else MECHANISMS
        raise ValueError(f"{mechanism} is not for {pair}; choose one of {', '.join(fit)}")
    fitted = [PAIRS.get(pair, {}).get(name, {}) for name in ("", mechanism)]
    joined = {"options": {}}
    for change in ({"options": base.options}, *fitted, changes, {"options": options or {}}):
        joined = {**joined, **change, "options": {**joined["options"], **change.get("options", {})}}
    try:
        with torch.device("meta"):  # shapes without numbers: an error now rather than when the data is read
            build(Config(mechanism, len(SPECIALS) + 1, joined["options"]))
        _check_sizes(mechanism, joined["options"])
    except (TypeError, ValueError, ArithmeticError, RuntimeError) as error:  # torch raises them all
        raise ValueError(f"{mechanism} cannot be built with {joined['options']}: {error}") from None
    return replace(base, **joined)


def _check_sizes(mechanism: str, options: dict) -> None:
    """ValueError for a model that could not take the longest text and what decoding says of it, or that has not our labels."""
    needed = LONGEST if mechanism in CLASSIFIERS else decode.limit(LONGEST)
    if options.get("longest", needed) < needed:
        raise ValueError(f"longest must be at least {needed}, for texts of {LONGEST} pieces and what is said of them")
    if options.get("classes", len(LABELS)) != len(LABELS):
        raise ValueError(f"classes must be {len(LABELS)}: {', '.join(LABELS)}")


def train(
    plan: recipes.Settings, corpus: corpora.Corpus, root: Path, pair: str, save_every: float = 60.0, compile: bool = True,
    restart: bool = False, start: Path | None = None, teachers: Sequence[Path] = (), moments: Path | None = None,
) -> Path:  # fmt: skip
    """Train, resuming what `root/pair/mechanism` holds; returns that folder. The best epoch on validation ships.

    save_every : seconds between saves within an epoch. compile : see `Run`. restart : begin again, whatever is there; when the
    new run has its first model, a finished one that was there is kept in the folder `before`.
    start : folder of a checkpoint whose weights and tokenizer to begin with, rather than at random (fine-tuning).
    teachers : folders of classifiers from which a classifier learns, rather than from the labels (teaching.py).
    moments : folder to keep the model in as it was now and then on the way (moments.py).
    Sentences that no model reads are left out, which is said. ValueError when a finished model is there without its run, or a
    run with other settings or data; CheckpointError.
    """
    folder = Path(root) / pair / plan.mechanism
    plan = _from(plan, folder, start, teachers)
    begun = folder / "training.safetensors"
    if not restart and not begun.exists() and (folder / "card.json").exists():
        raise ValueError(f"{folder} holds a finished model and no run to go on with; choose another --out, or --restart")
    tokenizer = Path(root) / pair / "tokenizer.json"
    text = vocabularies.choose(tokenizer, corpus, plan.vocabulary, start)
    given = len(corpus.train) + len(corpus.val)
    corpus, left_out = readable(corpus, text)
    _say_left_out(left_out, given)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    run = _kind(plan, teachers, pair, moments)(plan, text, corpus.train, device, compile)
    if begun.exists() and not restart:
        _resume(run, folder)
    elif start:
        _begin(run, start)
    vocabularies.settle(tokenizer, text, start)
    if restart:
        begun.unlink(missing_ok=True)  # now that nothing more can be refused
    _best(run, corpus)
    sentence = progress.example(corpus.val)
    with tqdm(total=run.total, initial=run.update, desc=f"{pair}/{plan.mechanism}", unit="batch", smoothing=0.05) as bar:
        while run.epoch < plan.epochs:
            _epoch(run, folder, corpus, bar, save_every)
            _finish(run, folder, text, corpus)
            bar.write(progress.report(run, text, sentence))
    return folder


def _from(plan: recipes.Settings, folder: Path, start: Path | None, teachers: Sequence[Path]) -> recipes.Settings:
    """The plan with the fingerprints of the checkpoints that training in `folder` begins with and learns from. ValueError, CheckpointError."""
    for other in (start, *teachers):
        if other and Path(other).resolve() == folder.resolve():
            raise ValueError(f"{other} is the folder to train in, whose weights would be written over; choose another --out")
    teaching.check(plan, teachers)
    prints = {"start": [start] if start else [], "teachers": teachers}
    return replace(plan, **{key: " ".join(checkpoints.fingerprint(*files.place(one)) for one in of) for key, of in prints.items() if of})


def _kind(plan: recipes.Settings, teachers: Sequence[Path], pair: str, moments: Path | None) -> Callable[..., Run]:
    if plan.augment or moments:
        return partial(TypedRun, pair=pair, moments=moments)
    taught = [Classifier.load(*files.place(teacher)) for teacher in teachers]
    return partial(teaching.TaughtRun, teachers=taught) if taught else RUNS[plan.mechanism]


def _say_left_out(sources: list[str], total: int) -> None:
    if sources:
        tqdm.write(f"{len(sources)} of {total} sentences have more than {LONGEST} pieces, or nothing visible, on one side, and are left "
                   f"out; the first is {sources[0][:80]!r}", file=sys.stderr)  # fmt: skip


def _resume(run: Run, folder: Path) -> None:
    try:
        run.restore(folder)
    except checkpoints.CheckpointError as error:
        raise checkpoints.CheckpointError(f"{error}; --restart begins again") from None
    if run.history and not (folder / "model.safetensors").is_file():
        raise ValueError(f"{folder} has a run and no longer the model.safetensors that it made; restore that, or begin again with --restart")


def _begin(run: Run, start: Path) -> None:
    model, config = checkpoints.load_model(*files.place(start))
    try:
        run.begin(model.state_dict())
    except RuntimeError:
        raise ValueError(f"{start} holds another model ({config}) than the one to be trained ({run.config.to_dict()})") from None


def score_key(corpus: corpora.Corpus) -> str:
    """The name, in the history of a run, of what the best epoch is chosen by."""
    return f"val_{corpus.metric}"


def validate(run: Run, text: Text, corpus: corpora.Corpus) -> dict:
    """Greedy score by the corpus' metric (per cent) and loss (nats a token) on the validation pairs; the score of each part of
    them beside it, where there are parts."""
    model, pairs = run.averaged(), corpus.val
    found = run.answers(model, text, [a for a, _ in pairs])
    score = METRICS[corpus.metric](found, [b for _, b in pairs])
    found_loss = loss(model, text, pairs, run.device, kind=type(run))
    figures = {"epoch": run.epoch, score_key(corpus): round(score, 2), "val_loss": round(found_loss, 4)}
    return figures | {f"{score_key(corpus)}_{part}": round(value, 2) for part, value in _parts(corpus, found).items()}


def _parts(corpus: corpora.Corpus, found: list[str]) -> dict[str, float]:
    """The score of each part of the validation pairs, given what the model says of them all."""
    rows = list(zip(corpus.parts, found, (b for _, b in corpus.val), strict=True)) if corpus.parts else []
    sides = {part: list(zip(*((a, b) for name, a, b in rows if name == part))) for part in dict.fromkeys(corpus.parts)}
    return {part: METRICS[corpus.metric](*side) for part, side in sides.items()}


@torch.inference_mode()
def loss(model: nn.Module, text: Text, pairs: corpora.Pairs, device: str, batch: int = 128, kind: type[Run] = Run) -> float:
    """Cross-entropy (nats a token, or a label) of a model in evaluation mode, without label smoothing."""
    data, total, count = sorted(kind.encode(pairs, text), key=lambda pair: len(pair[1])), 0.0, 0
    for start in range(0, len(data), batch):
        chosen = data[start : start + batch]
        source, target = (corpora.pad([pair[side] for pair in chosen]).to(device) for side in (0, 1))
        real = int((target != kind.padding).sum())
        total, count = total + float(token_loss(kind.logits(model, source, target), target, 0.0, kind.padding)) * real, count + real
    return total / count


def _best(run: Run, corpus: corpora.Corpus) -> float | None:
    """The best score so far. ValueError when epochs were scored by something else."""
    try:
        return max((past[score_key(corpus)] for past in run.history), default=None)
    except KeyError:
        raise ValueError(f"the run was validated by another measure than {corpus.metric}; use --restart") from None


def _epoch(run: Run, folder: Path, corpus: corpora.Corpus, bar: tqdm, save_every: float) -> None:
    """What is left of the current epoch, saving the run now and then."""
    run.working.train()
    started = saved = time.monotonic()
    best = {score_key(corpus): "–" if _best(run, corpus) is None else _best(run, corpus)}
    for batch in run.order(run.epoch)[run.batch :]:
        run.losses, run.counted = run.losses + float(run.learn(batch)), run.counted + 1
        run.batch += 1
        bar.update()
        bar.set_postfix(epoch=run.epoch + 1, loss=f"{run.losses / run.counted:.3f}", **best, refresh=False)
        now = time.monotonic()
        if now - saved > save_every:
            run.seconds, started, saved = run.seconds + now - started, now, now
            run.save(folder)
    run.seconds += time.monotonic() - started


def _finish(run: Run, folder: Path, text: Text, corpus: corpora.Corpus) -> None:
    """Validate after an epoch, keep the model if it is the best so far, and save the run."""
    started = time.monotonic()
    run.epoch, run.batch = run.epoch + 1, 0
    score, best = validate(run, text, corpus), _best(run, corpus)
    if not math.isfinite(score["val_loss"]):
        raise Diverged(run.epoch, f"the loss on validation is {score['val_loss']}")
    if best is None or score[score_key(corpus)] > best:
        if (folder / "card.json").exists():  # a finished model, of another run
            _put_aside(folder)
        checkpoints.save_model(folder, run.config, run.average)
    run.seconds += time.monotonic() - started
    mean = round(run.losses / max(run.counted, 1), 4)
    run.history.append(score | {"train_loss": mean, "seconds": round(run.seconds), "peak_memory_mb": peak_memory_mb(),
                                "device": device_name(run.device), "precision": run.precision})  # fmt: skip
    run.losses, run.counted = 0.0, 0
    run.save(folder)


def _put_aside(folder: Path) -> None:
    """Copy a finished model to the folder `before`, where no page looks, and take its card away, which speaks of its weights."""
    for path in [folder / name for name in ("model.safetensors", "config.json", "card.json")]:
        if path.is_file():  # a damaged checkpoint may lack one
            files.replace(folder / "before" / path.name, lambda temporary: shutil.copyfile(path, temporary))
    (folder / "card.json").unlink()
