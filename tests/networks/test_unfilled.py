"""Models built only to be given the numbers of a file: nothing is drawn, and torch's compiler stays out."""

import subprocess
import sys

import pytest
import tiny
import torch
from torch import nn

from attnviz.mechanisms import Config
from attnviz.networks.registry import Unfilled, build
from attnviz.networks.transformer import positions

LOAD_ALL = """
import sys
from pathlib import Path
from attnviz.models import checkpoint_files, checkpoints
for name in checkpoint_files.names(Path(sys.argv[1])):
    checkpoints.load_model(name, Path(sys.argv[1]))
print(*sorted({"sympy", "torch._dynamo", "torch._inductor"} & sys.modules.keys()))

from attnviz.training import apart
from attnviz.training.seen import Settings
apart.leave_out_the_compiler()
from attnviz.training.race import Race
Race([(letter, letter) for letter in "abcdefghij"], ["luong-dot"], Settings(width=16)).advance()
print(*sorted({"sympy", "torch._dynamo.eval_frame", "torch._inductor"} & sys.modules.keys()))
print(sys.modules["torch._dynamo"].OptimizedModule.__module__)
"""


@pytest.mark.parametrize("mechanism", sorted(tiny.WIDTHS))
def test_no_random_number_is_drawn(mechanism):
    config = Config(mechanism, 30, tiny.WIDTHS[mechanism])
    before = torch.get_rng_state()
    with Unfilled():
        unfilled = build(config)
    assert torch.equal(torch.get_rng_state(), before)
    shapes = {name: value.shape for name, value in build(config).state_dict().items()}
    assert {name: value.shape for name, value in unfilled.state_dict().items()} == shapes
    assert not torch.equal(torch.get_rng_state(), before)  # outside it, they are


def test_it_gives_back_the_tensor_that_was_to_be_filled():
    given = torch.full((2, 3), 7.0)
    with Unfilled():
        assert nn.init.normal_(given) is given and nn.init.uniform_(given) is given and given.normal_() is given
        assert nn.init.xavier_uniform_(given) is given and nn.init.kaiming_uniform_(given) is given
    assert torch.equal(given, torch.full((2, 3), 7.0))


def test_places_without_numbers_have_their_shape():
    with torch.device("meta"):
        places = positions(5, 4, 0.1)
    assert places.is_meta and places.shape == positions(5, 4).shape
    torch.testing.assert_close(positions(5, 4, 0.1), 0.1 * positions(5, 4), rtol=0, atol=0)


@pytest.mark.slow  # it trains
def test_neither_reading_models_nor_a_process_that_trains_imports_the_compiler(root):
    """Reading did by the back door, for arithmetic on the device `meta`, and was a third of the time to the first
    chart. Who needs the compiler in a process that trains gets it."""
    ran = subprocess.run([sys.executable, "-c", LOAD_ALL, root], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines() == ["", "", "torch._dynamo.eval_frame"]
