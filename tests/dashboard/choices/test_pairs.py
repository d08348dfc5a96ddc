"""The mechanisms that a pair shows before anything is chosen."""

from attnviz import mechanisms
from dashboard.choices import pairs
from dashboard.shell.link_notes import _words


def test_the_default_mechanisms_are_no_mistake():
    assert "Transformer" in _words("show", ["bahdanau", "transformer"])


def test_a_mechanism_of_ones_own_is_shown_beside_two_that_ship():
    offered = ["bahdanau", "luong-general", "transformer", "mine"]
    assert pairs.first(offered) == ["bahdanau", "luong-general", "transformer"]
    for name in ("mine", "other"):
        mechanisms.add(mechanisms.Mechanism(name, "Mine", asks="after", score="attnviz.attention:Dot"))
    try:
        assert pairs.first(offered) == ["bahdanau", "luong-general", "mine"]
        assert pairs.first(["mine", "transformer"]) == ["transformer", "mine"]
        assert pairs.first(["mine"]) == ["mine"]
        assert pairs.carried_over(["bahdanau", "other"], offered) == ["bahdanau", "mine"]  # of another pair
        assert pairs.carried_over(["bahdanau", "luong-dot"], offered) == ["bahdanau"]
        assert pairs.carried_over(["luong-dot"], offered) == pairs.first(offered)
        formula = mechanisms.find("luong-dot").formula
        mechanisms.add(mechanisms.Mechanism("mine", "Mine", formula, asks="after", score="attnviz.attention:Dot"))
        assert pairs.first([*offered, "luong-dot"]) == ["luong-dot", "bahdanau", "mine"]
    finally:
        mechanisms.remove("mine")
        mechanisms.remove("other")
