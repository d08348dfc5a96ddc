"""Knowledge distillation: what teachers say, n-grams of sentences, and a trainer that learns from them."""

import numpy as np
import pytest
import tiny
import torch
from hypothesis import given
from hypothesis import strategies as st
from taught_runs import config

from attnviz.data import MOST_PIECES, corpora
from attnviz.data.tasks import LABELS
from attnviz.models import checkpoint_files, checkpoints, classifier
from attnviz.training import classifiers


def load(folder):
    return classifier.Classifier.load(*checkpoint_files.locate(folder))


@given(
    st.lists(st.lists(st.sampled_from("abcdé"), min_size=1, max_size=9).map(" ".join), max_size=6), st.integers(0, 5)
)
def test_ngrams_stand_in_a_sentence_as_they_are(sentences, count):
    grams = classifiers.ngrams(sentences, count, 1)
    assert len(set(grams)) == len(grams) <= count * len(sentences)
    assert not set(grams) & set(sentences)
    assert all(any(f" {ngram} " in f" {sentence} " for sentence in sentences) for ngram in grams)
    assert grams == classifiers.ngrams(sentences, count, 1)


def test_ngrams_are_of_every_length_and_place():
    words = [str(i) for i in range(12)]
    drawn = [ngram.split() for ngram in classifiers.ngrams([" ".join(words)], 800, 1)]
    assert {len(ngram) for ngram in drawn} == set(range(1, 12)) and {ngram[0] for ngram in drawn} == set(words)
    assert classifiers.ngrams([" ".join(words)], 5, 1) != classifiers.ngrams([" ".join(words)], 5, 2)
    assert classifiers.ngrams(["one", ""], 5, 1) == []


def test_what_teachers_say_is_the_mean_of_their_logits_at_one_spread(teachers):
    texts = ["the film is great", "dull", "a story", "is awful , really"]
    loaded = [load(folder) for folder in teachers]
    logits = np.stack(
        [classifier.logits(teacher.model, teacher.tokenizer, texts).double().numpy() for teacher in loaded]
    )
    centred = logits - logits.mean(-1, keepdims=True)
    spread = np.array([np.sqrt((values**2).mean()) for values in centred])
    mean = sum(values / own for values, own in zip(centred, spread)) * spread.mean() / 2
    shares = np.exp(mean) / np.exp(mean).sum(-1, keepdims=True)
    np.testing.assert_allclose(classifiers.soft_targets(loaded, texts), shares, atol=1e-5)
    alone = classifiers.soft_targets(loaded[:1], texts)
    np.testing.assert_allclose(alone, torch.from_numpy(logits[0]).softmax(-1), atol=1e-5)


def test_a_sure_teacher_has_no_more_say(teachers):
    texts = ["the film is great", "dull", "a story", "is awful , really"]
    loaded = [load(folder) for folder in teachers]
    before = classifiers.soft_targets(loaded, texts).log()
    with torch.no_grad():
        for parameter in loaded[1].model.output.parameters():
            parameter.mul_(9)
    after = classifiers.soft_targets(loaded, texts).log()
    odds = [log_probs[:, 1] - log_probs[:, 0] for log_probs in (before, after)]
    torch.testing.assert_close(odds[1] / odds[1].abs().mean(), odds[0] / odds[0].abs().mean(), atol=1e-4, rtol=1e-3)


def test_a_run_learns_what_teachers_say_and_is_not_told_the_labels(reviews, teachers, tmp_path):
    """Its data has every label turned round, and it answers as its teachers do."""
    true = corpora.load("sst2", reviews)
    turned = [(sentence, LABELS[1 - LABELS.index(label)]) for sentence, label in true.train]
    loaded = [load(folder) for folder in teachers]
    settings = config(ngrams=3)
    text = checkpoints.load_tokenizer("sst2", teachers[0].parent.parent)
    trainer = classifiers.DistillationTrainer(settings, text, turned, "cpu", labels=LABELS, teachers=loaded)
    for _ in range(8):
        for batch in trainer.batches.order(0):
            trainer.update(batch)
    heard = [sentence for sentence, _ in true.val]
    wanted = [LABELS[i] for i in classifiers.soft_targets(loaded, heard).argmax(-1).tolist()]
    answers = classifier.predict(trainer.optimizer.averaged_model(), text, LABELS, heard)
    assert np.mean([a == b for a, b in zip(answers, wanted)]) > 0.9
    assert len(trainer.batches.examples) > 2 * len(turned)  # sentences and n-grams


