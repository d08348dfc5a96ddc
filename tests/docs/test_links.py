"""Links of README.md, CONTRIBUTING.md and docs/ lead somewhere, and the paths that they name are there."""

import re

import pages
import pytest
from pages import FILES, ROOT, name_of

from attnviz.__main__ import main

README = ROOT / "README.md"
document = pytest.mark.parametrize("path", FILES, ids=name_of)


def target(path, link):
    """The file and the anchor of a link; None for one to another site."""
    if re.match(r"[a-z]+:", link):
        return None
    file, _, anchor = link.partition("#")
    return ((path.parent / file).resolve() if file else path), anchor


@document
def test_links_lead_somewhere(path):
    for link in pages.links(path):
        if not (goal := target(path, link)):
            continue
        file, anchor = goal
        assert file.is_relative_to(ROOT) and file.exists(), f"{link} is not there"
        assert not anchor or anchor in pages.anchors(file), f"{link} has no such heading"


def test_every_document_is_reached_from_the_readme():
    reached, todo = set(), [README]
    while todo:
        path = todo.pop()
        if path in reached:
            continue
        reached.add(path)
        goals = [target(path, link) for link in pages.links(path)]
        todo += [goal[0] for goal in goals if goal and goal[0].suffix == ".md"]
    assert not set(FILES) - reached


def test_the_readme_is_short():
    assert len(README.read_text(encoding="utf-8")) <= 9_000  # letters; lines could be made longer


def test_contributing_is_one_page():
    """Beside the listing of a mechanism."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert len(re.sub("```python.*?```", "", text, flags=re.DOTALL)) <= 6_000  # letters


def test_the_readme_has_two_commands_for_a_shell():
    """.ci/run runs the second."""
    first, second = pages.blocks(README, "bash")
    assert "streamlit run dashboard/app.py" in first[1] and "-m pytest" in second[1]


@pytest.mark.parametrize(
    "path", sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/lessons/*.md")]), ids=name_of
)
def test_lines_of_prose_are_of_readable_length(path):
    lines = pages.prose(path).splitlines()
    whole = ("|", "[")  # a row of a table, and a link on a line of its own
    assert not [line for line in lines if len(line) > 120 and not line.lstrip().startswith(whole)]


@document
def test_files_and_folders_that_are_named_exist(path):
    """Paths of this project in backticks; those with capitals, such as checkpoints/PAIR, are patterns."""
    named = re.findall(r"`(?:python )?((?:attnviz|dashboard|tests|docs|checkpoints)/[a-z0-9_./]*)`", pages.prose(path))
    for name in named:
        assert (
            (ROOT / name).exists()
            or name.startswith(("checkpoints/en-es", "checkpoints/en-fr/luong-cosine"))
            or (name == "attnviz/gold/en-es.txt")
        ), f"{name} is not there"


@document
def test_names_in_a_file_exist(path):
    """`NAME` in `FILE`: the file has the name."""
    for name, file in re.findall(r"`(\w+)` in\s+`((?:attnviz|dashboard|tests)/[\w./]+\.py)`", pages.prose(path)):
        assert re.search(rf"\b{name}\b", (ROOT / file).read_text(encoding="utf-8")), f"{file} has no {name}"


@document
def test_commands_have_the_options_that_are_named(path, capsys):
    lines = [line for _, code, _ in pages.blocks(path, "text") for line in code.splitlines()]
    for line in lines:
        if not line.startswith("python -m attnviz "):
            continue
        command = line.split()[3]
        with pytest.raises(SystemExit) as stop:
            main([command, "--help"])
        assert stop.value.code == 0, line
        options = set(re.findall(r"--[a-z-]+", capsys.readouterr().out))
        assert set(re.findall(r"--[a-z-]+", line)) <= options, line


def test_each_promise_of_security_names_a_test_that_is_there():
    """Each point of “What is promised” but the one on proxies, which asks something of the operator."""
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    promised = text.partition("## What is promised")[2].partition("## What is not promised")[0]
    tests = {name: (file, test) for name, file, test in re.findall(r'^\[(\w+)\]: (\S+) "(\w+)"$', text, re.MULTILINE)}
    points = re.findall(r"^- (.*(?:\n  .*)*)", promised, re.MULTILINE)
    assert len(points) > 15
    for point in points:
        assert re.search(r"\]\[\w+\]", point) or point.startswith("Behind a proxy"), point
    assert {name for point in points for name in re.findall(r"\]\[(\w+)\]", point)} == set(tests)
    for file, test in tests.values():
        assert re.search(rf"^def {test}\(", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE), test
