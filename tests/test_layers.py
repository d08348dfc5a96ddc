"""The house keeps its shape: who may import whom, and which file touches weights. Each rule names everything that
breaks it."""

import ast
import functools
import graphlib
import re
import sys

from source_files import DASHBOARD, LIBRARY, ROOT, below_root, imports, nodes, sources

# The packages and the modules at the root of the library, the ground floor first. Each may import those above it in
# this list, never those below. Beside each: the packages from elsewhere that it may use, the standard library apart.
LAYERS = {
    "arguments": "numpy",
    "progress": "tqdm",
    "storage": "",
    "lazy_pandas": "pandas",
    "attention": "torch",
    "python_file": "",
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
    "syntax": "conllu numpy pandas spacy",
    "across": "numpy pandas",
    "plotlyjs": "plotly",
    "figures": "IPython numpy pandas plotly",
    "reading": "numpy",
    "guess": "numpy",
    "export": "IPython PIL anywidget fontTools matplotlib numpy pandas plotly traitlets",
    "data": "babel pooch pyarrow tokenizers torch sentencex",
    "networks": "numpy torch",
    "models": "huggingface_hub numpy pandas platformdirs pooch requests safetensors tokenizers torch transformers",
    "moments": "numpy torch",
    "loading": "",
    "corpus": "numpy pyarrow ray torch",
    "service": "ray torch",
    "confidence": "numpy sacrebleu",
    "ablation": "pandas torch",
    "inside": "numpy pandas torch",
    "intervene": "numpy torch",
    "faithfulness": "captum numpy pandas torch",
    "evaluation": "sacrebleu sacremoses torch tqdm",
    "training": "numpy tokenizers torch tqdm",
    "own": "torch",
    "studies": "matplotlib numpy pandas sacrebleu torch tqdm",
    "cli": "shtab torch tqdm",
    "__main__": "",
}
ORDER = list(LAYERS)
# attnviz/__init__.py: what its functions open, when they are called.
DOORS = {
    "export.widget",
    "loading",
    "models.checkpoint_files",
    "models.model",
    "trace",
    "trace.arrays",
    "trace.files",
    "trace.generated",
}
# Packages and modules that reach no torch, so that they are imported at once.
LIGHT = (
    "arguments storage lazy_pandas python_file trace gold function_words select stats alignment patterns"
    " heads rollout syntax across plotlyjs figures reading guess export"
).split()
LIGHT_MODULES = (
    "data.readers",
    "data.records",
    "data.task",
    "data.language_pairs",
    "models.names",
    "models.checkpoint_files",
)
LIGHT_MODULES += ("service.request", "service.embedded", "service.connection")
# of models, of traces, and of arrays from elsewhere
WEIGHTS = {"attnviz/models/checkpoints.py", "attnviz/trace/files.py", "attnviz/trace/containers.py"}


def name_of(path):
    """attnviz/figures/maps.py -> figures.maps; attnviz/__init__.py -> ''."""
    parts = path.relative_to(ROOT / "attnviz").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in sources("attnviz")}  # files alone: an empty folder is no module


@functools.cache
def inner(path):
    """The modules of the library that a file imports."""
    imported = set()
    for package, whole in imports(path):
        if package != "attnviz":
            continue
        parts = whole.split(".")[1:]
        while ".".join(parts) not in MODULES:  # a name in a module, not a module
            parts.pop()
        imported.add(".".join(parts))
    return imported - {"", name_of(path)}


def layer(name):
    """figures.maps -> figures."""
    return name.split(".")[0]


def outer(path):
    return {package for package, _ in imports(path)} - set(sys.stdlib_module_names) - {"attnviz"}


def test_the_list_is_the_tree():
    assert {layer(name) for name in MODULES} == {"", *LAYERS}


def test_the_readme_shows_the_list():
    library = (ROOT / "README.md").read_text(encoding="utf-8").split("\nattnviz/ ")[1].split("\ndashboard/ ")[0]
    assert re.findall(r"^  (\w+) ", library, re.MULTILINE) == ORDER


def test_imports_go_down_only():
    upward = []
    for path in LIBRARY:
        name = name_of(path)
        if not name:
            assert inner(path) <= DOORS
            continue
        allowed = set(ORDER[: ORDER.index(layer(name)) + 1])
        upward += [f"{name} must not import {other}" for other in inner(path) if layer(other) not in allowed]
    assert upward == []


def test_no_circle_within_a_package():
    graph = {name_of(path): inner(path) for path in LIBRARY}
    list(graphlib.TopologicalSorter(graph).static_order())  # raises CycleError, which names the circle


