"""Heads of models for the transformers library switched off, against weights set to zero by hand."""

import families
import pytest
import torch
import transformers
from families import FAMILIES, READERS, WRITERS

import attnviz
from attnviz import ablation
from attnviz.heads import Head
from attnviz.models.huggingface.encoder_decoder import EncoderDecoderModel

pytestmark = pytest.mark.xdist_group("hf")  # one process imports the library
TEXT, TARGET = "The black dog.", "Le chien noir."
# family -> kind -> the module of its values in layer {}
VALUES = {
    "bert": {"encoder": "bert.encoder.layer.{}.attention.self.value"},
    "distilbert": {"encoder": "transformer.layer.{}.attention.v_lin"},
    "roberta": {"encoder": "roberta.encoder.layer.{}.attention.self.value"},
    "t5": {
        "encoder": "encoder.block.{}.layer.0.SelfAttention.v",
        "decoder": "decoder.block.{}.layer.0.SelfAttention.v",
        "cross": "decoder.block.{}.layer.1.EncDecAttention.v",
    },
    **{
        family: {
            "encoder": "model.encoder.layers.{}.self_attn.v_proj",
            "decoder": "model.decoder.layers.{}.self_attn.v_proj",
            "cross": "model.decoder.layers.{}.encoder_attn.v_proj",
        }
        for family in ("bart", "marian")
    },
}


def ask(model):
    """The last hidden states, or the logits of a writer."""
    if isinstance(model, EncoderDecoderModel):
        return model.run(model.read(TEXT).ids, decoder_input_ids=torch.tensor([[model.start, 5, 7, 9]])).logits
    return model.run(model.read(TEXT).ids).last_hidden_state


@pytest.mark.parametrize("family", VALUES)
def test_off_is_a_head_whose_values_are_zero(load, family):
    """Rows of the value projection belong to heads too: a head of no values has a context of zero."""
    model = load(family)
    for kind, path in VALUES[family].items():
        for layer, heads in enumerate(model.head_counts[kind]):
            values, head = model.model.get_submodule(path.format(layer)), heads - 1
            width = values.weight.shape[0] // heads
            rows, before = (
                slice(head * width, (head + 1) * width),
                {name: value.clone() for name, value in values.state_dict().items()},
            )
            off = ask(ablation.switch_off(model, [Head(kind, layer, head)]))
            with torch.no_grad():
                for parameter in values.parameters():
                    parameter[rows] = 0
                by_hand = ask(model)
                values.load_state_dict(before)
            torch.testing.assert_close(off, by_hand, atol=1e-5, rtol=1e-5)
            assert not torch.allclose(off, ask(model), atol=1e-4)


def test_off_in_gpt2(load):
    """Its queries, keys and values are thirds of one matrix, whose columns are what comes out."""
    model = load("gpt2")
    attention = model.model.transformer.h[1].attn.c_attn
    weight, bias = attention.weight.clone(), attention.bias.clone()
    off = ask(ablation.switch_off(model, [Head("decoder", 1, 0)]))
    attention.weight[:, 32:40], attention.bias[32:40] = 0, 0
    by_hand = ask(model)
    attention.weight.copy_(weight), attention.bias.copy_(bias)
    torch.testing.assert_close(off, by_hand, atol=1e-5, rtol=1e-5)


def test_off_in_llama_is_columns_of_its_output(load):
    """Its heads share values."""
    model = load("llama")
    output = model.model.model.layers[0].self_attn.o_proj
    weight, off = output.weight.clone(), ask(ablation.switch_off(model, [Head("decoder", 0, 2)]))
    output.weight[:, 8:12] = 0
    by_hand = ask(model)
    output.weight.copy_(weight)
    torch.testing.assert_close(off, by_hand, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_head_and_nothing_changes(load, family):
    model = load(family)
    trace, before = model.trace(TEXT), {name: value.clone() for name, value in model.model.state_dict().items()}
    heads = ablation.heads(model)
    assert set(heads) == {Head(m.kind, m.layer, head) for m in trace.maps for head in range(len(m.weights))}
    changed = ablation.switch_off(model, heads[:2])
    assert changed.name.endswith(f"without {heads[0]}, {heads[1]}") and changed.trace(TEXT).model == changed.name
    assert (
        all(torch.equal(value, before[name]) for name, value in model.model.state_dict().items())
        and model.trace(TEXT) == trace
    )
    ours, theirs = (dict(network.named_parameters()) for network in (changed.model, model.model))
    assert all(ours[name].data_ptr() == theirs[name].data_ptr() for name in theirs)


def test_a_family_whose_layers_share_weights_says_that_no_head_can_be_switched_off(tmp_path, monkeypatch):
    monkeypatch.setitem(
        FAMILIES, "albert", (families.wordpiece, "AlbertForMaskedLM", {**families.STACK, "embedding_size": 8})
    )
    model = attnviz.load(f"hf:{families.write(tmp_path / 'albert', 'albert')}")
    with pytest.raises(ValueError) as error:
        ablation.heads(model)
    assert (
        str(error.value)
        == f"{model.name} (albert): heads of its family cannot be switched off: attnviz does not know where in its "
        "layers they end"
    )


def test_readers_and_writers_are_all():
    assert {*READERS, *WRITERS} == set(FAMILIES) == {*VALUES, "gpt2", "llama"}


@pytest.mark.parametrize("name", ["ConvBertModel", "DiffLlamaModel", "BitNetModel"])
def test_what_reads_more_than_heads_is_not_cut_into_them(tmp_path, name):
    """ConvBERT lays a convolution beside its heads, DiffLlama subtracts heads, BitNet has a norm over all."""
    cls, (tokenizer, _) = getattr(transformers, name), (made := families.wordpiece())
    settings = {
        "hidden_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "intermediate_size": 16,
        "embedding_size": 32,
    }
    families.save(tmp_path, cls(cls.config_class(vocab_size=tokenizer.get_vocab_size(), **settings)), made)
    model = attnviz.load(f"hf:{tmp_path}")
    assert model.trace("the dog").maps
    with pytest.raises(ValueError, match="heads of its family cannot be switched off"):
        ablation.heads(model)


def test_a_decoder_alone_whose_layers_have_a_cross_attention_that_it_does_not_use(tmp_path):
    tokenizer, _ = made = families.byte_pairs()
    config = transformers.BartConfig(
        vocab_size=tokenizer.get_vocab_size(),
        d_model=16,
        encoder_layers=1,
        decoder_layers=3,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=16,
        decoder_ffn_dim=16,
    )
    families.save(tmp_path, transformers.BartForCausalLM(config), made)
    model = attnviz.load(f"hf:{tmp_path}")
    assert [projection.path.rsplit(".", 2)[1] for projection in model.projections()] == ["self_attn"] * 3
    assert ablation.effect(model, [Head("decoder", 2, 1)], TEXT).change != 0
