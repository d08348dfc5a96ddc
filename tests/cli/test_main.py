"""The command line: what it prints, and one clear line with status 2 for whatever goes wrong."""

import gzip
import json
import re

import pytest
import tiny

import attnviz
from attnviz.__main__ import main
from attnviz.cli.commands import COMMANDS
from attnviz.models import checkpoints
from attnviz.trace import Trace

AVAILABLE = ", ".join(sorted(f"en-fr/{mechanism}" for mechanism in tiny.WIDTHS))
ATTENTIVE = [name for name in tiny.WIDTHS if name != "fixed-context"]
MODEL = ("--model", "en-fr/bahdanau")
SENTENCE = "The black dog runs."


@pytest.fixture
def cli(root, capsys):
    """Run a command in this process on the tiny checkpoints -> status, output, errors."""

    def run(command, *arguments):
        try:
            status = main([command, *map(str, arguments), "--root", str(root)])
        except SystemExit as stop:  # argparse leaves this way
            status = stop.code
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


@pytest.fixture
def files(tmp_path):
    """Aligned files, the reference gzipped, one line empty on both sides."""
    pairs = [*tiny.sentences(3, 5), ("", ""), *tiny.sentences(2, 6)]
    source, reference = tmp_path / "source.txt", tmp_path / "reference.gz"
    source.write_text("".join(f"{a}\n" for a, _ in pairs), encoding="utf-8")
    reference.write_bytes(gzip.compress("".join(f"{b}\n" for _, b in pairs).encode()))
    return source, reference


def test_models(cli):
    status, out, err = cli("models")
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].split() == "model mechanism parameters score problem".split()
    assert [line.split()[0] for line in lines[1:]] == AVAILABLE.split(", ")
    assert all(re.search(r"  1,234  1\.50 bleu_lc, test_2016_flickr  none$", line) for line in lines[1:])
    assert "Bahdanau · additive" in lines[1]


def test_models_of_other_pairs_show_the_score_that_suits_them(tmp_path, capsys):
    root = tiny.write_models(tmp_path / "other")
    (root / "en-fr").rename(root / "en-ja")
    for mechanism, scores in (
        ("bahdanau", {"val": {"bleu_morphemes": 9.0}, "test": {"bleu_morphemes": 8.0, "chrf": 7.0}}),
        ("transformer", {"val": {"exact_match": 99.0}}),
    ):
        checkpoints.write_json(root / "en-ja" / mechanism / "card.json", {"scores": scores})
    assert main(["models", "--root", str(root)]) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert re.search(r"  –  +8\.00 bleu_morphemes, test  none$", lines["en-ja/bahdanau"])
    assert re.search(r"  –  +99\.00 exact_match, val +none$", lines["en-ja/transformer"])


def test_models_json(cli):
    status, out, err = cli("models", "--json")
    found = json.loads(out)
    assert (status, err) == (0, "") and [entry["name"] for entry in found] == AVAILABLE.split(", ")
    assert all(entry["problem"] is None and entry["title"] for entry in found)


