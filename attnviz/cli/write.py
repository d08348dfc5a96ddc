"""`python -m attnviz write`: let a model write on after a text."""

import sys
from argparse import ArgumentParser, Namespace

from attnviz import storage
from attnviz.cli.shared import arguments, standard_input

HELP = "let a model write on after a text"
STEPS = 80


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("text", metavar="TEXT", help="how the text begins; - for standard input")
    parser.add_argument("--model", required=True, help="a model that writes, from `models`, such as shakespeare/writer")
    parser.add_argument(
        "--steps", type=arguments.count, metavar="N", help=f"how many tokens, at most (default {STEPS})"
    )
    parser.add_argument(
        "--temperature",
        type=float,
        metavar="X",
        default=1.0,
        help="below 1, probable tokens become more probable; 0 takes the most probable token (default 1)",
    )
    parser.add_argument(
        "--top-k", type=arguments.whole, metavar="N", default=0, help="draw from the N most probable tokens alone"
    )
    parser.add_argument(
        "--top-p",
        type=float,
        metavar="X",
        default=1.0,
        help="draw from the fewest tokens that together have this probability",
    )
    parser.add_argument(
        "--seed",
        type=arguments.whole,
        metavar="N",
        default=1,
        help="of the random numbers; the same one gives the same text (default 1)",
    )
    parser.add_argument("--json", action="store_true", help="print the trace as JSON, with all attention weights")
    arguments.add_root(parser)
    arguments.add_threads(parser)


def run(args: Namespace) -> None:
    """Print the text with what the model wrote, or its trace. Notes go to standard error."""
    from attnviz.cli.shared.open_model import open_model
    from attnviz.models.writer import Writer

    if args.text == "-":
        args.text = storage.decode(standard_input.stream().read(), "standard input").removesuffix("\n")
    model = open_model(args)
    if not isinstance(model, Writer):
        raise ValueError(f"{args.model} does not write on after a text; `trace` shows what it does")
    steps = min(STEPS, model.limit) if args.steps is None else args.steps
    if steps > model.limit:
        raise ValueError(
            f"--steps must be at most {model.limit}, the {model.task.piece}s that {args.model} reads; got {steps}"
        )
    trace = model.write(args.text, steps, args.temperature, top_k=args.top_k, top_p=args.top_p, seed=args.seed)
    print(trace.to_json() if args.json else trace.translation)
    written = len(trace.target) - len(trace.source)
    if not trace.complete and written < steps:
        print(f"the context of {args.model} is full after {written} of {steps} {model.task.piece}s", file=sys.stderr)
