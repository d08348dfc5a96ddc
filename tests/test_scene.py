"""From settings to what the page shows, without a browser and without Streamlit."""

import pytest
import synthetic

from attnviz.translator import TextError
from dashboard.scene import SceneError, compose
from dashboard.settings import FROM, LIMIT, OWN, TYPED, Settings

BOTH = ("bahdanau", "luong-general")


def tracer(mechanism, text, target, beam):
    """Synthetic traces; Luong translates in another word order."""
    if mechanism == "transformer":
        raise TextError("the text is too long: 300 pieces")
    own = "Le chien noir" if mechanism == "bahdanau" else "Le noir chien"
    seed = BOTH.index(mechanism)
    return synthetic.trace(text, target or own, seed=seed, model=f"en-fr/{mechanism}", mechanism=mechanism, forced=target is not None)


def settings(text="The black dog", mechanisms=BOTH, **changes):
    return Settings(text, mechanisms, **changes)


def test_a_part_for_each_mechanism_in_the_order_chosen():
    scene = compose(settings(mechanisms=BOTH[::-1]), tracer)
    assert [part.mechanism for part in scene.parts] == ["luong-general", "bahdanau"]
    assert scene.steps == 4 and scene.keys == 4  # three words and <eos>
    assert set(scene.summary()["mechanism"]) == {"Bahdanau", "Luong"}


def test_own_translations_are_not_shared_even_when_equal():
    assert compose(settings(target=OWN), tracer).pairs == []


def test_a_typed_target_is_shared_and_forced():
    scene = compose(settings(target=TYPED, forced="Un chien"), tracer)
    assert scene.pairs == [(0, 1), (1, 0)] and scene.difference_title((1, 0)) == "Luong minus Bahdanau"
    assert all(part.trace.forced and part.trace.translation == "Un chien" for part in scene.parts)


def test_a_target_taken_from_one_model():
    scene = compose(settings(target=FROM + "luong-general"), tracer)
    assert scene.pairs and {part.trace.translation for part in scene.parts} == {"Le noir chien"}


def test_one_mechanism_shares_with_nobody():
    assert not compose(settings(mechanisms=("bahdanau",), target=TYPED, forced="Un chien"), tracer).pairs


def test_a_mechanism_that_fails_leaves_the_others():
    scene = compose(settings(mechanisms=(*BOTH, "transformer")), tracer)
    assert len(scene.parts) == 2
    assert scene.problems == {"transformer": "The text is too long: 300 pieces."}


@pytest.mark.parametrize("changes, message", [
    (dict(text="  "), "There is no sentence yet. Type one, or take an example."),
    (dict(text="a" * (LIMIT + 1)), "The sentence has 501 characters and the models take at most 500. Shorten it, or show one sentence at a time."),
    (dict(mechanisms=()), "Choose at least one mechanism on the left."),
    (dict(target=TYPED), "Type the French text that all models should produce, or choose another French text, on the left."),
    (dict(target=TYPED, forced="a" * 600), "The French text has 600 characters; the models take at most 500. Shorten it."),
    (dict(target=FROM + "transformer"), "Transformer can give no text for all: the text is too long: 300 pieces"),
    (dict(mechanisms=("transformer",)), "The text is too long: 300 pieces."),
])  # fmt: skip
def test_what_cannot_be_shown_is_said(changes, message):
    with pytest.raises(SceneError) as caught:
        compose(settings(**changes), tracer)
    assert str(caught.value) == message


def test_hidden_specials_change_keys_and_steps():
    scene = compose(settings(special=False), tracer)
    assert scene.keys == 3 and scene.steps == 3
    assert all((part.grid.removed > 0).all() for part in scene.parts)


def test_the_link_holds_every_setting():
    chosen = settings(target=TYPED, forced="Un <b>", beam=5, words=True, special=False, kind="encoder", layer=0, head=3)
    assert chosen.query() == {
        "text": "The black dog", "show": ["Bahdanau", "Luong"], "target": "One text for all: typed", "force": "Un <b>",
        "beam": "beam of 5", "units": "words", "special": "false", "kind": "Self-attention of the encoder", "layer": "1",
        "head": "4", "tables": "false",
    }  # fmt: skip
