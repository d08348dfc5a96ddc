"""Which tokenizer a run reads with, when it is written, and why one learnt elsewhere may not suit."""

import pytest
import tiny

from attnviz.data import corpora
from attnviz.data.styles import STYLES
from attnviz.data.tokenizer import SubwordTokenizer, train_vocabulary
from attnviz.models import checkpoint_files, checkpoints
from attnviz.training import initial

CORPUS = corpora.Corpus(tiny.sentences(60, 3), tiny.sentences(5, 4), {}, {})


def test_it_is_learnt_then_written_then_kept(tmp_path):
    path = tmp_path / "en-fr" / "tokenizer.json"
    learnt = initial.choose_tokenizer(path, CORPUS, 120)
    assert not path.parent.exists() and len(learnt) <= 120
    initial.save_tokenizer(path, learnt)
    content = path.read_bytes()
    again = initial.choose_tokenizer(path, CORPUS, 60)  # what is there is kept, whatever is asked for
    initial.save_tokenizer(path, again)
    assert path.read_bytes() == content and len(again) == len(learnt)
    sources = [source for source, _ in CORPUS.train]
    assert again.batch_ids(sources) == learnt.batch_ids(sources)


def test_another_run_that_began_at_the_same_time_is_not_written_over(tmp_path):
    path = tmp_path / "en-fr" / "tokenizer.json"
    first, second = (initial.choose_tokenizer(path, CORPUS, size) for size in (120, 60))
    initial.save_tokenizer(path, first)
    with pytest.raises(
        ValueError, match="another run started at the same time and wrote .*tokenizer.json; choose another --out"
    ):
        initial.save_tokenizer(path, second)
    assert len(SubwordTokenizer.load(path)) == len(first)


def test_the_one_of_the_checkpoint_to_begin_with_is_copied(root, tmp_path):
    path, start = tmp_path / "en-fr" / "tokenizer.json", root / "en-fr" / "bahdanau"
    text = initial.choose_tokenizer(path, CORPUS, 120, start)
    initial.save_tokenizer(path, text, start)
    assert path.read_bytes() == (root / "en-fr" / "tokenizer.json").read_bytes()


def test_a_damaged_one_is_said(tmp_path):
    path = tmp_path / "en-fr" / "tokenizer.json"
    path.parent.mkdir()
    path.write_text("{")
    with pytest.raises(checkpoint_files.CheckpointError, match="tokenizer.json is damaged"):
        initial.choose_tokenizer(path, CORPUS, 120)


@pytest.mark.parametrize("style", STYLES)
def test_the_style_of_a_tokenizer_is_known_again(style, tmp_path):
    train_vocabulary(["a b c", "c b a"] * 3, 40, style).save(tmp_path / "tokenizer.json")
    assert initial.style_of(SubwordTokenizer.load(tmp_path / "tokenizer.json")) == style


def test_mismatches():
    text = train_vocabulary(CORPUS.texts(), 120)
    assert initial.mismatches(text, CORPUS) == []
    greek = corpora.Corpus([("ο σκύλος", "le chien")] * 3 + CORPUS.train[:7], CORPUS.val, {}, {}, style="tokenised")
    assert initial.mismatches(text, greek) == [
        "it reads written text, and these sentences are tokenised (--style)",
        "3 of the first 10 training sentences have characters that it does not know",
    ]


@pytest.mark.parametrize("pair", ["en-fr", "en-de", "en-ja", "reverse", "sst2"])
def test_the_tokenizers_that_ship_are_of_the_style_of_their_corpora(pair):
    style = {"en-ja": "tokenised", "reverse": "symbols", "sst2": "plain"}.get(pair, "written")
    assert initial.style_of(checkpoints.load_tokenizer(pair)) == style
