"""`python -m attnviz moments`: pack some of the saved moments of a training run, to ship them with the model."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from attnviz.cli import arguments

HELP = "pack moments of a training run (train --moments) into one small file beside the model, and measure them"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--model", required=True, help=arguments.MODEL_HELP)
    parser.add_argument(
        "--kept",
        dest="folder",
        **arguments.FOLDER,
        help="folder that train --moments wrote; without it the moments that are packed are measured",
    )
    parser.add_argument("--count", **arguments.COUNT, default=12, help="moments to pack, spaced by loss (default 12)")
    parser.add_argument(
        "--sentences",
        **arguments.COUNT,
        default=300,
        help="validation sentences that the losses are measured on; for a model that writes, windows of its context "
        "(default 300)",
    )
    arguments.add_data(parser)
    arguments.add_root(parser)
    arguments.add_threads(parser)


def run(args: Namespace) -> None:
    """Measure the loss of every saved moment, pack some, and print how close the packed losses are; then measure the
    packed moments for the page."""
    from attnviz.cli.tables import table
    from attnviz.data import corpora, tasks
    from attnviz.models import checkpoint_files
    from attnviz.models.names import ModelName, moments_file
    from attnviz.studies import writing
    from attnviz.training import validation

    root, pair, data = (
        arguments.root_of(args, args.model),
        ModelName.parse(args.model).pair,
        arguments.data_folder(args),
    )
    task, val = tasks.find(pair), corpora.load(pair, data).val
    if task.writes:
        val = _windows(args.model, root, val, args.sentences)
    val = val[:: max(1, len(val) // args.sentences)]
    if args.folder:
        path, packed = validation.pack_spaced(args.model, root, Path(args.folder), val, args.count)
        head = ("update", "loss as kept", "loss as packed")
        print(table([head, *((str(update), f"{a:.3f}", f"{b:.3f}") for update, a, b in packed)], ">>>"))
        print(f"{path} is ready: {path.stat().st_size / 1e6:.2f} MB")
    if task.translates:
        columns = {"update": "", "loss": ".3f", "bleu_lc": ".1f", "error_rate": ".3f"}
        measured = validation.measure_moments(args.model, root, val)
    elif task.writes:
        columns = {"update": "", "loss": ".3f", **dict.fromkeys(writing.ROLES, ".2f")}
        measured = writing.measure_moments(args.model, root, data)
    else:
        return
    checkpoint_files.write_json(moments_file(args.model, root), {"sentences": len(val), "moments": measured})
    words = {"bleu_lc": "BLEU", "error_rate": "alignment error rate"} | writing.ROLES
    rows = (
        tuple("–" if row[key] is None else f"{row[key]:{form}}" for key, form in columns.items()) for row in measured
    )
    print(table([tuple(words.get(key, key) for key in columns), *rows], ">" * len(columns)))


def _windows(name: str, root: Path, texts: list[tuple[str, str]], count: int) -> list[tuple[str, str]]:
    """Parts of texts that fill the context of a model that writes with their <eos>; no part has a name."""
    from attnviz.evaluation.language import spread
    from attnviz.models import checkpoint_files, checkpoints
    from attnviz.models.names import ModelName
    from attnviz.networks.registry import options

    config, tokenizer = (
        checkpoint_files.read_config(name, root),
        checkpoints.load_tokenizer(ModelName.parse(name).pair, root),
    )
    longest = (options(config.mechanism) | config.options)["longest"]
    return [(tokenizer.spelled(ids), "") for ids in spread(tokenizer, [text for text, _ in texts], longest - 1, count)]