def test_models_that_are_damaged_or_not_there(tmp_path, capsys):
    assert main(["models", "--root", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"no checkpoints in {tmp_path}\n"
    root = tiny.write_models(tmp_path / "damaged")
    (root / "en-fr" / "bahdanau" / "config.json").write_text("")
    (root / "en-fr" / "luong-general" / "card.json").unlink()
    (root / "en-fr" / "transformer" / "model.safetensors").unlink()
    assert main(["models", "--root", str(root)]) == 0
    lines = {line.split()[0].removeprefix("en-fr/"): line for line in capsys.readouterr().out.splitlines()}
    assert f"{root / 'en-fr/bahdanau/config.json'} is damaged" in lines["bahdanau"] and lines["luong-general"].endswith(
        "none"
    )
    assert lines["transformer"].endswith(
        "transformer/model.safetensors is missing; restore it or train the model again"
    )


@pytest.mark.parametrize("mechanism", ATTENTIVE)
def test_trace_prints_a_table(cli, root, mechanism):
    trace = attnviz.load(f"en-fr/{mechanism}", root).trace(SENTENCE)
    status, out, err = cli("trace", SENTENCE, "--model", f"en-fr/{mechanism}")
    lines = out.splitlines()
    assert (status, err) == (0, "")
    assert lines[0].startswith("translation: ") and lines[1] == f"log-probability: {trace.log_prob:.3f}"
    layers = "layer 2 of 2, mean of 2 heads" if mechanism == "transformer" else "layer 1 of 1, its one head"
    assert f"attention: cross, {layers}" in lines
    table = lines[lines.index("") + 1 :]
    assert table[0].split() == "step token probability attends most to weight".split()
    weights = trace.map().weights.mean(0)
    assert [line.split()[0] for line in table[1:]] == [str(i + 1) for i in range(len(trace.target))]
    assert [line.split()[-1] for line in table[1:]] == [f"{row.max():.2f}" for row in weights]
    assert [line.split()[-2] for line in table[1:]] == [trace.source[row.argmax()].text for row in weights]


def test_without_attention_the_table_says_so(cli, root, tmp_path):
    trace = attnviz.load("en-fr/fixed-context", root).trace(SENTENCE)
    status, out, err = cli("trace", SENTENCE, "--model", "en-fr/fixed-context")
    lines = out.splitlines()
    assert (status, err) == (0, "") and lines[2] == "attention: none" or lines[3] == "attention: none"
    table = lines[lines.index("") + 1 :]
    assert table[0].split() == ["step", "token", "probability"] and len(table) == 1 + len(trace.target)
    assert cli("trace", SENTENCE, "--model", "en-fr/fixed-context", "--html", tmp_path / "x") == (
        2,
        "",
        "python -m attnviz trace: en-fr/fixed-context has no attention to show; leave --html and --picture out\n",
    )


def test_trace_picture(cli, tmp_path):
    arguments = ("trace", SENTENCE, "--model", "en-fr/transformer", "--picture")
    assert cli(*arguments, tmp_path / "x.svg", "--size", "column") == (0, "", f"{tmp_path / 'x.svg'} is written\n")
    assert "mean of 2 heads</text>" in (tmp_path / "x.svg").read_text()
    assert cli(*arguments, "x.gif") == (
        2,
        "",
        "python -m attnviz trace: --picture must end in .svg, .pdf, .png; got x.gif\n",
    )


def test_trace_json(cli, root, tmp_path):
    expected = attnviz.load("en-fr/transformer", root).trace(SENTENCE, beam=3)
    arguments = ("trace", SENTENCE, "--model", "en-fr/transformer", "--beam", "3", "--json")
    status, out, err = cli(*arguments, "-")
    assert (status, err) == (0, "") and Trace.from_json(out) == expected
    assert cli(*arguments, tmp_path / "trace.json") == (0, "", f"{tmp_path / 'trace.json'} is written\n")
    assert Trace.from_json((tmp_path / "trace.json").read_text()) == expected


def test_trace_forced(cli):
    status, out, _ = cli("trace", SENTENCE, *MODEL, "--target", "Le chien noir court.", "--json", "-")
    found = json.loads(out)
    assert status == 0 and found["forced"] and found["translation"] == "Le chien noir court."
    assert cli("trace", SENTENCE, *MODEL, "--target", "Le chien.")[1].startswith("target: Le chien.\n")


@pytest.mark.parametrize("mechanism", ["bahdanau", "luong-local", "transformer"])
def test_trace_html(cli, tmp_path, mechanism):
    nasty = 'The </script><b>x</b> "dog" runs.'
    path = tmp_path / "page.html"
    assert cli("trace", nasty, "--model", f"en-fr/{mechanism}", "--target", nasty, "--html", path) == (
        0,
        "",
        f"{path} is written\n",
    )
    page = path.read_text(encoding="utf-8")
    ids = ["cross", "bars", "by-step"] + (["encoder", "decoder"] if mechanism == "transformer" else [])
    assert set(ids) <= set(re.findall(r'<div id="([a-z-]+)"', page))
    assert "&lt;/script&gt;&lt;b&gt;x&lt;/b&gt;" in page and "<b>x" not in page
    assert page.count("<script") == page.count("</script>") and not re.search(
        r"<(?:script|link)[^>]+(?:src|href)=", page
    )


def test_awkward_texts(cli):
    for text in ("<b>x</b> </script>", "שלום عالم 日本 👩\u200d🚀", "a\x1b[31mb\nc", "=1+1"):
        status, out, err = cli("trace", text, *MODEL)
        assert (status, err) == (0, "") and "\x1b" not in out


@pytest.mark.parametrize("beam", ["1", "2"])
def test_evaluate(cli, files, beam):
    source, reference = files
    status, out, err = cli("evaluate", *MODEL, "--source", source, "--reference", reference, "--beam", beam)
    assert status == 0 and "5/5" in err
    lines = dict(re.split(r"\s{2,}", line, maxsplit=1) for line in out.splitlines())
    assert lines["model"] == "en-fr/bahdanau" and lines["sentences"] == "6"
    assert re.fullmatch(r"\d+\.\d\d   nrefs:1\|case:mixed\|eff:no\|tok:13a\|.*", lines["BLEU"])
    assert re.fullmatch(r"\d+\.\d\d   nrefs:1\|case:lc\|.*", lines["BLEU lower-cased"]) and "nc:6" in lines["chrF"]
    assert lines["speed"].endswith("greedy" if beam == "1" else "beam 2")
    assert "nats" in lines["entropy"] and lines["maximum weight"].endswith("mean of the same rows")


def test_evaluate_without_attention(cli, files):
    source, reference = files
    status, out, _ = cli("evaluate", "--model", "en-fr/fixed-context", "--source", source, "--reference", reference)
    assert status == 0 and "BLEU" in out and "entropy" not in out and "maximum weight" not in out


def test_evaluate_json(cli, files):
    status, out, _ = cli("evaluate", *MODEL, "--source", files[0], "--reference", files[1], "--json")
    found = json.loads(out)
    assert status == 0 and found["sentences"] == 6 and 0 < found["max_weight"] <= 1 and found["entropy_nats"] > 0


TRACE = ("trace", SENTENCE)
SEE = "see python -m attnviz"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ((*TRACE, "--model", "nope"), f"trace: no checkpoint 'nope'; available: {AVAILABLE}"),
        ((*TRACE, "--model", ""), f"trace: no checkpoint ''; available: {AVAILABLE}"),
        ((*TRACE, "--model", "../en-fr/bahdanau"), f"trace: no checkpoint '../en-fr/bahdanau'; available: {AVAILABLE}"),
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
        (("align", *MODEL, "--gold", "/"), "align: /: Is a directory"),
        (("evaluate", *MODEL, "--source", "/", "--reference", "/"), "evaluate: cannot read /: Is a directory"),
    ],
)
def test_errors(cli, monkeypatch, command, message):
    monkeypatch.delenv("ATTNVIZ_DATA", raising=False)
    assert cli(*command) == (2, "", f"python -m attnviz {message}\n")


