"""What the commands of `python -m attnviz` do; `__main__` reads the command line and reports errors."""

import gzip
import json
import os
import shlex
import sys
import zlib
from argparse import Namespace
from pathlib import Path

import torch

from attnviz import checkpoints, corpora, page, select, stats
from attnviz.figures.labels import plain, width
from attnviz.trace import Trace
from attnviz.translator import Translator, describe

OUT = Path("trained")  # below the working directory
_SCORES = (("bleu", "BLEU"), ("bleu_lc", "BLEU lower-cased"), ("chrf", "chrF"))


def models(args: Namespace) -> None:
    """List the checkpoints, damaged ones with what is wrong."""
    root = _root(args)
    found = [describe(name, root) for name in checkpoints.names(root)]
    if args.json:
        print(json.dumps(found))
        return
    if not found:
        print(f"no checkpoints in {root}")
        return
    head = ("model", "mechanism", "parameters", "BLEU test 2016, lower-cased", "problem")
    print(_table([head] + [_describe(entry) for entry in found], "<<>><"))


def trace(args: Namespace) -> None:
    """Translate one text, or force a target, and show or write what was attended to."""
    if args.target is not None and args.beam is not None:
        raise ValueError("--beam chooses the translation and --target gives it; use one of them")
    translator = _load(args)
    found = translator.trace(args.text, args.target, 1 if args.beam is None else args.beam)
    if args.html:
        _write(args.html, page.page(found))
    if args.json == "-":
        print(found.to_json())
    elif args.json:
        _write(args.json, found.to_json().encode("utf-8"))
    elif not args.html:
        print(_show(found))


def evaluate(args: Namespace) -> None:
    """Score a model on two aligned files."""
    from attnviz.evaluate import score

    sources, references = _read(args.source), _read(args.reference)
    if len(sources) != len(references):
        raise ValueError(f"{args.source} has {len(sources)} lines and {args.reference} has {len(references)}; "
                         "they must be aligned")  # fmt: skip
    result = score(_load(args), sources, references, args.beam, progress=True)
    if args.json:
        print(json.dumps(result))
        return
    rows = [("model", result["model"]), ("sentences", str(result["sentences"]))]
    rows += [(title, f"{result[key]:.2f}   {result[f'{key}_signature']}") for key, title in _SCORES]
    how = "greedy" if args.beam == 1 else f"beam {args.beam}"
    rows.append(("speed", f"{result['sentences_per_second']:.1f} sentences/s, {how}"))
    rows.append(("entropy", f"{result['entropy_nats']:.4f} nats, mean of every cross-attention row, head and layer"))
    rows.append(("maximum weight", f"{result['max_weight']:.4f}, mean of the same rows"))
    print(_table(rows, "<<"))


def train(args: Namespace) -> None:
    """Train a mechanism, or go on with it, then write its card."""
    from attnviz import evaluate, training

    data = args.data or os.environ.get("ATTNVIZ_DATA")
    if not data:
        raise ValueError("there is no data to train on; give the folder with --data DIR or set ATTNVIZ_DATA")
    changes = {name: getattr(args, name) for name in ("epochs", "batch_tokens", "seed") if getattr(args, name) is not None}
    plan = training.settings(args.mechanism, **changes)
    if args.threads:
        torch.set_num_threads(args.threads)
    corpus = _corpus(args.pair, Path(data))
    name = f"{args.pair}/{args.mechanism}"
    root = _out(args, name)
    if args.restart:
        (root / name / "training.safetensors").unlink(missing_ok=True)
    folder = training.train(plan, corpus, root, args.pair)
    card = evaluate.card(root, name, corpus, _command(args, changes))
    checkpoints.write_json(folder / "card.json", card)
    scores = card["scores"]["test_2016_flickr"]
    print(f"{folder} is ready: BLEU {scores['bleu']:.2f}, lower-cased {scores['bleu_lc']:.2f} on test_2016_flickr")


