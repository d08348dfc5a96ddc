"""Everyday sentences of Tatoeba beside a task's own corpus, where the data folder holds them.

everyday_SOURCETARGET/{train,val,test}.tsv[.gz]; without that folder tatoeba_SOURCETARGET/pairs.tsv[.gz], only to train.
"""

from pathlib import Path

from attnviz.data.readers import DataFolder
from attnviz.data.tasks import Splits, Task
from attnviz.data.word_divider import WordDivider, without_duplicates

PART, TEST = "everyday", "everyday"


def join(task: Task, own: Splits, data: Path, repeat: int | None = None) -> Splits:
    """The task's own sentences with everyday ones. `own` itself when the data folder has no everyday sentences.

    repeat : how often a pass reads each of the own pairs; None for what the task says.

    Raises FileNotFoundError when a folder lacks a file.
    """
    languages = task.source + task.target
    folder, few = DataFolder(data, f"everyday_{languages}"), DataFolder(data, f"tatoeba_{languages}")
    if folder.path.is_dir():
        return _with_parts(task, own, folder, task.everyday.repeat if repeat is None else repeat)
    if not few.path.is_dir():
        return own
    return own._replace(train=own.train + few.tsv("pairs.tsv"), files=own.files | few.files)


def _with_parts(task: Task, own: Splits, folder: DataFolder, repeat: int) -> Splits:
    everyday = task.everyday
    train, val, test = (folder.tsv(f"{split}.tsv") for split in ("train", "val", "test"))
    if everyday.divided:
        divider = WordDivider([target for _, target in own.train])
        train, val, test = map(divider.targets, (train, val, test))
    distinct = without_duplicates if everyday.same_source else list
    joined = (repeat - 1) * distinct(own.train) + distinct(own.train + train)
    parts = (everyday.own_part,) * len(own.val) + (PART,) * len(val)
    return Splits(joined, own.val + val, own.tests | {TEST: test}, own.files | folder.files, parts)
