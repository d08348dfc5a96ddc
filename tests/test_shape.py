"""How long files and functions are, where tests lie, and what the code may not hold."""

import ast
import re

from source_files import DASHBOARD, LIBRARY, ROOT, TESTS, below_root, nodes

LINES, FUNCTION_LINES = 400, 40
SURE_OF_AN_ELEMENT = re.compile(r"""(querySelector|getElementById)\((`[^`]*`|"[^"]*"|'[^']*')\)\.""")
EVERYTHING = {"asked", "each", "found", "got", "it", "kept", "known", "one", "said", "there", "thing", "things", "told"}
OF_THE_WHOLE = ("browser", "hostile")  # folders of tests that belong to no folder of the product


def test_files_and_functions_are_short():
    long = []
    for path in LIBRARY + DASHBOARD + TESTS:
        lines = len(path.read_text(encoding="utf-8").splitlines())
        long += [f"{below_root(path)}: {lines} lines"] * (lines > LINES)
        for node in nodes(path):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = node.end_lineno - node.lineno + 1
                long += [f"{below_root(path)}: {node.name} has {lines} lines"] * (lines > FUNCTION_LINES)
    assert long == []


def test_scripts_are_short():
    others = {".venv", "build", "vendor"}
    scripts = [path for path in ROOT.rglob("*.js") if not others & set(path.parts) and "min" not in path.name]
    lengths = {below_root(path): len(path.read_text(encoding="utf-8").splitlines()) for path in scripts}
    assert "dashboard/browser/scripts/bridge.js" in lengths
    assert {path: lines for path, lines in lengths.items() if lines > LINES} == {}


def test_no_assert_and_no_bare_except_in_the_code():
    """Errors name what was wanted, and the exception; asserts live in tests."""
    for path in LIBRARY + DASHBOARD:
        for node in nodes(path):
            bare = isinstance(node, ast.ExceptHandler) and node.type is None
            assert not isinstance(node, ast.Assert) and not bare, f"{below_root(path)} line {node.lineno}"


def test_values_have_names_that_say_what_they_are():
    """No name that any value could have."""
    for path in LIBRARY + DASHBOARD + TESTS:
        for node in nodes(path):
            names = {getattr(node, field, None) for field in ("id", "arg", "attr", "name", "asname")}
            assert not names & EVERYTHING, f"{below_root(path)} line {node.lineno}: say what it is"


def test_the_caches_are_in_files_of_that_name():
    """They say what sessions share."""
    for path in DASHBOARD:
        uses = {node.attr for node in nodes(path) if isinstance(node, ast.Attribute)}
        assert path.name == "caches.py" or not uses & {"cache_data", "cache_resource"}, path


def test_tests_lie_where_the_thing_they_test_lies():
    """tests/figures/inside tests attnviz/figures/inside, tests/dashboard/heads tests dashboard/heads."""
    folders = {path.parent.relative_to(ROOT / "tests") for path in TESTS if path.name.startswith("test_")}
    astray = []
    for folder in folders:
        places = [ROOT / folder, ROOT / "attnviz" / folder, (ROOT / "attnviz" / folder).with_suffix(".py")]
        if folder.parts and folder.parts[0] not in OF_THE_WHOLE and not any(place.exists() for place in places):
            astray.append(folder.as_posix())
    assert astray == []


def test_what_a_test_waits_for_may_not_be_there_yet():
    """Playwright does not ask again when the question itself fails: `querySelector(…)?.`, never `querySelector(…).`."""
    hasty = []
    for path in TESTS:
        questions = [node.args[0] for node in nodes(path) if getattr(node, "func", None) and _waits(node)]
        words = {name.id for question in questions for name in ast.walk(question) if isinstance(name, ast.Name)}
        questions += [node.value for node in nodes(path) if isinstance(node, ast.Assign) and _name(node) in words]
        texts = [part.value for question in questions for part in ast.walk(question) if isinstance(part, ast.Constant)]
        hasty += [f"{below_root(path)}: {text}" for text in texts if SURE_OF_AN_ELEMENT.search(str(text))]
    assert hasty == []


def _waits(call: ast.Call) -> bool:
    return getattr(call.func, "attr", None) == "wait_for_function"


def _name(assignment: ast.Assign) -> str | None:
    return getattr(assignment.targets[0], "id", None)
