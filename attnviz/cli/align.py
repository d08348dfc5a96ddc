"""`python -m attnviz align`: compare attention with word alignments set by hand."""

import json
from argparse import ArgumentParser, Namespace

from attnviz.cli import arguments

HELP = "alignment error rate on sentence pairs whose words were aligned by hand"
_COLUMNS = ("error_rate", "precision", "recall")


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--model", required=True, help=arguments.MODEL_HELP)
    parser.add_argument(
        "--gold",
        metavar="FILE",
        type=arguments.place,
        help="sentence pairs as attnviz/gold/README.md describes (default: those of this project), - for standard "
        "input",
    )
    parser.add_argument(
        "--threshold",
        type=float,
        metavar="X",
        help="align words with a weight of at least X (default: the largest of a row)",
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    arguments.add_root(parser)
    arguments.add_threads(parser)


def run(args: Namespace) -> None:
    """Print the alignment error rate of each head, with forced decoding, as a table or JSON."""
    from attnviz import alignment, gold

    model = arguments.open_model(args)
    if model.labels:
        raise ValueError(f"{args.model} is a classifier; only models that translate have word alignments")
    pairs = gold.read(args.gold) if args.gold else gold.shipped(model.pair)
    if not pairs:
        raise ValueError(f"there are no aligned sentence pairs for {args.model}; give a file of them with --gold")
    rule = alignment.argmax if args.threshold is None else alignment.above(args.threshold)
    report = alignment.report(model, pairs, rule)
    if report is None:
        raise ValueError(f"{args.model} has no attention, so it has no word alignments")
    if args.json:
        print(json.dumps({"model": args.model, "threshold": args.threshold, "counted_from": 0, **report}))
    else:
        print(f"{_table(report)}\n\nlayers and heads count from 0, as in JSON and in Python")


def _table(report: dict) -> str:
    from attnviz.cli.tables import table

    results = {"best head, chosen on other sentences": report["best_head"], "diagonal": report["diagonal"]}
    results |= {f"rows shifted by {shift}": result for shift, result in report["shifted"].items()}
    for result in report["means"]:
        layer = "mean of all heads" if result["layer"] is None else f"layer {result['layer']}, mean of heads"
        results[layer] = result
    results |= {f"layer {result['layer']}, head {result['head']}": result for result in report["heads"]}
    head = (
        f"{report['pairs']} pairs, {report['sure']} sure of {report['possible']} links",
        "error rate",
        *_COLUMNS[1:],
    )
    rows = [
        (title, *("–" if result[name] is None else f"{result[name]:.3f}" for name in _COLUMNS))
        for title, result in results.items()
    ]
    return table([head, *rows], "<>>>")
