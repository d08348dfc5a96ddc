"""What the commands of `python -m attnviz` do; `__main__` reads the command line and reports errors."""

import json
import sys
from argparse import Namespace
from pathlib import Path

import torch

from attnviz import loading, select, stats
from attnviz.cli import classify
from attnviz.cli.table import table
from attnviz.cli.train import OUT, data_folder, download, train
from attnviz.data import corpora, readers
from attnviz.export import html_page
from attnviz.figures.labels import plain
from attnviz.models import checkpoints
from attnviz.models.classifier import Classifier
from attnviz.models.huggingface.models import Pretrained, Reader, Writer
from attnviz.models.trained import Trained, describe
from attnviz.models.translator import Translator
from attnviz.trace import Trace, files

__all__ = ["align", "download", "evaluate", "models", "study", "trace", "train"]

_FIRST = (
    "bleu_lc",
    "bleu_morphemes",
    "bleu_words",
    "bleu_char",
    "exact_match",
    "accuracy",
)  # the score that a list shows, where it is


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
    head = ("model", "mechanism", "parameters", "score", "problem")
    print(table([head] + [_describe(entry) for entry in found], "<<>><"))


def trace(args: Namespace) -> None:
    """Translate one text, or force a target, or classify one; show or write what was attended to."""
    if args.target is not None and args.beam is not None:
        raise ValueError("--beam chooses the translation and --target gives it; use one of them")
    model = loading.load(args.model) if args.model.startswith(loading.PREFIX) else _load(args)
    ask, show = _TRACED[type(model)]
    found = ask(model, args)
    if args.html:
        if not found.maps:
            raise ValueError(f"{found.model} has no attention that a page could show; leave out --html")
        _write(args.html, html_page.page(found))
    if args.save:
        files.save_trace(found, args.save)
        _wrote(args.save)
    if args.json == "-":
        print(found.to_json())
    elif args.json:
        _write(args.json, found.to_json().encode("utf-8"))
    elif not args.html and not args.save:
        print(show(found))


def evaluate(args: Namespace) -> None:
    """Score a model on two aligned files, or on one file with labels."""
    model = _load(args)
    _SCORED[type(model)](model, args)


def _score_translations(translator: Translator, args: Namespace) -> None:
    from attnviz.evaluation import metrics
    from attnviz.evaluation.translation import score

    if not args.reference:
        raise ValueError("--reference must be the file of translations of --source; got none")
    sources, references = _read(args.source), _read(args.reference)
    if len(sources) != len(references):
        raise ValueError(
            f"{args.source} has {len(sources)} lines and {args.reference} has {len(references)}; they must be aligned"
        )
    result = score(translator, sources, references, args.beam, progress=True)
    if args.json:
        print(json.dumps(result))
        return
    wanted = metrics.of(translator.pair)
    if absent := [metric.title for metric in wanted if metric.key not in result]:
        print(
            f"the references have no spaces, so {absent[0].replace(',', ' on')} says nothing of them; see that on characters",
            file=sys.stderr,
        )
    rows = [("model", result["model"]), ("sentences", str(result["sentences"]))]
    rows += [
        (metric.title, f"{result[metric.key]:.2f}   {result[f'{metric.key}_signature']}")
        for metric in wanted
        if metric.key in result
    ]
    how = "greedy" if args.beam == 1 else f"beam {args.beam}"
    rows.append(("speed", f"{result['sentences_per_second']:.1f} sentences/s, {how}"))
    if result["entropy_nats"] is not None:
        rows.append(
            ("entropy", f"{result['entropy_nats']:.4f} nats, mean of every cross-attention row, head and layer")
        )
        rows.append(("maximum weight", f"{result['max_weight']:.4f}, mean of the same rows"))
    print(table(rows, "<<"))


def align(args: Namespace) -> None:
    """Alignment error rate of a model on linked pairs, with forced decoding."""
    from attnviz import alignment, gold

    translator = _load(args)
    if not isinstance(translator, Translator):
        raise ValueError(f"{args.model} gives labels, so it aligns nothing")
    pairs = gold.read(args.gold) if args.gold else gold.shipped(translator.pair)
    if not pairs:
        raise ValueError(f"there are no linked pairs for {args.model}; give a file of them with --gold")
    rule = alignment.argmax if args.threshold is None else alignment.above(args.threshold)
    found = alignment.report(translator, pairs, rule)
    if found is None:
        raise ValueError(f"{args.model} has no attention, so it aligns nothing")
    if args.json:
        print(json.dumps({"model": args.model, "threshold": args.threshold, **found}))
        return
    lines = [("best head, chosen on other sentences", found["best_head"]), ("diagonal", found["diagonal"])]
    lines += [(f"rows shifted by {shift}", figures) for shift, figures in found["shifted"].items()]
    lines += [
        ("mean of all heads" if row["layer"] is None else f"layer {row['layer'] + 1}, mean of heads", row)
        for row in found["means"]
    ]
    lines += [(f"layer {row['layer'] + 1}, head {row['head'] + 1}", row) for row in found["heads"]]
    names = ("error_rate", "precision", "recall")
    rows = [
        (title, *("–" if figures[name] is None else f"{figures[name]:.3f}" for name in names))
        for title, figures in lines
    ]
    head = (
        f"{found['pairs']} pairs, {found['sure']} sure of {found['possible']} links",
        "error rate",
        "precision",
        "recall",
    )
    print(table([head, *rows], "<>>>"))


