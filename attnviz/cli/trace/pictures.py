"""The pictures of `python -m attnviz trace --picture`: a map, bars of a step, statistics by step, a difference,
all heads, lines between tokens, or the weight by distance."""

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from attnviz.cli.shared import arguments

FORMATS = ("svg", "pdf", "png")  # attnviz.export.printed.FORMATS; that package imports matplotlib
SIZES = ("column", "page", "slide")  # its SIZES
DRAWN = ("map", "bars", "statistics", "difference", "heads", "lines", "distances")


def add_arguments(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("pictures for slides and papers")
    group.add_argument("--picture", metavar="FILE", help="write a picture to FILE.svg, FILE.pdf or FILE.png")
    group.add_argument("--draw", choices=DRAWN, help=f"what it shows: {', '.join(DRAWN)} (default map)")
    group.add_argument("--step", type=arguments.count, metavar="N", help="step of the bars, from 1 (default 1)")
    group.add_argument(
        "--beside",
        metavar="MODEL",
        help="another model, made to write the same text; for the difference (--model minus this one) and for the "
        "statistics",
    )
    group.add_argument("--size", choices=SIZES, help=f"size of the picture: {', '.join(SIZES)} (default page)")
    group.add_argument("--font", type=float, metavar="POINTS", help="font size (default: depends on --size)")
    group.add_argument("--dark", action="store_true", help="dark background")


def check(args: Namespace) -> None:
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


def draw(model, trace, args: Namespace) -> bytes:
    """The picture of a trace by `model`: of the last layer, the mean of its heads, or of all heads; of cross-attention
    where there is any. Says on stderr what did not fit. Raises ValueError."""
    from attnviz.export import printed

    style = printed.Style(args.size or "page", args.font, args.dark)
    if args.beside is not None:
        pair = _pair(model, trace, args)
        sheet = _difference(*pair, style) if args.draw == "difference" else _statistics(pair, style)
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
        sheet = printed.of_map(trace, _grid(trace), style, windows=windows(model, trace))
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

    grid, places = _grid(trace), windows(model, trace)
    if step > len(grid.queries):
        raise ValueError(f"--step must be 1 to {len(grid.queries)} for this text; got {step}")
    return printed.of_step(trace, grid, step - 1, style, window=places[step - 1] if places else None)


def _statistics(traces: list, style):
    from attnviz import stats
    from attnviz.export import printed

    grids = {trace.model: _grid(trace) for trace in traces}
    seen = [grid.visible.sum(axis=1).tolist() for grid in grids.values()]
    keys = seen[0] if all(counts == seen[0] for counts in seen) else None
    frames = {name: stats.of_grid(grid) for name, grid in grids.items()}
    return printed.of_statistics({trace.model: trace for trace in traces}, frames, keys, style)


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
    """The traces of both models, which are made to write what the first wrote: then both read it as the same tokens."""
    from attnviz.cli.shared.open_model import open_model

    other = open_model(Namespace(**vars(args) | {"model": args.beside}), huggingface=True)
    if other.name == model.name:
        raise ValueError(f"--beside must be another model than --model; got {args.beside} twice")
    target = trace.translation if trace.target and not model.labels else None
    pair = [each.trace(trace.text, target) if target else each.trace(trace.text) for each in (model, other)]
    if not pair[1].maps:
        raise ValueError(f"{other.name} has no attention to show; choose another model for --beside")
    return pair


def windows(model, trace) -> tuple:
    """Where local attention looks at each step; () of other mechanisms."""
    from attnviz.mechanisms import ALL

    if not (trace.mechanism in ALL and ALL[trace.mechanism].local):
        return ()
    from attnviz import inside

    return inside.windows(model, trace)
