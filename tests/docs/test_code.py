"""Every block of Python in README.md and docs/ runs alone, with the shipped models, and shows something; the names and
calls in the prose lead somewhere; the examples in docstrings run."""

import ast
import contextlib
import doctest
import importlib
import io
import re

import made
import pages
import prose_names
import pytest
from pages import FILES, name_of
from serving import ROOT

from attnviz.figures import Chart

pytestmark = pytest.mark.xdist_group("hf")  # one process imports the library
# Names on the Hugging Face hub and folders of the reader, and the small model that stands in for each.
STAND_INS = {"hf:openai-community/gpt2": "gpt2", "hf:./my-bart": "bart"}
NOT_RUN = re.compile(r"<!-- not run: (.+) -->")
BLOCKS = {
    path: [(line, code, before) for line, code, before in pages.blocks(path, "python") if not NOT_RUN.search(before)]
    for path in FILES
    if path.name != "gallery.md"  # test_site.py runs its blocks
}

EXAMPLES = sorted(
    path for path in (ROOT / "attnviz").rglob("*.py") if re.search(r"^ *>>> ", path.read_text("utf-8"), re.M)
)


class Examples(doctest.OutputChecker):
    """An example without a result shows how to call, and may give anything."""

    def check_output(self, want, output, optionflags):
        return not want or super().check_output(want, output, optionflags)


@pytest.fixture(scope="module")
def run(folder, tmp_path_factory):
    """run(code) -> the names that it makes, what it prints, and the figures that it shows. A block runs once."""
    done = {}

    def of(code: str) -> tuple[dict, str, list[Chart]]:
        if code in done:
            return done[code]
        names, printed, shown = {"__name__": "block"}, io.StringIO(), []
        given = code
        for name, family in STAND_INS.items():
            if name in code:
                given = given.replace(name, f"hf:{folder(family)}")
        with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(printed):
            patch.setattr(Chart, "show", lambda figure: shown.append(figure))  # the real one opens a browser
            patch.chdir(tmp_path_factory.mktemp("block"))
            exec(compile(given, "block", "exec"), names)
        return done.setdefault(code, (names, printed.getvalue(), shown))

    return of


def test_there_are_blocks():
    assert sum(map(len, BLOCKS.values())) >= 8


@pytest.mark.parametrize(
    "code", [pytest.param(code, id=f"{name_of(path)}:{line}") for path in BLOCKS for line, code, _ in BLOCKS[path]]
)
def test_blocks_run_alone_and_show_something(code, run):
    """A block with `<!-- not run: reason -->` on the line before is an example that is not run."""
    _, printed, shown = run(code)
    assert printed.strip() or shown
    assert len(shown) == code.count(".show()") and all(figure.data for figure in shown)


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_calls_in_the_prose_can_be_made(path, run):
    """`score_bars(opened, temperature=2)`: a block of the document has the name, or a module that a block imports or
    the prose names in full; or a file that the prose names defines such a function."""
    prose = pages.prose(path)
    scopes = [run(code)[0] for _, code, _ in BLOCKS.get(path, ())]
    inside = [vars(module) for module in prose_names.modules(prose)]
    inside += [vars(value) for scope in scopes for value in scope.values() if prose_names.of_the_library(value)]
    for call in prose_names.calls(prose):
        name = ast.unparse(call.func)
        if not any(prose_names.takes(value, call) for value in prose_names.resolve(name, scopes + inside)):
            functions = prose_names.defined(prose).get(name, [])
            assert any(prose_names.describes(call, arguments) for arguments in functions), ast.unparse(call)


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_names_of_modules_in_the_prose_are_there(path):
    """`stats.summary`, `attnviz.trace.Trace.from_json`."""
    for name in prose_names.dotted(pages.prose(path)):
        assert prose_names.leads_somewhere(name), name


@pytest.mark.parametrize("name", sorted(made.MODULES))
def test_every_documented_name_has_an_example(name):
    module = importlib.import_module(name)
    values = [getattr(module, member) for member in made.public(module)]
    called = [value for value in values if callable(value)]
    assert [value.__name__ for value in called if ">>> " not in str(value.__doc__)] == [] != called


@pytest.fixture(scope="module")
def names(folder):
    """What examples begin with."""
    names = {name.split(".")[-1]: importlib.import_module(name) for name in (*made.MODULES, "attnviz.moments")}
    exec(made.BEGIN.replace("hf:openai-community/gpt2", f"hf:{folder('gpt2')}"), names)
    return names


@pytest.mark.parametrize("path", EXAMPLES, ids=name_of)
def test_examples_in_docstrings_run(path, names, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    parts = path.relative_to(ROOT).with_suffix("").parts
    module = importlib.import_module(".".join(parts).removesuffix(".__init__"))
    runner = doctest.DocTestRunner(Examples(), optionflags=doctest.NORMALIZE_WHITESPACE)
    own = {member: getattr(module, member) for member in made.public(module)}
    for example in doctest.DocTestFinder().find(module, globs=own | names):
        runner.run(example)
    written = len(re.findall(r"^ *>>> ", path.read_text("utf-8"), re.M))
    assert runner.tries == written and not runner.failures, capsys.readouterr().out