def study(args: Namespace) -> None:
    """Run a study, and write what it found below the folder of checkpoints."""
    from attnviz import studies

    root = _root(args)
    setting = studies.Setting(
        root, Path(args.out or OUT / "studies"), corpora.load("en-fr", data_folder(args)), args.seeds
    )
    studies.run(args.name, setting)
    print(f"{root / 'README.md'} has the study of {args.name}; its figures are in {root / 'studies' / args.name}.json")


def _root(args: Namespace) -> Path:
    root = Path(args.root) if args.root else checkpoints.ROOT
    if args.root and not root.is_dir():
        raise ValueError(f"there is no folder {root}; --root must be a folder of checkpoints")
    return root


def _load(args: Namespace) -> Trained:
    root = _root(args)
    known = checkpoints.names(root)
    if args.model not in known and not (Path(args.model) / "config.json").is_file():
        raise ValueError(f"no checkpoint {args.model!r}; available: {', '.join(known) or 'none'}")
    return loading.load(args.model, root)


def _read(path: str) -> list[str]:
    """The lines of a text file, each without the space around it. ValueError when all are empty."""
    lines = [line.strip() for line in readers.read_lines(Path(path))]
    if not any(lines):
        raise ValueError(f"{path} must have text on some line; got none")
    return lines


def _write(path: str, content: bytes) -> None:
    try:
        Path(path).write_bytes(content)
    except OSError as error:
        raise ValueError(f"cannot write {path}: {error.strerror}") from None
    _wrote(path)


def _wrote(path: str) -> None:
    print(f"{path} is written", file=sys.stderr)


def _describe(entry: dict) -> tuple[str, ...]:
    """A row of the table of models, from a card that may lack anything."""
    if entry["problem"]:
        return entry["name"], "–", "–", "–", entry["problem"]
    return entry["name"], entry["title"], _number(entry, ",", "parameters"), _score(entry), "none"


def _score(entry: dict) -> str:
    """The first score of the first test set, or of validation where there is none; a dash when the card has neither."""
    scores = entry.get("scores")
    scores = (
        {split: found for split, found in scores.items() if isinstance(found, dict)} if isinstance(scores, dict) else {}
    )
    for split in [split for split in scores if split != "val"] or list(scores):
        for key in _FIRST:
            if (shown := _number(scores, ".2f", split, key)) != "–":
                how = ", greedy" if scores[split].get("beam") == 1 else ""
                return f"{shown} {key}, {split}{how}"
    return "–"


def _number(card: dict, form: str, *keys: str) -> str:
    """The number that a card has below some keys; a dash when it has none."""
    value = card
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return format(value, form) if type(value) in (int, float) else "–"


def _show(found: Trace) -> str:
    """The translation, its log-probability, and for each token of it where it looked most, if the model looks anywhere."""
    chances = torch.tensor(found.log_probs).exp().tolist()
    rows = [("step", "token", "probability")]
    rows += [
        (str(t + 1), plain(token.text), f"{chance:.2f}") for t, (token, chance) in enumerate(zip(found.target, chances))
    ]
    attention = "none"
    if any(m.kind == "cross" for m in found.maps):
        attention = f"cross, {html_page.which(found)}"
        looks = [
            (plain(row.argmax_token), f"{row.max_weight:.2f}")
            for row in stats.of_grid(select.select(found)).itertuples()
        ]
        rows = [row + more for row, more in zip(rows, [("looks most at", "weight"), *looks])]
    how = "target" if found.forced else "translation"
    cut = "" if found.complete else "\nthe length limit cut the translation short"
    return (
        f"{how}: {plain(found.translation)}\nlog-probability: {found.log_prob:.3f}{cut}\n"
        f"attention: {attention}\n\n{table(rows, '><><>')}"
    )


def _show_reading(found: Trace) -> str:
    """For each token of a text that was only read where the model looked most."""
    kind = found.maps[0].kind
    rows = [("step", "token", "looks most at", "weight")]
    rows += [
        (str(row.step + 1), plain(row.token), plain(row.argmax_token), f"{row.max_weight:.2f}")
        for row in stats.of_grid(select.select(found, kind)).itertuples()
    ]
    return f"attention: {kind}, {html_page.which(found, kind)}\n\n{table(rows, '><<>')}"


def _translate(translator: Translator | Pretrained, args: Namespace) -> Trace:
    return translator.trace(args.text, args.target, 1 if args.beam is None else args.beam)


# How each kind of model is asked for a trace, how that is shown, and how the model is scored.
_TRACED = {
    Translator: (_translate, _show),
    Classifier: (classify.trace, classify.show),
    Writer: (_translate, _show),
    Reader: (_translate, _show_reading),
}
_SCORED = {Translator: _score_translations, Classifier: classify.evaluate}
