"""`python -m attnviz calibrate`: write on a model's card from which risk on a translation is called unusual."""

from argparse import ArgumentParser, Namespace

from attnviz.cli import arguments
from attnviz.models.names import CARD

HELP = "measure how well a model knows when it is unsure, and write the thresholds on its card"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--model", required=True, help=arguments.MODEL_HELP)
    arguments.add_data(parser)
    arguments.add_root(parser)
    arguments.add_threads(parser)


def run(args: Namespace) -> None:
    """Fit the scale on the validation sentences of the model's pair; write it, and the words of training, beside the
    model.
    """
    from attnviz.cli.arguments import open_model
    from attnviz.data import corpora
    from attnviz.models import checkpoints
    from attnviz.models.translator import Translator
    from attnviz.training import card

    model = open_model(args)
    if not isinstance(model, Translator):
        raise ValueError(f"--model must be a translation model that was trained here; got {args.model}")
    root = arguments.root_of(args, args.model)
    corpus = corpora.load(model.pair, arguments.data_folder(args))
    calibrated = card.typed_sentences(model, corpus, root)
    if "confidence" not in calibrated:
        raise ValueError(f"{model.pair} must translate from English and have 100 validation sentences to calibrate on")
    path = root / args.model / CARD
    checkpoints.write_json(path, checkpoints.read_json(path) | calibrated)
    confidence, copied = calibrated["confidence"], calibrated["copied"]["beam_1"]
    print(
        f"{path}: of the worst tenth of validation {confidence['worst_tenth']:.0%} are flagged, of the best half "
        f"{confidence['best_half']:.0%}; names and numbers copied: {copied['share']:.0%}"
    )
