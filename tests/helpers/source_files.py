"""The project's own files, and what they import."""

import ast
import functools
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def sources(folder):
    return sorted(path for path in (ROOT / folder).rglob("*.py"))


@functools.cache
def nodes(path):
    """Every node of a file's syntax tree."""
    return tuple(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


@functools.cache
def imports(path):
    """(package, whole name) of everything a file imports anywhere in it; `from a import b` counts as a.b."""
    pairs = []
    for node in nodes(path):
        if isinstance(node, ast.Import):
            pairs += [(alias.name.split(".")[0], alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} line {node.lineno}: imports are whole, not relative"
            pairs += [(node.module.split(".")[0], f"{node.module}.{alias.name}") for alias in node.names]
    return pairs


LIBRARY, DASHBOARD, TESTS = sources("attnviz"), sources("dashboard"), sources("tests")


def below_root(path):
    return path.relative_to(ROOT).as_posix()
