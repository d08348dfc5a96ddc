"""`python -m attnviz write`: let a model continue a text."""

import sys
from argparse import ArgumentParser, Namespace

from attnviz import storage
from attnviz.cli import arguments

HELP = "let a model write on after a text"
STEPS = 80


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("text", metavar="TEXT", help="how the text begins; - for standard input")
    parser.add_argument(
        "--model",
        required=True,
        help="a model that writes, from `models`, such as shakespeare/writer; or hf: and the folder or the name of a "
        "causal model of the transformers library",
    )
    parser.add_argument("--steps", **arguments.COUNT, help=f"how many tokens, at most (default {STEPS})")
    _add_sampling(parser)
    parser.add_argument(
        "--chat", action="store_true", help="of an hf: model, put the text into its chat template, as what a user says"
    )
    parser.add_argument("--json", action="store_true", help="print the trace as JSON, with all attention weights")
    arguments.add_root(parser)
    arguments.add_threads(parser, hf=True)


def _add_sampling(parser: ArgumentParser) -> None:
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


def run(args: Namespace) -> None:
    """Print the text with its continuation, or its trace. Notes go to standard error."""
    if args.text == "-":
        args.text = storage.decode(arguments.standard_input().read(), "standard input").removesuffix("\n")
    model = arguments.open_model(args, huggingface=True)
    if not hasattr(model, "write"):
        raise ValueError(f"{args.model} does not write on after a text; `trace` shows what it does")
    steps = min(STEPS, model.limit) if args.steps is None else args.steps
    if steps > model.limit:
        raise ValueError(f"--steps must be at most {model.limit}, the tokens that {args.model} reads; got {steps}")
    how = {"top_k": args.top_k, "top_p": args.top_p, "seed": args.seed} | ({"chat": True} if args.chat else {})
    if args.chat and not hasattr(model, "chat"):
        raise ValueError(f"--chat is for models of the transformers library; {args.model} has no chat template")
    trace = model.write(args.text, steps, args.temperature, **how)
    print(trace.to_json() if args.json else trace.translation)
    written = len(trace.target) - trace.given
    if not trace.complete and written < steps:
        print(f"the context of {args.model} is full after {written} of {steps} tokens", file=sys.stderr)
