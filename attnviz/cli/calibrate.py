"""`python -m attnviz calibrate`: write to models' cards the risk above which a translation is called unusual."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from attnviz.cli import arguments
from attnviz.models.names import CARD

HELP = "measure how well models know when they are unsure, and write the thresholds on their cards"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--model",
        required=True,
        nargs="+",
        metavar="NAME",
        help=f"{arguments.MODEL_HELP}; of several, what a language pair needs is learnt once",
    )
    arguments.add_data(parser)
    arguments.add_root(parser)
    arguments.add_threads(parser)


def run(args: Namespace) -> None:
    """Fit the scale of each model on the validation sentences of its pair; write it, and the words of training, beside
    the model.
    """
    from attnviz.data import corpora
    from attnviz.models import checkpoint_files
    from attnviz.models.translator import Translator
    from attnviz.training import card

    models = {name: arguments.open_model(args, name) for name in args.model}
    if other := [name for name, model in models.items() if not isinstance(model, Translator)]:
        raise ValueError(f"--model must be a translation model that was trained here; got {other[0]}")
    learnt: dict[tuple[Path, str], card.Learnt] = {}  # of each pair in each folder
    for name, model in models.items():
        root = arguments.root_of(args, name)
        if (pair := (root, model.pair)) not in learnt:
            learnt[pair] = card.learn(model, corpora.load(model.pair, arguments.data_folder(args)), root)
        calibrated = card.typed_sentences(model, learnt[pair])
        if "confidence" not in calibrated:
            raise ValueError(
                f"{model.pair} must translate from English and have 100 validation sentences to calibrate on"
            )
        path = root / name / CARD
        checkpoint_files.write_json(path, checkpoint_files.read_json(path) | calibrated)
        confidence, copied = calibrated["confidence"], calibrated["copied"]["beam_1"]
        print(
            f"{path}: of the worst tenth of validation {confidence['worst_tenth']:.0%} are flagged, of the best half "
            f"{confidence['best_half']:.0%}; names and numbers copied: {copied['share']:.0%}",
            flush=True,
        )
