"""A Python file of one's own, with a mechanism or a module: it works, or a sentence says why not."""

import re

from hypothesis import strategies as st

from tests.hostile import strategies
from tests.hostile.kinds import arguments
from tests.hostile.workplace import Workplace, sentence

WARM = ("module", "", False)
SNIPPETS = (
    "raise ValueError('a\\nb' * 999)",
    "raise SystemExit",
    "raise SystemExit('x' * 5000)",
    "1 / 0",
    "return None",
    "return float('nan')",
    "return query * float('nan')",
    "return keys[:, :0]",
    "return query, keys, 3",
    "print('a\\nb')",
    "import no_such_module",
    "import sys; sys.exit(3)",
    "raise type('E', (Exception,), {'__str__': lambda self: 1})()",
    "raise RecursionError",
    "raise MemoryError",
    "raise AssertionError",
    "raise StopIteration",
    "raise UnicodeDecodeError('utf-8', b'', 0, 1, '')",
    "exec('=' * 99)",
    "pass",
    "\x00",
    "\ufeff",
    "    ",
    "def",
    "(" * 300,
    "del query",
    "self.__dict__.clear()",
    "globals().clear()",
)
MODULE = """import torch
from torch import nn


class Attention(nn.Module):
    \"\"\"1 in the mask keeps a key.\"\"\"

    def __init__(self, width=16):
        super().__init__()
        self.project = nn.Linear(width, width)

    def forward(self, query, keys, values, mask=None):
        scores = self.project(query) @ keys.transpose(1, 2) / keys.shape[-1] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(mask.unsqueeze(1) == 0, -1e9)
        weights = scores.softmax(dim=-1)
        return weights @ values, weights
"""


def strategy():
    guide = (strategies.ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    [mechanism] = re.findall(r"```python\n(.*?)```", guide, re.DOTALL)
    sources = {"module": MODULE, "mechanism": mechanism}
    return st.sampled_from(list(sources)).flatmap(
        lambda kind: st.tuples(
            st.just(kind),
            st.one_of(_changed(sources[kind]), _changed(sources[kind]), _cut(sources[kind])),
            st.booleans(),
        )
    )


def _changed(source: str):
    """The file with one to three lines taken out, doubled, or exchanged for a snippet as deep as they are."""
    places = st.integers(0, source.count("\n") - 1)
    edits = st.lists(
        st.tuples(places, st.one_of(st.sampled_from(SNIPPETS), st.sampled_from([..., None]))), min_size=1, max_size=3
    )

    def edit(made: list) -> str:
        lines = source.split("\n")
        for place, snippet in made:
            depth = re.match(" *", lines[place])[0]
            lines[place] = (
                "" if snippet is ... else f"{lines[place]}\n{lines[place]}" if snippet is None else depth + snippet
            )
        return "\n".join(lines)

    return edits.map(edit)


def _cut(source: str):
    return strategies.damaged(source.encode()).map(lambda content: content.decode("latin-1"))


def check(place: Workplace, case) -> None:
    """`check` of the module, as text or as JSON; the mechanism is read."""
    from attnviz import mechanisms

    kind, source, as_json = case
    path = place.folder / "mine.py"
    path.write_text(source, encoding="utf-8", errors="replace")
    if kind == "module":
        arguments.check(place, ["check", f"{path}:Attention", *["--json"] * as_json])
    else:
        with sentence():
            mechanisms.remove(mechanisms.read(f"{path}:COSINE").name)
