"""`python -m attnviz try`: what does an attention module of your own learn?"""

import os
import shlex
import subprocess
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from attnviz import mechanisms, storage
from attnviz.cli import arguments, check, page
from attnviz.data import tasks
from attnviz.models import checkpoint_files
from attnviz.python_file import ANYTHING

HELP = "train an attention module of your own on a toy task, and see it beside others"
DESCRIPTION = (
    "Check an attention module of your own, train it on a toy task beside Bahdanau's and Luong's general attention, "
    "all for the same time, and show what they attend to. Ctrl-C ends the training early. The file is run: name only "
    "what you would run yourself."
)

_LEGEND = """exact %: how many of 100 test sequences it writes without a mistake. Higher is better.
alignment error: the share of letters for which it looks most (its largest weight) at another letter of the
sequence than the one that it copies. Lower is better: 0 is always right, 1 never.
loss: how little it expects the right letters at the end of the training, in nats a letter. Lower is better."""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("module", type=arguments.place, metavar="FILE.py:Class", help="a class or a function")
    arguments.add_set(parser)
    parser.add_argument(
        "--order",
        choices=("previous", "current"),
        default="current",
        help="the state of the decoder that is the query: the previous one, as Bahdanau has it, or the current one, as "
        "Luong has it (the default)",
    )
    parser.add_argument(
        "--task",
        choices=[toy.name for toy in tasks.TOYS],
        default="reverse",
        help="what is to be done with a sequence of letters (default: %(default)s)",
    )
    parser.add_argument(
        "--seconds",
        type=arguments.seconds,
        default=90.0,
        metavar="N",
        help="processor time of the whole training, which the three models share equally (default: 90)",
    )
    parser.add_argument(
        "--out",
        **arguments.FOLDER,
        default=str(arguments.TRAINED / "try"),
        help="folder for the trained models (default: %(default)s); those of the last `try` there are replaced",
    )
    parser.add_argument("--open", action="store_true", help="open the page with the trained models")


def run(args: Namespace) -> int:
    """Check, train, report, and show -> exit status: 1 when a test found a fault."""
    from attnviz.own import train
    from attnviz.own.wrap import digest, of_file

    folder, settings = _folder(args, train.FILE), dict(args.settings)
    result = check.alone(args.module, {"settings": settings})
    print(flush=True)
    storage.make_folder(folder)
    (folder / train.FILE).touch()
    try:
        trained_as = digest(args.module)
        yours = of_file(args.module, settings, args.order)
    except ValueError as error:
        trained = _in_trained(folder, args.module, settings)
        if trained is None:
            raise
        print(f"not trained on {args.task}: {error}")
        file = train.write_file(folder, args.module, settings, "", trained=trained)
    else:
        print(yours.words)
        share = f"{args.seconds / 3:.3g} s of processor time each"
        print(f"trained on {args.task}, in turns, {share}; Ctrl-C ends it", flush=True)
        scores, stopped = train.train_beside(yours, folder, args.seconds, args.task)
        file = train.write_file(folder, args.module, settings, args.order, trained_as)
        print(_table(scores, stopped), flush=True)
        trained = _in_trained(folder, args.module, settings)
        file = train.write_file(folder, args.module, settings, args.order, trained_as, trained)
    roots = os.pathsep.join(map(str, (folder, *checkpoint_files.roots())))
    _show({mechanisms.SETTING: f"{file}:YOURS", checkpoint_files.SETTING: roots}, args.open)
    return int(not result["ok"])


def _in_trained(folder: Path, module: str, settings: dict) -> tuple[str, str] | None:
    """Save the trained model of the module's formula with the module in it; None if that fails (the report says
    why) or Ctrl-C ends it."""
    from attnviz.own import trained

    try:
        return trained.save(folder, module, settings)
    except (KeyboardInterrupt, *ANYTHING):  # a person's code may raise anything
        return None


def _folder(args: Namespace, file: str) -> Path:
    """The folder to write to, which may be new. ValueError if it holds anything but models of an earlier `try`, or if
    its name does not fit into the page's settings."""
    folder = Path(args.out).resolve()
    if "," in str(folder) or os.pathsep in str(folder):
        raise ValueError(f"--out must have no comma and no {os.pathsep} in its path; got {folder}")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / file).is_file():
        raise ValueError(f"{folder} holds other files; choose another --out")
    storage.check_writable(folder)
    return folder


def _table(scores: list, stopped: bool) -> str:
    from attnviz.cli.tables import table

    if not scores:
        return "\nCtrl-C ended the test too; what was trained is kept, without scores."
    rows = [("", "exact %", "alignment error", "batches", "seconds", "loss")]
    for score in scores:
        error = "–" if score.alignment_error is None else f"{score.alignment_error:.2f}"
        numbers = (f"{score.exact:.1f}", error, str(score.batches), f"{score.seconds:.1f}", f"{score.loss:.2f}")
        rows.append((f"{score.title}{f' ({score.problem})' if score.problem else ''}", *numbers))
    lines = [
        "",
        *(["Ctrl-C ended the training; what was trained is kept."] if stopped else []),
        table(rows, "<>>>>>"),
        "",
        _LEGEND,
    ]
    return "\n".join(lines)


def _show(settings: dict[str, str], opens: bool) -> None:
    """Print the command that opens the page with the trained models, and run it."""
    command = [sys.executable, "-m", "streamlit", "run", str(page.file())]
    words = [*(f"{name}={shlex.quote(value)}" for name, value in settings.items()), shlex.join(command)]
    print("\nthe page beside the others:\n" + " ".join(words), flush=True)
    if opens and subprocess.run(command, env=os.environ | settings, check=False).returncode:
        raise ValueError("the page ended with an error; its last lines say which")
