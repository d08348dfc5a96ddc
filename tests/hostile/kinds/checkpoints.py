"""The files of a checkpoint with parts exchanged: how they are made and put in place."""

import json

import tiny
from hypothesis import strategies as st

from tests.hostile import strategies
from tests.hostile.workplace import Workplace


def mutations(file: str):
    contents = {
        name: json.loads(path.read_text())
        for name in ("en-fr/transformer", "en-fr/bahdanau", "sst2/self-attention")
        if (path := strategies.ROOT / "checkpoints" / name / file).is_file()
    }
    small = {"mechanism": "transformer", "vocabulary": 60, "options": tiny.WIDTHS["transformer"]}
    values = [*contents.values(), *([small] if file == "config.json" else [])]
    return st.tuples(
        st.sampled_from(["en-fr/transformer", "en-fr/bahdanau"]), st.one_of(*map(strategies.mutated, values))
    )


def put(place: Workplace, name: str, file: str, content) -> None:
    path = place.root / name / file
    path.write_text(
        json.dumps(content) if not isinstance(content, str) else content, encoding="utf-8", errors="replace"
    )
