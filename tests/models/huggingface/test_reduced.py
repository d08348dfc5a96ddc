"""Long texts: each layer is reduced while it is computed. The numbers are those of the whole trace."""

import families
import forked
import numpy as np
import pytest
import safetensors.numpy as safetensors

import attnviz
from attnviz import heads
from attnviz.figures import small_maps
from attnviz.models import measured
from attnviz.models.model import TextError
from attnviz.trace import files

pytestmark = pytest.mark.xdist_group("hf")  # one process imports the library
TEXT = "The black dog is run the green ball"
# A text whose maps take 220 MB all together, in a process that may take 200 MB more than it has with the model: to
# compute them, kept or not, takes 140 MB at most besides.
LIMITED = """
import resource, sys, torch, attnviz
torch.set_num_threads(1)
model = attnviz.load(sys.argv[1])
model.reduced("The dog")
with open("/proc/self/statm") as file:
    size = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + 200 * 2**20,) * 2)
reduced = model.reduced("the " * 599 + "the")
print(len(reduced.trace.source), len(reduced.table), reduced.table["special_mass"].notna().all())
"""


@pytest.mark.parametrize("family", ["gpt2", "llama", "bert"])
def test_the_numbers_are_those_of_the_whole_trace(load, family):
    model = load(family)
    trace, reduced = model.trace(TEXT), model.reduced(TEXT)
    whole = heads.table(trace)
    assert list(reduced.table) == list(whole) and len(reduced.table) == len(whole)
    for name in whole.columns[2:]:
        assert reduced.table[name].to_numpy(float) == pytest.approx(whole[name].to_numpy(float), abs=1e-6, nan_ok=True)
    assert reduced.trace == attnviz.trace.Trace(**{**vars(trace), "maps": ()}) and reduced.kind == trace.maps[0].kind
    for attention in trace.maps:
        seen = small_maps.pool(trace.visible(attention)[None])
        wanted = np.where(seen, small_maps.pool(attention.weights), np.nan)
        assert np.allclose(reduced.pooled[attention.layer], wanted, atol=1e-6, equal_nan=True)
        assert reduced.row_sums[attention.layer] == pytest.approx(1, abs=1e-5)
        last = len(attention.weights) - 1
        opened = model.opened(TEXT, attention.layer, last)
        assert opened.weights[0] == pytest.approx(attention.weights[last], abs=1e-6) and opened.layer == attention.layer


def test_some_heads_at_a_time_are_the_same(load, monkeypatch):
    from attnviz.models.huggingface import base

    model = load("llama")
    whole = model.reduced(TEXT)
    monkeypatch.setattr(base, "_TOGETHER", 1)  # a head at a time
    alone = model.reduced(TEXT)
    assert alone.table.equals(whole.table)
    assert all(np.array_equal(alone.pooled[layer], whole.pooled[layer], equal_nan=True) for layer in whole.pooled)


def test_a_text_as_long_as_the_context_in_a_process_with_a_limit_of_memory(tmp_path):
    settings = {"num_hidden_layers": 10, "num_attention_heads": 16, "hidden_size": 64, "max_position_embeddings": 900}
    folder = families.write(tmp_path / "llama", "llama", **settings)
    model = attnviz.load(f"hf:{folder}")
    assert model.limit == 512 < model.context == 900
    with pytest.raises(TextError, match="its limit here is 512"):
        model.trace("the " * 599)
    ran = forked.run("-c", LIMITED, f"hf:{folder}")
    assert ran.stdout.split() == ["601", "160", "True"], ran.stderr[-2000:]


def test_what_cannot_be_reduced_is_said(load, tmp_path):
    model = load("gpt2")
    with pytest.raises(ValueError, match="layer and head must be of the 3 layers"):
        model.opened(TEXT, 0, 9)
    with pytest.raises(TextError, match="its limit here is 40"):
        model.reduced("the " * 60)


def test_what_was_reduced_is_kept_in_a_file_that_says_what_it_lacks(tmp_path):
    folder = families.write(tmp_path / "llama", "llama", num_hidden_layers=2, max_position_embeddings=90)
    reduced, path = attnviz.load(f"hf:{folder}").reduced("the " * 80), tmp_path / "long.safetensors"
    assert reduced.pooled[0].shape[1] < len(reduced.trace.source)
    reduced.save(path)
    read = measured.load_reduced(path)
    assert read.table.equals(reduced.table) and read.kind == reduced.kind
    for layer, maps in reduced.pooled.items():
        np.testing.assert_array_equal(read.pooled[layer], maps)
        np.testing.assert_allclose(read.row_sums[layer], reduced.row_sums[layer])
    bare = attnviz.load_trace(path)
    assert bare.source == reduced.trace.source and bare.maps == () and bare.notes[-1] == measured.LACKS
    with pytest.raises(ValueError, match="path must end in .safetensors; got 'long.json'"):
        reduced.save(tmp_path / "long.json")
    with pytest.raises(ValueError, match="cannot read .*nothing.safetensors"):
        measured.load_reduced(tmp_path / "nothing.safetensors")


@pytest.mark.parametrize(
    "changes, why",
    [
        ({"pooled.0": np.zeros((2, 3, 3), np.float32)}, "layer 0 must have 4 maps of"),
        ({"table.layer": np.full(8, 1e9)}, "layers must be counted from 0 to 999"),
        ({"table.entropy_nats": np.zeros(3)}, "the columns of its table must be as long as its heads are many"),
        ({"table.head": np.zeros(8)}, "layer 0 must have heads from 0 on"),
        ({"row_sums.1": None}, "row_sums.1"),
    ],
)
def test_a_file_of_a_reduced_text_that_was_changed_is_refused(load, changes, why):
    content = load("llama").reduced(TEXT).pack()
    tensors = {name: value for name, value in (safetensors.load(content) | changes).items() if value is not None}
    with pytest.raises(ValueError, match=f"the file x.safetensors holds no reduced trace: .*{why}"):
        measured.unpack_reduced(safetensors.save(tensors, files.header(content)), "x.safetensors")
