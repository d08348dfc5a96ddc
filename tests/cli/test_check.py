"""`python -m attnviz check`: a report, JSON and an exit status that marks homework."""

import json
from pathlib import Path

import pandas as pd
import pytest

from attnviz.__main__ import main
from attnviz.cli.check import FORMULAS
from attnviz.models import machine
from attnviz.own.formula import NAMES

RIGHT = """
import torch
print("hello")
def attend(query, keys, values):
    weights = torch.softmax(query @ keys.transpose(1, 2), dim=-1)
    return weights @ values, weights
"""


@pytest.fixture
def hand_ins(tmp_path):
    (tmp_path / "a.py").write_text(RIGHT)
    (tmp_path / "b.py").write_text(RIGHT.replace("dim=-1", "dim=1"))
    (tmp_path / "c.py").write_text("import nothing_of_this_name")
    return tmp_path


def test_a_report_and_the_status(hand_ins, capsys):
    assert main(["check", f"{hand_ins}/a.py:attend"]) == 0
    text = capsys.readouterr()
    assert text.out.startswith("attend\nrecognised as attention, batch-first") and "hello" not in text.out
    assert main(["check", f"{hand_ins}/b.py:attend"]) == 1
    assert "fault       weights sum to 1 over keys" in capsys.readouterr().out


def test_a_folder_of_hand_ins(hand_ins, capsys):
    assert main(["check", f"{hand_ins}/"]) == 2
    assert f'is a folder; name the files in it, as "{hand_ins}/*.py:Class"' in capsys.readouterr().err
    assert main(["check", f"{hand_ins}/*.py:attend", "--json"]) == 1
    results = json.loads(capsys.readouterr().out)
    assert [result["ok"] for result in results] == [True, False, False]
    assert "No module named 'nothing_of_this_name'" in results[2]["error"]


def test_hand_ins_become_a_table(hand_ins, capsys):
    """A formula of a spreadsheet in what a student's file raises stays text."""
    (hand_ins / "d.py").write_text("raise ValueError('=1+1')\n".replace("ValueError", "type('=E', (Exception,), {})"))
    assert main(["check", f"{hand_ins}/*.py:attend", "--csv", f"{hand_ins}/marks.csv"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0].rsplit("/", 1)[1] for line in lines] == ["a.py", "b.py", "c.py", "d.py"]
    table = pd.read_csv(hand_ins / "marks.csv", keep_default_na=False)
    assert [Path(module).name for module in table["module"]] == [f"{name}.py:attend" for name in "abcd"]
    assert table["faults"].tolist() == ["0", "1", "", ""] and table["ok"].tolist() == [True, False, False, False]
    assert table["weights sum to 1 over keys"][1].startswith("fault: weights sum to 1 over the queries")
    assert (
        "nothing_of_this_name" in table["not tested"][2]
        and not table.astype(str).map(lambda x: x[:1] == "=").any().any()
    )


HOSTILE = {
    "ends.py": "import os\nos._exit(0)\n",
    "loops.py": RIGHT.replace("    weights", "    import time\n    while True:\n        time.sleep(1)\n    weights", 1),
    "moves.py": "import os, torch\nos.chdir('/')\ntorch.softmax = None\n"
    + RIGHT.replace("torch.s", "torch.nn.functional.s"),
}


def test_what_one_file_does_is_done_to_no_other(hand_ins, capsys, monkeypatch):
    """Ends the program, never ends, goes to another folder and changes torch; the last one is right."""
    monkeypatch.chdir(hand_ins)
    folder = hand_ins / "group [A]"
    folder.mkdir()
    for name, text in HOSTILE.items():
        (folder / name).write_text(text)
    places = [*(f"group [A]/{name}:attend" for name in HOSTILE), "a.py:attend"]
    assert main(["check", *places, "--csv", "marks.csv", "--seconds", "8"]) == 2
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":attend: ")[0] + ":attend" for line in lines] == places
    assert lines[0].endswith("not tested: it ended the program, with status 0")
    assert lines[1].endswith("not tested: it did not end within 8 s (--seconds gives it longer)")
    assert ": 11 ok" in lines[2] and ": 11 ok" in lines[3], lines
    assert pd.read_csv("marks.csv")["module"].tolist() == places


ENDS = {
    "    import os; os._exit(0)\n    weights": "it ended the program, with status 0",
    "    import os; os.kill(os.getpid(), 9)\n    weights": "the system ended its process (Killed)",
}


@pytest.mark.parametrize("line", ENDS)
def test_a_module_that_ends_the_program_does_not_pass(line, hand_ins, capfd):
    (hand_ins / "a.py").write_text(RIGHT.replace("    weights", line, 1))
    for command in ("check", "try"):
        assert (
            main([command, f"{hand_ins}/a.py:attend", *(["--out", f"{hand_ins}/out"] if command == "try" else [])]) == 2
        )
        output = capfd.readouterr()
        assert ENDS[line] in output.err and output.out == ""
    assert main(["check", f"{hand_ins}/a.py:attend", "--json"]) == 2
    output = capfd.readouterr()
    assert output.err == "not tested: 1 of 1; the results say why\n"
    [result] = json.loads(output.out)
    assert result == {"place": f"{hand_ins}/a.py:attend", "ok": False, "error": ENDS[line]}


