"""Fine-tuning from a checkpoint, and two passes under dropout that must agree (R-Drop)."""

import pytest
import tiny
import torch
from runs import finish, history, plan
from scipy.stats import entropy

from attnviz.data import batching, corpora
from attnviz.data.tokenizer import Text, train_vocabulary
from attnviz.models import checkpoints
from attnviz.training import train
from attnviz.training.trainer import Run, disagreement


@pytest.fixture(scope="module")
def corpus(data):
    return corpora.load("en-fr", data)


@pytest.fixture(scope="module")
def finished(tmp_path_factory, corpus):
    return finish(tmp_path_factory.mktemp("finished"), corpus, ["bahdanau"])


def test_fine_tuning_begins_with_the_weights_and_the_tokenizer(finished, corpus, tmp_path):
    start, out = finished / "en-fr" / "bahdanau", tmp_path / "out"
    before = history(start)[-1]
    folder = train.train(plan(epochs=1, learning_rate=1e-9), corpus, out, "en-fr", compile=False, start=start)
    first = history(folder)[0]
    assert first["val_loss"] == pytest.approx(before["val_loss"], abs=2e-3)
    assert first["val_loss"] < history(start)[0]["val_loss"] - 0.1
    assert (folder.parent / "tokenizer.json").read_bytes() == (start.parent / "tokenizer.json").read_bytes()
    kept = checkpoints.load_metadata(folder / "training.safetensors", "settings")["settings"]
    assert kept["start"] == checkpoints.fingerprint("en-fr/bahdanau", finished)


def test_fine_tuning_refuses_another_model_and_another_tokenizer(finished, corpus, tmp_path):
    start = finished / "en-fr" / "bahdanau"
    with pytest.raises(ValueError, match="holds another model"):
        train.train(plan("luong-general"), corpus, tmp_path / "a", "en-fr", compile=False, start=start)
    train_vocabulary(["x y"], 40).save(_parents(tmp_path / "b" / "en-fr" / "tokenizer.json"))
    with pytest.raises(ValueError, match="is not the tokenizer of"):
        train.train(plan(), corpus, tmp_path / "b", "en-fr", compile=False, start=start)


def _parents(path):
    path.parent.mkdir(parents=True)
    return path


def test_disagreement_by_scipy():
    logits, target = (
        torch.randn(4, 3, 5, generator=torch.Generator().manual_seed(1)),
        torch.tensor([[4, 2, 0], [4, 4, 2]]),
    )
    p, q = (half.softmax(-1)[target != 0].numpy() for half in logits.chunk(2))
    expected = ((entropy(p, q, axis=1) + entropy(q, p, axis=1)) / 2).mean()
    assert float(disagreement(logits, target)) == pytest.approx(expected, rel=1e-5)
    assert float(disagreement(logits[:2].repeat(2, 1, 1), target)) == 0


def test_two_passes_agree_more_when_they_must(finished, corpus):
    """The same run with and without R-Drop: its two passes under dropout come to differ less."""
    apart = {}
    for consistency in (0.0, 5.0):
        options = {**tiny.WIDTHS["transformer"], "dropout": 0.3}
        run = Run(
            plan("transformer", consistency=consistency, options=options),
            Text.load(finished / "en-fr" / "tokenizer.json"),
            corpus.train,
            "cpu",
            compile=False,
        )
        for batch in run.order(0) + run.order(1):
            run.learn(batch)
        source, target = (batching.pad([run.data[i][side] for i in range(20)]).repeat(2, 1) for side in (0, 1))
        with torch.no_grad():
            apart[consistency] = float(disagreement(run._logits(source, target), target[:20]))
    assert apart[5.0] < 0.5 * apart[0.0]
