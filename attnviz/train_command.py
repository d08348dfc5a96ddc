"""What `python -m attnviz train` and `download` do: from the command line to a run and its card."""

import json
import os
import shlex
import sys
from argparse import Namespace
from dataclasses import fields, replace
from pathlib import Path

import torch

from attnviz import checkpoints, corpora, lineage, vocabularies
from attnviz.mechanisms import CLASSIFIERS
from attnviz.models import CLASSES
from attnviz.models import options as model_options
from attnviz.readable import readable
from attnviz.recipes import TAUGHT, Settings, settings

FEW = 10_000  # pairs
FEW_VAL = 50  # sentences for validation
OUT = Path("trained")  # below the working directory
# Options that change what is learnt, and so belong to the command on the card.
_RECORDED = ("val_size", "style", "limit", "epochs", "batch_tokens", "seed", "threads")
# What --set may name beside the options of a model, and whether it is a whole number.
_SETTINGS = {field.name: field.type for field in fields(Settings) if field.type in (int, float)}


def train(args: Namespace) -> None:
    """Train a mechanism, or go on with it, then write its card."""
    from attnviz import evaluate, teaching, training

    taught = dict(TAUGHT) if args.teacher and args.mechanism in CLASSIFIERS else {"options": {}}
    given = {name: getattr(args, name) for name in ("epochs", "batch_tokens", "seed") if getattr(args, name) is not None}
    options = {name: value for name, value in args.set if name not in _SETTINGS}
    changes = {name: _number(name, value) for name, value in args.set if name in _SETTINGS}
    _check(args, options)
    options = taught.pop("options") | options
    draft = training.plan(args.pair, args.mechanism, options, **taught | changes | given)
    teaching.check(draft, args.teacher)  # what is wrong is said before data is read
    corpus = _corpus(args)
    plan = training.plan(args.pair, args.mechanism, options, **_few(args, corpus) | taught | changes | given)
    if len(corpus.val) < FEW_VAL:
        print(f"validation has {len(corpus.val)} sentences, so which pass is kept is partly chance; give more, or a larger --val-size",
              file=sys.stderr)  # fmt: skip
    if args.threads:
        torch.set_num_threads(args.threads)
    name = f"{args.pair}/{args.mechanism}"
    root = _out(args, name)
    _keep_vocabulary(args, root, name, changes, corpus)
    start, teachers = Path(args.start) if args.start else None, [Path(teacher) for teacher in args.teacher]
    before = lineage.begun(start) | lineage.taught(teachers)
    folder = training.train(plan, corpus, root, args.pair, restart=args.restart, start=start, teachers=teachers,
                            moments=Path(args.moments) if args.moments else None)  # fmt: skip
    corpus, _ = readable(corpus, checkpoints.load_text(args.pair, root))  # what was read
    card = evaluate.card(root, name, corpus, _command(args), progress=True)
    card |= _of_typed_sentences(args, root, name, corpus)
    checkpoints.write_json(folder / "card.json", card | {"training_pairs": len(corpus.train)} | before)
    key = training.score_key(corpus)
    print(f"{folder} is ready: {key} {card['best'][key]:.2f} in epoch {card['best']['epoch']}")


def _of_typed_sentences(args: Namespace, root: Path, name: str, corpus: corpora.Corpus) -> dict:
    """What the card says of them for the project's own language pairs; the words of training are written beside the tokenizer."""
    from attnviz import typed
    from attnviz.familiar import FILE, Familiar
    from attnviz.translator import Translator

    own = args.tsv or args.source_file or args.mechanism in CLASSIFIERS or args.pair in corpora.GENERATED
    if own or len(corpus.val) < 100:
        return {}
    known = Familiar.learn(source for source, _ in corpus.train)
    known.save(root / args.pair / FILE)
    return typed.figures(Translator.load(name, root), corpus.val, known)


