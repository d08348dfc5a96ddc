"""`python -m attnviz align`: links that a person brings."""

import json

import pytest

from attnviz.__main__ import main

MODEL = ("--model", "en-fr/bahdanau")


@pytest.fixture
def shipped(capsys):
    """The command on the models that ship -> status, output, errors."""

    def run(*arguments):
        status = main(["align", *map(str, arguments)])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


def test_one_linked_pair(cli, tmp_path):
    """Enough for a model with one head, which needs no choosing; not for one with several."""
    single = tmp_path / "one.txt"
    single.write_text("The dog runs.\nLe chien court.\n0-0 1-1 2-2\n", encoding="utf-8")
    status, out, _ = cli("align", *MODEL, "--gold", single)
    assert status == 0 and "1 pairs, 3 sure of 3 links" in out
    status, _, err = cli("align", "--model", "en-fr/transformer", "--gold", single)
    assert status == 2 and "at least two linked pairs are needed; got 1" in err


def test_layers_and_heads_are_the_same_numbers_in_text_and_json(cli):
    _, out, _ = cli("align", "--model", "en-fr/transformer", "--json")
    report = json.loads(out)
    assert report["counted_from"] == 0
    _, out, _ = cli("align", "--model", "en-fr/transformer")
    assert out.endswith("\n\nlayers and heads count from 0, as in JSON and in Python\n")
    for head in report["heads"]:
        (row,) = [line for line in out.splitlines() if line.startswith(f"layer {head['layer']}, head {head['head']} ")]
        assert f"{head['error_rate']:.3f}" in row


def test_linked_pairs_that_no_model_reads(cli, tmp_path):
    path = tmp_path / "long.txt"
    path.write_text(f"The dog runs.\nLe chien court.\n0-0\n\n{'dog ' * 300}\nchien\n0-0\n", encoding="utf-8")
    status, _, err = cli("align", *MODEL, "--gold", path)
    assert (
        status == 2
        and err.startswith("python -m attnviz align: the pair 'dog dog ")
        and "the text is too long: 301 pieces" in err
    )


def test_links_for_other_programs(shipped, tmp_path):
    """A line a pair, also where a pair cannot be read: programs read the lines beside those of the texts."""
    (tmp_path / "s").write_text(f"The dog runs .\n{'dog ' * 300}\nA man eats .\n", encoding="utf-8")
    (tmp_path / "t").write_text("Le chien court .\nchien\nUn homme mange .\n", encoding="utf-8")
    texts = ("--source-file", tmp_path / "s", "--target-file", tmp_path / "t")
    status, out, err = shipped(*MODEL, *texts, "--export", "moses")
    assert status == 0 and out.splitlines() == ["0-0 1-1 2-2 3-3", "", "0-0 1-1 2-2 3-3"]
    assert err.startswith("no links for 'dog dog") and "too long" in err
    _, out, _ = shipped(*MODEL, *texts, "--export", "probabilities")
    assert [item.split(":")[0] for item in out.splitlines()[0].split()] == ["0-0", "1-1", "2-2", "3-3"]
    assert all(0 < float(item.split(":")[1]) <= 1 for item in out.split())
    (tmp_path / "gold").write_text("1 1 1 S\n1 2 2 S\n3 2 2 P\n", encoding="utf-8")
    status, out, _ = shipped(*MODEL, *texts, "--gold", tmp_path / "gold")
    assert status == 0 and "2 pairs, 2 sure of 3 links" in out  # the sentence that has no link there is not read


def test_both_directions(shipped, tmp_path):
    pair = tmp_path / "pair"
    pair.write_text("a|b|c|d\nd|c|b|a\n0-3 1-2 2-1 3-0\n", encoding="utf-8")
    both = ("--model", "reverse/bahdanau", "--reverse-model", "reverse/luong-general", "--gold", pair)
    status, out, _ = shipped(*both, "--json")
    assert status == 0 and json.loads(out)["directions"]["grow-diag-final-and"]["error_rate"] == 0
    _, out, _ = shipped(*both, "--export", "moses", "--method", "intersection")
    assert out == "0-3 1-2 2-1 3-0\n" == shipped(*both, "--export", "pharaoh", "--method", "intersection")[1]
    _, out, _ = shipped(*both, "--export", "naacl", "--method", "intersection")
    assert out == "1 1 4\n1 2 3\n1 3 2\n1 4 1\n"


def test_a_second_model_that_cannot_be_the_other_direction(shipped):
    for reverse, words in (
        ("en-fr/luong-dot", "must translate from target to source; en-fr/luong-dot is of en-fr, as --model is"),
        ("en/writer", "en/writer has no attention from a target to a source"),
    ):
        status, _, err = shipped("--model", "en-fr/bahdanau", "--reverse-model", reverse, "--export", "moses")
        assert status == 2 and words in err


def test_rows_shifted_by_a_step(cli):
    """The rates are those that the table without a shift gives for that shift."""
    _, out, _ = cli("align", *MODEL, "--json")
    plain = json.loads(out)
    _, out, _ = cli("align", *MODEL, "--json", "--shift", "1")
    shifted = json.loads(out)
    assert shifted["shift"] == 1 and shifted["best_head"] == plain["shifted"]["1"]
    assert shifted["shifted"]["0"] == plain["best_head"] and set(shifted["shifted"]) == {"-1", "0"}


def test_options_that_do_not_belong_together(cli, tmp_path):
    for extra, words in (
        (("--source-file", tmp_path), "must be given together"),
        (("--possible", tmp_path), "--possible is about links beside two files"),
        (("--source-file", tmp_path, "--target-file", tmp_path), "error rates need links set by hand"),
        (("--method", "union"), "--method joins two directions"),
        (("--reverse-model", MODEL[1], "--method", "best"), "must be one of intersection, union"),
        (("--export", "moses", "--head", "7.1"), "layer and head"),
    ):
        status, _, err = cli("align", *MODEL, *extra)
        assert status == 2 and words in err