def test_no_circle_among_the_folders_of_the_dashboard():
    """server/ is left out: it starts the first page, and the pages link to its files."""
    graph = {path.relative_to(ROOT).parts[1]: set() for path in DASHBOARD}
    for path in DASHBOARD:
        folders = {whole.split(".")[1] for package, whole in imports(path) if package == "dashboard"}
        graph[path.relative_to(ROOT).parts[1]] |= folders - {path.relative_to(ROOT).parts[1], "server"}
    list(graphlib.TopologicalSorter(graph).static_order())


def test_packages_are_those_of_the_list():
    others = {name_of(path): outer(path) - set(LAYERS.get(layer(name_of(path)), "").split()) for path in LIBRARY}
    assert {name: packages for name, packages in others.items() if packages} == {}


def test_the_library_knows_no_page():
    for path in LIBRARY:
        assert not outer(path) & {"streamlit", "dashboard"}, path


def test_what_pages_show_is_worked_out_without_streamlit():
    """A scene, the words of the controls and pieces of HTML are values; views and sidebars show them."""
    for path in DASHBOARD:
        if path.name == "scene.py" or path.parent.name in ("choices", "markup"):
            assert "streamlit" not in outer(path), path


def reached(name):
    """A module, all that it imports, and what they import."""
    seen, todo = set(), [name]
    while todo:
        here = todo.pop()
        if here not in seen:
            seen.add(here)
            todo += inner(MODULES[here])
    return seen


def test_what_needs_no_model_reaches_no_torch():
    """Not by way of what it imports either: a notebook that draws a stored trace need not have torch."""
    light = {name for name in MODULES if layer(name) in LIGHT or name.startswith(LIGHT_MODULES)}
    heavy = {name for name, path in MODULES.items() if outer(path) & {"torch", "tokenizers"}}
    assert {name: ways for name in sorted(light) if (ways := reached(name) & heavy)} == {}


def test_the_name_of_a_model_is_split_in_one_place():
    """models/names.py. The card splits the names of data files, which begin with a folder."""
    splits = {"split", "rsplit", "partition", "rpartition"}
    splitting = set()
    for path in LIBRARY + DASHBOARD:
        for node in nodes(path):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in splits:
                if [getattr(argument, "value", None) for argument in node.args[:1]] == ["/"]:
                    splitting.add(below_root(path))
    assert splitting == {"attnviz/models/names.py", "dashboard/markup/card.py"}


def test_the_models_make_no_log_probabilities_themselves():
    taking = {
        below_root(path)
        for path in LIBRARY
        if below_root(path).startswith("attnviz/models/")
        and any(getattr(node, "attr", "") == "log_softmax" for node in nodes(path))
    }
    assert taking == {"attnviz/models/probabilities.py"}


def test_importing_the_package_is_light():
    tree = ast.parse((ROOT / "attnviz/__init__.py").read_text(encoding="utf-8"))
    at_top = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    light = ["importlib", "importlib.util", "pathlib", "typing"]
    assert [node.module for node in at_top if isinstance(node, ast.ImportFrom)] == light and len(at_top) == len(light)


def test_the_transformers_library_is_imported_when_it_is_asked_for():
    """It takes seconds, and most people do without."""
    for path in LIBRARY + DASHBOARD:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            packages = {name.split(".")[0] for name in [*names, getattr(node, "module", None) or ""]}
            assert not packages & {"transformers", "huggingface_hub"}, f"{below_root(path)} line {node.lineno}"


def test_only_checkpoints_reads_and_writes_weights():
    """Of models; trace/files.py those of traces."""
    assert {below_root(path) for path in LIBRARY + DASHBOARD if "safetensors" in outer(path)} <= WEIGHTS


def test_nothing_runs_what_a_file_says():
    for path in LIBRARY + DASHBOARD:
        calls = {ast.unparse(node.func) for node in nodes(path) if isinstance(node, ast.Call)}
        assert not calls & {"torch.load", "torch.save", "eval", "exec"}, path
        packages = {package for package, _ in imports(path)}
        assert not packages & {"pickle", "cPickle", "dill", "joblib", "shelve", "marshal"}, path


def test_texts_of_the_page_are_escaped_for_html_in_one_place():
    """`escape`, which also shows the characters that would turn the words after them round."""
    calling = [
        below_root(path)
        for path in DASHBOARD
        for node in nodes(path)
        if isinstance(node, ast.Attribute) and ast.unparse(node) == "html.escape"
    ]
    assert calling == ["dashboard/markup/text.py"]