def test_what_cannot_be_tested_is_one_line_on_standard_error(hand_ins, capsys):
    assert main(["check", f"{hand_ins}/c.py:attend"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert main(["check", f"{hand_ins}/*.txt"]) == 2
    assert "no file fits" in capsys.readouterr().err
    (hand_ins / "e.py").write_text("class Settings:\n    width = 3\n")
    assert main(["check", f"{hand_ins}/e.py:Settings"]) == 2
    assert "Settings must be an nn.Module or a function; it is a class of another kind" in capsys.readouterr().err


def test_counts_are_plural_and_a_refusal_is_sentences_in_one_line(hand_ins, capsys):
    (hand_ins / "b.py").write_text(RIGHT.replace("dim=-1", "dim=1").replace("weights @ values", "weights @ keys"))
    assert main(["check", f"{hand_ins}/b.py:attend"]) == 1
    counts = capsys.readouterr().out.splitlines()[-1].split(", ")
    assert any(count.endswith(" faults") and int(count.split()[0]) > 1 for count in counts), counts
    (hand_ins / "d.py").write_text("def attend(query, keys):\n    raise TypeError('no sizes')\n")
    assert main(["check", f"{hand_ins}/d.py:attend"]) == 2
    assert capsys.readouterr().err == "python -m attnviz check: attend cannot run: d.py, line 2, TypeError: no sizes\n"


WIDE = """
import torch
class Attend(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        %s
    def forward(self, query, keys):
        return None
"""


LINEAR, NUMBERS = "self.w = torch.nn.Linear(width, width)", "self.w = torch.empty(width, width).cos()"
SIZES = ("99999999999999999999", "10000000")
TOO_LARGE = [("check", size, made) for size in SIZES for made in (LINEAR, NUMBERS)]


@pytest.mark.parametrize("command, size, made", [*TOO_LARGE, ("try", SIZES[1], LINEAR)])  # `try` begins with `check`
def test_a_size_that_no_memory_has_is_refused_in_our_words(command, size, made, tmp_path, capsys):
    (tmp_path / "a.py").write_text(WIDE % made)
    out = [] if command == "check" else ["--out", f"{tmp_path}/out"]
    assert main([command, f"{tmp_path}/a.py:Attend", "--set", f"width={size}", *out]) == 2
    error = capsys.readouterr().err
    assert machine.memory_in_words() in error and f"Attend(width={size}) cannot be built" in error
    assert not any(word in error for word in ("alloc", "unpack", "c10", "Error:")) and len(error) < 300


MISTYPED = {
    "mien.py:Attention": "there is no Python file mien.py; did you mean mine.py; name it as FILE.py:NAME",
    "mine:Attention": "there is no Python file mine:Attention; did you mean mine.py; name it as FILE.py:NAME",
    "gone.py:Attention": "there is no Python file gone.py; name it as FILE.py:NAME",
    "nowhere.py:Attention": "there is no Python file nowhere.py; name it as FILE.py:NAME",
    "mine.py:Atention": "mine.py has no 'Atention'; did you mean Attention; it has Attention, helper",
    "mine.py:Tensr": "mine.py has no 'Tensr'; it has Attention, helper",
}


@pytest.mark.parametrize("place", MISTYPED)
def test_a_name_that_is_mistyped_is_guessed(place, tmp_path, monkeypatch, capsys):
    """Of a file, and of what the file defines itself."""
    monkeypatch.chdir(tmp_path)
    Path("gone.py").symlink_to("deleted.py")
    Path("mine.py").write_text("from torch import Tensor, nn\nclass Attention(nn.Module): pass\ndef helper(): pass")
    assert main(["check", place]) == 2
    assert capsys.readouterr().err == f"python -m attnviz check: {MISTYPED[place]}\n"


def test_a_line_that_is_no_python_is_named_once(tmp_path, monkeypatch, capsys):
    """Also where it is in a file that is imported."""
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text("x = 1\ndef f(:")
    Path("imports.py").write_text("import mine")
    words = []
    for file in ("mine.py", "imports.py"):
        assert main(["check", file]) == 2
        words += capsys.readouterr().err.splitlines()
    assert words[0].startswith("python -m attnviz check: mine.py cannot be imported: line 2, SyntaxError: invalid syn")
    assert words[1].startswith("python -m attnviz check: imports.py cannot be imported: line 1, SyntaxError: invalid ")
    assert "(" not in words[0] and words[1].endswith(" (mine.py, line 2)")


def test_a_formula_is_named_by_the_words_of_papers_and_libraries(tmp_path, capsys):
    """A word for several formulas is refused with their names, and a mistyped one is guessed."""
    assert {name for names in FORMULAS.values() for name in names} == set(NAMES) <= FORMULAS.keys()
    file = tmp_path / "dot.py"
    file.write_text("def dot(query, keys):\n    return (query @ keys.mT).softmax(-1)\n")
    for word, line in (
        ("Luong_dot", "ok          the formula is dot"),
        ("Bahdanau attention", "fault       the formula is additive"),
    ):
        assert main(["check", f"{file}:dot", "--as", word]) == int("fault" in line)
        assert line in capsys.readouterr().out
    for word, reason in (
        ("luong", "'luong' has several scores; say which: dot, general or concat; see"),
        (
            "bahdanu",
            "must be one of additive, dot, general, concat, scaled-dot, multi-head, grouped-query, multi-query; "
            "got 'bahdanu'; did you mean bahdanau; see",
        ),
    ):
        with pytest.raises(SystemExit):
            main(["check", f"{file}:dot", "--as", word])
        assert f"check: argument --as: {reason}" in capsys.readouterr().err