def test_no_command(capsys):
    with pytest.raises(SystemExit) as stop:
        main([])
    assert stop.value.code == 2
    assert capsys.readouterr().err == (
        f"python -m attnviz: the following arguments are required: COMMAND; {SEE} --help\n"
    )


def test_files_that_do_not_fit(cli, files, tmp_path):
    source, reference = files
    bad = tmp_path / "bad"

    def error(source, reference, beam="1"):
        status, out, err = cli("evaluate", *MODEL, "--source", source, "--reference", reference, "--beam", beam)
        assert (status, out) == (2, "")
        return err.removeprefix("python -m attnviz evaluate: ").removesuffix("\n")

    bad.write_text("one\n")
    assert error(source, bad) == f"{source} has 6 lines and {bad} has 1; they must be aligned"
    assert error(source, reference, beam="0") == "beam must be from 1 to 20; got 0"
    bad.write_bytes(reference.read_bytes()[:-12])
    assert error(source, bad).startswith(f"{bad} is a damaged gzip file: ")
    bad.write_bytes(b"\x1f\x8bnot gzip at all")
    assert error(source, bad).startswith(f"{bad} is a damaged gzip file: ")
    bad.write_bytes(b"caf\xe9\n")
    assert error(bad, reference) == f"{bad} must be UTF-8 text; got byte 0xe9 at 3"
    bad.write_bytes(b"")
    assert error(bad, bad) == f"{bad} must have text on at least one line; got none"
    bad.write_text("\n \n")
    assert error(bad, bad) == f"{bad} must have text on at least one line; got none"


def test_references_as_windows_writes_them(cli, files, tmp_path):
    """A byte-order mark and its line ends change no score."""
    source, reference = files
    other = tmp_path / "windows.txt"
    other.write_bytes(b"\xef\xbb\xbf" + gzip.decompress(reference.read_bytes()).replace(b"\n", b"\r\n"))
    plain, windows = (
        json.loads(cli("evaluate", *MODEL, "--source", source, "--reference", path, "--json")[1])
        for path in (reference, other)
    )
    assert {key: plain[key] for key in ("bleu", "bleu_tok_lc", "chrf")} == {
        key: windows[key] for key in ("bleu", "bleu_tok_lc", "chrf")
    }


def test_one_linked_pair(cli, tmp_path):
    """Enough for a model with one head, which needs no choosing; not for one with several."""
    one = tmp_path / "one.txt"
    one.write_text("The dog runs.\nLe chien court.\n0-0 1-1 2-2\n", encoding="utf-8")
    status, out, _ = cli("align", *MODEL, "--gold", one)
    assert status == 0 and "1 pairs, 3 sure of 3 links" in out
    status, _, err = cli("align", "--model", "en-fr/transformer", "--gold", one)
    assert status == 2 and "at least two linked pairs are needed; got 1" in err


def test_linked_pairs_that_no_model_reads(cli, tmp_path):
    path = tmp_path / "long.txt"
    path.write_text(f"The dog runs.\nLe chien court.\n0-0\n\n{'dog ' * 300}\nchien\n0-0\n", encoding="utf-8")
    status, _, err = cli("align", *MODEL, "--gold", path)
    assert (
        status == 2
        and err.startswith("python -m attnviz align: the pair 'dog dog ")
        and "the text is too long: 301 pieces" in err
    )


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
        raise RuntimeError("out of memory:\n  tried to allocate 9 GB")

    monkeypatch.setattr(COMMANDS["models"], "run", explode)
    assert main(["models"]) == 2
    assert capsys.readouterr().err == "python -m attnviz models: out of memory: tried to allocate 9 GB\n"
