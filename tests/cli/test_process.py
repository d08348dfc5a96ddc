"""The command line in a process of its own: what only a real one can show."""

import json
import os
import subprocess
import sys

import pytest

import attnviz
from attnviz.__main__ import main
from attnviz.models import checkpoint_files

MODEL = ("--model", "en-fr/bahdanau")


def shell(*arguments, **environment):
    return subprocess.run(
        [sys.executable, "-m", "attnviz", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        cwd=checkpoint_files.ROOT.parent,
    )


def test_a_terminal_that_knows_only_ascii(root):
    ended = shell("trace", "garçon 日本", *MODEL, "--root", root, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert (ended.returncode, ended.stderr) == (0, "")
    translation = attnviz.load("en-fr/bahdanau", root).trace("garçon 日本").translation
    assert translation.encode("ascii", "backslashreplace").decode() in ended.stdout


def test_nobody_reads_the_output(root):
    arguments = [sys.executable, "-m", "attnviz", "trace", "dog " * 100, *MODEL, "--root", str(root), "--json", "-"]
    process = subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=checkpoint_files.ROOT.parent
    )
    process.stdout.close()
    assert process.stderr.read() == b"" and process.wait(60) == 141


def test_help_does_not_import_torch():
    code = "import sys; from attnviz.__main__ import main\n"
    code += "try: main(['--help'])\nfinally: assert 'torch' not in sys.modules"
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=checkpoint_files.ROOT.parent
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert all(name in ended.stdout for name in ("models", "trace", "evaluate", "train", "download"))


def test_on_a_terminal_what_it_would_obey_is_an_escape():
    """Such as the character that writes the words after it backwards, and the codes of colours."""
    code = (
        "from attnviz.__main__ import _show_what_a_terminal_would_obey as show\n"
        "show(); print('a\\u202eb\\u2028c\\x1b[31m\\tד')"
    )
    command = [sys.executable, "-c", code]
    more = {"cwd": checkpoint_files.ROOT.parent, "env": os.environ | {"PYTHONUTF8": "1"}, "timeout": 120}
    inner, outer = os.openpty()
    shown = subprocess.run(command, stdout=outer, **more)
    assert shown.returncode == 0 and os.read(inner, 1000).decode() == "a\\u202eb\\u2028c\\x1b[31m\tד\r\n"
    to_a_file = subprocess.run(command, capture_output=True, **more)
    assert to_a_file.stdout.decode() == "a\u202eb\u2028c\x1b[31m\tד\n"
    os.close(inner), os.close(outer)


def test_an_error_holds_nothing_that_a_terminal_would_obey(capsys):
    assert main(["trace", "The black dog runs.", "--model", "en-fr/\u202ebad\u2028\x1b"]) == 2
    printed = capsys.readouterr().err
    assert "\\u202e" in printed and not any(character in printed for character in "\u202e\u2028\x1b")


# As from a disk that reads it for the first time.
SLOW_TORCH = """
import sys, time
class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == "torch._C":
            time.sleep(3)
sys.meta_path.insert(0, Slow())
"""


@pytest.mark.parametrize("command", [("check", "dot.py:dot", "--json"), ("trace", "dog", *MODEL, "--json", "-")])
def test_a_terminal_shows_that_pytorch_is_being_loaded(command, tmp_path):
    """In this process, and in the one that `check` waits for. Standard output has the JSON alone."""
    (tmp_path / "sitecustomize.py").write_text(SLOW_TORCH)
    (tmp_path / "dot.py").write_text("def dot(query, keys):\n    return (query @ keys.mT).softmax(-1)\n")
    places = os.pathsep.join((str(tmp_path), str(checkpoint_files.ROOT.parent)))
    inner, outer = os.openpty()
    ended = subprocess.run(
        [sys.executable, "-m", "attnviz", *command],
        stdout=subprocess.PIPE,
        stderr=outer,
        env=os.environ | {"PYTHONPATH": places},
        cwd=tmp_path,
        timeout=120,
    )
    assert os.read(inner, 1000).decode().count("Loading PyTorch, which takes up to half a minute the first time …") == 1
    assert ended.returncode == 0 and json.loads(ended.stdout)
    os.close(inner), os.close(outer)
