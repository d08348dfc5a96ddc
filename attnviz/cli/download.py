"""`python -m attnviz download`: fetch the public corpora of a pair."""

from argparse import ArgumentParser, Namespace

from attnviz.cli import arguments

HELP = "fetch the public corpora of a pair and check their hashes"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--pair", required=True, type=arguments.pair, help="such as en-fr, en-de or en-ja")
    parser.add_argument(
        "--data",
        metavar="DIR",
        type=arguments.place,
        help="folder to put them in (default: environment variable ATTNVIZ_DATA)",
    )


def run(args: Namespace) -> None:
    """Fetch the corpora into the data folder."""
    from attnviz.data.corpora import fetch

    folder = arguments.data_folder(args)
    fetch(args.pair, folder, report=print)
    print(f"{folder} holds the corpora of {args.pair}")