def _out(args: Namespace, name: str) -> Path:
    """The folder to train in. A model that is finished, and has no run to go on with, is not written over unasked."""
    root = Path(args.out) if args.out else checkpoints.ROOT
    finished = (root / name / "card.json").exists() and not (root / name / "training.safetensors").exists()
    if args.restart or not finished:
        return root
    if args.out:
        raise ValueError(f"{root / name} holds a finished model; choose another --out, or lose it with --restart")
    print(f"{root / name} holds a finished model; training in {OUT / name} instead", file=sys.stderr)
    return OUT


def _command(args: Namespace, changes: dict) -> str:
    """The command that does the same elsewhere; the data folder is the reader's."""
    words = ["python", "-m", "attnviz", "train", "--pair", args.pair, "--mechanism", args.mechanism, "--data", "DIR"]
    for option, value in {**changes, **({"threads": args.threads} if args.threads else {})}.items():
        words += [f"--{option.replace('_', '-')}", str(value)]
    return shlex.join(words)


def _corpus(pair: str, data: Path) -> corpora.Corpus:
    try:
        return corpora.load(pair, data)
    except UnicodeDecodeError as error:
        raise ValueError(f"{data} holds a text that is not UTF-8: {error}") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{data} holds a gzipped file that is damaged: {error}") from None


def _root(args: Namespace) -> Path:
    root = Path(args.root) if args.root else checkpoints.ROOT
    if args.root and not root.is_dir():
        raise ValueError(f"there is no folder {root}; --root must be a folder of checkpoints")
    return root


def _load(args: Namespace) -> Translator:
    root = _root(args)
    known = checkpoints.names(root)
    if args.model not in known:
        raise ValueError(f"no checkpoint {args.model!r}; available: {', '.join(known) or 'none'}")
    return Translator.load(args.model, root)


def _read(path: str) -> list[str]:
    """The lines of a text file, each without the space around it; the file stands in every error."""
    try:
        return [line.strip() for line in corpora.read_lines(Path(path))]
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} must be UTF-8 text; got byte {error.object[error.start]:#04x} at {error.start}") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path} is a damaged gzip file: {error}") from None
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror}") from None


def _write(path: str, content: bytes) -> None:
    try:
        Path(path).write_bytes(content)
    except OSError as error:
        raise ValueError(f"cannot write {path}: {error.strerror}") from None


def _describe(entry: dict) -> tuple[str, ...]:
    """A row of the table of models, from a card that may lack anything."""
    if entry["problem"]:
        return entry["name"], "–", "–", "–", entry["problem"]
    parameters, test = _number(entry, ",", "parameters"), _number(entry, ".2f", "scores", "test_2016_flickr", "bleu_lc")
    return entry["name"], entry["title"], parameters, test, "none"


def _number(card: dict, form: str, *keys: str) -> str:
    """The number that a card has below some keys; a dash when it has none."""
    value = card
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return format(value, form) if type(value) in (int, float) else "–"


def _show(found: Trace) -> str:
    """The translation, its log-probability, and for each token of it where it looked most."""
    frame = stats.of_grid(select.select(found))
    rows = [(str(row.step + 1), plain(row.token), f"{chance:.2f}", plain(row.argmax_token), f"{row.max_weight:.2f}")
            for row, chance in zip(frame.itertuples(), torch.tensor(found.log_probs).exp().tolist())]  # fmt: skip
    head = [("step", "token", "probability", "looks most at", "weight")]
    how = "target" if found.forced else "translation"
    cut = "" if found.complete else "\nthe length limit cut the translation short"
    return (f"{how}: {plain(found.translation)}\nlog-probability: {found.log_prob:.3f}{cut}\n"
            f"attention: cross, {page.which(found)}\n\n{_table(head + rows, '><><>')}")  # fmt: skip


def _table(rows: list[tuple[str, ...]], sides: str) -> str:
    """Columns lined up, `<` left or `>` right, by the width that text takes in a terminal."""
    widths = [max(map(width, column)) for column in zip(*rows)]
    lines = []
    for row in rows:
        gaps = [" " * (most - width(cell)) for most, cell in zip(widths, row)]
        cells = [gap + cell if side == ">" else cell + gap for cell, gap, side in zip(row, gaps, sides)]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
