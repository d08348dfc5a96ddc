"""The command line: `python -m attnviz models | trace | evaluate | train`.

An error is one line on standard error and exit status 2. torch is imported once a command starts, not for --help.
"""

import argparse
import os
import re
import sys

PROGRAM = "python -m attnviz"


class Parser(argparse.ArgumentParser):
    """argparse that says what is wrong in one line, without the usage."""

    def error(self, message: str):
        self.exit(2, f"{self.prog}: {_line(message)}; see {self.prog} --help\n")


def parser() -> Parser:
    top = Parser(prog=PROGRAM, description="Translate and see what the model attended to.")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    models = commands.add_parser("models", help="list the trained models")
    models.add_argument("--json", action="store_true", help="cards as JSON")

    trace = commands.add_parser("trace", help="translate one text and show what was attended to")
    trace.add_argument("text", metavar="TEXT")
    trace.add_argument("--model", required=True, help="as `models` lists it, such as en-fr/bahdanau")
    trace.add_argument("--target", help="force the model to produce this text")
    trace.add_argument("--beam", type=int, metavar="N", help="hypotheses kept (default 1: greedy)")
    trace.add_argument("--json", metavar="FILE", help="write the trace as JSON; - for standard output")
    trace.add_argument("--html", metavar="FILE", help="write a page with heatmaps, bars and statistics that opens offline")

    evaluate = commands.add_parser("evaluate", help="BLEU, chrF, speed, entropy and maximum weight on two aligned files")
    evaluate.add_argument("--model", required=True, help="as `models` lists it, such as en-fr/bahdanau")
    evaluate.add_argument("--source", required=True, metavar="FILE", help="a sentence a line, plain or gzipped")
    evaluate.add_argument("--reference", required=True, metavar="FILE", help="its translations, line by line")
    evaluate.add_argument("--beam", type=int, default=1, metavar="N", help="hypotheses kept (default 1: greedy, in batches)")
    evaluate.add_argument("--json", action="store_true", help="the figures as JSON")

    for command in (models, trace, evaluate):
        command.add_argument("--root", metavar="DIR", help="folder of checkpoints (default: those of this project)")
    _add_train(commands)
    return top


def _add_train(commands) -> None:
    train = commands.add_parser(
        "train", help="train a model, or go on where it stood",
        description="Train a model and write its checkpoint and card. Stopped at any time, the same command goes on.",
    )  # fmt: skip
    train.add_argument("--pair", required=True, type=_pair, help="languages, source-target, such as en-fr")
    train.add_argument("--mechanism", required=True, metavar="NAME", help="bahdanau, luong-general or transformer")
    train.add_argument("--data", metavar="DIR", help="folder of the corpora (default: environment variable ATTNVIZ_DATA)")
    train.add_argument("--out", metavar="DIR", help="folder of checkpoints to write to (default: this project's; for a model "
                       "that is finished there, ./trained)")  # fmt: skip
    train.add_argument("--epochs", type=int, metavar="N", help="passes over the data (default: the mechanism's recipe)")
    train.add_argument("--batch-tokens", type=int, metavar="N", help="pieces in a batch, padding included")
    train.add_argument("--seed", type=int, metavar="N")
    train.add_argument("--threads", type=_threads, metavar="N", help="CPU threads")
    train.add_argument("--restart", action="store_true", help="begin again, whatever the folder holds")


def main(arguments: list[str] | None = None) -> int:
    """Run one command -> exit status: 0, 2 after an error, 130 when interrupted, 141 when nobody reads the output."""
    args = parser().parse_args(arguments)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # a terminal that cannot show a character shows its code
    program = f"{PROGRAM} {args.command}"
    try:
        from attnviz import commands

        getattr(commands, args.command)(args)
        sys.stdout.flush()
    except KeyboardInterrupt:
        after = "; the same command goes on from the last save" if args.command == "train" else ""
        print(f"{program}: interrupted{after}", file=sys.stderr)
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nothing more to flush at exit
        return 141
    except (ValueError, OSError, RuntimeError, MemoryError) as error:  # torch raises RuntimeError, also for memory
        print(f"{program}: {_line(str(error) or type(error).__name__)}", file=sys.stderr)
        return 2
    return 0


def _pair(text: str) -> str:
    if not re.fullmatch(r"[a-z]{2,3}-[a-z]{2,3}", text):
        raise argparse.ArgumentTypeError(f"must be two languages, such as en-fr; got {text!r}")
    return text


def _threads(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1; got {text!r}")
    return int(text)


def _line(message: str) -> str:
    return " ".join(message.split())


if __name__ == "__main__":
    sys.exit(main())
