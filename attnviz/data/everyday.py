"""Everyday sentences of Tatoeba beside a task's own corpus, where the data folder holds them.

everyday_SOURCETARGET/{train,val,test}.tsv[.gz]; without that folder tatoeba_SOURCETARGET/pairs.tsv[.gz], only to train.
"""

from pathlib import Path

from attnviz.data.readers import DataFolder, Pairs
from attnviz.data.tasks import Splits, Task
from attnviz.data.word_divider import WordDivider, without_duplicates

PART, TEST = "everyday", "everyday"


def join(task: Task, own: Splits, data: Path) -> Splits:
    """The task's own sentences with everyday ones. `own` itself when the data folder has no everyday sentences.

    Raises FileNotFoundError when a folder lacks a file.
    """
    languages = task.source + task.target
    folder, few = DataFolder(data, f"everyday_{languages}"), DataFolder(data, f"tatoeba_{languages}")
    if folder.path.is_dir():
        return _with_parts(task, own, folder)
    if not few.path.is_dir():
        return own
    return own._replace(train=own.train + few.tsv("pairs.tsv"), files=own.files | few.files)


def _with_parts(task: Task, own: Splits, folder: DataFolder) -> Splits:
    everyday = task.everyday
    train, val, test = (folder.tsv(f"{split}.tsv") for split in ("train", "val", "test"))
    if everyday.divided:
        divider = WordDivider([target for _, target in own.train])
        train, val, test = map(divider.targets, (train, val, test))
    joined: Pairs = everyday.repeat * own.train + train
    if everyday.same_source:
        joined = without_duplicates(joined)
    parts = (everyday.own_part,) * len(own.val) + (PART,) * len(val)
    return Splits(joined, own.val + val, own.tests | {TEST: test}, own.files | folder.files, parts)
