"""Small translators, read once."""

import pytest

from attnviz.data.tokenizer import EOS
from attnviz.models.translator import Translator

models = {}


@pytest.fixture
def translator(root, mechanism):
    """A tiny checkpoint, written and read by the real code, made to end its sentences."""
    if mechanism not in models:
        model = Translator.load(f"en-fr/{mechanism}", root)
        if hasattr(model.model, "output_bias"):
            model.model.output_bias[EOS] = 0.4
        models[mechanism] = model
    return models[mechanism]
