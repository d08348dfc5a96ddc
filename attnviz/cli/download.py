"""`python -m attnviz download`: fetch the public corpora of a pair, or the weights of trained models."""

from argparse import ArgumentParser, Namespace

from attnviz.cli import arguments

HELP = "fetch the public corpora of a pair, or the weights of models, and check their hashes"


def add_arguments(parser: ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--pair", type=arguments.pair, help="such as en-fr, en-de or en-ja")
    what.add_argument(
        "--models", action="store_true", help="all that an installed package lacks, so that no network is needed later"
    )
    parser.add_argument(
        "--data", **arguments.FOLDER, help="folder to put the corpora in (default: environment variable ATTNVIZ_DATA)"
    )


def run(args: Namespace) -> None:
    """Fetch the corpora into the data folder, or the weights into the folder of checkpoints."""
    if args.models:
        _fetch_models()
        return
    from attnviz.data.corpora import fetch

    folder = arguments.data_folder(args)
    fetch(args.pair, folder, report=print)
    print(f"{folder} holds the corpora of {args.pair}")


def _fetch_models() -> None:
    from attnviz.models import checkpoint_files

    names = checkpoint_files.names(checkpoint_files.ROOT)
    for name in filter(checkpoint_files.is_to_fetch, names):
        print(f"{checkpoint_files.fetch(name)}: fetched, hash correct")
    print(f"all {len(names)} models are there")
