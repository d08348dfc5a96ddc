"""From settings to what the page shows, without a browser and without Streamlit."""

import numpy as np
import pytest
import synthetic

from attnviz import alignment, figures, gold, select
from attnviz.export.bundle import figure_name
from attnviz.figures import theme
from attnviz.mechanisms import MECHANISMS
from attnviz.models.model import TextError
from attnviz.models.names import ModelName
from dashboard.choices import pairs
from dashboard.choices.options import FROM, LIMIT, OWN, TYPED, title
from dashboard.compare import captions
from dashboard.compare.scene import CompareChoices, compose
from dashboard.shell.problems import SceneError

BOTH = ("bahdanau", "luong-general")


def tracer(model, text, target, beam):
    """Synthetic traces; Luong translates in another word order."""
    mechanism = ModelName.parse(model).mechanism
    if mechanism == "transformer":
        raise TextError("the text is too long: 300 pieces")
    own = "Le chien noir" if mechanism == "bahdanau" else "Le noir chien"
    kinds = () if mechanism == "fixed-context" else ("cross",)
    return synthetic.trace(
        text,
        target or own,
        seed=len(mechanism),
        kinds=kinds,
        model=model,
        mechanism=mechanism,
        forced=target is not None,
    )


def settings(text="The black dog", mechanisms=BOTH, **changes):
    return CompareChoices(text, mechanisms, **changes)


def test_a_part_for_each_mechanism_in_the_order_chosen():
    scene = compose(settings(mechanisms=BOTH[::-1]), tracer)
    assert [column.title for column in scene.columns] == ["Luong general", "Bahdanau"]
    assert scene.steps == 4 and scene.keys == 4  # three words and <eos>
    assert set(scene.summary()["mechanism"]) == {"Bahdanau", "Luong general"}


def test_own_translations_are_not_shared_even_when_equal():
    assert compose(settings(target=OWN), tracer).differences == []
    alike = compose(settings(mechanisms=("luong-dot", "luong-general"), target=OWN), tracer)
    assert alike.differences == [(0, 1), (1, 0)]  # both write the same by themselves
    assert captions.no_difference(alike) == ""
    three = compose(settings(mechanisms=("bahdanau", "luong-dot", "luong-general"), target=OWN), tracer)
    words = captions.no_difference(three)
    assert "Not compared: Bahdanau. " in words and "choose one text for all under “French text” on the left" in words


def test_a_map_of_another_kind_is_said_to_be_the_only_one_not_compared():
    def of_both_kinds(model, text, target, beam):
        return synthetic.trace(
            text, target, kinds=("encoder", "cross"), model=model, mechanism=ModelName.parse(model).mechanism
        )

    chosen = settings(mechanisms=(*BOTH, "transformer"), target=TYPED, forced="Un chien", kind="encoder")
    scene = compose(chosen, of_both_kinds)
    assert scene.differences == [(0, 1), (1, 0)]
    assert "Not compared: Transformer. No other map here is of the same kind and text." in captions.no_difference(scene)


def test_a_typed_target_is_shared_and_forced():
    scene = compose(settings(target=TYPED, forced="Un chien"), tracer)
    assert scene.differences == [(0, 1), (1, 0)] and scene.difference_title((1, 0)) == "Luong general minus Bahdanau"
    assert all(column.trace.forced and column.trace.translation == "Un chien" for column in scene.columns)


def test_a_target_taken_from_one_model():
    scene = compose(settings(target=FROM + "luong-general"), tracer)
    assert scene.differences and {column.trace.translation for column in scene.columns} == {"Le noir chien"}


def test_one_mechanism_shares_with_nobody():
    assert not compose(settings(mechanisms=("bahdanau",), target=TYPED, forced="Un chien"), tracer).differences


def test_a_mechanism_that_fails_leaves_the_others():
    scene = compose(settings(mechanisms=(*BOTH, "transformer")), tracer)
    assert len(scene.columns) == 2
    assert scene.problems == {"transformer": "The text is too long: 300 pieces."}


