"""The commands of `python -m attnviz`, and the parser that reads their arguments.

A command is a module with HELP, add_arguments(parser) and run(args). It imports torch in `run` alone, so that --help is
quick.
"""

import argparse
import os
import re
from collections.abc import Sequence

from attnviz import __version__
from attnviz.arguments import cut, guess
from attnviz.cli import (
    align,
    calibrate,
    check,
    corpus,
    download,
    evaluate,
    models,
    moments,
    reference,
    study,
    trace,
    train,
    transplant,
    tryout,
    watch,
    write,
)

PROGRAM = "python -m attnviz"
COMMANDS = {
    "models": models,
    "trace": trace,
    "write": write,
    "evaluate": evaluate,
    "align": align,
    "corpus": corpus,
    "train": train,
    "calibrate": calibrate,
    "moments": moments,
    "reference": reference,
    "transplant": transplant,
    "download": download,
    "study": study,
    "check": check,
    "try": tryout,
    "watch": watch,
}
LONGEST_WORD, LONGEST_MESSAGE = 80, 1500  # characters of a word of the command line in an error, and of an error
RESUMABLE = ("train", "study")  # stopped at any time, the same command continues


class Parser(argparse.ArgumentParser):
    """An argparse parser whose errors are one line, without the usage. words : of the command line."""

    words: Sequence[str] = ()

    def error(self, message: str):
        if refused := re.search(r"invalid choice: '(.*)' \(choose from (.*)\)$", message):
            message += guess(refused[1], re.findall(r"[\w-]+", refused[2]))
        self.exit(2, f"{self.prog}: {one_line(message, self.words)}; see {self.prog} --help\n")


def parser(words: Sequence[str] = ()) -> Parser:
    """The parser of the command line. words : what it will read, to be cut short in errors."""
    Parser.words = words
    top = Parser(prog=PROGRAM, description="Translate and see what the model attends to.")
    top.add_argument("--version", action="version", version=f"attnviz {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, command in COMMANDS.items():
        description = getattr(command, "DESCRIPTION", None)
        command.add_arguments(commands.add_parser(name, help=command.HELP, description=description))
    return top


def one_line(message: str, words: Sequence[str] = ()) -> str:
    """A message without line breaks, in which the words of the command line have at most QUOTED characters each.

    A word that names something that exists stays whole: the reader has to find it."""
    from attnviz.trace.visible import escaped  # here: an error is rare, and the imports take their time

    for word in sorted(words, key=len, reverse=True):
        if len(word) > LONGEST_WORD and not os.path.exists(word):
            for quoted in (repr(word)[1:-1], word):
                message = message.replace(quoted, cut(quoted, LONGEST_WORD))
    message = escaped(" ".join(message.split()))
    return cut(message, LONGEST_MESSAGE)
