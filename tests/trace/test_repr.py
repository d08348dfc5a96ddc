"""A trace and a grid say in one line what they are, however large they are."""

import math
import re

import numpy as np
import synthetic

from attnviz import select
from attnviz.trace import Token


def test_a_trace_in_one_line():
    assert repr(synthetic.trace("The black dog", "Le chien noir")) == (
        "Trace(synthetic: 'The black dog' -> 'Le chien noir'; 4 source and 4 target pieces, 1 map)"
    )


def test_a_grid_in_one_line():
    trace = synthetic.trace("The black dog", "Le chien noir", heads=2, layers=2)
    assert repr(select.select(trace)) == ("Grid(synthetic: cross, layer 1, mean of heads; 4 target by 4 source tokens)")
    assert "head 1" in repr(select.select(trace, layer=0, head=1))
    assert "several layers" in repr(select.mean(trace, "cross", [(0, 0), (1, 1)]))


def table(markup):
    """The rows of the first table, as lists of texts."""
    rows = re.findall(r"<tr>(.*?)</tr>", markup, re.DOTALL)
    return [[re.sub(r"<[^>]+>", "", cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)] for row in rows]


def test_a_trace_in_a_notebook():
    trace = synthetic.trace("The <b>dog</b>", "Le chien")
    markup = trace._repr_html_()
    assert "The &lt;b&gt;dog&lt;/b&gt;" in markup and "→ Le chien" in markup and "<script" not in markup
    tokens, *chances = table(markup)
    assert tokens == ["target", "Le", "chien", "&lt;eos&gt;"]
    assert chances == ([["probability", *(f"{math.exp(p):.2f}" for p in trace.log_probs)]] if trace.log_probs else [])


def test_a_grid_in_a_notebook_is_its_weights():
    grid = select.select(synthetic.trace("The <b>dog", "Le chien", kinds=("cross", "decoder")), "decoder")
    head, *rows = table(grid._repr_html_())
    assert head[1:] == ["&lt;bos&gt;", "Le", "chien"]
    assert [row[0] for row in rows] == ["Le", "chien", "&lt;eos&gt;"]
    for row, weights, visible in zip(rows, grid.weights, grid.visible, strict=True):
        assert row[1:] == [f"{weight:.2f}" if seen else "·" for weight, seen in zip(weights, visible, strict=True)]


def test_blank_rows_are_empty_in_a_notebook():
    grid = select.select(synthetic.trace("The dog", "Le chien", kinds=("decoder",)), "decoder", special=False)
    blank = [index for index, row in enumerate(grid.weights) if np.isnan(row).all()]
    rows = table(grid._repr_html_())[1:]
    assert blank and all(set(rows[index][1:]) <= {"", "·"} for index in blank)


def test_a_large_grid_is_cut_and_says_so():
    tokens = tuple(Token(str(number), 0, 1) for number in range(70))
    grid = select.Grid(
        "m", "bahdanau", "cross", 0, None, tokens[:3], tokens, np.full((3, 70), 1 / 70), np.zeros(3), np.ones((3, 70))
    )
    markup = grid._repr_html_()
    assert "The first 3 of 3 rows and 60 of 70 columns." in markup and [len(row) for row in table(markup)] == [61] * 4
