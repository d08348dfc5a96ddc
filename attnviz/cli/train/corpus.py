"""The sentences that `train` reads: the corpora of a pair, or a person's own files; and what is said of them."""

import sys
from argparse import Namespace
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from attnviz import storage
from attnviz.cli.shared import arguments
from attnviz.data import corpora, readers, tasks
from attnviz.data.readers import Pairs
from attnviz.evaluation.language import BITS
from attnviz.models import checkpoints
from attnviz.models.names import TOKENIZER
from attnviz.training import vocabulary
from attnviz.training.trainers import saved_run

FEW_VALIDATION = 50  # sentences; below this the best epoch is partly chance


def read(args: Namespace) -> corpora.Corpus:
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
    """Say how many lines have only one side, and which is the first: this shows a wrong separator."""
    incomplete = [number for number, row in enumerate(rows, start=1) if any(row) and not all(row)]
    if incomplete:
        print(
            f"{len(incomplete)} of {sum(map(any, rows))} lines are left out because the source or the translation is "
            f"missing; the first is line {incomplete[0]} of {path}",
            file=sys.stderr,
        )


def warn_about_validation(corpus: corpora.Corpus) -> None:
    """Say when validation is too small to choose the best epoch well."""
    if len(corpus.val) < FEW_VALIDATION and corpus.metric != BITS:  # one long text is enough for a model that writes
        print(
            f"validation has only {len(corpus.val)} sentences, so the choice of the best epoch is partly chance; give "
            "more sentences, or a larger --val-size",
            file=sys.stderr,
        )


def report_kept_tokenizer(args: Namespace, root: Path, corpus: corpora.Corpus) -> None:
    """Say that an existing tokenizer of the pair is used, and why it may not suit. ValueError when it has too many
    pieces."""
    path = vocabulary.path_for(Path(args.start)) if args.start else root / args.pair / TOKENIZER
    resumed = saved_run.exists(root / args.pair / args.mechanism) and not args.restart
    if not path.is_file() or resumed:
        return
    text = checkpoints.load_tokenizer(path.parent.name, path.parent.parent)
    size = len(text)
    most = dict(args.set).get("vocabulary", size)
    if most < size:
        raise ValueError(
            f"{path} has {size} pieces, and all mechanisms of {args.pair} share it; leave vocabulary={most} out, or "
            "choose another --out"
        )
    of_most = f" of at most {most}" if most > size else ""
    print(f"{path} is used: {size} pieces{of_most}, shared by all mechanisms of {args.pair}")
    remedy = "leave --start out" if args.start else "choose another --out"
    for reason in vocabulary.mismatches(text, corpus):
        print(f"{path} may not suit these sentences: {reason}; {remedy} to train a new tokenizer", file=sys.stderr)
