"""The language pairs and other tasks in the order of the page. Their texts are in attnviz.data.tasks, the examples of a
user's pair are on the cards of its models.

No Streamlit here.
"""

import functools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from weakref import WeakValueDictionary

from attnviz import gold, storage
from attnviz.data import tasks
from attnviz.data.tasks import TASKS, Task
from attnviz.mechanisms import ALL, was_added
from attnviz.models import checkpoint_files
from attnviz.models.names import CARD
from attnviz.storage.folders import TemporaryFolder
from dashboard.choices.options import LIMIT

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

_EXAMPLES = 4  # sentences one click away
# pair -> the folder of checkpoints that has it, of pairs that a visitor has trained; as long as the visit holds it
of_visits: WeakValueDictionary[str, TemporaryFolder] = WeakValueDictionary()


def task(name: str) -> Task:
    """The task of this name. A pair that is not in the table gets the examples on a card of its models, if any."""
    listed = tasks.find(name)
    return listed if listed.examples or not listed.translates else replace(listed, examples=_examples(name))


def _examples(pair: str) -> tuple[str, ...]:
    """Sentences of the validation set, of the first model of a pair whose card has some."""
    trained = of_visits.get(pair)
    for root in [Path(trained.name)] if trained else checkpoint_files.roots():
        for model in checkpoint_files.names(root):
            card = root / model / CARD
            if (
                model.startswith(f"{pair}/")
                and card.is_file()
                and (texts := _on_card(root, model, storage.stamp(card)))
            ):
                return texts
    return ()


@functools.lru_cache(64)
def _on_card(root: Path, model: str, stamp: tuple) -> tuple[str, ...]:
    """The sentences on a card that the page accepts. stamp : changes with the file."""
    try:
        listed = checkpoint_files.read_card(model, root).get("examples", [])
    except checkpoint_files.CheckpointError:  # whoever reads the model says so
        return ()
    lines = [text for text in listed if isinstance(text, str) and len(text.splitlines()) == 1]
    return tuple(dict.fromkeys(text for text in lines if text.strip() and len(text) <= LIMIT))[:_EXAMPLES]


def translates(name: str) -> bool:
    """Is a folder of checkpoints a pair for the page that compares translations? sst2 is not."""
    return task(name).translates


def ordered(names: Sequence[str]) -> list[str]:
    """The pairs of the table in its order, then the others in theirs."""
    return [name for name in TASKS if name in names] + [name for name in names if name not in TASKS]


def first(mechanisms: Sequence[str]) -> list[str]:
    """The mechanisms shown by default: two shipped ones and a user's own, if there is one; else three shipped ones. The
    shipped mechanism with the formula of the user's own comes first, if there is one."""
    shown = [name for name in FIRST if name in mechanisms] or list(mechanisms[:3])
    own = [name for name in mechanisms if was_added(name)][:1]
    if not own:
        return shown
    formula = ALL[own[0]].formula
    same = [name for name in mechanisms if formula and ALL[name].formula == formula][:2]
    ships = [name for name in dict.fromkeys([*same, *shown]) if name not in own]
    return [*ships[:2], *own]


def carried_over(shown: Sequence[str], offered: Sequence[str]) -> list[str]:
    """The mechanisms to show after a change of the pair: those shown before that the new pair offers too.

    If one of the user's own is not among them, another of the user's own takes its place. If none is left, the default
    ones are shown.
    """
    both = [name for name in shown if name in offered]
    own = [name for name in offered if was_added(name) and name not in both]
    lost = any(was_added(name) for name in shown if name not in offered)
    return [*both, *own[:1]] if lost and own else both or first(offered)


linked = functools.cache(gold.shipped)  # pair -> its sentences with links set by hand
