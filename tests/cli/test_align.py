"""`python -m attnviz align`: links that a person brings."""

import json

MODEL = ("--model", "en-fr/bahdanau")


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
