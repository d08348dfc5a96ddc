"""`python -m attnviz check`: is an attention module of your own right?"""

import glob
import json
import multiprocessing
import os
import threading
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnviz import storage
from attnviz.cli import arguments

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from attnviz.own import Report

HELP = "test attention modules of your own, FILE.py:Class"
DESCRIPTION = "Test attention modules of your own. The files are run: name only what you would run yourself."


# A process that has torch loaded makes one for each module, in milliseconds, where the system can.
_START = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
SECONDS = 60.0  # of one of several modules


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "modules",
        nargs="+",
        type=arguments.place,
        metavar="FILE.py:Class",
        help="a class or a function; * for many files",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        type=arguments.setting,
        metavar="NAME=VALUE",
        dest="settings",
        help="an argument of the class; may be given again",
    )
    parser.add_argument("--mask", choices=("keep", "hide"), help="what 1 in the mask is meant to do to a key")
    parser.add_argument(
        "--as",
        dest="formula",
        metavar="NAME",
        help="the formula that it is meant to compute, such as general or scaled-dot",
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


def run(args: Namespace) -> int:
    """Print the report of every module -> exit status: 1 when a test found a fault or a module could not be tested."""
    places = [place for pattern in args.modules for place in _places(pattern)]
    if len(places) == 1 and places == args.modules:
        results = [_alone(places[0], args)]
    else:
        results = []
        for place in places:
            results.append(_apart(place, args))
            if not args.json:
                print(_in_a_line(results[-1]), flush=True)
            if args.csv:  # after each, so that an interrupted run leaves what it did
                _write_table(results, Path(args.csv))
    if args.csv:
        _write_table(results, Path(args.csv))
    if args.json:
        print(json.dumps(results, ensure_ascii=False, indent=1))
    return int(not all(result["ok"] for result in results))


def _alone(place: str, args: Namespace) -> dict:
    """The result of the only module, which is printed whole. One that cannot be tested is an error."""
    try:
        report = _report(place, args, in_trained=True)
    except ValueError as error:
        if not args.json:
            raise
        return _not_tested(place, str(error))
    if not args.json:
        print(report)
    return {"place": place, **report.to_dict()}


def _report(place: str, args: Namespace, in_trained: bool) -> "Report":
    from attnviz import own

    built = own.load(place, dict(args.settings))
    return own.check(built, mask=args.mask, formula=args.formula, in_trained=in_trained)


def _not_tested(place: str, reason: str) -> dict:
    return {"place": place, "ok": False, "error": reason}


def _apart(place: str, args: Namespace) -> dict:
    """The result of one of several modules, tested in a process of its own: what a file does there - another folder, a
    changed torch, an endless loop, the end of the program - is done to no other."""
    context: Any = multiprocessing.get_context(_START)
    if _START == "forkserver":
        context.set_forkserver_preload(["attnviz.own"])
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(theirs, place, os.path.abspath(place), args))
    process.start()
    theirs.close()
    try:
        if ours.poll(args.seconds):
            return json.loads(ours.recv_bytes())
        return _not_tested(place, f"it did not end within {args.seconds:g} s (--seconds gives it longer)")
    except EOFError:
        process.join()
        return _not_tested(place, f"it ended the program, with status {process.exitcode}")
    finally:
        process.kill()
        process.join()
        ours.close()


def _answer(pipe: "Connection", place: str, path: str, args: Namespace) -> None:
    """In the process of one module: send its result. What it prints goes nowhere. path : where the place is."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for output in (1, 2):
        os.dup2(nowhere, output)
    try:
        result = {"place": place, **_report(path, args, in_trained=False).to_dict()}
    except ValueError as error:
        result = _not_tested(place, str(error))
    pipe.send_bytes(json.dumps(result).encode())


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
    """`hand-ins/*.py:Attention` -> a place for every file. ValueError when no file fits."""
    path, colon, name = pattern.partition(".py:")
    if not glob.has_magic(pattern) or Path(path + ".py" if colon else pattern).is_file():
        return [pattern]
    files = sorted(glob.glob(path + ".py" if colon else pattern))
    if not files:
        raise ValueError(f"no file fits {pattern}")
    return [f"{file}:{name}" if colon else file for file in files]
