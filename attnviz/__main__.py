"""The command line: `python -m attnviz models | trace | evaluate | align | train | download | study`.

An error is one line on standard error and exit status 2. torch is imported once a command starts, not for --help.
"""

import argparse
import os
import re
import sys

PROGRAM = "python -m attnviz"
STYLES = ("written", "tokenised", "plain", "symbols")  # those of styles.py, which needs more than --help should wait for
STUDIES = ("mechanisms", "length", "dropout", "order", "curves")  # those of studies/, likewise


class Parser(argparse.ArgumentParser):
    """argparse that says what is wrong in one line, without the usage."""

    def error(self, message: str):
        self.exit(2, f"{self.prog}: {_line(message)}; see {self.prog} --help\n")


def parser() -> Parser:
    top = Parser(prog=PROGRAM, description="Translate and see what the model attended to.")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    models = commands.add_parser("models", help="list the trained models")
    models.add_argument("--json", action="store_true", help="cards as JSON")

    trace = commands.add_parser("trace", help="translate or classify one text and show what was attended to")
    trace.add_argument("text", metavar="TEXT")
    trace.add_argument("--model", required=True, help="as `models` lists it, such as en-fr/bahdanau; or hf: and a folder, or a "
                       "name on the Hugging Face hub")  # fmt: skip
    trace.add_argument("--target", help="force the model to produce this text")
    trace.add_argument("--beam", type=int, metavar="N", help="hypotheses kept (default 1: greedy)")
    trace.add_argument("--json", metavar="FILE", help="write the trace as JSON; - for standard output")
    trace.add_argument("--save", metavar="FILE", help="write the trace as safetensors, or as JSON to FILE.json: for "
                       "attnviz.load_trace, and for the page Heads and layers")  # fmt: skip
    trace.add_argument("--html", metavar="FILE", help="write a page with heatmaps, bars and statistics that opens offline")

    evaluate = commands.add_parser("evaluate", help="BLEU, chrF, speed, entropy and maximum weight on two aligned files; of a "
                                   "classifier accuracy on one file of sentences with labels")  # fmt: skip
    evaluate.add_argument("--model", required=True, help="as `models` lists it, such as en-fr/bahdanau")
    evaluate.add_argument("--source", required=True, metavar="FILE", help="a sentence a line, plain or gzipped; "
                          "for a classifier sentence<TAB>0 or 1")  # fmt: skip
    evaluate.add_argument("--reference", metavar="FILE", help="its translations, line by line")
    evaluate.add_argument("--beam", type=int, default=1, metavar="N", help="hypotheses kept (default 1: greedy, in batches)")
    evaluate.add_argument("--json", action="store_true", help="the figures as JSON")

    align = commands.add_parser("align", help="alignment error rate on sentence pairs whose words were linked by hand")
    align.add_argument("--model", required=True, help="as `models` lists it, such as en-fr/bahdanau")
    align.add_argument("--gold", metavar="FILE", help="pairs as attnviz/gold/README.md says (default: this project's own)")
    align.add_argument("--threshold", type=float, metavar="X", help="link weights of at least X (default: the largest of a row)")
    align.add_argument("--json", action="store_true", help="the figures as JSON")

    for command in (models, trace, evaluate, align):
        command.add_argument("--root", metavar="DIR", help="folder of checkpoints (default: those of this project)")
    _add_train(commands)
    _add_download(commands)
    _add_study(commands)
    return top


