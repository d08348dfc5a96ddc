"""`python -m attnviz check`: is an attention module of your own right?"""

import contextlib
import glob
import json
import multiprocessing
import os
import re
import signal
import sys
import threading
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnviz import progress, storage
from attnviz.arguments import guess
from attnviz.cli import arguments

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

HELP = "test attention modules of your own, FILE.py:Class"
DESCRIPTION = "Test attention modules of your own. The files are run: name only what you would run yourself."

# A process that has torch loaded makes one for each module, in milliseconds, where the system can.
_START = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
SECONDS = 60.0  # of one of several modules
# The names of own.formula, which imports torch, and other words for them in papers and libraries.
FORMULAS: dict[str, tuple[str, ...]] = {
    "additive": ("additive",),
    "bahdanau": ("additive",),
    "mlp": ("additive",),
    "dot": ("dot",),
    "dot-product": ("dot",),
    "general": ("general",),
    "bilinear": ("general",),
    "concat": ("concat",),
    "luong": ("dot", "general", "concat"),
    "multiplicative": ("dot", "general"),
    "scaled-dot": ("scaled-dot",),
    "scaled-dot-product": ("scaled-dot",),
    "multi-head": ("multi-head",),
    "multihead": ("multi-head",),
    "transformer": ("multi-head",),
    "vaswani": ("scaled-dot", "multi-head"),
    "grouped-query": ("grouped-query",),
    "multi-query": ("multi-query",),
}


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "modules",
        nargs="+",
        type=arguments.place,
        metavar="FILE.py:Class",
        help="a class or a function; * for many files",
    )
    arguments.add_set(parser)
    parser.add_argument("--mask", choices=("keep", "hide"), help="what 1 in the mask is meant to do to a key")
    parser.add_argument(
        "--as",
        dest="formula",
        type=formula,
        metavar="NAME",
        help="the formula that it is meant to compute, such as additive (or bahdanau), general or scaled-dot",
    )
    parser.add_argument(
        "--seconds",
        type=arguments.seconds,
        default=SECONDS,
        metavar="S",
        help="of several modules, for each at most (default: %(default)g)",
    )
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.add_argument("--csv", metavar="FILE", help="write a table, a row for each module and a column for each test")


def formula(text: str) -> str:
    """The type of --as -> the name of the formula in own.formula."""
    word = re.sub(r"[\s_]+", "-", text.strip().lower()).removesuffix("-attention").removeprefix("luong-")
    names = FORMULAS.get(word, ())
    if len(names) > 1:
        raise ArgumentTypeError(f"{text!r:.80} has several scores; say which: {', '.join(names[:-1])} or {names[-1]}")
    if not names:
        every = ", ".join(dict.fromkeys(name for names in FORMULAS.values() for name in names))
        raise ArgumentTypeError(f"must be one of {every}; got {text!r:.80}{guess(word, FORMULAS.keys())}")
    return names[0]


def run(args: Namespace) -> int:
    """Print the report of every module -> exit status: 1 when a test found a fault; 2 when none did and a module could
    not be tested."""
    places = [place for pattern in args.modules for place in _places(pattern)]
    if args.csv:
        storage.check_writable(Path(args.csv))
    how = {"settings": dict(args.settings), "mask": args.mask, "formula": args.formula}
    if len(places) == 1 and places == args.modules:
        results = [alone(places[0], how, as_json=args.json)]
    else:
        results = []
        for place in places:
            results.append(apart(place, how, args.seconds, quiet=True)[0])
            if not args.json:
                print(_in_a_line(results[-1]), flush=True)
            if args.csv:  # after each, so that an interrupted run leaves what it did
                _write_table(results, Path(args.csv))
    if args.csv:
        _write_table(results, Path(args.csv))
    if args.json:
        print(json.dumps(results, ensure_ascii=False, indent=1))
    statuses = [2 if "error" in result else int(not result["ok"]) for result in results]
    if untested := statuses.count(2):
        print(f"not tested: {untested} of {len(results)}; the results say why", file=sys.stderr)
    return min(filter(None, statuses), default=0)


def alone(place: str, how: dict, as_json: bool = False) -> dict:
    """Test one module and print its report -> its result. ValueError where it cannot be tested. how : as in `apart`.
    as_json : print nothing; the result then holds the reason why it could not be tested."""
    result, report = apart(place, how | {"in_trained": True})
    if not as_json:
        if "error" in result:
            raise ValueError(result["error"])
        print(report)
    return result


