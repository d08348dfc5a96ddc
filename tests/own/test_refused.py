"""Modules whose code ends the program, or leaves nothing to look at: a sentence says so, and nothing else happens. And
masks that are right in one place and wrong in another."""

import copy

import pytest
import torch
from torch import nn

from attnviz import own


class Right(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.project = nn.Linear(width, width)

    def scores(self, query, keys):
        return self.project(query) @ keys.transpose(1, 2) * keys.shape[-1] ** -0.5

    def hide(self, scores, mask):
        return scores if mask is None else scores.masked_fill(mask.unsqueeze(1) == 0, -1e9)

    def forward(self, query, keys, values, mask=None):
        weights = torch.softmax(self.hide(self.scores(query, keys), mask), dim=-1)
        return weights @ values, weights


class EndsWithAMask(Right):
    def hide(self, scores, mask):
        if mask is not None:
            raise SystemExit(3)
        return scores


class Ends(Right):
    def scores(self, query, keys):
        raise SystemExit(3)


def test_a_module_that_ends_the_program_does_not_end_it():
    assert own.check(EndsWithAMask()).form.endswith("context (B,T,D), weights (B,T,S)")
    with pytest.raises(own.forms.NotRecognised, match="SystemExit: 3"):
        own.check(Ends())


class WithoutParts(Right):
    def __init__(self, width=16):
        super().__init__(width)
        self.__dict__.clear()


class NeverBegun(nn.Module):
    def __init__(self, width=16):
        self.scale = width**-0.5

    def forward(self, query, keys, values):
        weights = torch.softmax(query @ keys.transpose(1, 2) * self.scale, dim=-1)
        return weights @ values, weights


class LosesItsParts(Right):
    def scores(self, query, keys):
        scores = super().scores(query, keys)
        self.__dict__.clear()
        return scores


class Speechless(ValueError):
    def __str__(self):
        return 1


class CannotBeMade(Right):
    def __init__(self, width=16):
        raise Speechless


class CannotRun(Right):
    def scores(self, query, keys):
        raise Speechless


class CannotBeRead(Right):
    def parameters(self, recurse=True):
        raise Speechless


class HidesItsParts(Right):
    def modules(self):
        raise SystemExit(3)


class RepeatsTooOften(nn.Module):
    """With a hidden state of three axes `repeat` fails, which is not the reason."""

    def forward(self, hidden, encoder_outputs):
        states = hidden.unsqueeze(1).repeat(1, encoder_outputs.shape[1] + 1, 1)
        return torch.cat([states, encoder_outputs], dim=2).sum(dim=-1).softmax(dim=-1)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (WithoutParts, r"lacks what nn\.Module keeps in every module: call super\(\)\.__init__\(\)"),
        (NeverBegun, r"lacks what nn\.Module keeps in every module"),
        (LosesItsParts, r"cannot be tested: its code raises AttributeError: 'LosesItsParts' object has no"),
        (CannotBeMade, r"cannot be built: Speechless;"),
        (CannotRun, r"cannot run: test_refused\.py, line \d+, Speechless$"),
        (RepeatsTooOften, r"is not recognised as attention: .* it raised RuntimeError: Sizes of tensors must match"),
        (CannotBeRead, r"cannot be tested: its code raises Speechless"),
        (HidesItsParts, r"cannot be tested: its code raises SystemExit: 3"),
    ],
)
def test_a_module_that_cannot_be_looked_at_is_refused_in_words(kind, reason):
    with pytest.raises(ValueError, match=f"^{kind.__name__}.* {reason}"):
        own.check(kind)


def test_a_compiled_module_is_the_module():
    assert own.check(torch.compile(Right())).ok


def test_a_file_that_clears_its_names_is_read(tmp_path):
    path = tmp_path / "cleared.py"
    path.write_text("from torch import nn\nclass Mine(nn.Module):\n    globals().clear()\n")
    with pytest.raises(own.forms.NotRecognised, match=r"^Mine\(\) is not recognised as attention"):
        own.check(own.load(f"{path}:Mine"))


class HidesInTheFirst(Right):
    def hide(self, scores, mask):
        return scores if mask is None else super().hide(scores, mask | (torch.arange(len(mask))[:, None] > 0))


class HidesOfTheFirstQuery(Right):
    def hide(self, scores, mask):
        return torch.cat([super().hide(scores[:, :1], mask), scores[:, 1:]], dim=1)


class ForEachQuery(nn.Module):
    def hide(self, scores, mask):
        return scores.masked_fill(~mask, -torch.inf)

    def forward(self, query, keys, values, mask=None):  # (T, S) bool
        scores = query @ keys.mT * keys.shape[-1] ** -0.5
        weights = (scores if mask is None else self.hide(scores, mask)).softmax(dim=-1)
        return weights @ values, weights


class FirstRowOfTheMask(ForEachQuery):
    def hide(self, scores, mask):
        return super().hide(scores, mask[0])


class CausalOverASource(ForEachQuery):
    def forward(self, query, keys, values):
        causal = torch.ones(query.shape[1], keys.shape[1], dtype=torch.bool).tril()
        return super().forward(query, keys, values, causal)


