"""The table of tasks: language pairs and other tasks, one entry each. To add one, write its file and list its Task
here.

No torch here: the command line and the page read the table before they read a model.
"""

import functools

from attnviz.data.tasks.multi30k import EN_DE, EN_FR
from attnviz.data.tasks.reverse import REVERSE
from attnviz.data.tasks.sst2 import SST2
from attnviz.data.tasks.tanaka import EN_JA
from attnviz.data.tasks.task import Download, Everyday, Splits, Task
from attnviz.data.tasks.writing import ENGLISH, SHAKESPEARE

__all__ = ["TASKS", "Download", "Everyday", "Splits", "Task", "find"]

_NO_LANGUAGE = ("mul", "und", "zxx")  # several, unknown, none

TASKS = {task.name: task for task in (EN_FR, EN_DE, EN_JA, REVERSE, SST2, ENGLISH, SHAKESPEARE)}


def find(name: str) -> Task:
    """The task of this name.

    A language pair that is not in the table, such as a user's nl-en, has what its name says.
    """
    return TASKS.get(name) or _named(name)


@functools.lru_cache(256)
def _named(name: str) -> Task:
    source, _, target = name.partition("-")
    read, written = _language(source), _language(target)
    words = {"ask": f"Your {read} sentence", "hint": f"Type a sentence in {read} and press Enter"} if read else {}
    output = f"{written} text" if written else f"text in “{target}”"
    return Task(name, source, target, f"{read or source} → {written or target}", output, **words)


def _language(tag: str) -> str:
    """The English name of a language, as Unicode's CLDR has it: nl is Dutch, pt-BR Brazilian Portuguese; "" for a tag
    that it does not have."""
    from babel import Locale  # takes 80 ms, and few need it

    names = Locale("en").languages
    return "" if tag in _NO_LANGUAGE else names.get(tag.replace("-", "_"), "")
