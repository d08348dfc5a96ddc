"""The house keeps its shape: who may import whom, which file touches weights, and how long files and functions are."""

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# Every module of the library, the ground floor first; it may import those above it in this table, never below.
# Beside each: the packages that it may use, the standard library apart.
LIBRARY = {
    "attention": "torch",
    "dropout": "torch",
    "recurrent": "torch",
    "luong": "torch",
    "transformer": "torch",
    "classifier": "torch",
    "mechanisms": "",
    "models": "torch",
    "files": "",
    "lineage": "",
    "checks": "numpy",
    "trace": "numpy",
    "arrays": "numpy",
    "trace_files": "numpy safetensors",
    "styles": "tokenizers",
    "text": "tokenizers",
    "decode": "torch",
    "gold": "",
    "select": "numpy",
    "stats": "numpy pandas",
    "alignment": "numpy pandas",
    "patterns": "numpy",
    "heads": "numpy pandas",
    "rollout": "numpy pandas",
    "figures.theme": "plotly",
    "figures.labels": "",
    "table": "",
    "figures.wording": "numpy",
    "figures.marks": "numpy",
    "figures.hover": "numpy",
    "figures.maps": "numpy plotly",
    "figures.charts": "numpy pandas plotly",
    "figures.mosaic": "numpy",
    "figures.overview": "numpy pandas plotly",
    "figures.lines": "numpy plotly",
    "figures.depth": "numpy pandas plotly",
    "figures": "plotly",
    "export": "numpy pandas plotly",
    "page": "pandas plotly",
    "checkpoints": "torch safetensors",
    "projections": "torch",
    "trained": "torch",
    "translator": "torch",
    "pieces": "",
    "pretrained": "torch",
    "ablation": "pandas torch",
    "hf": "huggingface_hub numpy torch transformers",
    "corpora": "torch",
    "readable": "",
    "vocabularies": "tokenizers",
    "classify": "torch",
    "loading": "",
    "download": "pooch",
    "tallies": "torch",
    "metrics": "sacrebleu sacremoses",
    "evaluate_labels": "",
    "evaluate": "torch tqdm",
    "recipes": "",
    "devices": "torch",
    "run": "torch",
    "label_run": "torch",
    "teaching": "torch tqdm",
    "progress": "",
    "training": "torch tqdm",
    "studies.tables": "",
    "studies.pictures": "matplotlib",
    "studies.report": "",
    "studies.setting": "sacrebleu torch",
    "studies.mechanisms": "",
    "studies.length": "numpy",
    "studies.dropout": "",
    "studies.order": "numpy",
    "studies.curves": "",
    "studies": "",
    "train_command": "torch",
    "label_command": "",
    "commands": "torch",
    "__main__": "",
}
ORDER = list(LIBRARY)
DOORS = {"": {"arrays", "files", "loading", "trace_files"}}  # attnviz/__init__.py: what its functions open, when called
LINES, FUNCTION_LINES = 300, 50


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


def inner(path):
    """The modules of the library that a file imports."""
    found = set()
    for package, whole in imports(path):
        if package != "attnviz":
            continue
        parts = whole.split(".")[1:]
        while parts and ".".join(parts) not in LIBRARY:  # a name in a module, not a module
            parts.pop()
        if parts:
            found.add(".".join(parts))
    return found


def outer(path):
    return {package for package, _ in imports(path)} - set(sys.stdlib_module_names) - {"attnviz"}


library = pytest.mark.parametrize("path", sources("attnviz"), ids=name_of)
house = pytest.mark.parametrize("path", sources("attnviz") + sources("dashboard"), ids=lambda p: str(p.relative_to(ROOT)))


def test_the_table_is_the_tree():
    assert {name_of(path) for path in sources("attnviz")} == {"", *LIBRARY}


@library
def test_imports_go_down_only(path):
    name = name_of(path)
    allowed = DOORS[name] if name in DOORS else set(ORDER[: ORDER.index(name)])
    assert inner(path) <= allowed, f"{name} must not import {', '.join(sorted(inner(path) - allowed))}"


@library
def test_packages_are_those_of_the_table(path):
    allowed = set(LIBRARY.get(name_of(path), "").split())
    assert outer(path) <= allowed, f"{name_of(path)} must not import {', '.join(sorted(outer(path) - allowed))}"


def test_the_library_knows_no_page():
    for path in sources("attnviz"):
        assert not outer(path) & {"streamlit", "dashboard"}, path


@pytest.mark.parametrize("name", ["trace", "arrays", "select", "stats", "gold", "alignment", "patterns", "heads", "rollout", "export", "page", *(n for n in ORDER if n.startswith("figures"))])
def test_what_needs_no_model_reaches_no_torch(name):
    """Not by way of what it imports either: a notebook that draws a stored trace need not have torch."""
    seen, todo = set(), [name]
    while todo:
        here = todo.pop()
        seen.add(here)
        file = ROOT / "attnviz" / here.replace(".", "/")
        path = file / "__init__.py" if file.is_dir() else file.with_suffix(".py")
        assert not outer(path) & {"torch", "safetensors", "tokenizers"}, f"{name} reaches torch by way of {here}"
        todo += inner(path) - seen


def test_importing_the_package_is_light():
    tree = ast.parse((ROOT / "attnviz/__init__.py").read_text(encoding="utf-8"))
    at_top = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    assert [ast.unparse(node) for node in at_top] == ["from pathlib import Path"]


@house
def test_the_transformers_library_is_imported_when_it_is_asked_for(path):
    """It takes seconds, and most people do without."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [getattr(node, "module", None) or ""]
        assert not {name.split(".")[0] for name in names} & {"transformers", "huggingface_hub"}, node.lineno


@house
def test_only_checkpoints_reads_and_writes_weights(path):
    """Of models; trace_files.py those of traces."""
    text = path.read_text(encoding="utf-8")
    if path not in (ROOT / "attnviz/checkpoints.py", ROOT / "attnviz/trace_files.py"):
        assert "safetensors" not in {package for package, _ in imports(path)}
    for node in ast.walk(ast.parse(text)):
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
        assert not isinstance(node, ast.Assert), f"line {node.lineno}: errors name what was wanted; asserts live in tests"
        assert not (isinstance(node, ast.ExceptHandler) and node.type is None), f"line {node.lineno}: name the exception"


def test_the_cache_is_in_one_file():
    """dashboard/state.py says what sessions share."""
    for path in sources("dashboard"):
        uses = [node.attr for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
                if isinstance(node, ast.Attribute) and node.attr in {"cache_data", "cache_resource"}]
        assert path.name == "state.py" or not uses, path
