"""The house keeps its shape: who may import whom, which file touches weights, and how long files and functions are."""

import ast
import graphlib
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# The packages and the modules at the root of the library, the ground floor first. Each may import those above it in
# this list, never those below. Beside each: the packages from elsewhere that it may use, the standard library apart.
LAYERS = {
    "storage": "",
    "attention": "torch",
    "mechanisms": "",
    "trace": "numpy safetensors",
    "gold": "",
    "function_words": "",
    "select": "numpy",
    "stats": "numpy pandas",
    "alignment": "numpy pandas",
    "patterns": "numpy",
    "heads": "numpy pandas",
    "rollout": "numpy pandas",
    "figures": "numpy pandas plotly",
    "reading": "numpy",
    "export": "matplotlib numpy pandas plotly",
    "data": "pooch tokenizers torch",
    "networks": "torch",
    "models": "huggingface_hub numpy pandas safetensors tokenizers torch transformers",
    "loading": "",
    "corpus": "numpy pyarrow ray torch",
    "ablation": "pandas torch",
    "inside": "numpy pandas torch",
    "intervene": "numpy torch",
    "faithfulness": "captum numpy pandas torch",
    "evaluation": "sacrebleu sacremoses torch tqdm",
    "training": "tokenizers torch tqdm",
    "studies": "matplotlib numpy pandas sacrebleu torch tqdm",
    "cli": "torch tqdm",
    "__main__": "",
}
ORDER = list(LAYERS)
# attnviz/__init__.py: what its functions open, when they are called.
DOORS = {"loading", "models.checkpoint_files", "trace.arrays", "trace.files"}
# Packages and modules that reach no torch, so that they are imported at once.
LIGHT = "storage trace gold function_words select stats alignment patterns heads rollout figures reading export".split()
LIGHT_MODULES = ("data.limits", "data.readers", "data.tasks", "models.names", "models.checkpoint_files")
WEIGHTS = {"attnviz/models/checkpoints.py", "attnviz/trace/files.py"}  # of models, and of traces
LINES, FUNCTION_LINES, FILES = 250, 40, 11
MORE_FILES = {"attnviz/training": 12}  # until the code that trains on everyday language has its own folder


def sources(folder):
    return sorted(path for path in (ROOT / folder).rglob("*.py"))


