"""The message of what is refused."""

import pytest

from attnviz.models.model import TextError


# What is refused, in whole sentences.
def refused(call, kind=TextError):
    with pytest.raises(kind) as error:
        call()
    assert type(error.value) is kind
    return str(error.value)