class RepeatsTheMask(Right):
    """Two heads, the sentences in the order 0 0 1 1, and their masks in the order 0 1 0 1."""

    def hide(self, scores, mask):
        return scores if mask is None else super().hide(scores, mask.repeat(2, 1))

    def forward(self, query, keys, values, mask=None):
        query, keys, values = (
            x.unflatten(2, (2, -1)).transpose(1, 2).flatten(0, 1) for x in (self.project(query), keys, values)
        )
        weights = self.hide(query @ keys.mT * keys.shape[-1] ** -0.5, mask).softmax(dim=-1)
        return (weights @ values).unflatten(0, (-1, 2)).transpose(1, 2).flatten(2), weights.unflatten(0, (-1, 2))


class RepeatsEachMask(RepeatsTheMask):
    def hide(self, scores, mask):
        return Right.hide(self, scores, None if mask is None else mask.repeat_interleave(2, dim=0))


class EitherMask(nn.Module):
    """Self-attention, causal; a key stays that one of two masks keeps."""

    def both(self, causal, mask):
        return causal | mask.unsqueeze(1)

    def forward(self, x, mask=None):
        causal = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
        keep = causal if mask is None else self.both(causal, mask)
        weights = (x @ x.mT * x.shape[-1] ** -0.5).masked_fill(~keep, -torch.inf).softmax(dim=-1)
        return weights @ x, weights


class BothMasks(EitherMask):
    def both(self, causal, mask):
        return causal & mask.unsqueeze(1)


class MaskForCausal(EitherMask):
    """As in F.scaled_dot_product_attention, where a mask (B, T, S) is given or is_causal."""

    def both(self, causal, mask):
        assert mask.ndim == 3
        return mask


def one_too_few(query, keys, lengths):
    scores = torch.einsum("bd,bsd->bs", query, keys)
    return scores.masked_fill(torch.arange(keys.shape[1]) >= (lengths[:, None] - 1).clamp_min(1), -1e4).softmax(dim=1)


@pytest.mark.parametrize(
    ("kind", "reason", "row"),
    [
        (HidesInTheFirst, "some sentences see hidden keys, and others do not", "2 sentences, 1 query, 2 keys"),
        (HidesOfTheFirstQuery, "some queries see hidden keys, and others do not", "1 sentence, 2 queries, 3 keys"),
        (RepeatsTheMask, "some heads of some sentences see hidden keys, and others do not", "2 sentences, 1 query"),
        (one_too_few, "the last key within the length gets 0 too: the length is counted one too few", "1 sentence"),
        (EitherMask, "with a mask, tokens see later ones", "4 tokens, the last two hidden"),
        (FirstRowOfTheMask, "the first row of the mask hides keys from every query, or in every sentence", ""),
    ],
)
def test_a_mask_must_hide_in_every_sentence_head_and_query(kind, reason, row):
    fault = next(line for line in own.check(kind).faults if line.test == "hidden keys get 0")
    assert fault.reason.startswith(reason) and fault.example.startswith(row), fault


def test_a_mask_for_each_head_or_query_is_right():
    assert own.check(RepeatsEachMask).ok and own.check(ForEachQuery).ok


def test_a_mask_in_place_of_the_causal_one_is_a_limit_if_the_caller_can_make_it_causal():
    lines = {kind: own.check(kind).lines[2] for kind in (BothMasks, MaskForCausal)}
    assert [line.verdict for line in lines.values()] == ["ok", "limit"]
    assert lines[MaskForCausal].reason.startswith("a mask takes the place of the causal one: right if it hides later")


def test_a_causal_mask_over_the_keys_of_another_sentence_is_a_limit():
    line = next(line for line in own.check(CausalOverASource).lines if line.test.startswith("permuted keys"))
    assert line.verdict == "limit" and line.reason.startswith("a causal mask: a query sees no key after its own place")


class WrittenOut(ForEachQuery):
    def forward(self, query, keys, values, mask=None):
        weights = (query @ keys.mT * keys.shape[-1] ** -0.5).exp()
        weights = weights if mask is None else weights * mask.unsqueeze(1)
        return (weights := weights / weights.sum(dim=-1, keepdim=True)) @ values, weights


def test_nan_of_a_softmax_that_is_written_out_has_no_other_cause():
    line = next(line for line in own.check(WrittenOut).lines if line.test == "every key hidden")
    assert line.reason.startswith("NaN: −∞ less −∞, or 0 divided by 0, in a softmax that is written out.")


class Squares(ForEachQuery):
    """Squared products in place of a softmax: with a query of zeros all are 0, and 0 / 0 is NaN."""

    def forward(self, query, keys, values):
        weights = (query @ keys.mT).square()
        return (weights := weights / weights.sum(dim=-1, keepdim=True)) @ values, weights


def test_weights_that_are_0_where_a_score_is_0_hide_no_key_by_mistake():
    line = next(line for line in own.check(Squares).lines if line.test == "hidden keys get 0")
    assert line.verdict == "limit" and line.reason.startswith("a key of zeros, or whose score is 0, is hidden"), line