@pytest.mark.parametrize(
    "changes, message",
    [
        (dict(text="  "), "There is no sentence yet. Type one, or click an example."),
        (dict(text="", pair="en-nl"), "There is no sentence yet. Type one above."),
        (
            dict(text="a" * (LIMIT + 1)),
            "The sentence has 501 characters; the limit is 500. Shorten it, or show one sentence at a time.",
        ),
        (dict(mechanisms=()), "Choose at least one mechanism on the left."),
        (
            dict(target=TYPED),
            "On the left, type the French text for all models, or choose another French text there.",
        ),
        (
            dict(target=TYPED, forced="a" * 600),
            "The French text has 600 characters; the limit is 500. Shorten it.",
        ),
        (
            dict(target=TYPED, pair="en-de"),
            "On the left, type the German text for all models, or choose another German text there.",
        ),
        (
            dict(target=FROM + "transformer"),
            "The text of Transformer cannot be used for all models: the text is too long: 300 pieces",
        ),
        (dict(mechanisms=("transformer",)), "The text is too long: 300 pieces."),
    ],
)
def test_what_cannot_be_shown_is_said(changes, message):
    with pytest.raises(SceneError) as caught:
        compose(settings(**changes), tracer)
    assert str(caught.value) == message


def test_hidden_specials_change_keys_and_steps():
    scene = compose(settings(special=False), tracer)
    assert scene.keys == 3 and scene.steps == 3
    assert all((column.grid.removed > 0).all() for column in scene.columns)


def test_the_link_holds_every_setting():
    chosen = settings(target=TYPED, forced="Un <b>", beam=5, words=True, special=False, kind="encoder", layer=0, head=3)
    assert chosen.query() == {
        "pair": "English → French",
        "text": "The black dog",
        "show": ["Bahdanau", "Luong general"],
        "target": "One text for all: typed",
        "force": "Un <b>",
        "beam": "beam of 5",
        "units": "words",
        "special": "false",
        "kind": "Self-attention of the encoder",
        "layer": "1",
        "head": "4",
        "tables": "false",
        "links": "true",
        "listed": "false",
    }


def test_no_attention_no_map_and_no_statistics():
    scene = compose(settings(mechanisms=("fixed-context", *BOTH), target=TYPED, forced="Un chien"), tracer)
    alone, *others = scene.columns
    assert alone.grid is None and alone.frame is None and scene.mapped == others
    assert [token.text for token in alone.queries] == ["Un", "chien", "<eos>"]
    assert scene.differences == [(1, 2), (2, 1)] and scene.keys == 4
    assert set(scene.frames()) == set(scene.summary()["mechanism"]) == {"Bahdanau", "Luong general"}


def test_no_attention_alone_has_steps():
    scene = compose(settings(mechanisms=("fixed-context",), special=False, words=True), tracer)
    assert scene.steps == 3 and scene.mapped == [] and scene.frames() == {} and scene.keys is None


def test_the_pair_says_which_models_are_asked():
    models = []
    compose(settings(pair="en-de"), lambda model, *rest: models.append(model) or tracer(model, *rest))
    assert models == ["en-de/bahdanau", "en-de/luong-general"]


def test_short_names_tell_mechanisms_apart():
    names = {mechanism: title(mechanism) for mechanism in MECHANISMS}
    assert len({figure_name(name) for name in names.values()}) == len(MECHANISMS)
    assert (
        names["bahdanau"] == "Bahdanau"
        and names["luong-dot"] == "Luong dot"
        and names["luong-general"] == "Luong general"
    )
    together = theme.lines(names.values())
    assert len(set(together.values())) == len(MECHANISMS)
    fixed = [mechanism for mechanism in MECHANISMS if MECHANISMS[mechanism].color]  # others take what is free
    assert len({together[names[mechanism]].color for mechanism in fixed}) == len(fixed) >= 8
    for mechanism in fixed:  # alone or with others, by name or by key: the same line
        name = names[mechanism]
        assert theme.lines([name])[name] == theme.lines([mechanism])[mechanism] == together[name]


LINKED = gold.parse("The black dog\nLe chien noir\n0-0 1-2 2-1?")[0]


