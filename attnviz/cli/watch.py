"""`python -m attnviz watch`: mechanisms learn a toy task, and attention appears."""

import functools
from argparse import ArgumentParser, Namespace
from pathlib import Path

from attnviz import storage
from attnviz.cli import arguments
from attnviz.data import tasks

HELP = "train mechanisms on a toy task for a minute and watch attention appear"
DESCRIPTION = (
    "Train up to three mechanisms side by side, on the same batches, on a task whose right alignment is known. Prints "
    "what was seen, and writes maps over time. Ctrl-C ends the training early; what was seen is kept."
)
SUFFIXES = {"strip": ("svg", "pdf", "png"), "gif": ("gif",), "html": ("html",)}
_SETTINGS: dict[str, tuple[type, str]] = {
    "width": (int, "of the states, 8 to 512 (default: 64)"),
    "layers": (int, "of a Transformer, 1 to 4 (default: 1)"),
    "heads": (int, "of a Transformer, 1 to 8 (default: 2)"),
    "learning_rate": (float, "1e-6 to 10 (default: 0.003)"),
    "dropout": (float, "of the attention weights, 0 to 0.9 (default: 0)"),
    "teacher_forcing": (float, "share of the letters before that are the right ones, 0 to 1 (default: 1)"),
    "seed": (int, "of the first weights and of the batches (default: 1)"),
}
PRESETS = ("rate", "none", "unscaled", "future", "padding")  # those of training.seen, which imports numpy


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("mechanisms", nargs="*", metavar="MECHANISM", help="one to three, such as bahdanau")
    parser.add_argument(
        "--task", choices=[toy.name for toy in tasks.TOYS], help="what is to be learnt (default: reverse)"
    )
    parser.add_argument(
        "--pairs", type=arguments.place, metavar="FILE.tsv", help="pairs of your own in place of a task, up to 5,000"
    )
    parser.add_argument("--preset", choices=PRESETS, help="a training that fails on purpose, and why")
    parser.add_argument(
        "--seconds", type=float, default=20.0, metavar="N", help="processor time of each mechanism (default: 20)"
    )
    parser.add_argument("--batches", **arguments.COUNT, help="end after so many batches instead")
    parser.add_argument("--every", **arguments.COUNT, help="look after every N batches")
    for name, (kind, words) in _SETTINGS.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=kind, metavar="N", help=words)
    parser.add_argument("--asks", choices=("before", "after"), help="ask before or after the decoder's step")
    group = parser.add_argument_group("to take along")
    group.add_argument("--strip", **arguments.FILE, help="maps over time, to FILE.svg, .pdf or .png")
    group.add_argument("--gif", **arguments.FILE, help="an animation, to FILE.gif")
    group.add_argument("--html", **arguments.FILE, help="a page that plays and opens offline")
    group.add_argument("--sequence", **arguments.COUNT, default=1, help="which of the three (default 1)")
    group.add_argument("--keep", **arguments.FOLDER, help="the trained models, for ATTNVIZ_CHECKPOINTS")


def run(args: Namespace) -> None:
    """Train, print one line per moment, and write the requested files."""
    from attnviz.training.seen import PRESETS, Settings

    _check(args)
    preset = PRESETS.get(args.preset)
    given = {name: getattr(args, name) for name in (*_SETTINGS, "asks") if getattr(args, name) is not None}
    settings = Settings(**(dict(preset.settings) if preset else {}) | given)
    names = args.mechanisms or (list(preset.mechanisms) if preset else [])
    if not names:
        raise ValueError("name one to three mechanisms, or a --preset")
    from attnviz.training.race import Race, moments_of

    race = Race(_task(args), names, settings)
    if preset:
        print(f"{preset.title}. {preset.why}")
    elif race.task:
        print(race.task.note)
    seen = []
    try:
        for moment in moments_of(race, args.batches, args.seconds, args.every):
            seen.append(moment)
            print(_line(moment), flush=True)
    except KeyboardInterrupt:
        print("Ctrl-C ended the training; what was seen is kept.")
    _report(seen)
    _write(args, seen)
    if args.keep:
        print("kept in", args.keep + ":", ", ".join(race.save(Path(args.keep))))


def _check(args: Namespace) -> None:
    """ValueError for output files that could not be written after training."""
    for name, suffixes in SUFFIXES.items():
        path = getattr(args, name)
        if path and Path(path).suffix.lower().lstrip(".") not in suffixes:
            raise ValueError(f"--{name} must end in .{' or .'.join(suffixes)}; got {path}")
        if path and not Path(path).parent.is_dir():
            raise ValueError(f"cannot write {path}: No such file or directory")
    for path in filter(None, (args.strip, args.gif, args.html, args.keep)):
        storage.check_writable(Path(path))
    if args.pairs and args.task:
        raise ValueError("--pairs gives the pairs and --task a task; use only one of them")
    if args.sequence > 3:
        raise ValueError(f"--sequence must be 1, 2 or 3; got {args.sequence}")


def _task(args: Namespace):
    if not args.pairs:
        return args.task or "reverse"
    from attnviz.data.readers import read_tsv

    return read_tsv(Path(args.pairs))


def _line(moment) -> str:
    parts = []
    for name, row in moment.of.items():
        error = "" if row.alignment_error is None else f", alignment error {row.alignment_error:.2f}"
        entropy = "" if row.entropy is None else f", entropy {row.entropy:.2f}"
        numbers = f"loss {row.loss:.2f}, exact {row.exact:.0%}{error}{entropy}"
        parts.append(f"{name}: {row.problem or numbers}")
    return f"batch {moment.batch}, {moment.seconds:.1f} s  " + " | ".join(parts)


def _report(seen: list) -> None:
    """At which batch the alignment appeared and the loss fell."""
    from attnviz.training.seen import turning_points

    for name in seen[-1].of if seen else ():
        aligned, fell = turning_points(seen, name)
        words = [
            "the alignment did not appear" if aligned is None else f"the alignment was there at batch {aligned}",
            "the loss did not fall to half" if fell is None else f"the loss was half at batch {fell}",
        ]
        print(f"{name}: {', '.join(words)}")


def _write(args: Namespace, seen: list) -> None:
    if not seen or not (args.strip or args.gif or args.html):
        return
    from attnviz.export import learning
    from attnviz.figures.learning import over_time
    from attnviz.training import seen as values

    def part(count: int):
        moments = values.telling(seen, count)
        return moments, values.grids(moments, args.sequence - 1), [f"batch {moment.batch}" for moment in moments]

    lines = values.heading(seen, args.sequence - 1)
    made = {}
    if args.strip:
        _, grids, names = part(learning.IN_STRIP)
        made[args.strip] = learning.strip(grids, names, lines).save(Path(args.strip).suffix.lower().lstrip("."))
    if args.gif:
        _, grids, names = part(learning.IN_ANIMATION)
        made[args.gif] = learning.animation(grids, names, lines)
    if args.html:
        moments, grids, names = part(learning.IN_FILM)
        courses = values.courses(seen)
        curves = over_time(courses, marks=values.marks(seen), at=seen[-1].batch)
        made[args.html] = learning.page(grids, names, [moment.batch for moment in moments], lines, curves)
    for path, content in made.items():
        storage.replace(Path(path), functools.partial(Path.write_bytes, data=content))
        print(f"{path} is written")
