"""`python -m attnviz train`: train a model, or resume a run."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from attnviz import mechanisms
from attnviz.cli import arguments

HELP = "train a model, or resume a run that was stopped"
DESCRIPTION = (
    "Train a model and write its checkpoint and card, on the corpora of a pair or on your own sentences. You can "
    "stop it at any time; the same command continues the run."
)
STYLES = ("written", "tokenised", "plain", "symbols")  # of sentences in attnviz.data.styles, which imports tokenizers
DEFAULTS = (
    "default: the recipe of pair and mechanism; for fewer than 10,000 pairs of your own, smaller batches and more "
    "epochs"
)


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--pair",
        required=True,
        type=arguments.pair,
        help="source-target, such as en-fr, or reverse, or sst2 (labels), or en or shakespeare (texts to write on)",
    )
    parser.add_argument(
        "--mechanism",
        required=True,
        metavar="NAME",
        help="such as bahdanau, luong-general or transformer; for sst2 self-attention; for texts to write on writer; "
        "or FILE.py:NAME, a mechanism of your own, whose file is run",
    )
    parser.add_argument(
        "--out", **arguments.FOLDER, help="folder of checkpoints to write to (default: those of this project)"
    )
    _add_run(parser)
    _add_sentences(parser.add_argument_group("sentences", "UTF-8 text, plain or gzipped; - for standard input"))
    _add_settings(parser.add_argument_group("settings", DEFAULTS))


def _add_run(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--start",
        **arguments.FOLDER,
        help="start from the weights of this checkpoint, such as checkpoints/en-fr/bahdanau, instead of random weights "
        "(fine-tuning)",
    )
    parser.add_argument(
        "--moments",
        **arguments.FOLDER,
        help="write the weights to this folder at about forty updates of the run, from the untrained model to the "
        "trained one; not with --start, whose first weights no seed gives",
    )
    parser.add_argument(
        "--teacher",
        **arguments.FOLDER,
        action="append",
        default=[],
        help="learn from the output of this classifier on the sentences and on n-grams of them, instead of from the "
        "labels (distillation); may be repeated",
    )
    parser.add_argument(
        "--restart",
        action="store_true",
        help="begin again; a finished model in the folder is kept in its subfolder before/",
    )


def _add_sentences(group) -> None:
    arguments.add_data(group)
    group.add_argument(
        "--repeat",
        **arguments.COUNT,
        help="how often a pass reads each of the pair's own sentences (captions) beside the everyday ones (default: 1 "
        "for en-fr and en-ja, 2 for en-de)",
    )
    group.add_argument("--source-file", **arguments.FILE, help="your own sentences, one per line")
    group.add_argument("--target-file", **arguments.FILE, help="their translations, line by line")
    group.add_argument("--tsv", **arguments.FILE, help="both in one file: sentence<TAB>translation on each line")
    group.add_argument(
        "--val-size",
        **arguments.COUNT,
        help="how many of your own pairs are used for validation (default: a twentieth, at most 1000; a fifth, at most "
        "20, if there are few pairs)",
    )
    group.add_argument(
        "--style",
        choices=STYLES,
        help="how your own sentences are written: written (the default): as people write; tokenised: lower-cased, with "
        "spaces around every punctuation mark; plain: the same without most punctuation; symbols: one character each",
    )
    group.add_argument("--limit", **arguments.COUNT, help="train on the first N pairs only")


def _add_settings(group) -> None:
    group.add_argument("--epochs", type=int, metavar="N", help="passes over the data")
    group.add_argument("--batch-tokens", type=int, metavar="N", help="pieces in a batch, padding included")
    group.add_argument(
        "--patience",
        type=arguments.whole,
        metavar="N",
        help="end the run when validation has not improved for N epochs; 0 ends a run that was stopped, with the best "
        "epoch so far (default: all epochs)",
    )
    group.add_argument("--seed", type=int, metavar="N", help="seed of the random numbers (default 1)")
    arguments.add_threads(group)
    group.add_argument(
        "--set",
        type=arguments.setting,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an option of the model or a training setting, such as cell=lstm, attention_dropout=0.1, width=128, "
        "vocabulary=2000, augment=1; may be repeated",
    )


def run(args: Namespace) -> None:
    """Train a model, or resume its training. Training writes the card."""
    from attnviz.cli import train_settings
    from attnviz.models import checkpoint_files, machine
    from attnviz.models.names import ModelName
    from attnviz.training.train import train
    from attnviz.training.validation import score_key

    args.written_mechanism = train_settings.last_folders(args.mechanism, 1)
    if ":" in args.mechanism:
        args.mechanism = mechanisms.read(args.mechanism).name
    changes = train_settings.read_settings(args)
    train_settings.configuration(args, changes)  # errors in the settings are said before data is read
    corpus = train_settings.read_corpus(args)
    config = train_settings.configuration(args, train_settings.changes_for_corpus(args, corpus) | changes)
    train_settings.warn_about_validation(corpus)
    root = train_settings.output_folder(args)
    train_settings.report_kept_tokenizer(args, root, corpus)
    folder = train(
        config,
        corpus,
        root,
        args.pair,
        command=train_settings.command_line(args),
        restart=args.restart,
        start=Path(args.start) if args.start else None,
        teachers=[Path(teacher) for teacher in args.teacher],
        moments=Path(args.moments) if args.moments else None,
        threads=args.threads or machine.THREADS,
        patience=args.patience,
    )
    best, key = checkpoint_files.read_card(str(ModelName(args.pair, args.mechanism)), root)["best"], score_key(corpus)
    print(f"{folder} is ready: {key} {best[key]:.2f} in epoch {best['epoch']}")