def _check(args: Namespace, options: dict) -> None:
    """ValueError for a name that is neither an option nor a setting, and for a folder that is none."""
    known = model_options(args.mechanism) if args.mechanism in CLASSES else options
    if unknown := [name for name in options if name not in known]:
        raise ValueError(f"{unknown[0]} is neither an option of {args.mechanism} ({', '.join(known)}) nor a setting of its training "
                         f"({', '.join(_SETTINGS)})")  # fmt: skip
    starts, teachers = ([("--start", "en-fr/bahdanau", args.start)] if args.start else []), args.teacher
    for option, such, folder in [*starts, *(("--teacher", "sst2/self-attention", teacher) for teacher in teachers)]:
        if not (Path(folder) / "config.json").is_file():
            raise ValueError(f"{option} must be the folder of a checkpoint, such as checkpoints/{such}; got {folder or 'nothing'}")
    if args.threads and args.threads > (most := max(64, os.cpu_count() or 1)):
        raise ValueError(f"--threads must be at most {most}; got {args.threads}")
    if args.out and Path(args.out).exists() and not Path(args.out).is_dir():
        raise ValueError(f"--out must be a folder; got the file {args.out}")


def _keep_vocabulary(args: Namespace, root: Path, name: str, changes: dict, corpus: corpora.Corpus) -> None:
    """Say that the tokenizer of the pair serves this mechanism too, and why it may not. ValueError when it has more pieces than wanted."""
    path = vocabularies.beside(Path(args.start)) if args.start else root / args.pair / "tokenizer.json"
    resumed = (root / name / "training.safetensors").exists() and not args.restart
    if not path.is_file() or resumed:  # learnt anew, or settled when the run began
        return
    text = checkpoints.load_text(path.parent.name, path.parent.parent)
    size = len(text)
    asked = changes.get("vocabulary", size)  # at most: few sentences have fewer
    if asked < size:
        raise ValueError(f"{path} has {size} pieces, which all mechanisms of {args.pair} share; leave vocabulary={asked} "
                         "out, or choose another --out")  # fmt: skip
    wanted = f" of at most {asked} asked for" if asked > size else ""
    print(f"{path} is kept: {size} pieces{wanted}, which all mechanisms of {args.pair} share")
    instead = "leave --start out" if args.start else "choose another --out"
    for doubt in vocabularies.doubts(text, corpus):
        print(f"{path} may not suit these sentences: {doubt}; {instead} for one of their own", file=sys.stderr)


def _out(args: Namespace, name: str) -> Path:
    """The folder to train in. A model that is finished, and has no run to go on with, is not written over unasked."""
    root = Path(args.out) if args.out else checkpoints.ROOT
    finished = (root / name / "card.json").exists() and not (root / name / "training.safetensors").exists()
    if args.restart or not finished:
        return root
    if args.out:
        raise ValueError(f"{root / name} holds a finished model; choose another --out, or put it aside with --restart")
    print(f"{root / name} holds a finished model; training in {OUT / name} instead", file=sys.stderr)
    return OUT


def _number(name: str, value: int | float | str) -> int | float:
    """The value of a setting. ValueError when it is no number, or a fraction where whole ones count."""
    if isinstance(value, str | bool) or (_SETTINGS[name] is int and not isinstance(value, int)):
        raise ValueError(f"{name} must be a {'whole ' if _SETTINGS[name] is int else ''}number; got {value!r}")
    return value


def download(args: Namespace) -> None:
    """Fetch the public corpora of a pair into the data folder."""
    from attnviz.download import fetch

    folder = data_folder(args)
    fetch(args.pair, folder, report=print)
    print(f"{folder} holds the corpora of {args.pair}")


def data_folder(args: Namespace) -> Path:
    """The folder of --data or of the environment. ValueError when neither is given."""
    folder = args.data or os.environ.get("ATTNVIZ_DATA")
    if not folder:
        raise ValueError("there is no data folder; give it with --data DIR or set ATTNVIZ_DATA")
    return Path(folder)