def test_its_loss_is_the_cross_entropy_against_what_is_said(reviews, teachers):
    settings = config(label_smoothing=0.0, ngrams=2)
    text = checkpoints.load_tokenizer("sst2", teachers[0].parent.parent)
    pairs, loaded = corpora.load("sst2", reviews).train[:20], [load(folder) for folder in teachers]
    trainer = classifiers.DistillationTrainer(settings, text, pairs, "cpu", labels=LABELS, teachers=loaded)
    trainer.optimizer.working = trainer.optimizer.averaged_model()  # fp32, no dropout
    batch = [0, 3, len(trainer.batches.examples) - 1]
    texts = [sentence for sentence, _ in trainer.batches.pairs]
    teacher_log_probs = torch.log_softmax(
        classifier.logits(trainer.optimizer.working, text, [texts[i] for i in batch]), dim=-1
    ).numpy()
    heard = classifiers.soft_targets(loaded, texts).numpy()[batch]
    assert trainer.loss(batch).item() == pytest.approx(-(heard * teacher_log_probs).sum(-1).mean(), abs=1e-5)


def test_what_a_teacher_cannot_read_is_left_out_and_said(reviews, teachers, capsys):
    """One tokenizer may make more pieces of a sentence than another, and an n-gram may have nothing visible in it."""
    loaded = [load(folder) for folder in teachers]
    coarse, fine = (teacher.tokenizer for teacher in loaded)
    words = {word for sentence, _ in tiny.reviews(150, 0) for word in sentence.split()}
    word = max(sorted(words), key=lambda word: len(fine.ids(word)) - len(coarse.ids(word)))
    long = " ".join([word] * ((MOST_PIECES - 1) // (len(coarse.ids(word)) - 1)))
    assert len(fine.ids(long)) > MOST_PIECES >= len(coarse.ids(long))
    pairs = [("the film is great", "positive"), ("\u200b \u200b dull", "negative"), (long, "positive")]
    trainer = classifiers.DistillationTrainer(config(ngrams=4), coarse, pairs, "cpu", labels=LABELS, teachers=loaded)
    read = [sentence for sentence, _ in trainer.batches.pairs]
    assert (
        read[:2] == [pairs[0][0], pairs[1][0]]
        and long not in read
        and "\u200b" not in read
        and len(trainer.targets) == len(read)
    )
    assert (
        f"are left out: too long for a teacher, or without a visible character; the first is '{long[:80]}'"
        in capsys.readouterr().err
    )
    with pytest.raises(
        ValueError, match="^no training sentence is short enough for all teachers; give shorter sentences$"
    ):
        classifiers.DistillationTrainer(config(), coarse, pairs[2:], "cpu", labels=LABELS, teachers=loaded)


def test_a_teacher_of_other_labels_is_refused(reviews, teachers):
    """Its first label may be the second of the task."""
    text = checkpoints.load_tokenizer("sst2", teachers[0].parent.parent)
    pairs, loaded = corpora.load("sst2", reviews).train[:20], [load(folder) for folder in teachers]
    message = (
        "a teacher must choose from the labels of the task, positive, negative; "
        f"{loaded[0].name} chooses from {', '.join(LABELS)}"
    )
    with pytest.raises(ValueError) as error:
        classifiers.DistillationTrainer(config(), text, pairs, "cpu", labels=("positive", "negative"), teachers=loaded)
    assert str(error.value) == message
