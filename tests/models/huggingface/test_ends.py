"""Where an output of an encoder-decoder ends."""

import families
import pytest

import attnviz

pytestmark = pytest.mark.xdist_group("hf")  # one process imports the library
TEXT = "The black dogs are running."


def test_an_output_that_has_ended_has_no_rows_after_its_end(tmp_path):
    """A model that always says </s>, and whose settings do not name it as the end: it is asked on to the limit."""
    model = attnviz.load(f"hf:{families.write(tmp_path / 'bart', 'bart')}")
    model.model.generation_config.eos_token_id = None
    model.model.final_logits_bias[0, model.tokenizer.eos_token_id] = 1e4
    trace = model.trace(TEXT)
    assert [token.text for token in trace.target] == ["</s>"] and trace.complete


def test_special_tokens_before_words_are_no_end(load):
    model = load("bart")
    end, pad = model.tokenizer.eos_token_id, model.tokenizer.pad_token_id
    assert model._ended([end, 7, end, pad, end]) == [end, 7, end]
    assert model._ended([7, 8]) == [7, 8] and model._ended([]) == []
