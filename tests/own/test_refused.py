"""Modules whose code ends the program, or leaves nothing to look at: a sentence says so, and nothing else happens."""

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
        (CannotRun, r"is not recognised as attention: .* it raised Speechless"),
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
