"""`python -m attnviz align`: attention as an alignment of words, beside links set by hand or for other programs."""

import json
import re
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Sequence

from attnviz.cli import arguments

HELP = "words aligned by attention: error rate on links set by hand, or the links themselves"
_COLUMNS = ("error_rate", "precision", "recall")


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--model", required=True, help=f"{arguments.MODEL_HELP}; or hf: and a model that translates, with --gold"
    )
    arguments.add_prefix(parser)
    arguments.add_root(parser)
    arguments.add_threads(parser)
    _add_sentences(parser.add_argument_group("sentence pairs (default: those of this project, with links)"))
    _add_rules(parser.add_argument_group("which words are linked"))
    output = parser.add_argument_group("what is printed (default: error rates)").add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="print the error rates as JSON")
    output.add_argument(
        "--export",
        choices=("moses", "pharaoh", "probabilities", "naacl"),
        help="print the links of each pair in a line: 0-0 1-2 (moses, pharaoh), or 0-0:0.912 1-2:0.403; or a link in "
        "a line, as in NAACL 2003: number of the pair, word of the source and of the target, from 1",
    )


def _add_sentences(group) -> None:
    group.add_argument(
        "--gold",
        **arguments.FILE,
        help="sentence pairs with links, as attnviz/gold/README.md describes, - for standard input; beside "
        "--source-file and --target-file links alone, as i-j or in the format of NAACL 2003",
    )
    group.add_argument("--source-file", **arguments.FILE, help="sentences, one per line")
    group.add_argument("--target-file", **arguments.FILE, help="their translations, line by line")
    group.add_argument("--possible", **arguments.FILE, help="a file of links that are only possible")
    group.add_argument(
        "--first", type=int, choices=(0, 1), help="number of the first word in links (default: 1 in NAACL, else 0)"
    )
    group.add_argument("--target-first", action="store_true", help="links name the word of the target first")


def _add_rules(group) -> None:
    group.add_argument(
        "--threshold",
        type=float,
        metavar="X",
        help="align words with a weight of at least X (default: the largest of a row)",
    )
    group.add_argument(
        "--shift",
        type=int,
        choices=(-1, 0, 1),
        default=0,
        help="read each row of weights one step before or after the step that wrote the word",
    )
    group.add_argument(
        "--head",
        type=_head,
        default=(None, None),
        metavar="L.H",
        help="layer and head for --export and --reverse-model, from 0, such as 2.1, or 2 for the mean of a layer "
        "(default: the mean of all)",
    )
    group.add_argument(
        "--reverse-model",
        metavar="MODEL",
        help="a model from target to source, to join both directions (with #prefix=TEXT behind its name, if it wants "
        "one)",
    )
    group.add_argument(
        "--method",
        help="how two directions are joined (default grow-diag): intersection, union, "
        "grow-diag, grow-diag-final, grow-diag-final-and",
    )


def _head(text: str) -> tuple[int, int | None]:
    match = re.fullmatch(r"(\d{1,4})(?:\.(\d{1,4}))?", text)
    if not match:
        raise ArgumentTypeError(f"must be a layer and a head from 0, such as 2.1, or a layer; got {text!r:.80}")
    return int(match[1]), None if match[2] is None else int(match[2])


def run(args: Namespace) -> None:
    """Print error rates of each head, with forced decoding, as a table or JSON; or the links of each pair."""
    from attnviz import alignment
    from attnviz.alignment import symmetry

    _check(args)
    model = _opened(args, arguments.with_prefix(args, args.model))
    reverse = _opened(args, args.reverse_model) if args.reverse_model else None
    if reverse and "-" in (pair := getattr(model, "pair", "")) and pair == getattr(reverse, "pair", ""):
        raise ValueError(
            f"--reverse-model must translate from target to source; {reverse.name} is of {pair}, as --model is"
        )
    pairs = _pairs(args, model)
    rule = alignment.argmax if args.threshold is None else alignment.above(args.threshold)
    if args.export:
        _export(args, model, reverse, pairs, rule)
    elif reverse:
        methods = (args.method,) if args.method else tuple(symmetry.METHODS)
        _print(args, symmetry.report(model, reverse, pairs, methods, rule, args.shift, args.head))
    else:
        _print(args, _of_one(args, model, pairs, rule))


