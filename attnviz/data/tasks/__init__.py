"""The table of tasks: language pairs and other tasks, one entry each. To add one, write its file and list its Task
here.

No torch here: the command line and the page read the table before they read a model.
"""

from attnviz.data.tasks.multi30k import EN_DE, EN_FR
from attnviz.data.tasks.reverse import REVERSE
from attnviz.data.tasks.sst2 import SST2
from attnviz.data.tasks.tanaka import EN_JA
from attnviz.data.tasks.task import Download, Everyday, Splits, Task
from attnviz.data.tasks.writing import ENGLISH, SHAKESPEARE

__all__ = ["TASKS", "Download", "Everyday", "Splits", "Task", "find"]

TASKS = {task.name: task for task in (EN_FR, EN_DE, EN_JA, REVERSE, SST2, ENGLISH, SHAKESPEARE)}


def find(name: str) -> Task:
    """The task of this name.

    A language pair that is not in the table, such as a user's nl-en, has what its name says.
    """
    source, _, target = name.partition("-")
    return TASKS.get(name) or Task(name, source, target, f"{source} → {target}", f"text in “{target}”")
