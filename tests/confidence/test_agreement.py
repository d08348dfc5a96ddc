"""How much translations that were drawn agree with the one on show, and what follows from it."""

from dataclasses import asdict, replace

import judged
import numpy as np
import pytest
import tiny
from judged import SURE, signs_and_scores
from sacrebleu.metrics import CHRF

from attnviz import confidence, loading
from attnviz.confidence.calibration import calibrate
from attnviz.confidence.signs import SAMPLED, SAMPLES, agreement
from attnviz.models import checkpoint_files

NAME, SAMPLERS = "en-fr/bahdanau", ("en-fr/transformer", "en-fr/luong-dot")
SCALE = confidence.Scale(2.0, {"agreement": -0.1}, 0.3, 0.8, -0.2)


def test_the_half_that_agrees_least_counts_without_spaces():
    samples = ["彼 は 来 た 。", "彼は行った。", "犬。", "彼は来た。", "彼は来 た。"]
    scores = [CHRF().corpus_score(["彼は来た。"], [[text]]).score for text in ("犬。", "彼は行った。", "彼は来た。")]
    assert scores[0] < scores[1] < scores[2] == pytest.approx(100)
    value, other = agreement("彼は来た。", tuple(samples))
    assert value == pytest.approx(np.mean(scores)) and other == "彼は行った。"
    assert agreement("a b", ("ab",)) == (pytest.approx(100), "ab")
    assert agreement("a b", ("", "ab")) == (0, "")


def test_a_scale_that_weighs_agreement_says_how_many_samples_it_needs():
    assert SCALE.sample_count == SAMPLES and confidence.Scale(0.0, {"mean": 1.0}).sample_count == 0
    assert SCALE.risk(replace(SURE, agreement=20.0)) == pytest.approx(0.5)
    with pytest.raises(ValueError, match="signs must be of a translation and samples of it, .*; got no samples"):
        SCALE.risk(SURE)


def test_another_translation_is_named_where_they_differ():
    seen = confidence.judgement(replace(SURE, agreement=2.0, other="Le <chat>."), SCALE)
    assert seen.level == "outside"
    assert any("differ much from this one, for example “Le <chat>.”." in reason for reason in seen.reasons)
    alike = confidence.judgement(replace(SURE, agreement=60.0, other="Le <chat>."), replace(SCALE, intercept=6.0))
    assert alike.level == "unusual" and not any("drew" in reason for reason in alike.reasons)


def test_calibration_weighs_agreement_where_all_have_it():
    read, scores = signs_and_scores()
    generator = np.random.default_rng(5)
    sampled = [replace(SURE, agreement=score + generator.normal(0, 5)) for score in scores]  # nothing else tells
    result = calibrate(sampled, scores)
    assert (
        tuple(result.scale.weights) == SAMPLED and result.scale.weights["agreement"] < 0 and result.scale.sample_count
    )
    assert result.worst_tenth > 0.9
    plain = calibrate([*sampled[1:], read[0]], [*scores[1:], scores[0]]).scale
    assert "agreement" not in plain.weights and plain.sample_count == 0


def test_a_judge_and_its_samplers(tmp_path):
    root, names = judged.write_models(tmp_path / "models", asdict(SCALE), SAMPLERS), SAMPLERS
    judge, trace = confidence.Judge.load(judged.NAME, root), loading.load(judged.NAME, root).trace("The dog runs.")
    models = [loading.load(name, root) for name in names]
    samples = tuple(sample for model in models for sample in model.samples("The dog runs.", SAMPLES))
    assert judge.samplers == names and judge.samples("The dog runs.") == samples and len(samples) == 2 * SAMPLES
    signs = confidence.signs(trace, judge.known_words, samples)
    assert (signs.agreement, signs.other) == agreement(trace.translation, samples)
    assert judge(trace) == judge(trace, samples) == confidence.judgement(signs, SCALE)
    assert models[0].samples("The dog runs.", SAMPLES) == samples[:SAMPLES] and models[0].samples("A dog.", 0) == ()


@pytest.mark.parametrize(
    "samplers",
    [{}, None, list(SAMPLERS), {"en-fr/luong-none": "0"}, {"en-fr/transformer": "0"}, {"xx-yy/bahdanau": "0"}],
)
def test_no_judge_where_a_sampler_is_missing(tmp_path, samplers):
    root = judged.write_models(tmp_path / "models", asdict(SCALE))
    write_samplers(root, samplers)
    assert confidence.Judge.load(judged.NAME, root) is None


def test_no_judge_where_a_sampler_has_other_weights(tmp_path):
    root = judged.write_models(tmp_path / "models", asdict(SCALE), SAMPLERS)
    weights = [root / name / "model.safetensors" for name in ("en-fr/luong-dot", "en-fr/luong-general")]
    weights[0].write_bytes(weights[1].read_bytes())
    assert confidence.Judge.load(judged.NAME, root) is None


def test_samplers_of_a_scale_that_weighs_no_agreement_are_left_out(tmp_path):
    root = judged.write_models(tmp_path / "models", judged.SCALE, SAMPLERS)
    assert confidence.Judge.load(judged.NAME, root).samplers == ()


def write_samplers(root, samplers):
    path = root / judged.NAME / "card.json"
    card = checkpoint_files.read_json(path)
    checkpoint_files.write_json(path, card | {"confidence": card["confidence"] | {"samplers": samplers}})


@pytest.mark.parametrize("count", [-1, 1001, True, 2.0, "5"])
def test_counts_that_are_none(tmp_path, count):
    model = loading.load(NAME, tiny.write_models(tmp_path / "models"))
    with pytest.raises(ValueError, match="count must be from 0 to 1000; got"):
        model.samples("The dog.", count)