def apart(place: str, how: dict, seconds: float | None = None, quiet: bool = False) -> tuple[dict, str]:
    """The result of a module as JSON has it, and its report. It is tested in a process of its own, so that no file can
    affect another by changing the folder or torch, looping without end, or ending the program. A file that ends the
    program fails.

    how : arguments of `own.check`. seconds : the time limit; None for no limit. quiet : discard what the file prints;
    otherwise it goes to standard error.
    """
    context: Any = multiprocessing.get_context(_START)
    if _START == "forkserver":
        context.set_forkserver_preload(["attnviz.own"])
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(theirs, place, how, quiet))
    with progress.loading():  # the first start waits until the process that makes the others has imported torch
        process.start()
    theirs.close()
    try:
        if ours.poll(seconds):
            return tuple(json.loads(ours.recv_bytes()))
        return _not_tested(place, f"it did not end within {seconds:g} s (--seconds gives it longer)")
    except EOFError:
        process.join()
        return _not_tested(place, _ended(process.exitcode))
    finally:
        process.kill()
        process.join()
        ours.close()


def _not_tested(place: str, reason: str) -> tuple[dict, str]:
    return {"place": place, "ok": False, "error": reason}, ""


def _ended(status: int) -> str:
    """Why a process returned no result. status : its `Process.exitcode`; if negative, minus the signal that ended
    it."""
    if status >= 0:
        return f"it ended the program, with status {status}"
    return f"the system ended its process ({signal.strsignal(-status)})"


def _answer(pipe: "Connection", place: str, how: dict, quiet: bool) -> None:
    """Runs in the process of one module: send its result and its report. Arguments as in `apart`."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the command, whose end is the end of this process
    threading.Thread(target=_end_with_parent, daemon=True).start()
    output = os.open(os.devnull, os.O_WRONLY) if quiet else 2
    with contextlib.suppress(OSError):  # of a program that was started without standard error
        os.dup2(output, 1)
        os.dup2(output, 2)
    with progress.loading():  # where a process begins with nothing
        from attnviz import own

    try:
        report = own.check(own.load(place, how.pop("settings")), **how)
        answer = {"place": place, **report.to_dict()}, str(report)
    except ValueError as error:
        answer = _not_tested(place, str(error))
    pipe.send_bytes(json.dumps(answer).encode())


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _in_a_line(result: dict) -> str:
    if "error" in result:
        return f"{result['place']}: not tested: {result['error'].splitlines()[0]}"
    faults = [f"{line['test']}: {line['reason']}" for line in result["tests"] if line["verdict"] == "fault"]
    words = f" ({'; '.join(faults)})" if faults else ""
    return f"{result['place']}: {result['summary']}{words}"


def _write_table(results: list[dict], path: Path) -> None:
    storage.replace(path, lambda temporary: temporary.write_bytes(_table(results)))


def _table(results: list[dict]) -> bytes:
    """Results as a CSV file: the counts of the verdicts, the formula, and each test's verdict with its reason."""
    from attnviz import lazy_pandas as pd
    from attnviz.export.bundle import frame_csv

    rows = []
    for result in results:
        tests = {line["test"]: f"{line['verdict']}: {line['reason']}" for line in result.get("tests", ())}
        faults = sum(verdict.startswith("fault") for verdict in tests.values())
        row = {"module": result["place"], "ok": result["ok"], "faults": str(faults) if tests else ""}
        rows.append(
            row
            | {"formula": result.get("formula", ""), "not tested": result.get("error", "").partition("\n")[0]}
            | tests
        )
    return frame_csv(pd.DataFrame(rows).fillna(""))


def _places(pattern: str) -> list[str]:
    """`hand-ins/*.py:Attention` -> FILE.py:NAME for every file. ValueError if no file matches."""
    path, colon, name = pattern.partition(".py:")
    if Path(pattern).is_dir():
        raise ValueError(f'{pattern} is a folder; name the files in it, as "{pattern.rstrip(os.sep)}/*.py:Class"')
    if not glob.has_magic(pattern) or Path(path + ".py" if colon else pattern).is_file():
        return [pattern]
    files = sorted(glob.glob(path + ".py" if colon else pattern))
    if not files:
        raise ValueError(f"no file fits {pattern}")
    return [f"{file}:{name}" if colon else file for file in files]
