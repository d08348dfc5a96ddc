"""`python -m attnviz corpus`: the statistics of many sentences, in a folder."""

import contextlib
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from attnviz.cli import arguments

HELP = "translate or force a file of sentences with one or more models, and write the statistics of their attention"
DESCRIPTION = (
    "Writes statistics.parquet (one row for each model, sentence, kind, layer, head and step), sentences.parquet and "
    "manifest.json, and with --keep weights the weights. Stop it at any time; --resume goes on, and gives the same "
    "files."
)
SHOWN = 20  # lines that cannot be read, one by one; the others are counted


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--model", required=True, nargs="+", metavar="NAME", help=arguments.MODEL_HELP)
    parser.add_argument(
        "--input",
        required=True,
        metavar="FILE",
        help="one sentence per line; or .tsv (source; source and target; id, source and target), .jsonl or .parquet "
        "(with id, source, target, links); - for standard input. Any of them gzipped. A target is forced, not "
        "translated. Links between words, as in attnviz/gold, give an alignment error rate",
    )
    parser.add_argument("--out", required=True, metavar="DIR", help="folder to write to, new or empty")
    parser.add_argument("--batch-size", **arguments.COUNT, help="sentences a batch (default 32)")
    parser.add_argument("--beam", type=int, default=1, metavar="N", help="beam size (default 1: greedy)")
    parser.add_argument("--workers", **arguments.COUNT, default=1, help="processes (default 1)")
    parser.add_argument("--ray", metavar="ADDRESS", help="run on a Ray cluster, or on the one that `auto` finds")
    parser.add_argument(
        "--keep", nargs="+", default=["statistics"], metavar="WHAT", help="statistics, weights, or both (statistics)"
    )
    parser.add_argument("--resume", action="store_true", help="go on with the run in --out")
    arguments.add_prefix(parser)
    arguments.add_root(parser)
    arguments.add_threads(parser, hf=True)


def run(args: Namespace) -> int:
    """Compute, with a progress bar on standard error, and report skipped sentences -> 1 if all were skipped, else 0."""
    from tqdm import tqdm

    from attnviz import corpus
    from attnviz.models import batches
    from attnviz.progress import bar as progress_bar

    config = corpus.CorpusConfig(
        models=tuple(arguments.with_prefix(args, name) for name in args.model),
        input=args.input,
        batch_size=args.batch_size or batches.BATCH,
        beam=args.beam,
        keep=tuple(args.keep),
        root=str(root) if (root := arguments.given_root(args)) else None,
    )
    reported = 0
    running = corpus.run(config, Path(args.out), args.workers, args.resume, args.ray, args.threads or 1)
    with progress_bar(unit="sentence") as bar, contextlib.closing(running):
        for progress in running:
            if bar.total is None:
                bar.total, bar.initial, bar.n = progress.total, progress.done, progress.done
            bar.update(progress.done - bar.n)
            for model, number, reason in progress.errors:
                reported += 1
                if reported <= SHOWN:
                    tqdm.write(f"{model}: line {number} is skipped: {reason}", file=sys.stderr)
    skipped = corpus.skipped(Path(args.out))  # in earlier parts of the run too
    more = (
        f"; {skipped:,} of {progress.total:,} skipped, see the column `error` of sentences.parquet" if skipped else ""
    )
    sentences = _counted(progress.total // len(config.models), "sentence")
    if long := corpus.too_long(config, Path(args.out), args.threads or 1):
        tqdm.write(
            f"{long:,} of {progress.total:,} texts are longer than nearly all texts of training: parts may be left out "
            "or said twice; give one sentence a line",
            file=sys.stderr,
        )
    print(f"{sentences} through {_counted(len(config.models), 'model')} in {args.out}{more}")
    return int(skipped == progress.total)


def _counted(count: int, unit: str) -> str:
    return f"{count:,} {unit}" if count == 1 else f"{count:,} {unit}s"


def how_to_resume(args: Namespace) -> str:
    """The message after Ctrl-C; "" if nothing was begun."""
    return "; the same command with --resume continues" if (Path(args.out) / "manifest.json").is_file() else ""
