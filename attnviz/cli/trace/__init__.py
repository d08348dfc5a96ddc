"""`python -m attnviz trace`: translate or classify one text, and show or save what the model attended to."""

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from attnviz import storage
from attnviz.cli.shared import arguments, standard_input
from attnviz.cli.trace import pictures
from attnviz.storage import atomic

HELP = "translate or classify one text and show what the model attended to"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("text", metavar="TEXT", help="- for standard input")
    parser.add_argument(
        "--model",
        required=True,
        help=f"{arguments.MODEL_HELP}; or hf: and a folder, or hf: and a name on the Hugging Face hub",
    )
    parser.add_argument("--target", help="make the model produce this text (forced decoding)")
    parser.add_argument("--beam", type=int, metavar="N", help="beam size (default 1: greedy)")
    parser.add_argument(
        "--json", metavar="FILE", type=arguments.place, help="write the trace as JSON; - for standard output"
    )
    parser.add_argument(
        "--save",
        metavar="FILE",
        type=arguments.place,
        help="write the trace as safetensors, or as JSON to FILE.json, for attnviz.load_trace and for the page Heads "
        "and layers",
    )
    parser.add_argument(
        "--html",
        metavar="FILE",
        type=arguments.place,
        help="write a page with heatmaps, bars and statistics that opens offline",
    )
    pictures.add_arguments(parser)
    arguments.add_root(parser)
    arguments.add_threads(parser)


def run(args: Namespace) -> None:
    """Trace one text; print a table, or write the files that were asked for."""
    if args.target is not None and args.beam is not None:
        raise ValueError("--beam chooses a translation and --target gives one; use only one of them")
    from attnviz.cli.shared.open_model import open_model
    from attnviz.cli.trace.tables import summary
    from attnviz.data import sentences
    from attnviz.export import html_page
    from attnviz.trace import files

    pictures.check(args)
    if args.text == "-":
        args.text = storage.decode(standard_input.stream().read(), "standard input").strip()
    model = open_model(args, huggingface=True)
    trace = _traced(model, args)
    others = args.json or args.save or args.picture  # files that do not say how usual the translation is
    told = sentences.notices(trace)
    lines = _confidence(model, trace, args) if args.html or not others else ()
    for line in told:
        print(line, file=sys.stderr)
    if not trace.maps and (args.html or args.picture):
        raise ValueError(f"{trace.model} has no attention to show; leave --html and --picture out")
    if args.html:
        marks = {trace.model: pictures.windows(model, trace)}
        _write(
            args.html,
            html_page.page(trace, notes={trace.model: (*told, *lines)}, windows=marks, unit=_unit(trace.model)),
        )
    if args.picture:
        _write(args.picture, pictures.draw(model, trace, args))
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
    """What a word of the texts of a model is called."""
    from attnviz.models import names

    name = names.parse(model)
    return name.task.unit if isinstance(name, names.ModelName) else "word"


def _traced(model, args: Namespace):
    """The trace that the command line asks for."""
    if not model.labels:
        return model.trace(args.text, args.target, 1 if args.beam is None else args.beam)
    if args.target is not None or args.beam is not None:
        raise ValueError(f"{model.name} is a classifier; --target and --beam are for models that translate")
    return model.trace(args.text)


def _confidence(model, trace, args: Namespace) -> tuple[str, ...]:
    """How usual the translation is for the model, as sentences; () where the model has no thresholds."""
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
        atomic.replace(Path(path), lambda temporary: temporary.write_bytes(content))
    except OSError as error:
        raise ValueError(f"cannot write {path}: {error.strerror}") from None
    _say_written(path)


def _say_written(path: str) -> None:
    print(f"{path} is written", file=sys.stderr)
