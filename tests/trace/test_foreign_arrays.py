"""Arrays as people hold them: batches, means of heads, padding, rounding, files, and the reasons of refusals."""

import json
import zipfile

import numpy as np
import pytest
import scipy.sparse
import synthetic
import torch
from safetensors.torch import save_file

import attnviz
from attnviz import figures, select, stats
from attnviz.trace import Trace


def draw(heads, queries, keys, causal=False, seed=0):
    scores = np.random.default_rng(seed).normal(size=(heads, queries, keys))
    return synthetic.softmax(scores, np.tri(queries, keys, dtype=bool) if causal else True)


def rows(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).softmax(-1)


class Symbolic:
    """As a tensor of Keras without numbers, or one that JAX traces: each raises an error of its own."""

    shape = (2, 5, 5)

    def __array__(self):
        raise TypeError("no conversion")


WORDS = list("abcde")
NONE = (None, (), (None, None), ((), (), ()))  # of sdpa: in a forward pass, in older ones, in generate()


@pytest.mark.parametrize(
    "weights, more, wanted",
    [
        (rows(2, 4, 5, 5), {}, "this looks like a batch of 2; choose one with batch=0"),
        ([rows(2, 4, 5, 5)], {}, "this looks like a batch of 2; choose one with batch=0"),
        (rows(2, 5, 5), {}, "Is it a batch of 2, each the mean of the heads? Then choose one with batch=0"),
        ([rows(2, 4, 5, 5)], {"batch": 2}, "batch must be one of 0 to 1; got 2"),
        ((rows(2, 5, 5), None), {}, 'layer 1 is missing (None); missing="skip" shows the others'),
        *((none, {}, '(sdpa or flash): load it with attn_implementation="eager", and run it again') for none in NONE),
        (((rows(1, 2, 3, 3),), (rows(1, 2, 1, 4),)), {}, "use attnviz.from_generate(output, tokens)"),
        ((torch.full((1, 5, 8), -1.0), rows(1, 5, 5)), {}, "this looks like (output, weights) of an attention layer"),
        ([rows(2, 5, 5).transpose(1, 2)], {}, "rows and columns are exchanged: give the transposed weights"),
        ([torch.full((1, 5, 5), -1.0)], {}, "values below 0 are scores: give them after the softmax"),
        ([rows(2, 5, 5) * 0.4], {}, 'if the model has attention sinks, use rest="sink"'),
        ([rows(2, 5, 5)], {"kind": "decoder"}, "if the first tokens are padding, name them"),
        ([rows(2, 5, 5)], {"padding": ["e"]}, "must be 0 on padding"),
        ([rows(2, 5, 5)], {"word_ids": [0]}, "word_ids must be a number or None for each of the 5 tokens"),
        (
            [torch.eye(5)[None, [0, 1, 2, 3, 0]]],
            {"padding": [True] * 4 + [False]},
            "True on padding, one of 1 and 0 must be 0 there; give the",
        ),
        ({"blocks.0.attn.hook_q": rows(1, 5, 2, 4)}, {}, "no name ends with hook_pattern, which holds the weights"),
        ((rows(1, 5, 9), {"blocks.0.attn.hook_pattern": rows(2, 5, 5)}), {}, "(output, cache); give the cache alone"),
        (
            [Symbolic()],
            {},
            "Symbolic has no numbers: it is symbolic, was deleted, or is traced by jit, grad or tf.function",
        ),
        ("weights.pt", {}, "may be a pickle, which runs code when it is read"),
    ],
)
def test_a_refusal_names_the_cause_and_what_to_do(weights, more, wanted):
    with pytest.raises(ValueError) as error:
        attnviz.from_arrays(weights, WORDS, **more)
    assert wanted in str(error.value)


def test_one_text_of_a_batch():
    weights = rows(2, 4, 5, 5)
    for given in (weights, [weights]):
        assert np.array_equal(attnviz.from_arrays(given, WORDS, batch=1).map("encoder").weights, weights[1].numpy())
    means = attnviz.from_arrays([weights.mean(1)], WORDS, batch=1).map("encoder")
    assert means.averaged and np.array_equal(means.weights[0], weights.mean(1)[1].numpy())


def test_the_mean_of_heads_that_multihead_attention_returns():
    torch.manual_seed(0)
    layer = torch.nn.MultiheadAttention(8, 4, batch_first=True)
    means = layer(*[torch.randn(1, 5, 8)] * 3)[1]
    for given in (means, means[0], [means], [means[0]]):
        trace = attnviz.from_arrays(given, WORDS)
        assert trace.map("encoder").averaged and select.select(trace, "encoder", head=0).head is None
        assert np.array_equal(trace.map("encoder").weights, means.detach().numpy())
    sparse = scipy.sparse.csr_matrix(means[0].detach().numpy())
    assert attnviz.from_arrays(sparse, WORDS).map("encoder") == attnviz.from_arrays(means, WORDS).map("encoder")


