"""The command line: `attnviz COMMAND` or `python -m attnviz COMMAND`; `attnviz --help` lists the commands.

Each command is a module in attnviz.cli, which lists them. An error is one line on standard error, with exit status 2.
"""

import errno
import gc
import os
import signal
import sys
from argparse import Namespace
from typing import Any

from attnviz import mechanisms, progress
from attnviz.cli import COMMANDS, PROGRAM, RESUMABLE, corpus, one_line, parse
from attnviz.cli.arguments import with_standard_input

_WRITING = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)


def main(arguments: list[str] | None = None) -> int:
    """Run one command -> exit status: 0; 1 when a check finds a fault; 2 after an error; 130 when interrupted; 141 when
    nobody reads the output."""
    words = sys.argv[1:] if arguments is None else arguments
    streams: tuple[Any, ...] = sys.stdout, sys.stderr
    for stream in streams:
        if stream is not None:  # it is None where it was closed: then nothing is written
            stream.reconfigure(errors="backslashreplace")  # a terminal that cannot show a character shows its code
    args = parse(words)
    _show_what_a_terminal_would_obey()
    try:
        mechanisms.check()
        with progress.announced(), with_standard_input(args):
            status = COMMANDS[args.command].run(args) or 0
        _flush()
    except KeyboardInterrupt:
        print(f"{PROGRAM} {args.command}: interrupted{_how_to_resume(args)}", file=sys.stderr)
        return 130
    except BrokenPipeError:
        _give_up_output()
        return 141
    except (ValueError, OSError, RuntimeError, MemoryError, ArithmeticError) as error:  # torch raises RuntimeError
        print(f"{PROGRAM} {args.command}: {one_line(_message(error), words)}", file=sys.stderr)
        _give_up_output()
        return 2
    return status


def _show_what_a_terminal_would_obey() -> None:
    """On a terminal, print control characters of texts and names as escapes. Files and pipes get them unchanged."""
    if sys.stdout is not None and sys.stdout.isatty():
        from attnviz.trace.visible import escaped

        output: Any = sys.stdout
        write = type(output).write
        output.write = lambda text: write(output, escaped(text))


def _flush() -> None:
    if sys.stdout is not None:
        sys.stdout.flush()


def _give_up_output() -> None:
    """Discard output that cannot be written (full disk, closed pipe); Python would fail on it again at exit."""
    try:
        _flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _how_to_resume(args: Namespace) -> str:
    if args.command == "corpus":
        return corpus.how_to_resume(args)
    if args.command not in RESUMABLE:
        return ""
    without = " without --restart" if getattr(args, "restart", False) else ""
    return f"; the same command{without} continues from the last save"


def _message(error: Exception) -> str:
    """The message of an error. That of an operating-system error begins with the file name."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"{os.fsdecode(error.filename)}: {error.strerror}"
    if isinstance(error, OSError) and error.errno in _WRITING:
        return f"cannot write: {error.strerror}"  # to standard output, which has no name
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if "torch" in sys.modules and not isinstance(error, ValueError):
        from attnviz.models import machine

        return machine.too_large(error) or str(error) or type(error).__name__
    return str(error) or type(error).__name__


def script() -> None:
    """The program `attnviz`."""
    gc.set_threshold(10_000)  # imports make many objects and no garbage: a command takes a quarter less time to start
    status = main()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C while Python ends would show a traceback
    sys.exit(status)


if __name__ == "__mp_main__":  # a worker that it has started
    gc.set_threshold(10_000)
if __name__ == "__main__":
    script()
