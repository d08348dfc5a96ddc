"""The command line: one clear line with status 2 for whatever goes wrong."""

import os
import sys

import pytest
import tiny
import torch

from attnviz.__main__ import main
from attnviz.cli import COMMANDS, _commands, page, parser, watch
from attnviz.models import machine
from attnviz.training.seen import Settings

AVAILABLE = f"available: {', '.join(sorted(f'en-fr/{mechanism}' for mechanism in tiny.WIDTHS))}"
AVAILABLE += "; another folder is given as root, or in ATTNVIZ_CHECKPOINTS"
MODEL = ("--model", "en-fr/bahdanau")
SENTENCE = "The black dog runs."
TRACE = ("trace", SENTENCE)
SEE = "see python -m attnviz"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ((*TRACE, "--model", "nope"), f"trace: no checkpoint 'nope' in ROOT; {AVAILABLE}"),
        ((*TRACE, "--model", ""), f"trace: no checkpoint '' in ROOT; {AVAILABLE}"),
        (
            (*TRACE, "--model", "../en-fr/bahdanau"),
            f"trace: no checkpoint '../en-fr/bahdanau' in ROOT; did you mean en-fr/bahdanau; {AVAILABLE}",
        ),
        (("trace", "", *MODEL), "trace: the text is empty; type a sentence"),
        (("trace", " \n", *MODEL), "trace: the text is empty; type a sentence"),
        (("trace", "\u200b", *MODEL), "trace: the text has no visible character; type a sentence"),
        ((*TRACE, *MODEL, "--target", ""), "trace: the target is empty; type a sentence"),
        (
            ("trace", "a\udcff", *MODEL),
            "trace: the text has bytes that are not valid characters; type it again, in UTF-8",
        ),
        (
            ("trace", "dog " * 500, *MODEL),
            "trace: the text is too long: 501 pieces with <eos>, and the models read "
            "at most 200; shorten it or split it into sentences",
        ),
        ((*TRACE, *MODEL, "--beam", "0"), "trace: beam must be from 1 to 20; got 0"),
        ((*TRACE, *MODEL, "--beam", "x"), f"trace: argument --beam: invalid int value: 'x'; {SEE} trace --help"),
        (
            (*TRACE, *MODEL, "--beam", "2", "--target", "Le"),
            "trace: --beam chooses a translation and --target gives one; use only one of them",
        ),
        (
            (*TRACE, *MODEL, "--json", "/nowhere/x.json"),
            "trace: cannot write /nowhere/x.json: No such file or directory",
        ),
        ((*TRACE, *MODEL, "--html", "/"), "trace: cannot write /: Is a directory"),
        (TRACE, f"trace: the following arguments are required: --model; {SEE} trace --help"),
        (
            ("evaluate", *MODEL, "--source", "/nowhere/a"),
            "evaluate: --reference must be a file with the translations of --source; got none",
        ),
        (
            ("evaluate", *MODEL, "--source", "/nowhere/a", "--reference", "/nowhere/b"),
            "evaluate: cannot read /nowhere/a: No such file or directory",
        ),
        (("align", *MODEL, "--gold", "/nowhere/a"), "align: /nowhere/a: No such file or directory"),
        (("align", *MODEL, "--gold", "/"), "align: /: not a file but a folder"),
        (("evaluate", *MODEL, "--source", "/", "--reference", "/"), "evaluate: cannot read /: not a file but a folder"),
    ],
)
def test_errors(cli, root, command, message):
    assert cli(*command) == (2, "", f"python -m attnviz {message.replace('ROOT', str(root))}\n")


@pytest.mark.parametrize("words, port", [([], None), (["--port", "8600"], 8600), (["page", "--port=8600"], 8600)])
def test_without_a_command_the_page_opens(monkeypatch, words, port):
    opened = []
    monkeypatch.setattr(COMMANDS["page"], "run", opened.append)
    assert main(words) == 0 and [(args.command, args.port, args.host) for args in opened] == [
        ("page", port, "localhost")
    ]


@pytest.mark.parametrize("option", ["--help", "--version", "--print-completion=bash"])
def test_options_of_the_whole_program_open_no_page(monkeypatch, capsys, option):
    monkeypatch.setattr(COMMANDS["page"], "run", None)
    with pytest.raises(SystemExit) as stop:
        main([option])
    assert stop.value.code in (None, 0) and "attnviz" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words, problem",
    [
        (["--port", "0"], "argument --port: must be a whole number from 1 to 65535; got '0'"),
        (["--port", "x"], "argument --port: must be a whole number from 1 to 65535; got 'x'"),
        (["--host", "example.invalid"], "--host must be a name or an address of this machine; got 'example.invalid'"),
        (["--host", "a" * 70], f"--host must be a name or an address of this machine; got '{'a' * 70}'"),
        (["--host", ""], "argument --host: must be a name or an address of this machine; got ''"),
        (["--nothing"], "page: unrecognized arguments: --nothing; see"),
        (["--prot", "80"], "did you mean --port by --prot; see python -m attnviz page --help"),
    ],
)
def test_options_of_the_page_that_are_wrong(monkeypatch, capsys, words, problem):
    try:
        status = main([*words, "--no-browser"])
    except SystemExit as stop:
        status = stop.code
    assert status == 2 and problem in capsys.readouterr().err