def _add_train(commands) -> None:
    train = commands.add_parser(
        "train", help="train a model, or go on where it stood",
        description="Train a model and write its checkpoint and card, on the corpora of a pair or on sentences of your own. "
        "Stopped at any time, the same command goes on.",
    )  # fmt: skip
    train.add_argument("--pair", required=True, type=_pair, help="source-target, such as en-fr, or reverse, or sst2 (labels)")
    train.add_argument("--mechanism", required=True, metavar="NAME", help="such as bahdanau, luong-general or transformer; of sst2 self-attention")
    train.add_argument("--out", metavar="DIR", help="folder of checkpoints to write to (default: those of this project)")
    train.add_argument("--start", metavar="DIR", help="begin with the weights of this checkpoint, such as "
                       "checkpoints/en-fr/bahdanau, rather than at random (fine-tuning)")  # fmt: skip
    train.add_argument("--moments", metavar="DIR", help="keep the model in this folder as it was now and then on the way")
    train.add_argument("--teacher", metavar="DIR", action="append", default=[], help="learn from what this classifier says of the "
                       "sentences and of n-grams of them, rather than from the labels (distillation); may be repeated")  # fmt: skip
    train.add_argument("--restart", action="store_true", help="begin again; a finished model that is there is kept in the folder before/ in its own")

    data = train.add_argument_group("sentences", "UTF-8 text, plain or gzipped")
    data.add_argument("--data", metavar="DIR", help="folder of the corpora (default: environment variable ATTNVIZ_DATA)")
    data.add_argument("--source-file", metavar="FILE", help="your own sentences, one a line")
    data.add_argument("--target-file", metavar="FILE", help="their translations, line by line")
    data.add_argument("--tsv", metavar="FILE", help="or both in one file, sentence<TAB>translation")
    data.add_argument("--val-size", type=_count, metavar="N",
                      help="pairs of your own kept for validation (default: a twentieth, at most 1000; of few a fifth, at most 20)")  # fmt: skip
    data.add_argument("--style", choices=STYLES, help="how your own are written: as people do (the default), lower-cased "
                      "with spaces around every mark, the same without most marks, or as symbols of one character")  # fmt: skip
    data.add_argument("--limit", type=_count, metavar="N", help="train on the first N pairs only")

    settings = train.add_argument_group("settings", "default: the recipe of pair and mechanism; for fewer than 10,000 "
                                        "pairs of your own, smaller batches and more passes")
    settings.add_argument("--epochs", type=int, metavar="N", help="passes over the data")
    settings.add_argument("--batch-tokens", type=int, metavar="N", help="pieces in a batch, padding included")
    settings.add_argument("--seed", type=int, metavar="N")
    settings.add_argument("--threads", type=_count, metavar="N", help="CPU threads")
    settings.add_argument("--set", type=_option, action="append", default=[], metavar="NAME=VALUE",
                          help="an option of the model or a setting of the training, such as cell=lstm, "
                          "attention_dropout=0.1, width=128, vocabulary=2000; may be repeated")  # fmt: skip


def _add_download(commands) -> None:
    download = commands.add_parser("download", help="fetch the public corpora of a pair, checked by their hash")
    download.add_argument("--pair", required=True, type=_pair, help="such as en-fr, en-de or en-ja")
    download.add_argument("--data", metavar="DIR", help="folder to put them in (default: environment variable ATTNVIZ_DATA)")


def _add_study(commands) -> None:
    study = commands.add_parser(
        "study", help="measure the trained models: a table and a figure in the README of the checkpoints",
        description="Measure the trained models of en-fr and write a section of README.md, a figure and the raw figures below the "
        "folder of checkpoints. What a study trains goes to another folder; stopped at any time, the same command goes on.",
    )  # fmt: skip
    study.add_argument("name", choices=STUDIES, metavar="NAME", help=", ".join(STUDIES))
    study.add_argument("--data", metavar="DIR", help="folder of the corpora (default: environment variable ATTNVIZ_DATA)")
    study.add_argument("--root", metavar="DIR", help="folder of checkpoints (default: those of this project)")
    study.add_argument("--seeds", type=_count, default=1, metavar="N", help="training runs of each model; those that do not ship "
                       "are trained (default 1)")  # fmt: skip
    study.add_argument("--out", metavar="DIR", help="folder to train in (default: trained/studies)")


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
        again = "the same command without --restart" if getattr(args, "restart", False) else "the same command"
        after = f"; {again} goes on from the last save" if args.command in ("train", "study") else ""
        print(f"{program}: interrupted{after}", file=sys.stderr)
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nothing more to flush at exit
        return 141
    except (ValueError, OSError, RuntimeError, MemoryError) as error:  # torch raises RuntimeError, also for memory
        print(f"{program}: {_line(_said(error))}", file=sys.stderr)
        return 2
    return 0


def _said(error: Exception) -> str:
    """An error in words; the system's own begin with the file."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"{os.fsdecode(error.filename)}: {error.strerror}"
    return str(error) or type(error).__name__


def _pair(text: str) -> str:
    if not re.fullmatch(r"[a-z]{2,3}-[a-z]{2,3}|reverse|sst2", text):
        raise argparse.ArgumentTypeError(f"must be two languages, such as en-fr, or reverse or sst2; got {text!r}")
    return text


def _option(text: str) -> tuple[str, object]:
    """NAME=VALUE, a number or a truth value where it reads as one."""
    name, equals, value = text.partition("=")
    if not (name.isidentifier() and equals and value):
        raise argparse.ArgumentTypeError(f"must be NAME=VALUE, such as attention_dropout=0.1; got {text!r}")
    for kind in (int, float, {"true": True, "false": False}.__getitem__):
        try:
            return name, kind(value)
        except (ValueError, KeyError):
            continue
    return name, value


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1; got {text!r}")
    return int(text)


def _line(message: str) -> str:
    return " ".join(message.split())


if __name__ == "__main__":
    sys.exit(main())
