"""The language pairs and other tasks in the order of the page. Their texts are in attnviz.data.tasks.

No Streamlit here.
"""

import functools
from collections.abc import Sequence

from attnviz import gold
from attnviz.data import tasks
from attnviz.data.tasks import TASKS, Task

DEFAULT = "en-fr"
FIRST = ("bahdanau", "luong-general", "transformer")  # shown before anything is chosen
ANY = Task(  # of a user's own model, whose languages are not known
    name="",
    source="",
    target="",
    title="",
    output="text",
    examples=TASKS[DEFAULT].examples[:1],
    ask="Your text",
    hint="Type a text and press Enter",
)
of = tasks.find


def translates(name: str) -> bool:
    """Is a folder of checkpoints a pair for the page that compares translations? sst2 is not."""
    return of(name).translates


def ordered(names: Sequence[str]) -> list[str]:
    """The pairs of the table in its order, then the others in theirs."""
    return [name for name in TASKS if name in names] + [name for name in names if name not in TASKS]


def first(mechanisms: Sequence[str]) -> list[str]:
    """The mechanisms that are shown before anything is chosen."""
    return [name for name in FIRST if name in mechanisms] or list(mechanisms[:3])


linked = functools.cache(gold.shipped)  # pair -> its sentences with links set by hand
