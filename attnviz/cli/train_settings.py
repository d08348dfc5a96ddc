"""From the arguments of `train` to a training configuration, the sentences that it reads, an output folder, and the
command on the card.

The sentences are the corpora of a pair, or a person's own files.
"""

import json
import shlex
import sys
from argparse import Namespace
from collections.abc import Iterable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from attnviz import mechanisms, storage
from attnviz.arguments import guess
from attnviz.cli import arguments
from attnviz.data import corpora, readers, tasks
from attnviz.data.readers import Pairs
from attnviz.evaluation.language import BITS
from attnviz.models import checkpoint_files, checkpoints
from attnviz.models.names import CARD, CONFIG, TOKENIZER, ModelName
from attnviz.networks.registry import options as model_options
from attnviz.training import classifiers, initial, recipes, saved_run
from attnviz.training.recipes import TrainingConfig

FEW = 10_000  # pairs; a smaller corpus gets smaller batches and more epochs
FEW_VALIDATION = 50  # sentences; below this the best epoch is partly chance
# Arguments that change the result, so they are part of the command on the card.
_RECORDED = ("val_size", "style", "limit", "repeat", "epochs", "patience", "batch_tokens", "seed", "threads")
# The training settings that --set may name, and their type.
_SETTINGS = {field.name: field.type for field in fields(TrainingConfig) if field.type in (int, float)}


def read_settings(args: Namespace) -> dict:
    """The settings that the arguments change, with `options` of the model. ValueError for invalid arguments."""
    options = {name: value for name, value in args.set if name not in _SETTINGS}
    settings = {name: _number(name, value) for name, value in args.set if name in _SETTINGS}
    _check_options(args.mechanism, options)
    _check_folders(args)
    given = {name: getattr(args, name) for name in ("epochs", "batch_tokens", "seed")}
    given = {name: value for name, value in given.items() if value is not None}
    recipe: dict[str, Any] = recipes.DISTILLATION if args.teacher and tasks.find(args.pair).classifies else {}
    return recipe | settings | given | {"options": recipe.get("options", {}) | options}


def configuration(args: Namespace, changes: dict) -> TrainingConfig:
    """The training configuration. ValueError if it is impossible, alone or with the teachers."""
    result = recipes.training_config(args.pair, args.mechanism, **changes)
    classifiers.check_teachers(result, args.teacher)
    return result


def changes_for_corpus(args: Namespace, corpus: corpora.Corpus) -> dict:
    """The changes of the recipe for a small corpus of the user: smaller batches and more epochs, so that there are
    enough updates."""
    if not own_files(args) or len(corpus.train) >= FEW:
        return {}
    return {"batch_tokens": 500, "epochs": 3 * recipes.recipe(args.mechanism).epochs}


def _check_options(mechanism: str, options: dict) -> None:
    """ValueError for a name that is neither an option of the model nor a training setting."""
    allowed = model_options(mechanism) if mechanism in mechanisms.ALL else options
    if unknown := [name for name in options if name not in allowed]:
        raise ValueError(
            f"{unknown[0]} is neither an option of {mechanism} ({', '.join(allowed)}) nor a training setting "
            f"({', '.join(_SETTINGS)}){guess(unknown[0], [*allowed, *_SETTINGS])}"
        )


def _check_folders(args: Namespace) -> None:
    """ValueError for a folder that does not hold what its argument needs."""
    needed = [("--start", "en-fr/bahdanau", args.start)] if args.start else []
    needed += [("--teacher", "sst2/self-attention", teacher) for teacher in args.teacher]
    for option, example, folder in needed:
        if not (Path(folder) / CONFIG).is_file():
            raise ValueError(
                f"{option} must be the folder of a checkpoint, such as checkpoints/{example}; got {folder or 'nothing'}"
            )
    if args.out and Path(args.out).exists() and not Path(args.out).is_dir():
        raise ValueError(f"--out must be a folder; got the file {args.out}")


def _number(name: str, value: int | float | str) -> int | float:
    """The value of a setting. ValueError when it is not a number, or a fraction where only whole numbers fit."""
    whole = _SETTINGS[name] is int
    if isinstance(value, str | bool) or (whole and not isinstance(value, int)):
        raise ValueError(f"{name} must be a {'whole ' if whole else ''}number; got {value!r:.80}")
    return value


def output_folder(args: Namespace) -> Path:
    """The folder of checkpoints to train in. A finished model without a run to resume is not overwritten without
    --restart."""
    name, root = str(ModelName(args.pair, args.mechanism)), Path(args.out) if args.out else checkpoint_files.roots()[0]
    finished = (root / name / CARD).exists() and not saved_run.exists(root / name)
    if args.restart or not finished:
        return root
    if args.out:
        raise ValueError(f"{root / name} holds a finished model; choose another --out, or replace it with --restart")
    print(f"{root / name} holds a finished model; training in {arguments.TRAINED / name} instead", file=sys.stderr)
    return arguments.TRAINED


