"""`python -m attnviz moments`: pack some of the saved moments of a training run, to ship them with the model."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from attnviz.cli import arguments

HELP = "pack moments of a training run (train --moments) into one small file beside the model, and measure them"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--model", required=True, help=arguments.MODEL_HELP)
    parser.add_argument(
        "--kept",
        metavar="DIR",
        type=arguments.place,
        help="folder that train --moments wrote; without it the moments that are packed are measured",
    )
    parser.add_argument(
        "--count", type=arguments.count, default=12, metavar="N", help="moments to pack, spaced by loss (default 12)"
    )
    parser.add_argument(
        "--sentences",
        type=arguments.count,
        default=300,
        metavar="N",
        help="validation sentences that the losses are measured on (default 300)",
    )
    arguments.add_data(parser)
    arguments.add_root(parser)
    arguments.add_threads(parser)


def run(args: Namespace) -> None:
    """Measure the loss of every saved moment, pack some, and print how close the packed losses are; then measure the
    packed moments for the page."""
    from attnviz.cli.tables import table
    from attnviz.data import corpora, tasks
    from attnviz.models import checkpoints
    from attnviz.models.names import ModelName, moments_file
    from attnviz.training import validation

    root, pair = arguments.root_of(args, args.model), ModelName.parse(args.model).pair
    val = corpora.load(pair, arguments.data_folder(args)).val
    val = val[:: max(1, len(val) // args.sentences)]
    if args.kept:
        path, packed = validation.pack_spaced(args.model, root, Path(args.kept), val, args.count)
        head = ("update", "loss as kept", "loss as packed")
        print(table([head, *((str(update), f"{a:.3f}", f"{b:.3f}") for update, a, b in packed)], ">>>"))
        print(f"{path} is ready: {path.stat().st_size / 1e6:.2f} MB")
    if not tasks.find(pair).translates:
        return
    measured = validation.measure_moments(args.model, root, val)
    checkpoints.write_json(moments_file(args.model, root), {"sentences": len(val), "moments": measured})
    errors = ("–" if row["error_rate"] is None else f"{row['error_rate']:.3f}" for row in measured)
    numbers = (
        (f"{row['update']}", f"{row['loss']:.3f}", f"{row['bleu_lc']:.1f}", e) for row, e in zip(measured, errors)
    )
    print(table([("update", "loss", "BLEU", "alignment error rate"), *numbers], ">>>>"))
