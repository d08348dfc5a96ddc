"""`python -m attnviz trace`: translate or classify one text, and show or save what the model attended to.

Pictures: a map, bars of a step, statistics by step, a difference, all heads, lines between tokens, or the weight by
distance.
"""

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from attnviz import storage
from attnviz.cli import arguments

HELP = "translate or classify one text and show what the model attended to"
FORMATS = ("svg", "pdf", "png", "tex")  # attnviz.export.printed.FORMATS; that package imports matplotlib
SIZES = ("column", "page", "slide")  # its SIZES
DRAWN = ("map", "bars", "statistics", "difference", "heads", "lines", "distances")


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("text", metavar="TEXT", help="- for standard input")
    parser.add_argument(
        "--model",
        required=True,
        help=f"{arguments.MODEL_HELP}; or hf: and a folder, or hf: and a name on the Hugging Face hub",
    )
    parser.add_argument(
        "--second", metavar="TEXT", help="a second text, which a model like BERT reads beside the first"
    )
    parser.add_argument("--target", help="make the model produce this text (forced decoding)")
    parser.add_argument("--beam", type=int, metavar="N", help="beam size (default 1: greedy)")
    parser.add_argument("--json", **arguments.FILE, help="write the trace as JSON; - for standard output")
    parser.add_argument(
        "--save",
        **arguments.FILE,
        help="write the trace as safetensors, or as JSON to FILE.json, for attnviz.load_trace and for the page Heads "
        "and layers",
    )
    parser.add_argument(
        "--html", **arguments.FILE, help="write a page with heatmaps, bars and statistics that opens offline"
    )
    _add_picture_arguments(parser)
    arguments.add_prefix(parser)
    arguments.add_root(parser)
    arguments.add_threads(parser, hf=True)


def run(args: Namespace) -> None:
    """Trace one text; print a table, or write the files that were asked for."""
    if args.target is not None and args.beam is not None:
        raise ValueError("--beam chooses a translation and --target gives one; use only one of them")
    from attnviz.cli.tables import summary
    from attnviz.data import sentences
    from attnviz.export import html_page
    from attnviz.trace import files

    _check_picture(args)
    if args.text == "-":
        args.text = storage.decode(arguments.standard_input().read(), "standard input").strip()
    model = arguments.open_model(args, arguments.with_prefix(args, args.model), huggingface=True)
    if args.second is not None:
        args.text = _paired(model, args)
    trace = _traced(model, args)
    others = args.json or args.save or args.picture  # files that do not say how usual the translation is
    notices = sentences.notices(trace)
    lines = _confidence(model, trace, args) if args.html or not others else ()
    for line in notices:
        print(line, file=sys.stderr)
    if not trace.maps and (args.html or args.picture):
        raise ValueError(f"{trace.model} has no attention to show; leave --html and --picture out")
    if args.html:
        marks = {trace.model: _windows(model, trace)}
        _write(
            args.html,
            html_page.page(trace, notes={trace.model: (*notices, *lines)}, windows=marks, unit=_unit(trace.model)),
        )
    if args.picture:
        _write(args.picture, _picture(model, trace, args))
    if args.save:
        files.save_trace(trace, args.save)
        _say_written(args.save)
    if args.json == "-":
        print(trace.to_json())
    elif args.json:
        _write(args.json, trace.to_json().encode("utf-8"))
    elif not (args.html or args.save or args.picture):
        print(summary(trace, lines))


def _unit(model: str) -> str:
    """The noun for a word of a model's texts."""
    from attnviz.models import names

    name = names.parse(model)
    return name.task.unit if isinstance(name, names.ModelName) else "word"


def _paired(model, args: Namespace) -> str:
    """Both texts, as a model of the transformers library reads them. ValueError for a model that reads one text."""
    if not getattr(model, "reads_pairs", False):
        raise ValueError(f"{model.name} reads one text; --second is for Hugging Face models like BERT")
    from attnviz.models.huggingface.tokenization import PAIR

    return f"{args.text} {PAIR} {args.second}"


def _traced(model, args: Namespace):
    """The trace for the arguments of the command line."""
    if not model.labels:
        return model.trace(args.text, args.target, 1 if args.beam is None else args.beam)
    if args.target is not None or args.beam is not None:
        raise ValueError(f"{model.name} is a classifier; --target and --beam are for models that translate")
    return model.trace(args.text)


def _confidence(model, trace, args: Namespace) -> tuple[str, ...]:
    """Sentences on the confidence of the translation; () if the model has no thresholds."""
    from attnviz.confidence import Judge
    from attnviz.models.translator import Translator

    if trace.forced or not isinstance(model, Translator):
        return ()
    judge = Judge.load(model.name, arguments.root_of(args, model.name))
    try:
        return judge(trace).lines if judge else ()
    except ValueError as error:  # a model that draws translations for the judge cannot be read
        print(f"Whether the translation is usual cannot be said: {error}", file=sys.stderr)
        return ()


def _write(path: str, content: bytes) -> None:
    if not Path(path).parent.is_dir():
        raise ValueError(f"cannot write {path}: No such file or directory")
    try:
        storage.replace(Path(path), lambda temporary: temporary.write_bytes(content))
    except OSError as error:
        raise ValueError(f"cannot write {path}: {error.strerror}") from None
    _say_written(path)


def _say_written(path: str) -> None:
    print(f"{path} is written", file=sys.stderr)


