"""What switching heads off changes in what models for the transformers library write or predict."""

import families
import pytest
import torch
import transformers
from families import WRITERS

import attnviz
from attnviz import ablation
from attnviz.heads import Head
from attnviz.models.model import TextError

pytestmark = pytest.mark.xdist_group("hf")  # one process imports the library
TEXT, TARGET = "The black dog.", "Le chien noir."


@pytest.mark.parametrize("family", WRITERS)
def test_the_effect_on_what_is_written(load, family):
    measured, off = load(family), [Head("cross", 1, 0), Head("encoder", 2, 3)]
    effect, changed = ablation.effect(measured, off, TEXT, TARGET), ablation.switch_off(measured, off)
    assert (
        effect.before == measured.trace(TEXT, TARGET)
        and effect.after == changed.trace(TEXT, TARGET)
        and effect.predictions == ((), ())
    )
    assert effect.free == changed.trace(TEXT) and effect.change == effect.after.log_prob - effect.before.log_prob != 0
    [prediction] = ablation.importance(measured, TEXT, TARGET, off[:1])
    assert prediction.change == pytest.approx(ablation.effect(measured, off[:1], TEXT, TARGET).change, abs=1e-4)


def test_a_causal_reader_predicts_each_token_from_those_before(load):
    """The library shifts labels itself and gives the mean negative log-probability of all tokens but the first."""
    for family in ("gpt2", "llama"):
        model = load(family)
        ids = torch.tensor([model.read(TEXT).ids])
        predictions = model.predictions(TEXT)
        assert [prediction.position for prediction in predictions] == list(range(1, ids.shape[1]))
        loss = model.model(input_ids=ids, labels=ids).loss.item()
        assert model.log_prob(TEXT) == pytest.approx(-loss * len(predictions), abs=1e-3)
        assert all(
            prediction.alternatives[0].probability >= prediction.alternatives[-1].probability
            for prediction in predictions
        )


def test_a_masked_reader_predicts_each_token_from_all_others(load):
    model = load("bert")
    tokens, tokenizer = model.read(TEXT), model.tokenizer
    predictions = model.predictions(TEXT)
    assert [prediction.position for prediction in predictions] == [
        i for i, token in enumerate(tokens.tokens) if not token.special
    ]
    for prediction in predictions:
        ids = torch.tensor([tokens.ids])
        ids[0, prediction.position] = tokenizer.mask_token_id
        chances = torch.log_softmax(model.model(input_ids=ids).logits[0, prediction.position], -1)
        assert prediction.log_prob == pytest.approx(chances[tokens.ids[prediction.position]].item(), abs=1e-5)
        assert prediction.alternatives[0].probability == pytest.approx(chances.exp().max().item(), abs=1e-5)


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_the_effect_on_what_is_predicted(load, family):
    measured = load(family)
    off = [Head("encoder" if family == "bert" else "decoder", 0, 1)]
    effect, changed = ablation.effect(measured, off, TEXT), ablation.switch_off(measured, off)
    assert effect.before == measured.trace(TEXT) and effect.after == effect.free == changed.trace(TEXT)
    assert effect.change == pytest.approx(changed.log_prob(TEXT) - measured.log_prob(TEXT)) and effect.change != 0
    [prediction] = ablation.importance(measured, TEXT, None, off)
    assert prediction.change == pytest.approx(effect.change)


def test_a_reader_with_nothing_to_predict_with(load):
    model = load("distilbert")
    assert not model.predicts and model.predictions(TEXT) == ()
    assert ablation.effect(model, [Head("encoder", 0, 0)], TEXT).change is None
    with pytest.raises(TextError, match="cannot predict this text: this model has no language-model head$"):
        model.log_prob(TEXT)


def test_texts_of_which_nothing_is_predicted(load):
    with pytest.raises(TextError, match="cannot predict this text: no token comes before its only token$"):
        load("gpt2").log_prob("n")
    with pytest.raises(ValueError, match=r"takes no target and no beam; for two texts, type \|\|\| between them$"):
        load("bert").log_prob(TEXT, TARGET)


def test_of_a_long_text_some_tokens_are_masked_evenly_spread(tmp_path):
    long = attnviz.load(f"hf:{families.write(tmp_path / 'long', 'bert', max_position_embeddings=200)}")
    for count, every in ((64, 1), (65, 2), (129, 3)):
        assert [prediction.position for prediction in long.predictions("n " * count)] == list(
            range(1, count + 1, every)
        )
    whole = ablation.effect(long, [Head("encoder", 0, 0)], "n " * 65)
    assert len(whole.after.source) == 67 and len(whole.predictions[1]) == 33 and whole.change is not None


def test_a_model_saved_without_its_head_is_read_without(tmp_path):
    """Its config names the class with the head; the head's weights would be random."""
    folder = families.write(tmp_path / "bert", "bert")
    transformers.BertForMaskedLM.from_pretrained(folder).bert.save_pretrained(folder)
    config = (folder / "config.json").read_text()
    (folder / "config.json").write_text(config.replace('"BertModel"', '"BertForMaskedLM"'))
    model = attnviz.load(f"hf:{folder}")
    assert "BertForMaskedLM" in (folder / "config.json").read_text() and not model.predicts and model.trace(TEXT).maps


def test_a_decoder_deeper_than_its_encoder_writes(tmp_path):
    model = attnviz.load(f"hf:{families.write(tmp_path, 't5', num_layers=1, num_decoder_layers=3)}")
    trace = model.trace(TEXT)
    assert [len(model.head_counts[kind]) for kind in ("encoder", "decoder", "cross")] == [1, 3, 3] and trace.target
    ids = model._generate(model.read(TEXT).ids, 1)
    logits = model.run(model.read(TEXT).ids, decoder_input_ids=torch.tensor([[model.start, *ids[:-1]]])).logits[0]
    assert logits.argmax(-1).tolist() == ids  # greedy, whatever was kept


def test_a_model_that_says_nothing_by_itself_is_not_compared(tmp_path):
    model = attnviz.load(f"hf:{families.write(tmp_path, 'marian')}")
    model.model.final_logits_bias[0, 1] = 1e4  # </s>
    assert model.trace(TEXT).translation == ""
    for ask in (
        lambda: ablation.effect(model, ablation.heads(model)[:1], TEXT),
        lambda: next(ablation.importance(model, TEXT)),
    ):
        with pytest.raises(TextError, match="produces an empty text, which cannot be compared; give it a target$"):
            ask()
    assert ablation.effect(model, ablation.heads(model)[:1], TEXT, TARGET).change is not None
