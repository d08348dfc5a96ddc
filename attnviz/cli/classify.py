"""What `python -m attnviz trace` and `evaluate` show of a classifier."""

import json
import math
from argparse import Namespace
from pathlib import Path

from attnviz import select, stats
from attnviz.cli.table import table
from attnviz.data import readers
from attnviz.evaluation import classification
from attnviz.export import html_page
from attnviz.figures.labels import plain
from attnviz.mechanisms import LABELS
from attnviz.models.classifier import Classifier
from attnviz.trace import Trace


def trace(classifier: Classifier, args: Namespace) -> Trace:
    """The trace that the command line asks for."""
    if args.target is not None or args.beam is not None:
        raise ValueError(f"{classifier.name} gives a label; --target and --beam are for models that translate")
    return classifier.trace(args.text)


def show(found: Trace) -> str:
    """The label, its probability, and for each token how much of it decides and where it looks most."""
    looks = stats.of_grid(select.select(found, "encoder")).itertuples()
    shares = found.map("cross").weights[0, 0]
    rows = [("token", "share in the label", "looks most at", "weight")]
    rows += [
        (plain(row.token), f"{share:.2f}", plain(row.argmax_token), f"{row.max_weight:.2f}")
        for row, share in zip(looks, shares)
    ]
    return (
        f"label: {found.translation}\nprobability: {math.exp(found.log_prob):.3f}\n"
        f"attention: encoder, {html_page.which(found, 'encoder')}\n\n{table(rows, '<><>')}"
    )


def evaluate(classifier: Classifier, args: Namespace) -> None:
    """Score a classifier on one file of sentences with labels."""
    if args.reference or args.beam != 1:
        raise ValueError(
            f"{classifier.name} gives labels, which stand in --source; --reference and --beam are for models "
            "that translate"
        )
    pairs = readers.read_labelled(Path(args.source), classifier.task.labels)
    if not pairs:
        raise ValueError(f"{args.source} must hold at least one sentence with its label; got none")
    result = classification.score(classifier, *zip(*pairs))
    if args.json:
        print(json.dumps(result))
        return
    rows = [
        ("model", result["model"]),
        ("sentences", str(result["sentences"])),
        ("accuracy", f"{result['accuracy']:.2f} %"),
    ]
    rows.append(("speed", f"{result['sentences_per_second']:.1f} sentences/s"))
    counts = [("label", *(f"said {given}" for given in LABELS))]
    counts += [(true, *(str(result["confusion"][true][given]) for given in LABELS)) for true in LABELS]
    print(f"{table(rows, '<<')}\n\n{table(counts, '<>>')}")