def test_attention_in_which_no_token_sees_a_later_one_is_that_of_a_decoder(tmp_path):
    """As a causal model returns it: what a token cannot see is hidden, and is no key in the statistics."""
    causal = [draw(2, 5, 5, causal=True, seed=seed) for seed in range(2)]
    np.save(tmp_path / "mean.npy", causal[0].mean(0))
    for given in (causal, tuple(torch.tensor(layer)[None] for layer in causal), tmp_path / "mean.npy"):
        trace = attnviz.from_arrays(given, WORDS)
        assert {layer.kind for layer in trace.maps} == {"decoder"} and not trace.visible(trace.maps[0])[0, 1]
    for given, kind in ((causal, "encoder"), (np.eye(5), None), ([draw(2, 5, 5)], None)):
        assert {layer.kind for layer in attnviz.from_arrays(given, WORDS, kind=kind).maps} == {"encoder"}


def test_layers_that_are_missing_keep_their_numbers():
    trace = attnviz.from_arrays((rows(2, 5, 5), None, rows(2, 5, 5)), WORDS, missing="skip")
    assert [m.layer for m in trace.maps] == [0, 2]


@pytest.mark.parametrize("padding", [["<pad>"], [0, 1], [0, 0, 1, 1, 1], [True, True, False, False, False]])
def test_padding_is_left_out(padding):
    real, padded = draw(2, 3, 3, causal=True), np.full((2, 5, 5), np.nan)
    padded[:, 2:] = 0
    padded[:, 2:, 2:] = real
    trace = attnviz.from_arrays([padded], ["<pad>", "<pad>", "a", "b", "c"], kind="decoder", padding=padding)
    assert np.array_equal(trace.map("decoder").weights, real.astype(np.float32)) and trace.text == "a b c"
    with pytest.raises(ValueError, match="row 0 .* as the row of a padding token has none: leave padding out"):
        attnviz.from_arrays([padded], ["<pad>", "<pad>", "a", "b", "c"], kind="decoder")


def test_a_sink_holds_the_rest(tmp_path):
    weights = rows(2, 5, 5) * 0.375
    trace = attnviz.from_arrays([weights], WORDS, rest="sink")
    m = trace.map("encoder")
    assert m.sink and np.allclose(m.weights[..., -1], 0.625) and trace.keys(m)[-1].text == "sink"
    with_sink, without = stats.steps(trace), stats.steps(trace, sink=False)
    assert np.allclose(with_sink["special_mass"], 0.625) and not without["special_mass"].any()
    own = attnviz.from_arrays([rows(2, 5, 5)], WORDS)
    assert np.allclose(without["entropy_nats"], stats.steps(own)["entropy_nats"], atol=1e-5)
    attnviz.save_trace(trace, tmp_path / "sink.safetensors")
    assert attnviz.load_trace(tmp_path / "sink.safetensors") == trace == Trace.from_json(trace.to_json())
    shapes = figures.heatmap(select.select(trace, "encoder")).layout.shapes
    assert [shape.name for shape in shapes] == ["sink"]


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_rounding_is_undone_and_said(kind):
    exact = rows(2, 60, 60)
    tokens = [f"w{i}" for i in range(60)]
    for given in (exact.to(getattr(torch, kind)), exact.to(getattr(torch, kind)).float()):
        trace = attnviz.from_arrays([given], tokens)
        assert np.allclose(trace.map("encoder").weights, exact, rtol=0.3, atol=1e-2)
        assert (trace.notes and kind.removesuffix("fn") in trace.notes[0]) or kind == "float16"


def test_weights_written_with_few_digits():
    trace = attnviz.from_arrays([np.round(rows(2, 5, 5).numpy(), 3).tolist()], WORDS)
    assert trace.notes[0].startswith("The weights were rounded to 3 digits: rows summed to ")


def test_a_row_that_rounding_does_not_explain_is_refused():
    with pytest.raises(ValueError, match="must sum to 1"):
        attnviz.from_arrays([(rows(2, 5, 5) * 0.97).half().float()], WORDS)


def test_one_row_a_step_is_joined():
    cross = rows(3, 5)
    for steps in (list(cross), [row[None] for row in cross], [row[None, None] for row in cross]):
        trace = attnviz.from_arrays(steps, WORDS, list("xyz"))
        assert np.array_equal(trace.map("cross").weights[0], cross.numpy())


