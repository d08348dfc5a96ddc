"""The commands of `python -m attnviz`, and the parser that reads their arguments.

A command is a module with HELP, add_arguments(parser) and run(args). It imports torch in `run` alone, so that --help is quick.
"""

import argparse

from attnviz.cli import align, corpus, download, evaluate, models, study, trace, train

PROGRAM = "python -m attnviz"
COMMANDS = {
    "models": models,
    "trace": trace,
    "evaluate": evaluate,
    "align": align,
    "corpus": corpus,
    "train": train,
    "download": download,
    "study": study,
}
RESUMABLE = ("train", "study")  # stopped at any time, the same command continues


class Parser(argparse.ArgumentParser):
    """An argparse parser whose errors are one line, without the usage."""

    def error(self, message: str):
        self.exit(2, f"{self.prog}: {one_line(message)}; see {self.prog} --help\n")


def parser() -> Parser:
    """The parser of the command line."""
    top = Parser(prog=PROGRAM, description="Translate and see what the model attends to.")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, command in COMMANDS.items():
        description = getattr(command, "DESCRIPTION", None)
        command.add_arguments(commands.add_parser(name, help=command.HELP, description=description))
    return top


def one_line(message: str) -> str:
    """A message without line breaks."""
    return " ".join(message.split())
