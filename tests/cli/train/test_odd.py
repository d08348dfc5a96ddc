"""`python -m attnviz train` on odd input: sentences that no model reads, full discs, other tokenizers, lost files."""

import signal

import pytest
import tiny
from safetensors import SafetensorError

from attnviz.__main__ import main
from attnviz.data import readers
from attnviz.models import checkpoint_files, checkpoints
from attnviz.training.recipes import training_config
from attnviz.training.trainer import Trainer

WIDTHS = {
    "bahdanau": ["--set", "embedding_width=16"],
    "luong-dot": [],
    "self-attention": ["--set", "heads=2"],
    "transformer": ["--set", "heads=2", "--set", "hidden=16", "--set", "layers=1"],
}
ODD = [
    ("a dog # " * 300, "un chien"),
    ("#", "un chien"),
    ("a dog #", "un chien " * 300),
    ("a cat #", "\u200b"),
]  # "#": a number, or as many blanks
PROGRAM = "python -m attnviz train: "


@pytest.fixture
def train(tmp_path, capsys):
    """Run `train` on lines of a TSV -> status, output, errors."""

    def run(pairs, *options, mechanism="bahdanau", pair="en-fr"):
        path = tmp_path / "mine.tsv"
        path.write_text("".join(f"{a}\t{b}\n" for a, b in pairs), encoding="utf-8")
        command = [
            "train",
            "--pair",
            pair,
            "--mechanism",
            mechanism,
            "--out",
            str(tmp_path / "out"),
            "--tsv",
            str(path),
            "--epochs",
            "1",
            "--set",
            "width=16",
            *WIDTHS[mechanism],
        ]
        return main([*command, *map(str, options)]), *capsys.readouterr()

    return run


def last_line(err):
    """The last line of standard error."""
    return err.splitlines()[-1]


@pytest.mark.parametrize("mechanism", ["bahdanau", "transformer"])
def test_sentences_that_no_model_reads_are_left_out_and_said(train, tmp_path, mechanism):
    """Half of them are too long, or without anything visible, on one side; the others train a model and are scored."""
    pairs, kinds = [(f"{a} {i}", b) for i, (a, b) in enumerate(tiny.sentences(60, 9))], len(ODD)
    odd = [
        tuple(side.replace("#", "\u200b" * (i + 1) if side == "#" else str(i)) for side in ODD[i % kinds])
        for i in range(60)
    ]
    status, _, err = train(pairs + odd, "--val-size", "40", mechanism=mechanism)
    assert status == 0
    assert (
        "\n60 of 120 sentences are left out: more than 200 pieces, or no visible character, on one side; the first is '"
        in err
    )
    card = checkpoint_files.read_card(f"en-fr/{mechanism}", tmp_path / "out")
    held = card["scores"]["val"]["sentences"]
    assert 0 < held < 40 and card["training_pairs"] == 60 - held


def test_a_review_of_nothing_but_marks_is_left_out(train, tmp_path):
    """Those of style plain strip the marks, and nothing is left to classify."""
    pairs = [(f"{word} film {i}", label) for i in range(30) for word, label in (("good", 1), ("bad", 0))]
    status, _, err = train(
        pairs + [("." * i, 1) for i in range(1, 21)], "--val-size", "30", mechanism="self-attention", pair="sst2"
    )
    assert status == 0 and "20 of 80 sentences are left out: more than 200 pieces, or no visible character" in err
    assert checkpoint_files.read_card("sst2/self-attention", tmp_path / "out")["scores"]["dev"]["sentences"] < 30


def test_a_full_disc_is_one_line_and_the_last_good_model_stays(train, tmp_path, monkeypatch):
    pairs = tiny.sentences(60, 9)
    assert train(pairs)[0] == 0
    model = tmp_path / "out" / "en-fr" / "bahdanau" / "model.safetensors"
    content = model.read_bytes()

    def full(*args):
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    monkeypatch.setattr(checkpoints, "save_file", full)
    status, _, err = train(pairs, "--restart", "--seed", "5")
    assert (
        status == 2
        and last_line(err)
        == f"{PROGRAM}{model}: Error while serializing: I/O error: No space left on device (os error 28)"
    )
    assert model.read_bytes() == content and not list(model.parent.glob("*.part"))


def test_a_vocabulary_is_at_most_what_was_asked_for(train, tmp_path):
    """Few sentences have fewer pieces, and the same command must serve the next mechanism; after a restart too."""
    pairs = tiny.sentences(60, 9)
    assert train(pairs, "--set", "vocabulary=2000")[0] == 0
    path = tmp_path / "out" / "en-fr" / "tokenizer.json"
    size = len(checkpoints.load_tokenizer("en-fr", tmp_path / "out"))
    for mechanism, options in (("luong-dot", ()), ("bahdanau", ("--restart",))):
        status, out, err = train(pairs, "--set", "vocabulary=2000", *options, mechanism=mechanism)
        notice = f"{path} is used: {size} pieces of at most 2000, shared by all mechanisms of en-fr"
        assert status == 0 and out.splitlines()[0] == notice and "may not suit" not in err
    assert train(pairs, "--restart", "--set", "vocabulary=20")[0] == 2  # fewer than there are