def _check(args: Namespace) -> None:
    """ValueError for options that do not belong together."""
    from attnviz.alignment.symmetry import METHODS

    if bool(args.source_file) != bool(args.target_file):
        raise ValueError("--source-file and --target-file must be given together")
    for option in ("possible", "first", "target_first"):
        if getattr(args, option) not in (None, False) and not (args.source_file and args.gold):
            raise ValueError(
                f"--{option.replace('_', '-')} is about links beside two files of sentences: give --gold, "
                "--source-file and --target-file too"
            )
    if args.source_file and not args.gold and not args.export:
        raise ValueError(
            "error rates need links set by hand: give them with --gold, or print links with --export moses"
        )
    if args.method and not args.reverse_model:
        raise ValueError("--method joins two directions: give the other one with --reverse-model")
    if args.method and args.method not in METHODS:
        raise ValueError(f"--method must be one of {', '.join(METHODS)}; got {args.method!r:.80}")


def _opened(args: Namespace, name: str):
    model = arguments.open_model(args, name, huggingface=True)
    if model.labels:
        raise ValueError(f"{name} is a classifier; only models that translate have word alignments")
    if "cross" not in model.head_kinds and (hasattr(model, "write") or getattr(model, "pair", "") == ""):
        raise ValueError(f"{name} has no attention from a target to a source, so it has no word alignments")
    return model


def _pairs(args: Namespace, model) -> Sequence:
    from attnviz import gold
    from attnviz.data import alignments

    if args.source_file and args.gold:
        return alignments.read(
            args.gold, args.source_file, args.target_file, args.possible, args.first, args.target_first
        )
    if args.source_file:
        return tuple(alignments.sentences(args.source_file, args.target_file).values())
    pairs = gold.read(args.gold) if args.gold else gold.shipped(getattr(model, "pair", ""))
    if not pairs:
        raise ValueError(f"there are no aligned sentence pairs for {args.model}; give a file of them with --gold")
    return pairs


def _export(args: Namespace, model, reverse, pairs: Sequence, rule: Callable) -> None:
    """One line per pair. If a model cannot read a pair, its line is empty and a message goes to standard error."""
    from attnviz.alignment import symmetry

    if reverse:
        both = symmetry.both(model, reverse, pairs, rule, args.shift, args.head)
        results = (symmetry.joined(a, b, args.method or symmetry.GROW) for a, b in both)
    else:
        results = symmetry.aligned(model, pairs, rule, args.shift, args.head)
    naacl = args.export == "naacl"
    for number, (pair, result) in enumerate(zip(pairs, results, strict=True), 1):
        if isinstance(result, ValueError):
            print(end="" if naacl else "\n")
            print(f"no links for {pair.source[:60]!r}, {pair.target[:60]!r}: {result}", file=sys.stderr)
        else:
            print(result.naacl(number) if naacl else f"{result.moses(args.export == 'probabilities')}\n", end="")


def _of_one(args: Namespace, model, pairs: Sequence, rule: Callable) -> dict:
    from attnviz import alignment

    report = alignment.report(model, pairs, rule, args.shift)
    if report is None:
        raise ValueError(f"{args.model} has no attention, so it has no word alignments")
    return report


def _print(args: Namespace, report: dict) -> None:
    if args.json:
        choice = {"model": args.model, "threshold": args.threshold, "shift": args.shift, "counted_from": 0}
        print(json.dumps(choice | report))
    else:
        print(f"{_table(args, report)}\n\nlayers and heads count from 0, as in JSON and in Python")


def _table(args: Namespace, report: dict) -> str:
    from attnviz.cli.tables import table

    results = dict(report.get("directions", {}))
    if not results:
        results = {"best head, chosen on other sentences": report["best_head"], "diagonal": report["diagonal"]}
        results |= {_shifted(shift): result for shift, result in report["shifted"].items()}
        for result in (*report["means"], *report["heads"]):
            results[_named(result["layer"], result["head"])] = result
    moved = f", {_shifted(args.shift)}" if args.shift else ""
    head = (
        f"{report['pairs']} pairs, {report['sure']} sure of {report['possible']} links{moved}",
        "error rate",
        *_COLUMNS[1:],
    )
    rows = [
        (title, *("–" if result[name] is None else f"{result[name]:.3f}" for name in _COLUMNS))
        for title, result in results.items()
    ]
    return table([head, *rows], "<>>>")


def _shifted(shift: int | str) -> str:
    return f"rows shifted by {shift}"


def _named(layer: int | None, head: int | None) -> str:
    if layer is None:
        return "mean of all heads"
    return f"layer {layer}, mean of heads" if head is None else f"layer {layer}, head {head}"
