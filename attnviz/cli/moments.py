"""`python -m attnviz moments`: pack some of the moments that a run kept, to ship them with the model."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from attnviz.cli import arguments

HELP = "pack moments of a training run (train --moments) into one small file beside the model"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--model", required=True, help=arguments.MODEL_HELP)
    parser.add_argument(
        "--kept", required=True, metavar="DIR", type=arguments.place, help="folder that train --moments wrote"
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
    """Measure the loss of every kept moment, pack some, and print how near the packed ones are."""
    from attnviz.cli.tables import table
    from attnviz.data import corpora
    from attnviz.models.names import ModelName
    from attnviz.training import validation

    root, pair = arguments.root_of(args, args.model), ModelName.parse(args.model).pair
    val = corpora.load(pair, arguments.data_folder(args)).val
    val = val[:: max(1, len(val) // args.sentences)]
    path, rows = validation.pack_spaced(args.model, root, Path(args.kept), val, args.count)
    head = ("update", "loss as kept", "loss as packed")
    print(table([head, *((str(update), f"{before:.3f}", f"{after:.3f}") for update, before, after in rows)], ">>>"))
    print(f"{path} is ready: {path.stat().st_size / 1e6:.2f} MB")
