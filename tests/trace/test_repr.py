"""A trace and a grid say in one line what they are, however large they are."""

import synthetic

from attnviz import select


def test_a_trace_in_one_line():
    assert repr(synthetic.trace("The black dog", "Le chien noir")) == (
        "Trace(synthetic: 'The black dog' -> 'Le chien noir'; 4 source and 4 target pieces, 1 maps)"
    )


def test_a_grid_in_one_line():
    trace = synthetic.trace("The black dog", "Le chien noir", heads=2, layers=2)
    assert repr(select.select(trace)) == ("Grid(synthetic: cross, layer 1, mean of heads; 4 target by 4 source tokens)")
    assert "head 1" in repr(select.select(trace, layer=0, head=1))
    assert "several layers" in repr(select.mean(trace, "cross", [(0, 0), (1, 1)]))