def name_of(path):
    """attnviz/figures/maps.py -> figures.maps; attnviz/__init__.py -> ''."""
    parts = path.relative_to(ROOT / "attnviz").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path):
    """(package, whole name) of everything a file imports anywhere in it; `from a import b` counts as a.b."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name.split(".")[0], alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} line {node.lineno}: imports are whole, not relative"
            yield from ((node.module.split(".")[0], f"{node.module}.{alias.name}") for alias in node.names)


MODULES = {name_of(path) for path in sources("attnviz")}


def inner(path):
    """The modules of the library that a file imports."""
    found = set()
    for package, whole in imports(path):
        if package != "attnviz":
            continue
        parts = whole.split(".")[1:]
        while ".".join(parts) not in MODULES:  # a name in a module, not a module
            parts.pop()
        found.add(".".join(parts))
    return found - {"", name_of(path)}


def layer(name):
    """figures.maps -> figures."""
    return name.split(".")[0]


def outer(path):
    return {package for package, _ in imports(path)} - set(sys.stdlib_module_names) - {"attnviz"}


library = pytest.mark.parametrize("path", sources("attnviz"), ids=name_of)
house = pytest.mark.parametrize(
    "path", sources("attnviz") + sources("dashboard"), ids=lambda p: str(p.relative_to(ROOT))
)


def test_the_list_is_the_tree():
    assert {layer(name) for name in MODULES} == {"", *LAYERS}


def test_the_readme_shows_the_list():
    library = (ROOT / "README.md").read_text(encoding="utf-8").split("\nattnviz/ ")[1].split("\ndashboard/ ")[0]
    assert re.findall(r"^  (\w+) ", library, re.MULTILINE) == ORDER


@library
def test_imports_go_down_only(path):
    name = name_of(path)
    if not name:
        assert inner(path) <= DOORS
        return
    allowed = set(ORDER[: ORDER.index(layer(name)) + 1])
    upward = {other for other in inner(path) if layer(other) not in allowed}
    assert not upward, f"{name} must not import {', '.join(sorted(upward))}"


def test_no_circle_within_a_package():
    graph = {name_of(path): inner(path) for path in sources("attnviz")}
    list(graphlib.TopologicalSorter(graph).static_order())  # raises CycleError, which names the circle


def test_no_circle_among_the_folders_of_the_dashboard():
    """server/ is left out: it starts the first page, and the pages link to its files."""
    graph = {path.relative_to(ROOT).parts[1]: set() for path in sources("dashboard")}
    for path in sources("dashboard"):
        folders = {whole.split(".")[1] for package, whole in imports(path) if package == "dashboard"}
        graph[path.relative_to(ROOT).parts[1]] |= folders - {path.relative_to(ROOT).parts[1], "server"}
    list(graphlib.TopologicalSorter(graph).static_order())


@library
def test_packages_are_those_of_the_list(path):
    allowed = set(LAYERS.get(layer(name_of(path)), "").split())
    assert outer(path) <= allowed, f"{name_of(path)} must not import {', '.join(sorted(outer(path) - allowed))}"


def test_the_library_knows_no_page():
    for path in sources("attnviz"):
        assert not outer(path) & {"streamlit", "dashboard"}, path


@pytest.mark.parametrize(
    "name", sorted(name for name in MODULES if layer(name) in LIGHT or name.startswith(LIGHT_MODULES))
)
def test_what_needs_no_model_reaches_no_torch(name):
    """Not by way of what it imports either: a notebook that draws a stored trace need not have torch."""
    seen, todo = set(), [name]
    while todo:
        here = todo.pop()
        seen.add(here)
        file = ROOT / "attnviz" / here.replace(".", "/")
        path = file / "__init__.py" if file.is_dir() else file.with_suffix(".py")
        assert not outer(path) & {"torch", "tokenizers"}, f"{name} reaches torch by way of {here}"
        todo += inner(path) - seen


def test_importing_the_package_is_light():
    tree = ast.parse((ROOT / "attnviz/__init__.py").read_text(encoding="utf-8"))
    at_top = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    assert [ast.unparse(node) for node in at_top] == ["from pathlib import Path"]


@house
def test_the_transformers_library_is_imported_when_it_is_asked_for(path):
    """It takes seconds, and most people do without."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        names = (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [getattr(node, "module", None) or ""]
        )
        assert not {name.split(".")[0] for name in names} & {"transformers", "huggingface_hub"}, node.lineno


@house
def test_only_checkpoints_reads_and_writes_weights(path):
    """Of models; trace/files.py those of traces."""
    if path.relative_to(ROOT).as_posix() not in WEIGHTS:
        assert "safetensors" not in {package for package, _ in imports(path)}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            assert ast.unparse(node.func) not in {"torch.load", "torch.save", "eval", "exec"}, node.lineno
    assert not {package for package, _ in imports(path)} & {"pickle", "cPickle", "dill", "joblib", "shelve", "marshal"}


@house
def test_files_and_functions_are_short(path):
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= LINES
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = node.end_lineno - node.lineno + 1
            assert length <= FUNCTION_LINES, f"{node.name} has {length} lines"


@house
def test_no_assert_and_no_bare_except_in_the_code(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        assert not isinstance(node, ast.Assert), (
            f"line {node.lineno}: errors name what was wanted; asserts live in tests"
        )
        assert not (isinstance(node, ast.ExceptHandler) and node.type is None), (
            f"line {node.lineno}: name the exception"
        )


@house
def test_values_have_names_that_say_what_they_are(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = {getattr(node, "id", None), getattr(node, "arg", None), getattr(node, "attr", None)}
        assert not names & {"found", "known", "one"}, f"line {node.lineno}: say what it is"


def test_the_caches_are_in_files_of_that_name():
    """They say what sessions share."""
    for path in sources("dashboard"):
        uses = [
            node.attr
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Attribute) and node.attr in {"cache_data", "cache_resource"}
        ]
        assert path.name == "caches.py" or not uses, path


@pytest.mark.parametrize(
    "folder",
    sorted({path.parent for path in sources("attnviz") + sources("dashboard")}),
    ids=lambda p: str(p.relative_to(ROOT)),
)
def test_folders_are_small(folder):
    most = MORE_FILES.get(folder.relative_to(ROOT).as_posix(), FILES)
    assert len(list(folder.glob("*.py"))) <= most, f"{folder} holds too many files to find one's way in"
