"""`python -m attnviz evaluate`: scores of files that fit, and files that do not."""

import gzip
import json
import re

import pytest

MODEL = ("--model", "en-fr/bahdanau")


@pytest.mark.parametrize("beam", ["1", "2"])
def test_evaluate(cli, files, beam):
    source, reference = files
    status, out, err = cli("evaluate", *MODEL, "--source", source, "--reference", reference, "--beam", beam)
    assert (status, err) == (0, "")  # short work shows no progress where standard error is no terminal
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
    scores = json.loads(out)
    assert status == 0 and scores["sentences"] == 6 and 0 < scores["max_weight"] <= 1 and scores["entropy_nats"] > 0


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
