"""generated.py: the output of generate() of the transformers library, against one pass over the same tokens."""

import numpy as np
import pytest
import torch

import attnviz

transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.xdist_group("hf")  # one process imports its models
HOW = dict(output_attentions=True, return_dict_in_generate=True, do_sample=False, pad_token_id=0, eos_token_id=39)


def gpt():
    torch.manual_seed(0)
    config = transformers.GPT2Config(vocab_size=40, n_embd=16, n_layer=3, n_head=2, attn_implementation="eager")
    return _spread(transformers.GPT2LMHeadModel(config))


def t5():
    torch.manual_seed(0)
    sizes = dict(vocab_size=40, d_model=16, d_kv=4, d_ff=16, num_layers=3, num_decoder_layers=2, num_heads=4)
    config = transformers.T5Config(**sizes, decoder_start_token_id=0, attn_implementation="eager")
    return _spread(transformers.T5ForConditionalGeneration(config))


def _spread(model):
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4)  # as they are made, all beams come out alike
    return model.eval()


def names(ids):
    return [f"t{number}" for number in ids.tolist()]


def close(trace, kind, layers):
    return all(np.allclose(trace.map(kind, i).weights, a[0].detach(), atol=1e-5) for i, a in enumerate(layers))


@pytest.mark.parametrize("beams", [1, 4])
def test_a_decoder(beams):
    model, prompt = gpt(), torch.tensor([[1, 2, 3, 4, 5]])
    output = model.generate(prompt, num_beams=beams, max_new_tokens=3, **HOW)
    ids = output.sequences[0]
    trace = attnviz.from_generate(output, names(ids))
    assert [token.text for token in trace.source] == names(ids[:-1])
    assert close(trace, "decoder", model(ids[None, :-1], output_attentions=True).attentions)
    with pytest.raises(ValueError, match=r"use attnviz.from_generate\(output, tokens\)"):
        attnviz.from_arrays(output.attentions, names(ids))


@pytest.mark.parametrize("beams", [1, 4])
def test_an_encoder_decoder(beams):
    model, source = t5(), torch.tensor([[1, 2, 3, 4, 5, 6]])
    output = model.generate(source, num_beams=beams, max_new_tokens=4, **HOW)
    ids = output.sequences[0]
    trace = attnviz.from_generate(output, names(source[0]), names(ids[1:]))
    whole = model(source, decoder_input_ids=ids[None, :-1], output_attentions=True)
    for kind in ("cross", "decoder", "encoder"):
        assert close(trace, kind, whole[f"{kind}_attentions"])


def test_beams_without_their_indices_are_refused():
    output = gpt().generate(torch.tensor([[1, 2, 3]]), num_beams=3, max_new_tokens=2, **HOW)
    output = {name: value for name, value in output.items() if name != "beam_indices"}
    with pytest.raises(ValueError, match="no beam_indices, which say whose rows were chosen"):
        attnviz.from_generate(output, names(output["sequences"][0]))


def test_one_text_of_a_batch_padded_on_the_left():
    model, prompts = gpt(), torch.tensor([[0, 0, 3, 4, 5], [1, 2, 3, 4, 5]])
    output = model.generate(prompts, attention_mask=(prompts > 0).long(), max_new_tokens=3, **HOW)
    with pytest.raises(ValueError, match="this looks like a batch of 2 texts; choose one with batch=0"):
        attnviz.from_generate(output, names(output.sequences[0]))
    ids = output.sequences[0]
    trace = attnviz.from_generate(output, names(ids), batch=0, padding=[0, 1])
    assert close(trace, "decoder", model(ids[None, 2:-1], output_attentions=True).attentions)


@pytest.mark.parametrize("empty", [(), (None, None)])
def test_attention_that_the_model_did_not_return_says_how_to_get_it(empty):
    """As the library returns it of a model that was loaded with sdpa, its default."""
    output = {"sequences": np.arange(4)[None], "attentions": (empty, empty)}
    with pytest.raises(ValueError, match='load it with attn_implementation="eager"'):
        attnviz.from_generate(output, ["a", "b", "c", "d"])
