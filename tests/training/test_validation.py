"""The report after each epoch, and the moments of a run that are packed."""

import pytest
import tiny
import torch
from runs import PAIR, config, same

from attnviz import moments
from attnviz.data import corpora
from attnviz.data.tokenizer import SubwordTokenizer, train_vocabulary
from attnviz.models import checkpoints
from attnviz.models.translator import Translator
from attnviz.moments import codec
from attnviz.training import validation
from attnviz.training.train import train
from attnviz.training.trainer import Trainer
from attnviz.training.validation import pack_spaced


@pytest.fixture(scope="module")
def pairs():
    return tiny.sentences(30, 1)


def trainer_of(mechanism, pairs):
    text = tiny.vocabulary()
    trainer = Trainer(config(mechanism), text, pairs, "cpu")
    trainer.epoch, trainer.history = (
        2,
        [{"epoch": 2, "val_bleu_lc": 3.25, "val_loss": 1.5, "train_loss": 2.5, "seconds": 7}],
    )
    return trainer, text


@pytest.mark.parametrize("mechanism", [name for name in tiny.WIDTHS if name != "fixed-context"])
def test_each_token_is_shown_with_where_it_looked_most(mechanism, pairs):
    trainer, text = trainer_of(mechanism, pairs)
    head, source, translation, looks = validation.report(trainer, text, "en-fr/any", "The black dog runs.").splitlines()
    assert head == "epoch 2 of 3: val_bleu_lc 3.25, val_loss 1.5, train_loss 2.5, 7 s"
    trace = Translator("", mechanism, trainer.optimizer.averaged_model(), text, {}).trace("The black dog runs.")
    assert (source, translation.strip()) == ("  The black dog runs.", trace.translation.strip() or validation.EMPTY)
    best = trace.map().weights.mean(0).argmax(-1)
    shown = [f"{token.text or '␣'} [{trace.source[key].text}]" for token, key in zip(trace.target, best)]
    assert looks.replace("␣", " ").split() == " ".join(shown).split()


def test_without_attention_there_is_the_translation_alone(pairs):
    trainer, text = trainer_of("fixed-context", pairs)
    assert len(validation.report(trainer, text, "en-fr/any", "The black dog runs.").splitlines()) == 3


def test_a_sentence_too_long_to_show_does_not_end_the_run(pairs):
    trainer, text = trainer_of("bahdanau", pairs)
    head, sample = validation.report(trainer, text, "en-fr/any", "dog " * 300).splitlines()
    assert head.startswith("epoch 2") and sample.startswith("  no sample: the text is too long: 301 pieces")


def test_showing_changes_nothing(pairs):
    trainer, text = trainer_of("transformer", pairs)
    trainer.optimizer.working.train()
    numbers, weights = (
        torch.get_rng_state(),
        {key: value.clone() for key, value in trainer.optimizer.master.state_dict().items()},
    )
    validation.report(trainer, text, "en-fr/any", "The black dog runs.")
    assert torch.equal(torch.get_rng_state(), numbers) and trainer.optimizer.working.training
    assert all(torch.equal(value, trainer.optimizer.master.state_dict()[key]) for key, value in weights.items())


def test_the_example_is_of_middling_length_and_always_the_same():
    words = ["a b", "a b c d e f g", "b c d e f g h", "a " * 30]
    assert validation.example([(source, "x") for source in words]) == "a b c d e f g"
    assert validation.example([("犬が走る。", "x")]) == "犬が走る。"


def test_japanese_is_shown_as_it_is_printed():
    pairs = [("he runs .", "彼 は 走 る 。"), ("she runs .", "彼女 は 走 る 。")] * 3
    text = train_vocabulary([side for pair in pairs for side in pair], 100, "tokenised")
    assert isinstance(text, SubwordTokenizer)
    trainer = Trainer(config(epochs=80), text, pairs, "cpu")
    trainer.history = [{"val_bleu_morphemes": 0.0, "train_loss": 1.0, "seconds": 1}]
    for batch in trainer.batches.order(0) * 80:
        trainer.update(batch)
    lines = validation.report(
        trainer, text, "en-fr/any", validation.example(corpora.own(pairs[:2], {}).train)
    ).splitlines()
    assert lines[2].strip() in ("彼は走る。", "彼女は走る。")


NAME = f"{PAIR}/bahdanau"


def test_a_run_keeps_its_moments_and_ends_as_without(finished, corpus, tmp_path):
    folder = train(config(), corpus, tmp_path, PAIR, moments=tmp_path / "kept")
    assert same(folder, finished(), "model.safetensors")
    paths = moments.files(tmp_path / "kept")
    assert paths[0].name == "000000.safetensors" and len(paths) > 1
    record = checkpoints.load_metadata(paths[0], "update", "config")
    assert record["update"] == moments.update_of(paths[0]) == 0 and record["config"]["mechanism"] == "bahdanau"


def test_the_moments_that_ship_are_chosen_by_loss_and_stay_near(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(codec, "SMALL", 100)  # all tensors are small here
    train(config(epochs=2), corpus, tmp_path, PAIR, moments=tmp_path / "kept")
    path, rows = pack_spaced(NAME, tmp_path, tmp_path / "kept", corpus.val, 4)
    assert path == moments.path_for(NAME, tmp_path)
    assert [update for update, _, _ in rows] == [moment.update for moment in moments.moments(NAME, tmp_path)]
    assert rows[0][0] == 0 and len(rows) == 4 and rows[-1][0] == moments.update_of(moments.files(tmp_path / "kept")[-1])
    assert all(abs(packed / before - 1) <= validation.NEAR for _, before, packed in rows), rows
    coarse = path.stat().st_size
    monkeypatch.setattr(validation, "NEAR", 1e-4)
    path, _ = pack_spaced(NAME, tmp_path, tmp_path / "kept", corpus.val, 4)
    assert path.stat().st_size > coarse
