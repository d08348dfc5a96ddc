"""The sign of each translation model that ships: its thresholds, how well it works, and what it says of sentences."""

import functools

import pytest

import attnviz
from attnviz import confidence
from attnviz.confidence.calibration import BEST, FLAGGED
from attnviz.confidence.signs import SAMPLES
from attnviz.models.checkpoint_files import read_card
from attnviz.models.names import ModelName

NAMES = [
    name
    for name in attnviz.available()
    if ModelName.parse(name).task.source == "en" and "sst2" not in name and not ModelName.parse(name).task.writes
]
BOTH = [name for name in NAMES if name.startswith(("en-fr/", "en-de/"))]  # they read captions and everyday text
JAPANESE = [name for name in NAMES if name.startswith("en-ja/")]
MISSED = {  # the share of the worst tenth that is flagged where that is below FLAGGED; in docs/models.md too
    "en-de/fixed-context": 0.526,
    "en-de/scaled-dot": 0.553,
    "en-ja/transformer": 0.58,
}
CAPTIONS = ("The black dog is running across the green grass.", "A man in a blue shirt is standing on a ladder.")

load = functools.cache(attnviz.load)


def level(name, text):
    return confidence.Judge.load(name)(load(name).trace(text)).level


@pytest.mark.parametrize("name", NAMES)
def test_the_card_says_how_well_the_sign_works(name):
    card = read_card(name)["confidence"]
    assert card["sentences"] >= 500 and sum(count for *_, count in card["bins"]) == card["sentences"]
    assert 0 < card["best_half"] <= BEST
    assert card["worst_tenth"] >= FLAGGED or round(card["worst_tenth"], 3) == MISSED.get(name)
    copied = read_card(name)["copied"]["beam_5"]
    assert copied["numbers"] == 51 and copied["names"] == (0 if name.startswith("en-ja/") else 83)


@pytest.mark.parametrize("name", BOTH)
def test_captions_and_everyday_sentences_are_usual_for_a_model_of_both(name):
    assert [level(name, text) for text in (*CAPTIONS, "Tom is not here.")] == ["usual"] * 3
    assert level(name, "Qwzx vbnk plorf the zzyx grumble.") == "outside"


@pytest.mark.parametrize("name", BOTH)
def test_the_example_that_goes_wrong_is_not_usual(name):
    assert level(name, ModelName.parse(name).task.failing) != "usual"


def test_a_long_number_that_is_copied_is_usual():
    assert level("en-fr/transformer", "Call me at 555-867-5309.") == "usual"


@pytest.mark.parametrize("name", JAPANESE)
def test_two_models_draw_translations_for_the_signs_of_japanese(name):
    judge = confidence.Judge.load(name)
    assert judge.samplers == ("en-ja/bahdanau", "en-ja/transformer") and judge.scale.sample_count == SAMPLES
    assert level(name, "Where is the station?") == "usual"
    judged = judge(load(name).trace("The stock market crashed."))
    assert judged.level != "usual" and any("drew at random" in reason for reason in judged.reasons)
