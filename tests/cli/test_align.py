"""`python -m attnviz align`: links that a person brings."""

MODEL = ("--model", "en-fr/bahdanau")


def test_one_linked_pair(cli, tmp_path):
    """Enough for a model with one head, which needs no choosing; not for one with several."""
    single = tmp_path / "one.txt"
    single.write_text("The dog runs.\nLe chien court.\n0-0 1-1 2-2\n", encoding="utf-8")
    status, out, _ = cli("align", *MODEL, "--gold", single)
    assert status == 0 and "1 pairs, 3 sure of 3 links" in out
    status, _, err = cli("align", "--model", "en-fr/transformer", "--gold", single)
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