def _corpus(args: Namespace) -> corpora.Corpus:
    """The person's own sentences, or the corpora of the pair; cut to --limit."""
    corpus = _own(args) or corpora.load(args.pair, None if args.pair in corpora.GENERATED else data_folder(args))
    return replace(corpus, train=corpus.train[: args.limit])


def _own(args: Namespace) -> corpora.Corpus | None:
    """The sentences of --tsv, or of --source-file and --target-file; None when there are none."""
    if bool(args.source_file) != bool(args.target_file):
        raise ValueError("--source-file and --target-file must come together")
    paths = [Path(path) for path in (args.tsv, args.source_file, args.target_file) if path]
    if not paths:
        if args.val_size or args.style:
            raise ValueError("--val-size and --style are for files of your own; the corpora of a pair have theirs")
        return None
    if len(paths) == 3 or args.data:
        raise ValueError("give one of --tsv, --source-file with --target-file, and --data")
    hashes = {_told_apart(path, paths): corpora.sha256(path) for path in paths if path.is_file()}
    if args.pair in corpora.LABELLED:
        if not args.tsv:
            raise ValueError(f"{args.pair} takes sentences with their labels in one file; give it with --tsv")
        return corpora.own_labelled(corpora.read_labelled(paths[0]), hashes, args.val_size, args.style or "plain")
    rows = corpora.tsv_rows(paths[0]) if args.tsv else corpora.parallel_rows(*paths)
    pairs = corpora.whole(rows)
    if not pairs:
        raise ValueError(f"{paths[0]} must have a source and its translation on some lines; got none")
    _say_left_out(rows, paths[0])
    return corpora.own(pairs, hashes, args.val_size, args.style or "written")


def _told_apart(path: Path, paths: list[Path]) -> str:
    """A file's name, with its folder's when another of the files has the same name."""
    same = [other for other in paths if other.name == path.name]
    return path.name if len(same) == 1 else "/".join(path.resolve().parts[-2:])


def _say_left_out(rows: corpora.Pairs, name: Path) -> None:
    """How many lines that hold something are no pair, and which is the first: a wrong separator shows here."""
    broken = [number for number, row in enumerate(rows, start=1) if any(row) and not all(row)]
    if broken:
        print(f"{len(broken)} of {sum(map(any, rows))} lines lack the source or its translation, and are left out; the first is "
              f"line {broken[0]} of {name}", file=sys.stderr)  # fmt: skip


def _few(args: Namespace, corpus: corpora.Corpus) -> dict:
    """What a small corpus of one's own changes in the recipe: smaller batches and more passes, for as many updates as it takes."""
    if not (args.tsv or args.source_file) or len(corpus.train) >= FEW:
        return {}
    return {"batch_tokens": 500, "epochs": 3 * settings(args.mechanism).epochs}


def _command(args: Namespace) -> str:
    """The command that does the same elsewhere; folders are the reader's."""
    words = ["python", "-m", "attnviz", "train", "--pair", args.pair, "--mechanism", args.mechanism]
    own = [name for name in ("tsv", "source_file", "target_file") if getattr(args, name)]
    paths = [Path(getattr(args, name)) for name in own]
    for name, path in zip(own, paths):
        words += [f"--{name.replace('_', '-')}", _told_apart(path, paths)]
    words += [] if own or args.pair in corpora.GENERATED else ["--data", "DIR"]
    words += ["--start", "/".join(Path(args.start).resolve().parts[-2:])] if args.start else []  # pair/mechanism, of any folder
    words += [word for folder in args.teacher for word in ("--teacher", "/".join(Path(folder).resolve().parts[-3:]))]
    for name in _RECORDED:
        if (value := getattr(args, name)) is not None:
            words += [f"--{name.replace('_', '-')}", str(value)]
    for name, value in args.set:
        words += ["--set", f"{name}={value if isinstance(value, str) else json.dumps(value)}"]
    return shlex.join(words)
