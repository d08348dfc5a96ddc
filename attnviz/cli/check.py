"""`python -m attnviz check`: is an attention module of your own right?"""

import glob
import json
from argparse import ArgumentParser, Namespace
from pathlib import Path

from attnviz import storage
from attnviz.cli import arguments

HELP = "test attention modules of your own, FILE.py:Class"
DESCRIPTION = "Test attention modules of your own. The files are run: name only what you would run yourself."


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "modules",
        nargs="+",
        type=arguments.place,
        metavar="FILE.py:Class",
        help="a class or a function; * for many files",
    )
    parser.add_argument(
        "--set", action="append", default=[], type=arguments.setting, metavar="NAME=VALUE", dest="settings"
    )
    parser.add_argument("--mask", choices=("keep", "hide"), help="what 1 in the mask is meant to do to a key")
    parser.add_argument(
        "--as",
        dest="formula",
        metavar="NAME",
        help="the formula that it is meant to compute, such as general or scaled-dot",
    )
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.add_argument("--csv", metavar="FILE", help="write a table, a row for each module and a column for each test")


def run(args: Namespace) -> int:
    """Print the report of every module -> exit status: 1 when a test found a fault or a module could not be tested."""
    places = [place for pattern in args.modules for place in _places(pattern)]
    results = [_result(place, args) for place in places]
    if args.csv:
        storage.replace(Path(args.csv), lambda temporary: temporary.write_bytes(_table(results)))
    if args.json:
        print(json.dumps([result for result, _ in results], ensure_ascii=False, indent=1))
    elif len(results) > 1:
        print("\n".join(text for _, text in results))
    else:
        print(results[0][1])
    return int(not all(result["ok"] for result, _ in results))


def _are_several(args: Namespace) -> bool:
    return len(args.modules) > 1 or glob.has_magic(args.modules[0])


def _table(results: list[tuple[dict, str]]) -> bytes:
    """Results as a CSV file: the counts of the verdicts, the formula, and each test's verdict with its reason."""
    from attnviz import lazy_pandas as pd
    from attnviz.export.bundle import frame_csv

    rows = []
    for result, _ in results:
        tests = {line["test"]: f"{line['verdict']}: {line['reason']}" for line in result.get("tests", ())}
        faults = sum(verdict.startswith("fault") for verdict in tests.values())
        row = {"module": result["place"], "ok": result["ok"], "faults": str(faults) if tests else ""}
        rows.append(row | {"formula": result.get("formula", ""), "not tested": result.get("error", "")} | tests)
    return frame_csv(pd.DataFrame(rows).fillna(""))


def _places(pattern: str) -> list[str]:
    """`hand-ins/*.py:Attention` -> a place for every file. ValueError when no file fits."""
    if not glob.has_magic(pattern):
        return [pattern]
    path, colon, name = pattern.partition(".py:")
    files = sorted(glob.glob(path + ".py" if colon else pattern))
    if not files:
        raise ValueError(f"no file fits {pattern}")
    return [f"{file}:{name}" if colon else file for file in files]


def _result(place: str, args: Namespace) -> tuple[dict, str]:
    """The report of one module, for JSON and as text. One that cannot be tested is an error only where it is alone."""
    from attnviz import own

    try:
        built = own.load(place, dict(args.settings))
        report = own.check(built, mask=args.mask, formula=args.formula, in_trained=not _are_several(args))
    except ValueError as error:
        if not _are_several(args) and not args.json:
            raise
        reason = str(error)
        return {"place": place, "ok": False, "error": reason}, f"{place}: not tested: {reason.splitlines()[0]}"
    faults = "; ".join(f"{line.test}: {line.reason}" for line in report.faults)
    text = f"{place}: {report.summary()}{f' ({faults})' if faults else ''}" if _are_several(args) else str(report)
    return {"place": place, **report.to_dict()}, text