def _add_picture_arguments(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("pictures for slides and papers")
    group.add_argument("--picture", metavar="FILE", help="write a picture to FILE.svg, .pdf, .png or .tex")
    group.add_argument("--draw", choices=DRAWN, help=f"what it shows: {', '.join(DRAWN)} (default map)")
    group.add_argument("--step", **arguments.COUNT, help="step of the bars, from 1 (default 1)")
    group.add_argument(
        "--beside",
        metavar="MODEL",
        help="another model, made to write the same text; for the difference (--model minus this one) and for the "
        "statistics",
    )
    group.add_argument("--size", choices=SIZES, help=f"size of the picture: {', '.join(SIZES)} (default page)")
    group.add_argument("--font", type=float, metavar="POINTS", help="font size (default: depends on --size)")
    group.add_argument("--dark", action="store_true", help="dark background")


def _check_picture(args: Namespace) -> None:
    """Raises ValueError for options that do not go together, before a model is read."""
    if args.picture is None:
        given = [f"--{name}" for name in ("draw", "step", "beside") if getattr(args, name) is not None]
        if given:
            raise ValueError(f"{given[0]} is for a picture; add --picture FILE")
        return
    if _ending(args) not in FORMATS:
        raise ValueError(f"--picture must end in .{', .'.join(FORMATS)}; got {args.picture}")
    if args.step is not None and args.draw != "bars":
        raise ValueError("--step is for bars; add --draw bars")
    if args.draw == "difference" and args.beside is None:
        raise ValueError("--draw difference needs another model; add --beside MODEL")
    if args.beside is not None and args.draw not in ("difference", "statistics"):
        raise ValueError("--beside is for a difference or statistics; add --draw difference or --draw statistics")


def _picture(model, trace, args: Namespace) -> bytes:
    """The picture of a trace by `model`: the mean of the last layer's heads, or all heads; cross-attention if the model
    has it. Prints to stderr what did not fit. Raises ValueError."""
    from attnviz.export import printed

    style = printed.Style(args.size or "page", args.font, args.dark)
    if args.beside is not None:
        pair = _pair(model, trace, args)
        sheet = _difference(pair[0], pair[1], style) if args.draw == "difference" else _statistics(pair, style)
    elif args.draw == "statistics":
        sheet = _statistics([trace], style)
    elif args.draw == "bars":
        sheet = _bars(model, trace, args.step or 1, style)
    elif args.draw == "heads":
        sheet = printed.of_overview(trace, style=style)
    elif args.draw == "lines":
        sheet = _lines(trace, style)
    elif args.draw == "distances":
        sheet = _distances(trace, style)
    else:
        sheet = printed.of_map(trace, _grid(trace), style, windows=_windows(model, trace))
    for note in sheet.notes:
        print(note, file=sys.stderr)
    return sheet.save(_ending(args))


def _grid(trace):
    from attnviz import select

    return select.select(trace, trace.maps[0].kind)


def _ending(args: Namespace) -> str:
    return Path(args.picture).suffix.removeprefix(".").lower()


def _bars(model, trace, step: int, style):
    from attnviz.export import printed

    grid, places = _grid(trace), _windows(model, trace)
    if step > len(grid.queries):
        raise ValueError(f"--step must be 1 to {len(grid.queries)} for this text; got {step}")
    return printed.of_step(trace, grid, step - 1, style, window=places[step - 1] if places else None)


def _statistics(traces: list, style):
    from attnviz import stats
    from attnviz.export import printed

    grids = {trace.model: _grid(trace) for trace in traces}
    seen = [grid.visible.sum(axis=1).tolist() for grid in grids.values()]
    keys = seen[0] if all(counts == seen[0] for counts in seen) else None
    tables = {name: stats.of_grid(grid) for name, grid in grids.items()}
    return printed.of_statistics({trace.model: trace for trace in traces}, tables, keys, style)


def _difference(first, second, style):
    from attnviz import select
    from attnviz.export import printed

    grid = _grid(first)
    values = select.difference(grid, select.select(second, grid.kind))
    return printed.of_difference(first, second, values, grid, (first.model, second.model), style)


def _lines(trace, style):
    from attnviz import figures
    from attnviz.export import heading, printed

    grid = _grid(trace)
    chart = figures.token_lines([grid], dark=style.dark)
    return printed.of_figure(chart, heading.of_map(trace, grid), style)


def _distances(trace, style):
    from attnviz import figures, rollout
    from attnviz.export import heading, printed

    chart = figures.by_distance(rollout.by_distance(trace, trace.maps[0].kind), dark=style.dark)
    return printed.of_figure(chart, heading.of_trace("Weight by distance", trace), style)


def _pair(model, trace, args: Namespace) -> list:
    """The traces of both models. Both are forced to produce the first model's output, so that they have the same
    tokens."""

    other = arguments.open_model(args, args.beside, huggingface=True)
    if other.name == model.name:
        raise ValueError(f"--beside must be another model than --model; got {args.beside} twice")
    target = trace.translation if trace.target and not model.labels else None
    pair = [reader.trace(trace.text, target) if target else reader.trace(trace.text) for reader in (model, other)]
    if not pair[1].maps:
        raise ValueError(f"{other.name} has no attention to show; choose another model for --beside")
    return pair


def _windows(model, trace) -> tuple:
    """The window of local attention at each step; () for other mechanisms."""
    from attnviz.mechanisms import ALL

    if not (trace.mechanism in ALL and ALL[trace.mechanism].local):
        return ()
    from attnviz import inside

    return inside.windows(model, trace)
