"""Each score is the sum of its terms, and says which widths it was built for."""

import pytest
import torch

from attnviz import attention
from attnviz.inside import AttentionInputs

QUERY, KEY = 5, 7
SCORES = {
    "dot": (attention.Dot(), None),
    "scaled dot": (attention.ScaledDot(), None),
    "general": (attention.General(QUERY, KEY), (QUERY, KEY)),
    "local": (attention.Local(QUERY, KEY, reach=2), (QUERY, KEY)),
    "additive": (attention.Additive(QUERY, KEY, 4), (QUERY, KEY)),
    "concat": (attention.Concat(QUERY, KEY, 4), (QUERY, KEY)),
}


@pytest.mark.parametrize("name", SCORES)
@torch.inference_mode()
def test_the_terms_sum_to_the_score(name):
    score, widths = SCORES[name]
    generator = torch.Generator().manual_seed(1)
    query = torch.randn(2, 3, QUERY, generator=generator)
    prepared = score.prepare(torch.randn(2, 4, KEY if widths else QUERY, generator=generator))
    torch.testing.assert_close(score.terms(query, prepared).sum(-1), score.score(query, prepared))
    assert score.widths == widths and score.name == ("general" if name == "local" else name)
    assert score.unit == ("hidden unit" if name in ("additive", "concat") else "dimension")
    assert (score.window(query, 4) is None) == (name != "local")


class Biaffine(attention.General):
    extra = ("u · h",)

    def terms(self, query, prepared):
        return torch.cat([super().terms(query, prepared), prepared.sum(-1)[:, None, :, None]], dim=-1)


def test_terms_that_are_no_dimension_have_names_of_their_own():
    query, keys = torch.randn(2, QUERY), torch.randn(2, 4, KEY)
    score = Biaffine(QUERY, KEY)
    inputs = AttentionInputs(score, query[0], score.prepare(keys)[0].detach(), keys[0], query[0], "after")
    with torch.no_grad():
        parts = inputs.parts()
    assert parts.words == "5 dimensions and u · h" and parts.terms.shape == (4, 6)
    assert [parts.name(number) for number in (0, 4, 5)] == ["dimension 1", "dimension 5", "u · h"]


def test_the_terms_of_heads_sum_to_their_scores():
    heads = attention.MultiHead(8, 2)
    query, keys = torch.randn(1, 2, 3, 4), torch.randn(1, 2, 5, 4)
    torch.testing.assert_close(heads.terms(query, keys).sum(-1), heads.score(query, keys))
