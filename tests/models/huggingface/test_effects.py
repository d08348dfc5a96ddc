"""What switching heads off changes in what models for the transformers library write or predict."""

import families
import pytest
import torch
import transformers
from families import WRITERS

import attnviz
from attnviz import ablation
from attnviz.heads import Head
from attnviz.models.huggingface.encoder_decoder import EncoderDecoderModel
from attnviz.models.model import TextError

pytestmark = pytest.mark.xdist_group("hf")  # one process imports the library
TEXT, TARGET = "The black dog.", "Le chien noir."


def ask(found):
    """The last hidden states, or the logits of a writer."""
    if isinstance(found, EncoderDecoderModel):
        return found.run(found.read(TEXT).ids, decoder_input_ids=torch.tensor([[found.start, 5, 7, 9]])).logits
    return found.run(found.read(TEXT).ids).last_hidden_state


@pytest.mark.parametrize("family", WRITERS)
def test_the_effect_on_what_is_written(load, family):
    found, off = load(family), [Head("cross", 1, 0), Head("encoder", 2, 3)]
    effect, changed = ablation.effect(found, off, TEXT, TARGET), ablation.switch_off(found, off)
    assert (
        effect.before == found.trace(TEXT, TARGET)
        and effect.after == changed.trace(TEXT, TARGET)
        and effect.predictions == ((), ())
    )
    assert effect.free == changed.trace(TEXT) and effect.change == effect.after.log_prob - effect.before.log_prob != 0
    [one] = ablation.importance(found, TEXT, TARGET, off[:1])
    assert one.change == pytest.approx(ablation.effect(found, off[:1], TEXT, TARGET).change, abs=1e-4)


def test_a_causal_reader_predicts_each_token_from_those_before(load):
    """The library shifts labels itself and gives the mean negative log-probability of all tokens but the first."""
    for family in ("gpt2", "llama"):
        found = load(family)
        ids = torch.tensor([found.read(TEXT).ids])
        predictions = found.predictions(TEXT)
        assert [one.position for one in predictions] == list(range(1, ids.shape[1]))
        loss = found.model(input_ids=ids, labels=ids).loss.item()
        assert found.log_prob(TEXT) == pytest.approx(-loss * len(predictions), abs=1e-3)
        assert all(one.alternatives[0].probability >= one.alternatives[-1].probability for one in predictions)


def test_a_masked_reader_predicts_each_token_from_all_others(load):
    found = load("bert")
    tokens, tokenizer = found.read(TEXT), found.tokenizer
    predictions = found.predictions(TEXT)
    assert [one.position for one in predictions] == [i for i, token in enumerate(tokens.tokens) if not token.special]
    for one in predictions:
        ids = torch.tensor([tokens.ids])
        ids[0, one.position] = tokenizer.mask_token_id
        chances = torch.log_softmax(found.model(input_ids=ids).logits[0, one.position], -1)
        assert one.log_prob == pytest.approx(chances[tokens.ids[one.position]].item(), abs=1e-5)
        assert one.alternatives[0].probability == pytest.approx(chances.exp().max().item(), abs=1e-5)


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_the_effect_on_what_is_predicted(load, family):
    found = load(family)
    off = [Head("encoder" if family == "bert" else "decoder", 0, 1)]
    effect, changed = ablation.effect(found, off, TEXT), ablation.switch_off(found, off)
    assert effect.before == found.trace(TEXT) and effect.after == effect.free == changed.trace(TEXT)
    assert effect.change == pytest.approx(changed.log_prob(TEXT) - found.log_prob(TEXT)) and effect.change != 0
    [one] = ablation.importance(found, TEXT, None, off)
    assert one.change == pytest.approx(effect.change)


def test_a_reader_with_nothing_to_predict_with(load):
    found = load("distilbert")
    assert not found.predicts and found.predictions(TEXT) == ()
    assert ablation.effect(found, [Head("encoder", 0, 0)], TEXT).change is None
    with pytest.raises(TextError, match="cannot predict this text: the model has no language-model head$"):
        found.log_prob(TEXT)


def test_texts_of_which_nothing_is_predicted(load):
    with pytest.raises(TextError, match="cannot predict this text: no token comes before its only token$"):
        load("gpt2").log_prob("n")
    with pytest.raises(ValueError, match="takes no target and no beam$"):
        load("bert").log_prob(TEXT, TARGET)


def test_of_a_long_text_some_tokens_are_masked_evenly_spread(tmp_path):
    long = attnviz.load(f"hf:{families.write(tmp_path / 'long', 'bert', max_position_embeddings=200)}")
    for count, every in ((64, 1), (65, 2), (129, 3)):
        assert [one.position for one in long.predictions("n " * count)] == list(range(1, count + 1, every))
    whole = ablation.effect(long, [Head("encoder", 0, 0)], "n " * 65)
    assert len(whole.after.source) == 67 and len(whole.predictions[1]) == 33 and whole.change is not None


def test_a_model_saved_without_its_head_is_read_without(tmp_path):
    """Its config names the class with the head; the head's weights would be random."""
    folder = families.write(tmp_path / "bert", "bert")
    transformers.BertForMaskedLM.from_pretrained(folder).bert.save_pretrained(folder)
    config = (folder / "config.json").read_text()
    (folder / "config.json").write_text(config.replace('"BertModel"', '"BertForMaskedLM"'))
    found = attnviz.load(f"hf:{folder}")
    assert "BertForMaskedLM" in (folder / "config.json").read_text() and not found.predicts and found.trace(TEXT).maps


def test_a_decoder_deeper_than_its_encoder_writes(tmp_path):
    found = attnviz.load(f"hf:{families.write(tmp_path, 't5', num_layers=1, num_decoder_layers=3)}")
    trace = found.trace(TEXT)
    assert [len(found.head_counts[kind]) for kind in ("encoder", "decoder", "cross")] == [1, 3, 3] and trace.target
    ids = found._generate(found.read(TEXT).ids, 1)
    logits = found.run(found.read(TEXT).ids, decoder_input_ids=torch.tensor([[found.start, *ids[:-1]]])).logits[0]
    assert logits.argmax(-1).tolist() == ids  # greedy, whatever was kept


def test_a_model_that_says_nothing_by_itself_is_not_compared(tmp_path):
    found = attnviz.load(f"hf:{families.write(tmp_path, 'marian')}")
    found.model.final_logits_bias[0, 1] = 1e4  # </s>
    assert found.trace(TEXT).translation == ""
    for ask in (
        lambda: ablation.effect(found, ablation.heads(found)[:1], TEXT),
        lambda: next(ablation.importance(found, TEXT)),
    ):
        with pytest.raises(TextError, match="produces an empty text, which cannot be compared; give it a target$"):
            ask()
    assert ablation.effect(found, ablation.heads(found)[:1], TEXT, TARGET).change is not None