def test_a_tokenizer_of_other_text_is_doubted(train, tmp_path):
    assert train(tiny.sentences(60, 9), "--style", "tokenised")[0] == 0
    greek = [(f"το σπίτι {i}", f"η γάτα {i}") for i in range(60)]
    status, _, err = train(greek, mechanism="luong-dot")
    path = tmp_path / "out" / "en-fr" / "tokenizer.json"
    assert status == 0
    assert (
        f"{path} may not suit these sentences: it reads tokenised text, and these sentences are written (--style); "
        in err
    )
    assert "48 of the first 48 training sentences have characters that it does not know; choose another --out" in err


def test_a_refused_run_leaves_no_tokenizer_behind(train, tmp_path, root):
    pairs = tiny.sentences(60, 9)
    status, _, err = train(pairs, "--style", "tokenised", "--set", "piece_dropout=0.1")
    assert status == 2 and "piece_dropout needs a vocabulary of byte-pair merges" in last_line(err)
    status, _, err = train(pairs, "--start", root / "en-fr" / "transformer")
    assert status == 2 and "holds a different model" in last_line(err)
    assert not (tmp_path / "out").exists()


def test_a_run_does_not_begin_with_the_weights_it_would_write_over(train, tmp_path):
    pairs, folder = tiny.sentences(60, 9), tmp_path / "out" / "en-fr" / "bahdanau"
    assert train(pairs)[0] == 0
    status, _, err = train(pairs, "--start", folder, "--restart")
    assert (status, last_line(err)) == (
        2,
        f"{PROGRAM}{folder} is the folder to train in, which would be overwritten; choose another --out",
    )


def test_a_run_that_lost_a_file_says_what_to_do(train, tmp_path):
    pairs, folder = tiny.sentences(60, 9), tmp_path / "out" / "en-fr" / "bahdanau"
    assert train(pairs)[0] == 0
    (folder / "model.safetensors").unlink()
    assert last_line(train(pairs)[2]).endswith(
        "but its model.safetensors is missing; restore that file, or use --restart"
    )
    run = folder / "training.safetensors"
    run.write_bytes(run.read_bytes()[:100])
    message = last_line(train(pairs)[2])
    assert message.startswith(f"{PROGRAM}{run} is damaged (") and message.endswith("; --restart begins again")
    (folder.parent / "tokenizer.json").write_text("{")
    assert last_line(train(pairs)[2]).startswith(f"{PROGRAM}{folder.parent / 'tokenizer.json'} is damaged (")


@pytest.mark.parametrize(
    "options, message",
    [
        (["--set", "layers=0"], "layers must be from 1 to 64; got 0"),
        (["--set", "longest=100"], "longest must be at least 410, for texts of 200 pieces and their output"),
    ],
)
def test_a_transformer_that_could_not_answer_is_refused(train, options, message):
    status, _, err = train(tiny.sentences(60, 9), *options, mechanism="transformer")
    assert status == 2 and last_line(err).endswith(message)


def test_other_numbers_that_cannot_be(train):
    status, _, err = train([("a", 1)] * 9, "--set", "classes=3", mechanism="self-attention", pair="sst2")
    assert status == 2 and last_line(err).endswith("classes must be 2: negative, positive")
    with pytest.raises(ValueError, match="reach must be a whole number, or a share from 0 to below 1; got nan"):
        training_config("en-fr", "luong-local", {"reach": float("nan")})


@pytest.mark.parametrize(
    "options, again", [([], "the same command"), (["--restart"], "the same command without --restart")]
)
def test_an_interrupted_run_says_which_command_goes_on(train, monkeypatch, options, again):
    monkeypatch.setattr(Trainer, "update", lambda trainer, indices: signal.raise_signal(signal.SIGINT))
    handler = signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # what a shell starts in the background ignores it
    try:
        status, _, err = train(tiny.sentences(60, 9), *options)
    finally:
        signal.signal(signal.SIGINT, handler)
    assert (status, last_line(err)) == (130, f"{PROGRAM}interrupted; {again} continues from the last save")


def test_two_files_of_one_name_keep_two_hashes(tmp_path, capsys):
    files = []
    for side, folder in enumerate(("a", "b")):
        (tmp_path / folder).mkdir()
        files.append(tmp_path / folder / "text")
        files[-1].write_text("".join(f"{pair[side]}\n" for pair in tiny.sentences(60, 9)), encoding="utf-8")
    assert (
        main(
            [
                "train",
                "--pair",
                "en-fr",
                "--mechanism",
                "bahdanau",
                "--epochs",
                "1",
                "--set",
                "width=16",
                "--set",
                "embedding_width=16",
                "--out",
                str(tmp_path / "out"),
                "--source-file",
                str(files[0]),
                "--target-file",
                str(files[1]),
            ]
        )
        == 0
    )
    card = checkpoint_files.read_card("en-fr/bahdanau", tmp_path / "out")
    assert list(card["data"]) == ["a/text", "b/text"] and len(set(card["data"].values())) == 2
    assert "--source-file a/text --target-file b/text" in card["command"]


def test_line_ends_of_old_macs(tmp_path):
    path = tmp_path / "mine.tsv"
    path.write_bytes("".join(f"{a}\t{b}\r" for a, b in tiny.sentences(60, 9)).encode())
    assert readers.read_tsv(path) == tiny.sentences(60, 9)
    path.write_bytes(b"a\rb\tc\nd\te\n")  # one inside a line ends none
    assert readers.tsv_rows(path) == [("a\rb", "c"), ("d", "e")]
