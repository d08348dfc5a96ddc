"""Everyday sentences of Tatoeba beside a task's own corpus, where the data folder holds them.

everyday_SOURCETARGET/{train,val,test}.tsv[.gz]; without that folder tatoeba_SOURCETARGET/pairs.tsv[.gz], only to train.
Japanese there has no spaces: it is divided into words as the corpus of the task is.
"""

import re
import unicodedata
from pathlib import Path

from attnviz.data.readers import DataFolder, Pairs
from attnviz.data.tasks import Splits, Task
from attnviz.data.tokenizer import SubwordTokenizer, train_vocabulary

PART, TEST = "everyday", "everyday"
SIZE = 20_000  # pieces: most words that a corpus has more than once are whole
_KATAKANA = "ァ-ヺー"
_NATIVE = "ぁ-ゖ一-鿿"
# Few words in katakana, and few numbers, are in the corpus: each stays whole, and ends where the script changes.
_WITHIN = re.compile(rf"(?<=[{_KATAKANA}]) (?=[{_KATAKANA}])|(?<=\d) (?=\d)")
_BETWEEN = re.compile(
    rf"(?<=[{_NATIVE}])(?=[{_KATAKANA}]{{2}}|\d)|(?<=[{_KATAKANA}]{{2}})(?=[ぁ-ゖ])|(?<=\d)(?=[{_NATIVE}{_KATAKANA}])"
)
_NO_LETTER = re.compile(r"[\s\W_]+")


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


class WordDivider:
    """Finds words by their share of a corpus that has spaces between its words.

    divided : the sentences of the corpus. The division of a text is its most probable one (`SubwordTokenizer.divide`).
    """

    def __init__(self, divided: list[str], size: int = SIZE):
        self.tokenizer: SubwordTokenizer = train_vocabulary(divided, size, "tokenised")

    def __call__(self, sentence: str) -> str:
        """A sentence with a space between its words."""
        divided = _WITHIN.sub("", self.tokenizer.divide(sentence))
        return _BETWEEN.sub(" ", divided)

    def targets(self, pairs: Pairs) -> Pairs:
        """The pairs with their targets divided."""
        return [(source, self(target)) for source, target in pairs]


def without_duplicates(pairs: Pairs) -> Pairs:
    """The pairs without those that differ from an earlier one in case, punctuation and spaces alone."""
    different = {}
    for pair in pairs:
        different.setdefault(tuple(map(_letters, pair)), pair)
    return list(different.values())


def _letters(text: str) -> str:
    return _NO_LETTER.sub("", unicodedata.normalize("NFKC", text).lower()) or text
