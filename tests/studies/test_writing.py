"""The study of models that write: losses by place, the scores of heads, and the same of packed moments."""

import numpy as np
import pytest
import tiny_writer
import torch
from torch.nn import functional as F

from attnviz import loading, studies
from attnviz.__main__ import main
from attnviz.data import corpora
from attnviz.data.tokenizer import BOS
from attnviz.models import checkpoint_files
from attnviz.models.names import moments_file
from attnviz.studies import report, writing
from attnviz.training import validation
from attnviz.training.train import train


@pytest.fixture(scope="module")
def config(tmp_path_factory) -> studies.StudyConfig:
    """A folder with one trained model that writes, and three packed moments of its run."""
    folder = tmp_path_factory.mktemp("writing")
    data, root, moments_folder = tiny_writer.write_data(folder / "data"), folder / "models", folder / "kept"
    corpus = corpora.load("en", data)
    train(tiny_writer.config(), corpus, root, "en", compile=False, moments=moments_folder)
    validation.pack_spaced(tiny_writer.NAME, root, moments_folder, corpus.val, 3)
    return studies.StudyConfig(root, folder / "out", None, data=data)


@pytest.fixture(scope="module")
def results(config) -> dict:
    return writing.measure(config)


def test_the_loss_by_place_is_that_of_each_token_after_those_before_it(config, results):
    writer = loading.load(tiny_writer.NAME, config.root)
    (row,) = results["rows"]
    windows = writing._windows(writer, config.data, None)
    nats = np.zeros(windows.shape)
    for number, window in enumerate(windows):
        for place, token in enumerate(window):
            logits, _ = writer.model(torch.tensor([[BOS, *window[:place]]]))
            nats[number, place] = F.cross_entropy(logits[0, -1], token)
    assert row["windows"] == len(windows) > 1 and row["by_place"][-1]["last"] == row["context"] - 1
    for part in row["by_place"]:
        assert part["nats"] == pytest.approx(nats[:, part["first"] : part["last"] + 1].mean(), abs=1e-3)


def test_scores_are_the_weights_that_their_names_say(config, results):
    writer = loading.load(tiny_writer.NAME, config.root)
    windows, twice = writing._windows(writer, config.data, None)[: writing.SEQUENCES], writing._twice(writer)
    n = twice.shape[1] // 2
    assert torch.equal(twice[:, :n], twice[:, n:])
    texts, copies = (
        [weights.detach().numpy() for weights in writer.model.read(writing._read(target)).maps]
        for target in (windows, twice)
    )
    read = [BOS, *range(n), *range(n)]  # which token of a sequence stands at each place that is read
    second = range(n + 1, 2 * n)
    for row in results["heads"]:
        of_text, of_copy = (maps[row["layer"]][:, row["head"]] for maps in (texts, copies))
        places = range(2, windows.shape[1])
        expected = {
            "previous": np.mean([of_text[:, place, place - 1].mean() for place in places]),
            "first": np.mean([of_text[:, place, 0].mean() for place in places]),
            "duplicate": np.mean([of_copy[:, place, 1 + read[place]].mean() for place in second]),
            "induction": np.mean([of_copy[:, place, 2 + read[place]].mean() for place in second]),
        }
        assert {key: row[key] for key in writing.ROLES} == pytest.approx(expected, abs=1e-3)


def test_moments_go_from_the_untrained_model_to_the_trained_one(config, results):
    rows = results["training"]
    assert len(rows) == 3 and rows[0]["update"] == 0 and rows[0]["loss"] > rows[-1]["loss"]
    best = {key: max(head[key] for head in results["heads"]) for key in writing.ROLES}
    assert {key: rows[-1][key] for key in best} == pytest.approx(best, abs=0.02)


def test_the_packed_moments_are_measured_for_the_page(config, results):
    measured = writing.measure_moments(tiny_writer.NAME, config.root, config.data)
    assert [moment.items() <= row.items() for moment, row in zip(measured, results["training"])] == [True] * 3
    with pytest.raises(ValueError, match="en/writer has no packed moments to measure"):
        writing.measure_moments(tiny_writer.NAME, tiny_writer.write_models(config.root.parent / "bare"), config.data)


def test_the_command_packs_and_measures_moments_of_a_model_that_writes(config, capsys):
    command = ["moments", "--model", tiny_writer.NAME, "--root", str(config.root), "--data", str(config.data)]
    command += ["--kept", str(config.root.parent / "kept"), "--count", "3", "--sentences", "2"]
    assert main(command) == 0
    out = capsys.readouterr().out
    file = checkpoint_files.read_json(moments_file(tiny_writer.NAME, config.root))
    assert file["sentences"] == 2 and file["moments"][0]["update"] == 0
    assert "previous token" in out and "loss as packed" in out


def test_its_section_and_its_picture_have_every_model(results):
    shown = report.section("writing", writing, {"command": "a command", **results}, picture=True)
    assert all(name in shown for name in (tiny_writer.NAME, *writing.ROLES.values()))
    assert [panel.title for panel in writing.panels(results)] == ["en/writer", "en/writer, training"]