@pytest.mark.parametrize(
    "host, hosts, public, lines",
    [
        ("localhost", None, "", []),
        ("::1", None, "", []),
        ("192.0.2.7", "192.0.2.7", "", ["Warning", "They can open folders"]),
        ("192.0.2.7", "192.0.2.7", "1", ["Warning"]),
        ("0.0.0.0", None, "", ["Warning", "They can open folders", "The page answers for localhost alone"]),
    ],
)
def test_who_can_open_the_page_is_said(monkeypatch, capsys, host, hosts, public, lines):
    """The server is not started: what it would get is looked at."""
    started = []
    monkeypatch.setattr(page.runpy, "run_module", lambda name, run_name: started.append((name, *sys.argv[1:])))
    monkeypatch.setattr(page, "_is_taken", lambda host, port: False)
    monkeypatch.setattr(sys, "argv", [])
    monkeypatch.setenv("ATTNVIZ_HOSTS", "x")
    monkeypatch.delenv("ATTNVIZ_HOSTS")
    monkeypatch.setenv("ATTNVIZ_PUBLIC", public)
    assert main(["--host", host, "--no-browser"]) == 0
    options = ("--server.port", "8501", "--server.address", host)
    assert started == [("streamlit", "run", str(page.file()), *options)] and os.environ.get("ATTNVIZ_HOSTS") == hosts
    printed = capsys.readouterr().err.splitlines()
    assert [line.startswith(begin) for line, begin in zip(printed, lines, strict=True)] == [True] * len(lines)


def test_a_damaged_checkpoint(tmp_path, capsys):
    root = tiny.write_models(tmp_path / "checkpoints")
    path = root / "en-fr" / "bahdanau" / "model.safetensors"
    path.write_bytes(b"")
    assert main(["trace", SENTENCE, *MODEL, "--root", str(root)]) == 2
    line = capsys.readouterr().err
    assert line.startswith(f"python -m attnviz trace: {path} is damaged (") and line.count("\n") == 1
    assert main(["models", "--root", str(tmp_path / "nowhere")]) == 2
    assert capsys.readouterr().err == (
        f"python -m attnviz models: there is no folder {tmp_path / 'nowhere'}; --root must be a folder of checkpoints\n"
    )


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["models"], "models: interrupted"),
        (["corpus", *MODEL, "--input", "in.txt", "--out", "nowhere"], "corpus: interrupted"),  # there is none to resume
        (
            ["train", "--pair", "en-fr", "--mechanism", "bahdanau"],
            "train: interrupted; the same command continues from the last save",
        ),
    ],
)
def test_interrupted(monkeypatch, capsys, command, message):
    def interrupt(args):
        raise KeyboardInterrupt

    monkeypatch.setattr(COMMANDS[command[0]], "run", interrupt)
    assert main(command) == 130
    assert capsys.readouterr() == ("", f"python -m attnviz {message}\n")


def test_torch_errors_are_one_line(monkeypatch, capsys):
    def explode(args):
        raise RuntimeError("the expanded size (3) must match\n  the existing size (4)")

    monkeypatch.setattr(COMMANDS["models"], "run", explode)
    assert main(["models"]) == 2
    assert (
        capsys.readouterr().err == "python -m attnviz models: the expanded size (3) must match the existing size (4)\n"
    )


def test_errors_of_an_allocator_say_what_the_machine_has(monkeypatch, capsys):
    def explode(args):
        torch.empty(10**7, 10**7)

    monkeypatch.setattr(COMMANDS["models"], "run", explode)
    assert main(["models"]) == 2
    shown = f"it needs more memory than there is; {machine.memory_in_words()}"
    assert capsys.readouterr().err == f"python -m attnviz models: {shown}\n"


@pytest.mark.parametrize(
    "command, meant",
    [
        (("modles",), "models"),
        (("study", "lenght"), "length"),
        (("train", "--pair", "en-fr", "--mechanism", "Trasformer", "--data", "x"), "transformer"),
        (("train", "--pair", "en-fr", "--mechanism", "bahdanau", "--set", "widht=8"), "width"),
        ((*TRACE, "--model", "Bahdanua"), "en-fr/bahdanau"),
        ((*TRACE, "--modle", "Bahdanau"), "--model by --modle; see python -m attnviz trace --help"),
    ],
)
def test_what_is_nearly_a_name_is_guessed(command, meant, root, capsys, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_CHECKPOINTS", str(root))
    try:
        status = main(list(command))
    except SystemExit as stop:
        status = stop.code
    assert status == 2 and f"; did you mean {meant}" in capsys.readouterr().err


def test_every_command_and_every_option_is_explained():
    assert COMMANDS.keys() == _commands(parser()).keys()
    for name, command in _commands(parser()).items():
        assert command.description, name
        assert [action.dest for action in command._actions if not action.help] == [], name
    for name, (_, words) in watch._SETTINGS.items():
        assert words.endswith(f"(default: {getattr(Settings(), name):g})")