def command_line(args: Namespace) -> str:
    """The command that repeats the training on another machine. The reader has to fill in the folders."""
    words = ["python", "-m", "attnviz", "train", "--pair", args.pair, "--mechanism", args.written_mechanism]
    files = own_files(args)
    labels = file_labels(files.values())
    for name, path in files.items():
        words += [_option(name), labels[path]]
    words += [] if files or tasks.find(args.pair).generated else ["--data", "DIR"]
    words += ["--start", last_folders(args.start, 2)] if args.start else []
    for teacher in args.teacher:
        words += ["--teacher", last_folders(teacher, 3)]
    for name in _RECORDED:
        if (value := getattr(args, name)) is not None:
            words += [_option(name), str(value)]
    for name, value in args.set:
        words += ["--set", f"{name}={value if isinstance(value, str) else json.dumps(value)}"]
    return shlex.join(words)


def _option(name: str) -> str:
    """source_file -> --source-file."""
    return f"--{name.replace('_', '-')}"


def last_folders(folder: str, count: int) -> str:
    return "/".join(Path(folder).resolve().parts[-count:])


def read_corpus(args: Namespace) -> corpora.Corpus:
    """A person's own sentences, or the corpora of the pair; cut to --limit. ValueError for arguments that do not
    fit."""
    corpus = _own_corpus(args)
    if corpus is None:
        folder = None if tasks.find(args.pair).generated else arguments.data_folder(args)
        corpus = corpora.load(args.pair, folder, args.repeat)
    return replace(corpus, train=corpus.train[: args.limit])


def own_files(args: Namespace) -> dict[str, Path]:
    """The person's own files by the name of their argument; empty when there are none."""
    names = ("tsv", "source_file", "target_file")
    return {name: Path(value) for name in names if (value := getattr(args, name))}


def file_labels(paths: Iterable[Path]) -> dict[Path, str]:
    """The name of each file, with its folder when two files have the same name."""
    paths = list(paths)
    names = [path.name for path in paths]
    return {path: path.name if names.count(path.name) == 1 else "/".join(path.resolve().parts[-2:]) for path in paths}


def _own_corpus(args: Namespace) -> corpora.Corpus | None:
    if bool(args.source_file) != bool(args.target_file):
        raise ValueError("--source-file and --target-file must be given together")
    paths = list(own_files(args).values())
    if not paths:
        if args.val_size or args.style:
            raise ValueError("--val-size and --style are for your own files; the corpora of a pair have their own")
        return None
    if tasks.find(args.pair).writes:
        raise ValueError(f"{args.pair} reads texts from the data folder; give that with --data, and no other file")
    if args.repeat:
        raise ValueError("--repeat is for a pair with everyday sentences; your own files are read once a pass")
    if len(paths) == 3 or args.data:
        raise ValueError("give only one of --tsv, --source-file with --target-file, and --data")
    hashes = {label: storage.sha256(path) for path, label in file_labels(paths).items() if path.is_file()}
    if (task := tasks.find(args.pair)).classifies:
        if not args.tsv:
            raise ValueError(f"{args.pair} needs sentences with their labels in one file; give it with --tsv")
        pairs = readers.read_labelled(paths[0], task.labels)
        return corpora.own_labelled(pairs, hashes, args.val_size, args.style or "plain")
    rows = readers.tsv_rows(paths[0]) if args.tsv else readers.parallel_rows(*paths)
    pairs = readers.drop_incomplete(rows)
    if not pairs:
        raise ValueError(f"{paths[0]} must have a source and its translation on at least one line; got none")
    warn_about_incomplete_lines(rows, paths[0])
    return corpora.own(pairs, hashes, args.val_size, args.style or "written")


def warn_about_incomplete_lines(rows: Pairs, path: Path) -> None:
    """Print how many lines have only one side, and the first of them; this reveals a wrong separator."""
    incomplete = [number for number, row in enumerate(rows, start=1) if any(row) and not all(row)]
    if incomplete:
        print(
            f"{len(incomplete)} of {sum(map(any, rows))} lines are left out because the source or the translation is "
            f"missing; the first is line {incomplete[0]} of {path}",
            file=sys.stderr,
        )


def warn_about_validation(corpus: corpora.Corpus) -> None:
    """Print a warning if validation is too small to choose the best epoch reliably."""
    if len(corpus.val) < FEW_VALIDATION and corpus.metric != BITS:  # one long text is enough for a model that writes
        print(
            f"validation has only {len(corpus.val)} sentences, so the choice of the best epoch is partly chance; give "
            "more sentences, or a larger --val-size",
            file=sys.stderr,
        )


def report_kept_tokenizer(args: Namespace, root: Path, corpus: corpora.Corpus) -> None:
    """Print that an existing tokenizer of the pair is used, and why it may not be suitable. ValueError when it has too
    many pieces."""
    path = initial.tokenizer_path(Path(args.start)) if args.start else root / args.pair / TOKENIZER
    resumed = saved_run.exists(root / args.pair / args.mechanism) and not args.restart
    if not path.is_file() or resumed:
        return
    tokenizer = checkpoints.load_tokenizer(path.parent.name, path.parent.parent)
    size = len(tokenizer)
    most = dict(args.set).get("vocabulary", size)
    if most < size:
        raise ValueError(
            f"{path} has {size} pieces, and all mechanisms of {args.pair} share it; leave vocabulary={most} out, or "
            "choose another --out"
        )
    of_most = f" of at most {most}" if most > size else ""
    print(f"{path} is used: {size} pieces{of_most}, shared by all mechanisms of {args.pair}")
    remedy = "leave --start out" if args.start else "choose another --out"
    for reason in initial.mismatches(tokenizer, corpus):
        print(f"{path} may not suit these sentences: {reason}; {remedy} to train a new tokenizer", file=sys.stderr)
