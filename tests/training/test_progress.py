"""What is shown of a run after each epoch."""

import pytest
import tiny
import torch
from runs import config

from attnviz.data import corpora
from attnviz.data.tokenizer import SubwordTokenizer, train_vocabulary
from attnviz.models.translator import Translator
from attnviz.training import progress
from attnviz.training.trainers.trainer import Trainer


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
    head, source, translation, looks = progress.report(trainer, text, "en-fr/any", "The black dog runs.").splitlines()
    assert head == "epoch 2 of 3: val_bleu_lc 3.25, val_loss 1.5, train_loss 2.5, 7 s"
    trace = Translator("", mechanism, trainer.optimizer.averaged_model(), text, {}).trace("The black dog runs.")
    assert (source, translation.strip()) == ("  The black dog runs.", trace.translation.strip() or progress.EMPTY)
    best = trace.map().weights.mean(0).argmax(-1)
    shown = [f"{token.text or '␣'} [{trace.source[key].text}]" for token, key in zip(trace.target, best)]
    assert looks.replace("␣", " ").split() == " ".join(shown).split()


def test_without_attention_there_is_the_translation_alone(pairs):
    trainer, text = trainer_of("fixed-context", pairs)
    assert len(progress.report(trainer, text, "en-fr/any", "The black dog runs.").splitlines()) == 3


def test_a_sentence_too_long_to_show_does_not_end_the_run(pairs):
    trainer, text = trainer_of("bahdanau", pairs)
    head, sample = progress.report(trainer, text, "en-fr/any", "dog " * 300).splitlines()
    assert head.startswith("epoch 2") and sample.startswith("  no sample: the text is too long: 301 pieces")


def test_showing_changes_nothing(pairs):
    trainer, text = trainer_of("transformer", pairs)
    trainer.optimizer.working.train()
    numbers, weights = (
        torch.get_rng_state(),
        {key: value.clone() for key, value in trainer.optimizer.master.state_dict().items()},
    )
    progress.report(trainer, text, "en-fr/any", "The black dog runs.")
    assert torch.equal(torch.get_rng_state(), numbers) and trainer.optimizer.working.training
    assert all(torch.equal(value, trainer.optimizer.master.state_dict()[key]) for key, value in weights.items())


def test_the_example_is_of_middling_length_and_always_the_same():
    words = ["a b", "a b c d e f g", "b c d e f g h", "a " * 30]
    assert progress.example([(source, "x") for source in words]) == "a b c d e f g"
    assert progress.example([("犬が走る。", "x")]) == "犬が走る。"


def test_japanese_is_shown_as_it_is_printed():
    pairs = [("he runs .", "彼 は 走 る 。"), ("she runs .", "彼女 は 走 る 。")] * 3
    text = train_vocabulary([side for pair in pairs for side in pair], 100, "tokenised")
    assert isinstance(text, SubwordTokenizer)
    trainer = Trainer(config(epochs=80), text, pairs, "cpu")
    trainer.history = [{"val_bleu_morphemes": 0.0, "train_loss": 1.0, "seconds": 1}]
    for batch in trainer.batches.order(0) * 80:
        trainer.update(batch)
    lines = progress.report(trainer, text, "en-fr/any", progress.example(corpora.own(pairs[:2], {}).train)).splitlines()
    assert lines[2].strip() in ("彼は走る。", "彼女は走る。")