@pytest.mark.parametrize("words, special, query_count", [(False, True, 4), (True, False, 3)])
def test_links_by_hand_where_text_and_target_are_theirs(monkeypatch, words, special, query_count):
    monkeypatch.setattr(pairs, "linked", lambda pair: (LINKED,))
    given = settings(
        mechanisms=("fixed-context", *BOTH), target=TYPED, forced=LINKED.target, words=words, special=special
    )
    alone, *others = compose(given, tracer).columns
    assert alone.links is None
    for column in others:
        assert column.links.cells.sure == {(0, 0), (2, 1)} and column.links.cells.possible == {(0, 0), (2, 1), (1, 2)}
        rows = column.trace.map().weights[0][:3, :3]  # without <eos>
        strongest = {(int(row.argmax()), target) for target, row in enumerate(rows)}
        right = len(strongest & {(0, 0), (1, 2)}) + len(strongest & {(0, 0), (1, 2), (2, 1)})
        assert column.links.error == pytest.approx(1 - right / (3 + 2))
        assert column.links.diagonal == pytest.approx(
            1 - (1 + 1) / (3 + 2)
        )  # 0-0 is right twice, 1-1 and 2-2 are wrong
        assert len(column.grid.queries) == query_count


@pytest.mark.parametrize("shift", [1, -1])
def test_rows_are_read_a_step_later_or_earlier_with_their_error_rate(monkeypatch, shift):
    monkeypatch.setattr(pairs, "linked", lambda pair: (LINKED,))
    given = settings(mechanisms=BOTH, target=TYPED, forced=LINKED.target, shift=shift)
    for column in compose(given, tracer).columns:
        own = column.trace.map().weights.mean(0)
        rows = np.arange(len(own)) + shift
        valid = (rows >= 0) & (rows < len(own))
        assert np.isnan(column.grid.weights[~valid]).all() and (~valid).sum() == 1
        assert np.array_equal(column.grid.weights[valid], own[rows[valid]])
        links = alignment.argmax(alignment.on_words(column.trace, LINKED, shift)[0, 0])
        assert column.links.error == alignment.count(links, LINKED).error_rate and column.links.shift == shift
    words = settings(mechanisms=BOTH, target=TYPED, forced=LINKED.target, shift=shift, words=True)
    for pieces, column in zip(compose(given, tracer).columns, compose(words, tracer).columns):
        assert (column.links.shift, column.links.error) == (shift, pieces.links.error)
        wanted = select.select(column.trace, words=True, shift=shift).weights
        assert np.array_equal(column.grid.weights, wanted, equal_nan=True)


@pytest.mark.parametrize(
    "changes", [dict(links=False), dict(target=OWN), dict(forced="Le noir chien"), dict(text="The dog")]
)
def test_no_links_where_they_are_not_meant(monkeypatch, changes):
    monkeypatch.setattr(pairs, "linked", lambda pair: (LINKED,))
    given = dict(text=LINKED.source, target=TYPED, forced=LINKED.target) | changes
    assert [column.links for column in compose(settings(**given), tracer).columns] == [None, None]


def test_pairs_are_named_and_other_tasks_left_out():
    assert [name for name in ("sst2", "reverse", "en-fr", "nl-en") if pairs.translates(name)] == [
        "reverse",
        "en-fr",
        "nl-en",
    ]
    assert pairs.ordered(["nl-en", "reverse", "en-fr"]) == ["en-fr", "reverse", "nl-en"]
    own = pairs.task("nl-en")
    assert (own.title, own.source, own.target, own.examples) == ("Dutch → English", "nl", "en", ())
    facts = pairs.TASKS.values()
    assert len({pair.title for pair in facts}) == len(facts) and all(len(pair.examples) == 4 for pair in facts)


def test_positions_count_from_one():
    scene = compose(settings(mechanisms=("bahdanau",)), tracer)
    shown = scene.summary().set_index("statistic")["mean"]["expected_position"]
    assert shown == pytest.approx(scene.columns[0].frame["expected_position"].mean() + 1)


@pytest.mark.parametrize("special", [True, False])
def test_the_numbers_of_the_page_are_those_of_the_table(special):
    """The page makes no data frame for them."""
    scene = compose(settings(special=special), tracer)
    summary = scene.summary().set_index(["mechanism", "statistic"])[["mean", "std"]]
    rows = [(title, name) for title, numbers in scene.means().items() for name in numbers]
    assert sorted(rows) == sorted(summary.index)
    shown = [scene.means()[title][name] for title, name in rows]
    np.testing.assert_allclose(shown, summary.loc[rows].to_numpy(), atol=1e-12)
    plain = {column.title: column.statistics for column in scene.mapped}
    keys = scene.keys
    assert figures.by_step(plain, keys).text() == figures.by_step(scene.frames(), keys).text()
