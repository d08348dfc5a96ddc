"""The commands of `attnviz`, which is also `python -m attnviz`, and the parser that reads their arguments.

A command is a module with HELP, add_arguments(parser) and run(args). It imports torch in `run` alone, so that --help is
quick.
"""

import argparse
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attnviz import __version__
from attnviz.arguments import cut, guess
from attnviz.cli import (
    align,
    arguments,
    calibrate,
    check,
    corpus,
    download,
    evaluate,
    models,
    moments,
    page,
    reference,
    study,
    trace,
    train,
    transplant,
    tryout,
    watch,
    write,
)

PROGRAM = "attnviz" if Path(sys.argv[0]).stem == "attnviz" else "python -m attnviz"  # as it was started
OF_ALL, SHELLS = ("-h", "--help", "--version", "--print-completion"), ("bash", "zsh", "fish")
COMMANDS = {
    "page": page,
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
    """An argparse parser whose errors are one line, without the usage. words : those of the command line."""

    words: Sequence[str] = ()

    def error(self, message: str):
        if refused := re.search(r"invalid choice: '(.*)' \(choose from (.*)\)$", message):
            message += guess(refused[1], re.findall(r"[\w-]+", refused[2]))
        elif re.match("the following arguments are required|unrecognized", message):
            options = [word.partition("=")[0] for word in self.words if word.startswith("--")]
            unknown = [option for option in options if option not in self._option_string_actions]
            meant = ((guess(option, self._option_string_actions.keys()), option) for option in unknown)
            message += next((f"{words} by {option}" for words, option in meant if words), "")
        self.exit(2, f"{self.prog}: {one_line(message, self.words)}; see {self.prog} --help\n")


class _Completion(argparse.Action):
    """Print a script that completes commands, options, the names of models, files and folders in a shell."""

    def __call__(self, parser, namespace, values, option_string=None):
        import shtab

        from attnviz.models import checkpoint_files

        actions: list[Any] = [action for command in _commands(parser).values() for action in command._actions]
        for action in actions:
            if action.dest == "model":
                action.choices = checkpoint_files.names()
            elif action.type is arguments.place:
                action.complete = shtab.DIR if action.metavar == "DIR" else shtab.FILE
        parser.prog = "attnviz"
        print(shtab.complete(parser, values))
        parser.exit()


def parse(words: Sequence[str]) -> argparse.Namespace:
    """The arguments of a command line. Without a command it opens the page, with the options of `page`."""
    is_for_page = not words or (words[0].startswith("-") and words[0].partition("=")[0] not in OF_ALL)
    top = parser(words)
    args, rest = top.parse_known_args(["page", *words] if is_for_page else words)
    if rest:
        _commands(top)[args.command].error(f"unrecognized arguments: {' '.join(rest)}")
    return args


def _commands(top: Parser) -> dict[str, Parser]:
    return next(action.choices for action in top._actions if isinstance(action.choices, dict))


def parser(words: Sequence[str] = ()) -> Parser:
    """The parser of the command line. words : what it will read, to be cut short in errors."""
    Parser.words = words
    top = Parser(prog=PROGRAM, description="See how attention works. Without a command, the page opens in a browser.")
    top.add_argument("--version", action="version", version=f"attnviz {__version__}")
    top.add_argument(
        "--print-completion", action=_Completion, choices=SHELLS, help="print a script that completes this command"
    )
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, command in COMMANDS.items():
        description = getattr(command, "DESCRIPTION", f"{command.HELP[0].upper()}{command.HELP[1:]}.")
        command.add_arguments(commands.add_parser(name, help=command.HELP, description=description))
    return top


def one_line(message: str, words: Sequence[str] = ()) -> str:
    """A message without line breaks.

    Words of the command line are cut to LONGEST_WORD characters. Paths that exist stay whole, so that the reader can
    find them."""
    from attnviz.trace.visible import escaped  # here: an error is rare, and the imports take their time

    for word in sorted(words, key=len, reverse=True):
        if len(word) > LONGEST_WORD and not os.path.exists(word):
            for quoted in (repr(word)[1:-1], word):
                message = message.replace(quoted, cut(quoted, LONGEST_WORD))
    message = escaped(" ".join(message.split()))
    return cut(message, LONGEST_MESSAGE)
