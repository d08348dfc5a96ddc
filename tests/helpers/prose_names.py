"""Names in backticks in the prose of a document: do they lead to something of the product, with these arguments?"""

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import source_files

FILE = re.compile(
    r"\.(md|py|js|json|jsonl|safetensors|html|tsv|csv|txt|gz|parquet|toml|conf|yaml|zip|pdf|svg|png|ttf)$"
)
NAME = re.compile(r"[A-Za-z_]\w*(\.\w+)*")


def quoted(prose: str) -> list[str]:
    return [" ".join(text.split()) for text in re.findall(r"(?<!`)`([^`]+)`(?!`)", prose)]


def calls(prose: str) -> list[ast.Call]:
    """What looks like a call, `score_bars(opened, temperature=2)` or `show() -> dict`; "…" may stand for a value."""
    texts = [text for text in quoted(prose) if re.match(NAME.pattern + r"\(", text)]
    trees = [ast.parse(text.partition(" -> ")[0].replace("…", "..."), mode="eval").body for text in texts]
    return [tree for tree in trees if isinstance(tree, ast.Call)]


def dotted(prose: str) -> list[str]:
    """What looks like a name in a module, `stats.summary`."""
    return [text for text in quoted(prose) if "." in text and NAME.fullmatch(text) and not FILE.search(text)]


def modules(prose: str) -> list[ModuleType]:
    """The modules of the library that are named in full."""
    return [importlib.import_module(name) for name in dotted(prose) if name.startswith("attnviz.") and is_module(name)]


def is_module(name: str) -> bool:
    path = source_files.ROOT.joinpath(*name.split("."))
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def of_the_library(value: object) -> bool:
    return isinstance(value, ModuleType) and value.__name__.startswith("attnviz.")


def leads_somewhere(name: str) -> bool:
    """False for `stats.nothing`. What does not begin with a module of the library is another kind of name."""
    whole = name if name.startswith("attnviz.") else f"attnviz.{name}"
    parts = whole.split(".")
    if not is_module(".".join(parts[:2])) and not name.startswith("attnviz."):
        return True
    try:
        value_of(whole)
    except AttributeError:
        return False
    return True


def value_of(name: str) -> object:
    """What `attnviz.trace.Trace.from_json` names. Raises AttributeError where there is nothing."""
    parts = name.split(".")
    count = max(count for count in range(1, len(parts) + 1) if is_module(".".join(parts[:count])))
    value = importlib.import_module(".".join(parts[:count]))
    for part in parts[count:]:
        value = getattr(value, part)
    return value


def attribute(holder: object, name: str) -> object:
    """holder.name as a reader has it who imported nothing else: a module of a package counts only where the package
    imports it itself. Raises AttributeError."""
    value = getattr(holder, name)
    if isinstance(value, ModuleType) and isinstance(holder, ModuleType):
        own = {whole for _, whole in source_files.imports(Path(holder.__file__))}
        if not any(whole == value.__name__ or whole.startswith(f"{value.__name__}.") for whole in own):
            raise AttributeError(f"{holder.__name__} does not import {name}: name the module in full")
    return value


def resolve(name: str, scopes: list[dict]) -> Iterator[object]:
    """What a name can be: the value of a scope or, where it begins so, of a module of the library."""
    if name.startswith("attnviz.") and leads_somewhere(name):
        yield value_of(name)  # named in full
        return
    first, *rest = name.split(".")
    roots = [scope[first] for scope in scopes if first in scope]
    if rest and not roots and is_module(f"attnviz.{first}"):
        roots = [importlib.import_module(f"attnviz.{first}")]
    for value in roots:
        for part in rest:
            value = attribute(value, part)
        yield value


def takes(function: object, call: ast.Call) -> bool:
    """Can it be called so?"""
    try:
        inspect.signature(function).bind(*call.args, **{word.arg: word.value for word in call.keywords})
    except (TypeError, ValueError):
        return False
    return True


def defined(prose: str) -> dict[str, list[list[str]]]:
    """Functions in the files and folders that a document names -> the arguments of each, without self. Capitals, as in
    `dashboard/NAME`, stand for any name."""
    texts = [text for text in quoted(prose) if re.match(r"(attnviz|dashboard)/[\w/.]+$", text)]
    paths = {path for text in texts for path in source_files.ROOT.glob(re.sub(r"\b[A-Z]+\b", "*", text))}
    files = {path for path in paths if path.suffix == ".py"} | {file for path in paths for file in path.glob("*.py")}
    arguments = {}
    for node in (node for file in files for node in source_files.nodes(file)):
        if isinstance(node, ast.FunctionDef):
            names = [argument.arg for argument in node.args.args if argument.arg != "self"]
            arguments.setdefault(node.name, []).append(names)
    return arguments


def describes(call: ast.Call, arguments: list[str]) -> bool:
    """Is it a call of a function with these arguments, by their names where it gives names?"""
    same = [not isinstance(given, ast.Name) or given.id == name for given, name in zip(call.args, arguments)]
    return len(call.args) <= len(arguments) and all(same) and {word.arg for word in call.keywords} <= set(arguments)
