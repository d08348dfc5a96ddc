"""A tokenizer.json of one's own: refused, or it reads a text."""

import json

import tiny
from hypothesis import strategies as st

from tests.hostile import strategies
from tests.hostile.workplace import Workplace, sentence

WARM: dict = {}


def strategy():
    content = tiny.vocabulary().backend.to_str()
    whole = json.loads(content)
    return st.one_of(strategies.mutated(whole), strategies.numbered(whole), strategies.damaged(content.encode()))


def check(place: Workplace, case) -> None:
    import attnviz

    path = place.root / "en-fr" / "tokenizer.json"
    try:
        path.write_bytes(case if isinstance(case, bytes) else json.dumps(case).encode())
        with sentence():
            attnviz.load("en-fr/bahdanau", place.root).trace("the dog runs")
    finally:
        place.put_back("checkpoints")
