"""`python -m attnviz study`: measure the trained models."""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path

from attnviz.cli import arguments

HELP = "measure the trained models: a table and a picture in the README of the checkpoints"
DESCRIPTION = (
    "Measure the trained models. The study writes a section of README.md, a picture and the raw numbers to "
    "the folder of checkpoints. Models that it trains go to another folder. You can stop it at any time; the same "
    "command continues."
)
# attnviz.studies.STUDIES, which imports torch
STUDIES = ("mechanisms", "length", "dropout", "order", "curves", "faithfulness", "syntax", "writing")
WITHOUT_DATA = ("curves", "syntax")  # these read no corpus


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", choices=STUDIES, metavar="NAME", help=", ".join(STUDIES))
    arguments.add_data(parser)
    arguments.add_root(parser)
    arguments.add_threads(parser)
    parser.add_argument(
        "--seeds",
        **arguments.COUNT,
        default=1,
        help="training runs of each model; runs that do not ship are trained (default 1)",
    )
    parser.add_argument(
        "--sentences", **arguments.COUNT, help="test sentences of the study faithfulness (default: 500)"
    )
    parser.add_argument("--out", **arguments.FOLDER, help="folder to train in (default: trained/studies)")

    parser.add_argument(
        "--moments",
        action="append",
        default=[],
        type=_moments,
        metavar="MODEL=DIR",
        help="of the study writing: the folder of moments that the run of a model kept (train --moments); may be given "
        "for several models",
    )


def _moments(text: str) -> tuple[str, Path]:
    """`en/writer=DIR` -> the name of the model, and the folder."""
    name, equals, folder = text.partition("=")
    if not (name and equals and folder):
        raise ArgumentTypeError(f"must be like en/writer=DIR; got {text!r:.80}")
    return name, Path(arguments.place(folder))


def run(args: Namespace) -> None:
    """Run a study, and write its results to the folder of checkpoints."""
    if args.moments and args.name != "writing":
        raise ValueError(f"--moments is for the study writing; {args.name} reads no moments")
    root = arguments.root_folder(args)
    data = None if args.name in WITHOUT_DATA else arguments.data_folder(args)
    from attnviz import studies
    from attnviz.data import corpora
    from attnviz.models import machine

    out = Path(args.out) if args.out else arguments.TRAINED / "studies"
    corpus = None if data is None else corpora.load("en-fr", data)
    more = {"sentences": args.sentences, "data": data, "moments": tuple(args.moments)}
    config = studies.StudyConfig(root, out, corpus, args.seeds, **more)
    machine.use_threads(args.threads or machine.THREADS)
    studies.run(args.name, config)
    print(f"the study {args.name} is in {root / 'README.md'}, its numbers are in {root / 'studies' / args.name}.json")
