"""For tests of models for the transformers library that are refused."""

import json

import pytest

import attnviz
from attnviz.models.huggingface import load


def refused(folder):
    """The message, without the name that it begins with."""
    with pytest.raises(load.ModelError) as error:
        attnviz.load(f"hf:{folder}")
    assert str(error.value).startswith(f"hf:{folder}") and "\n" not in str(error.value)
    return str(error.value).removeprefix(f"hf:{folder}").removeprefix(":").strip()


def change(path, **values):
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))
