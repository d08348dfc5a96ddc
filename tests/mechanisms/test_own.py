"""A mechanism of one's own: the file in CONTRIBUTING.md, and where such a file may be named."""

import ast
import json
import os
import re
import subprocess
import sys

import compare_app
import forked
import numpy as np
import pytest
import synthetic
import torch
from source_files import DASHBOARD, LIBRARY, ROOT, below_root, nodes

import attnviz
from attnviz import figures, inside, mechanisms, select
from attnviz.__main__ import main
from attnviz.attention import Dot, ScaledDot
from attnviz.data.tasks import TASKS
from attnviz.figures import theme
from attnviz.mechanisms import ALL, Config, Mechanism
from attnviz.models import checkpoint_files
from attnviz.networks.registry import build, options
from attnviz.trace import uploads
from dashboard.choices import settings

NAME = "reverse/luong-cosine"
SMALL = ("--epochs", "1", "--threads", "1", "--set", "width=16", "--set", "embedding_width=16")


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """cosine.py, as CONTRIBUTING.md shows it."""
    [code] = re.findall(r"```python\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.DOTALL)
    path = tmp_path_factory.mktemp("own") / "cosine.py"
    path.write_text(code, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def trained(file):
    """A folder with the checkpoint of a short training on some letters of reverse, without its thousand tests."""
    out, letters = file.parent / "checkpoints", file.parent / "letters.tsv"
    letters.write_text("".join(f"{source}\t{target}\n" for source, target in TASKS["reverse"].read(None).train[:270]))
    own = ("--tsv", str(letters), "--style", "symbols", "--val-size", "20")
    command = ("train", "--pair", "reverse", "--mechanism", f"{file}:COSINE", "--out", str(out), *own, *SMALL)
    try:
        assert main([*command]) == 0
        yield out
    finally:
        mechanisms.remove("luong-cosine")


def test_the_file_of_the_guide_is_trained_traced_opened_and_drawn(trained):
    model = attnviz.load(NAME, trained)
    assert model.title == "Luong · cosine" and "--mechanism cosine.py:COSINE" in model.card["command"]
    trace = model.trace("a b c d")
    opened = inside.step(model, trace, 1)
    assert opened.asks == "after"
    cosines = opened.values @ opened.query / np.linalg.norm(opened.values, axis=1) / np.linalg.norm(opened.query)
    np.testing.assert_allclose(opened.scores, 10 * cosines, atol=1e-4)  # in evaluation the values are what is scored
    np.testing.assert_allclose(opened.parts.terms.sum(1), opened.scores, atol=1e-4)
    assert ALL["luong-cosine"].terms in inside.formula(opened, 0)
    looks = theme.lines([*ALL])
    own = looks["luong-cosine"]
    assert list(looks.values()).count(own) == 1 and figures.step_bars(select.select(trace), 0).data
    four = theme.lines(["luong-cosine", "bahdanau", "luong-general", "transformer"])
    assert len({look.color for look in four.values()}) == 4


def test_whoever_starts_the_program_names_the_file(trained, file):
    """In another process, as that of the models is."""
    with pytest.MonkeyPatch.context() as patch, pytest.raises(ValueError, match="unknown mechanism 'luong-cosine'"):
        for table in (mechanisms.MECHANISMS, ALL):
            patch.delitem(table, "luong-cosine")
        attnviz.load(NAME, trained)
    command = ("attnviz", "trace", "--model", NAME, "--root", str(trained), "a b c")
    ran = forked.run(*command, **{mechanisms.SETTING: f"{file}:COSINE"})
    assert ran.returncode == 0, ran.stderr


def test_a_name_that_a_file_has_not_ends_a_command_with_a_sentence(file, monkeypatch, capsys):
    monkeypatch.setattr(mechanisms, "_problems", [])
    monkeypatch.setenv(mechanisms.SETTING, f"{file}:SINE")
    mechanisms._read_own()  # as the import does
    assert main(["models"]) == 2
    assert f"{file} has no mechanism SINE; its mechanisms are COSINE" in capsys.readouterr().err


@pytest.mark.parametrize(
    "text, message",
    [
        ("cosine", "a mechanism of your own must be FILE.py:NAME; got 'cosine'"),
        ("nowhere.py:COSINE", "there is no Python file nowhere.py; name it as FILE.py:NAME"),
        ("{broken}:COSINE", "{broken} cannot be imported: line 1, ZeroDivisionError: division by zero"),
        (
            "{ending}:COSINE",
            "{ending} ends the program when it is imported (3): "
            'put what is to run as a program below `if __name__ == "__main__":`',
        ),
        ("{empty}:COSINE", "{empty} has no mechanism COSINE; it defines no Mechanism"),
        (
            "{module}:Attention",
            "{module} has no mechanism Attention; it defines no Mechanism; `python -m attnviz try {module}:Attention` "
            "trains a module, and own.wrap makes a mechanism of it",
        ),
    ],
)
def test_files_that_are_refused(text, message, tmp_path):
    contents = {"broken": "1 / 0", "ending": "raise SystemExit(3)", "empty": "", "module": "class Attention: pass"}
    files = {name: tmp_path / f"{name}.py" for name in contents}
    for name, content in contents.items():
        files[name].write_text(content)
    with pytest.raises(ValueError) as caught:
        mechanisms.read(text.format(**files))
    assert str(caught.value) == message.format(**files)


@pytest.mark.parametrize(
    "line, message",
    [
        ("raise SystemExit('x\\n' * 5000)", "ends the program when it is imported (x x x"),
        ("raise type('E', (Exception,), {'__str__': lambda self: 1})()", "cannot be imported: line 1, E"),
    ],
)
def test_what_a_file_raises_is_said_in_one_line(line, message, tmp_path):
    (tmp_path / "own.py").write_text(line)
    with pytest.raises(ValueError) as caught:
        mechanisms.read(f"{tmp_path / 'own.py'}:COSINE")
    assert message in str(caught.value) and len(str(caught.value)) < 700 and "\n" not in str(caught.value)


def test_a_server_does_not_start_with_a_file_that_cannot_be_read(monkeypatch):
    monkeypatch.setattr(
        mechanisms, "_problems", ["ATTNVIZ_MECHANISMS: there is no Python file x.py; name it as FILE.py:NAME"]
    )
    with pytest.raises(ValueError, match="^ATTNVIZ_MECHANISMS: there is no Python file x.py; name it as FILE.py:NAME$"):
        settings.check()


def test_an_installed_package_brings_its_own(tmp_path):
    (tmp_path / "cosines.py").write_text(
        "from attnviz.mechanisms import Mechanism\n"
        "OWN = Mechanism('own-dot', 'Own · dot', asks='before', score='attnviz.attention:Dot', summed=True)\n"
    )
    (tmp_path / "cosines-1.dist-info").mkdir()
    (tmp_path / "cosines-1.dist-info" / "METADATA").write_text("Name: cosines\nVersion: 1\n")
    (tmp_path / "cosines-1.dist-info" / "entry_points.txt").write_text("[attnviz.mechanisms]\nown = cosines:OWN\n")
    code = "from attnviz import mechanisms; mechanisms.check(); print(mechanisms.find('own-dot').title)"
    path = os.pathsep.join([str(ROOT), str(tmp_path)])
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, env=os.environ | {"PYTHONPATH": path})
    assert ran.stdout.decode().strip() == "Own · dot"


def test_a_score_is_asked_before_the_step_too():
    """With a function that makes it, annotations of one width, and an option of its own."""

    def make(query_width, key_width, half: bool = False, dropout: float = 0.0):
        assert query_width == key_width == 8
        return ScaledDot(dropout) if half else Dot(dropout)

    mechanisms.add(Mechanism("own-dot", "Own · dot", asks="before", score=make, summed=True))
    try:
        assert options("own-dot")["half"] is False
        model = build(Config("own-dot", 20, {"width": 8, "embedding_width": 6, "half": True})).eval()
        source, target = torch.randint(4, 20, (2, 5)), torch.randint(4, 20, (2, 3))
        logits, weights = model(source, target)
        readouts, (forced,), _ = model.force(model.encode(source), target)
        torch.testing.assert_close(model.logits(readouts), logits)
        torch.testing.assert_close(forced[:, 0], weights)
        later = target.clone()
        later[:, 1] = 19 - later[:, 1] % 2  # another word read at step 1 changes the weights of step 2, not of step 1
        torch.testing.assert_close(model(source, later)[1][:, :2], weights[:, :2], rtol=0, atol=0)
    finally:
        mechanisms.remove("own-dot")


class WithoutSentences(Dot):
    def score(self, query, prepared):
        return super().score(query, prepared).sum(dim=0)


def test_a_score_of_another_shape_is_refused_where_it_is_built():
    """With one sentence its maps would look right."""
    odd = mechanisms.add(Mechanism("odd", "Odd", score=WithoutSentences, asks="after", summed=True))
    try:
        with pytest.raises(
            ValueError, match=r"score\(\) of Odd must return \(sentences, queries, keys\), for .* got \(3, 5\)"
        ):
            build(Config("odd", 20))
    finally:
        mechanisms.remove(odd.name)


class Narrow(Dot):
    def __init__(self, width=1.0):
        super().__init__()
        self.width = width


class Failing(Dot):
    def __init__(self, strength=1):
        super().__init__()
        self.strength = strenght  # noqa: F821


class FailsWithinTorch(Dot):
    def score(self, query, prepared):
        return super().score(torch.nn.functional.linear(query, torch.ones(3, 3)), prepared)


@pytest.mark.parametrize(
    "score, message",
    [
        (FailsWithinTorch, r"the score of Own fails: test_own.py, line \d+, RuntimeError: .*"),
        (
            Narrow,
            "the score of Own has a value of its own for width, .*; give that parameter of the score another name",
        ),
        (Failing, r"the score of Own fails: test_own.py, line \d+, NameError: name 'strenght' is not defined"),
    ],
)
def test_a_score_that_cannot_be_built_as_it_is_meant(score, message):
    """The width would be that of the decoder."""
    own = mechanisms.add(Mechanism("own", "Own", score=score, asks="after", summed=True))
    try:
        with pytest.raises(ValueError, match=f"^{message}$"):
            build(Config("own", 20))
    finally:
        mechanisms.remove(own.name)


def test_what_is_added():
    for name in ("bahdanau", "writer"):
        with pytest.raises(ValueError, match=f"^the name {name} belongs to a mechanism that ships; choose another$"):
            mechanisms.add(Mechanism(name, "Mine", asks="after", score="attnviz.attention:Dot"))
        with pytest.raises(ValueError, match=f"^no mechanism '{name}' was added$"):
            mechanisms.remove(name)
    for wrong in (dict(name="A b"), dict(asks="later"), dict(score="")):
        with pytest.raises(ValueError):
            Mechanism(**{"name": "mine", "title": "Mine", "asks": "after", "score": "attnviz.attention:Dot"} | wrong)


# --- never from a visitor


def test_nothing_that_a_visitor_sends_runs_a_file(tmp_path, root, monkeypatch):
    """A link, a folder of models with a config and the file that `try` writes, the name of a model, a saved trace, an
    upload."""
    mark, evil = tmp_path / "it-ran", tmp_path / "evil.py"
    evil.write_text(f"open({str(mark)!r}, 'w')")
    text = f"{evil}:EVIL"
    for query in ({"show": [text], "guest": text}, {"pair": text, "text": text, "page": text, "model": text}):
        assert not compare_app.run(**query).exception
    checkpoint = tmp_path / "root" / "en-fr" / "bahdanau"
    checkpoint.mkdir(parents=True)
    (checkpoint / "config.json").write_text(json.dumps({"mechanism": text, "vocabulary": 30, "options": {}}))
    (tmp_path / "root" / "yours.py").write_text(evil.read_text())
    assert attnviz.available(tmp_path / "root") == ["en-fr/bahdanau"]
    for name in ("en-fr/bahdanau", text, f"en-fr/{text}", f"hf:{text}"):
        with pytest.raises(ValueError):
            attnviz.load(name, tmp_path / "root")
    saved = tmp_path / "trace.safetensors"
    attnviz.save_trace(synthetic.trace(mechanism=text), saved)
    assert figures.heatmap(select.select(attnviz.load_trace(saved)))
    for name in ("evil.py", "evil.json", "evil.safetensors", "yours.py:EVIL"):
        with pytest.raises(ValueError):
            uploads.unpack(evil.read_bytes(), name)
    assert not mark.exists()
    with pytest.raises(ValueError):
        mechanisms.read(text)  # which runs it: the mark is one
    assert mark.exists() and checkpoint_files.names(root)


def test_only_the_command_line_and_the_environment_name_a_file():
    calling = {
        below_root(path)
        for path in LIBRARY + DASHBOARD
        for node in nodes(path)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "mechanisms.read"
    }
    assert calling == {"attnviz/cli/train.py"}


# --- one place for each


def test_the_textbook_has_room_for_the_score_of_contributing(file):
    score = next(node for node in ast.parse(file.read_text(encoding="utf-8")).body if isinstance(node, ast.ClassDef))
    textbook = (ROOT / "attnviz/attention.py").read_text(encoding="utf-8").splitlines()
    assert len(textbook) + score.end_lineno - score.lineno + 3 <= 400  # of a file, see test_shape.py


CONTENT = ("dashboard/learn/", "dashboard/compare/tour.py", "attnviz/studies/", "dashboard/markup/terms.py")
DEFAULTS = (
    "dashboard/choices/pairs.py",
    "attnviz/own/train.py",
    "attnviz/training/seen.py",
    "dashboard/inside/matter.py",
    "attnviz/data/language_pairs.py",
    "attnviz/cli/train_settings.py",  # examples in its messages
)
# A formula or a form of a module may be called the same.
FORMULAS = ("attnviz/own/formula.py", "attnviz/own/forms.py", "attnviz/cli/check.py")


def test_the_name_of_a_mechanism_is_in_its_own_file():
    elsewhere = [
        f"{below_root(path)} line {node.lineno}: {node.value}"
        for path in LIBRARY + DASHBOARD
        for node in nodes(path)
        if isinstance(node, ast.Constant) and re.sub(r"^[\w-]+/", "", str(node.value)) in mechanisms._SHIPPED
        if not below_root(path).startswith(("attnviz/mechanisms/", *CONTENT, *DEFAULTS, *FORMULAS))
    ]
    assert elsewhere == []