def test_word_ids_join_pieces():
    trace = attnviz.from_arrays([rows(2, 4, 4)], ["[CLS]", "do", "##g", "runs"], word_ids=[None, 0, 0, 1])
    assert trace.text == "dog runs" and [token.text for token in select.words(trace).source][1:] == ["dog", "runs"]


def test_a_cache_of_hooks_and_files(tmp_path):
    patterns = {f"blocks.{i}.attn.hook_pattern": torch.tensor(draw(2, 5, 5, True, i)[None]) for i in (0, 1)}
    trace = attnviz.from_arrays(patterns | {"blocks.0.attn.hook_q": rows(1, 5, 2, 4)}, WORDS)
    assert [(m.kind, m.layer) for m in trace.maps] == [("decoder", 0), ("decoder", 1)]
    np.savez(tmp_path / "a.npz", layer_0=rows(2, 5, 5).numpy(), layer_1=rows(2, 5, 5).numpy(), tokens=WORDS)
    assert [m.layer for m in attnviz.from_arrays(tmp_path / "a.npz").maps] == [0, 1]
    numbers = {"encoder.0": rows(2, 5, 5).bfloat16(), "encoder.1": rows(2, 5, 5).to(torch.float8_e5m2)}
    save_file(numbers, tmp_path / "a.safetensors")
    trace = attnviz.from_arrays(tmp_path / "a.safetensors", WORDS)
    for m, given in zip(trace.maps, numbers.values()):
        exact = given.float()
        assert np.allclose(m.weights, exact / exact.sum(-1, keepdim=True), atol=1e-6)
    (tmp_path / "a.json").write_text(json.dumps({"weights": [rows(2, 5, 5).tolist()], "tokens": WORDS}))
    assert attnviz.from_arrays(tmp_path / "a.json").text == "a b c d e"


def test_names_in_names_as_flax_keeps_them():
    first, second = draw(2, 5, 5), draw(2, 5, 5, seed=1)
    sown = {f"layer_{i}": {"attention": {"attention_weights": (part[None],)}} for i, part in enumerate((first, second))}
    trace = attnviz.from_arrays({"intermediates": {"encoder": sown}}, WORDS)
    np.testing.assert_allclose([layer.weights for layer in trace.maps], [first, second], atol=1e-6)
    assert attnviz.from_arrays({"encoder": {"0": first, "1": second}}, WORDS) == trace


def test_files_that_run_code_or_hold_too_much_are_refused(tmp_path):
    np.savez(tmp_path / "object.npz", x=np.array([object()]))
    with zipfile.ZipFile(tmp_path / "bomb.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(
            "x.npy",
            b"\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': False, 'shape': (9, 999999999, 9), }".ljust(
                127
            )
            + b"\n"
            + bytes(10**6),
        )
    for name, reason in (("object.npz", "array of objects is a pickle"), ("bomb.npz", "is cut short")):
        with pytest.raises(ValueError, match=reason):
            attnviz.from_arrays(tmp_path / name, WORDS)


def test_layers_may_be_numbered_by_the_keys_of_a_dict():
    first, second = rows(2, 5, 5), rows(2, 5, 5, seed=1)
    trace = attnviz.from_arrays({1: second, 0: first}, WORDS)
    assert [layer.layer for layer in trace.maps] == [0, 1]
    np.testing.assert_allclose([layer.weights for layer in trace.maps], [first, second], atol=1e-6)


@pytest.mark.parametrize("change", [lambda x: x.requires_grad_(), lambda x: x.bfloat16(), lambda x: x.half()])
def test_a_tensor_for_each_head_is_read_as_one_for_all(change):
    """Lists of tensors of any type, those that require grad too; and one that is quantised."""
    weights = torch.from_numpy(np.random.default_rng(0).dirichlet(np.ones(3), (2, 3))).float()
    together = attnviz.from_arrays([change(weights.clone())], list("abc"))
    heads = attnviz.from_arrays([[change(head.clone()) for head in weights]], list("abc"))
    assert heads == together
    whole = torch.quantize_per_tensor(torch.eye(3), 0.5, 0, torch.quint8)
    assert np.array_equal(attnviz.from_arrays([whole], list("abc")).maps[0].weights[0], np.eye(3))
    with pytest.raises(ValueError, match="got lists of something else than numbers"):
        attnviz.from_arrays([[[0.5, torch.tensor(0.5, requires_grad=True)]] * 2], list("ab"))