class CausalOver(nn.Module):
    """Self-attention in heads that the causal mask is applied to in another way by each class below."""

    def __init__(self, d_model=16, heads=1):
        super().__init__()
        self.heads, self.query, self.key, self.value = heads, *(nn.Linear(d_model, d_model) for _ in range(3))

    def hide(self, scores, later):
        return scores.masked_fill(later, -torch.inf)

    def forward(self, x):
        query, key, value = (f(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for f in self.parts())
        scores = query @ key.mT * query.shape[-1] ** -0.5
        weights = self.hide(scores, torch.ones(x.shape[1], x.shape[1]).triu(1).bool()).softmax(dim=-1)
        return (weights @ value).transpose(1, 2).flatten(2), weights

    def parts(self):
        return self.query, self.key, self.value


class Multiplied(CausalOver):
    def hide(self, scores, later):
        return scores * ~later


class OneLess(CausalOver):
    def hide(self, scores, later):
        return scores - later.float()


@pytest.mark.parametrize("kind", [Multiplied, OneLess])
def test_a_causal_mask_that_hides_nothing_is_told(kind):
    assert own.check(CausalOver).ok
    reason = "tokens see later ones: the causal mask multiplies scores or adds a small number; it must add −∞ to them"
    assert [line.reason for line in own.check(kind).faults] == [reason]


class OneLayerForAll(nn.Module):
    copies = False

    def __init__(self, d_model=16, num_heads=2):
        super().__init__()
        head = nn.ModuleList(nn.Linear(d_model, d_model // num_heads) for _ in range(3))
        self.heads = nn.ModuleList(copy.deepcopy(head) if self.copies else head for _ in range(num_heads))

    def forward(self, x):
        made = [[layer(x) for layer in head] for head in self.heads]
        weights = [torch.softmax(q @ k.mT * k.shape[-1] ** -0.5, dim=-1) for q, k, _ in made]
        return torch.cat([w @ v for w, (*_, v) in zip(weights, made)], dim=-1), torch.stack(weights, dim=1)


class Copies(OneLayerForAll):
    copies = True


def test_heads_that_share_one_layer_are_told_and_are_no_talking_heads():
    report = own.check(OneLayerForAll)
    assert [line.reason.partition(":")[0] for line in report.faults] == ["all heads have the same weights"]
    assert report.formula.startswith("multi-head, one head") and "talking" not in report.formula
    assert own.check(Copies).ok and own.check(Copies).formula.startswith("multi-head, 2 heads")


class NoParameter(nn.Module):
    """Its v is no parameter, so it never trains."""

    def __init__(self, hidden_size=16):
        super().__init__()
        self.hidden, self.v = nn.Linear(2 * hidden_size, hidden_size), torch.rand(hidden_size)

    def forward(self, hidden, encoder_outputs):
        joined = torch.cat([hidden.unsqueeze(1).expand_as(encoder_outputs), encoder_outputs], dim=-1)
        return (torch.tanh(self.hidden(joined)) @ self.v.to(joined)).softmax(dim=-1)


class KeepsTensors(NoParameter):
    """A number, and the weights of the last call, are right in plain tensors."""

    def __init__(self, hidden_size=16):
        super().__init__(hidden_size)
        self.v, self.root = nn.Parameter(self.v), torch.tensor(hidden_size).float().sqrt()

    def forward(self, hidden, encoder_outputs):
        self.attention_weights = super().forward(hidden, encoder_outputs)
        return self.attention_weights


def test_random_numbers_in_a_plain_tensor_are_no_parameter():
    assert [line.reason for line in own.check(NoParameter).faults] == [
        "self.v is a plain tensor with random numbers, which no optimizer sees: nn.Parameter trains it, "
        "register_buffer keeps it as it is"
    ]
    assert own.check(KeepsTensors).ok


class InForward(nn.Module):
    def forward(self, x):
        query, key = (nn.Linear(x.shape[-1], x.shape[-1], dtype=x.dtype)(x) for _ in range(2))
        return (weights := torch.softmax(query @ key.mT * x.shape[-1] ** -0.5, dim=-1)) @ x, weights


def test_a_layer_that_forward_makes_is_told():
    assert (
        own.check(InForward)
        .faults[0]
        .reason.endswith("a layer that forward() makes has new numbers each time: make it in __init__()")
    )


def by_reshape(query, keys, values):
    weights = torch.softmax(query @ keys.reshape(len(keys), -1, keys.shape[1]) * keys.shape[-1] ** -0.5, dim=-1)
    return weights @ values, weights


def longest_of_all(query, keys, lengths):
    scores = torch.einsum("bd,bsd->bs", query, keys)
    return scores.masked_fill(torch.arange(keys.shape[1]) >= lengths.max(), -1e4).softmax(dim=1)


def test_keys_that_are_reshaped_and_the_length_of_another_sentence_are_told():
    fault = own.check(by_reshape).faults[0]
    assert fault.reason.endswith("view or reshape in place of transpose mixes positions"), fault
    fault = own.check(longest_of_all).faults[0]
    assert fault.test == "hidden keys get 0" and fault.reason.startswith("some sentences see hidden keys"), fault
