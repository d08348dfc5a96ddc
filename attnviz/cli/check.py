"""`python -m attnviz check`: is an attention module of your own right?"""

import glob
import json
from argparse import ArgumentParser, Namespace

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


def run(args: Namespace) -> int:
    """Print the report of every module -> exit status: 1 when a test found a fault or a module could not be tested."""
    places = [place for pattern in args.modules for place in _places(pattern)]
    results = [_result(place, args) for place in places]
    if args.json:
        print(json.dumps([result for result, _ in results], ensure_ascii=False, indent=1))
    elif len(results) > 1:
        print("\n".join(text for _, text in results))
    else:
        print(results[0][1])
    return int(not all(result["ok"] for result, _ in results))


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
        report = own.check(built.target, built.title, args.mask, args.formula)
    except ValueError as error:
        if len(args.modules) == 1 and not glob.has_magic(args.modules[0]) and not args.json:
            raise
        reason = str(error)
        return {"place": place, "ok": False, "error": reason}, f"{place}: not tested: {reason.splitlines()[0]}"
    several = len(args.modules) > 1 or glob.has_magic(args.modules[0])
    faults = "; ".join(f"{line.test}: {line.reason}" for line in report.faults)
    text = f"{place}: {report.summary()}{f' ({faults})' if faults else ''}" if several else str(report)
    return {"place": place, **report.to_dict()}, text
