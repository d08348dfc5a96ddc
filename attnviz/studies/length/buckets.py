"""Texts by length: sentences as they are, of captions and of everyday language, and consecutive captions joined."""

from dataclasses import dataclass

from attnviz.data import everyday
from attnviz.data.limits import LONGEST
from attnviz.data.readers import Pairs
from attnviz.data.tokenizer import SubwordTokenizer
from attnviz.studies.measured_models import TEST


@dataclass(frozen=True)
class Bucket:
    """Sources of `low` to `high` words. join : made of consecutive sentences. test : the test that they are from.

    drawn : part of the picture.
    """

    low: int
    high: int
    join: bool
    test: str = TEST
    drawn: bool = True

    @property
    def key(self) -> dict:
        """The entries by which a row of numbers names its bucket."""
        return {"low": self.low, "high": self.high, "joined": self.join, "test": self.test}

    @property
    def title(self) -> str:
        return (
            f"{'everyday, ' if self.test == everyday.TEST else ''}{self.low}–{self.high} words"
            f"{', joined' if self.join else ''}"
        )

    def of(self, rows: list[dict]) -> list[dict]:
        """The rows of this bucket."""
        return [row for row in rows if self.key.items() <= row.items()]


# The second bucket separates the effect of joining from the effect of length. Everyday sentences are not drawn: they
# are of another kind than captions, so no line leads from one to the other.
BUCKETS = (
    Bucket(5, 10, False),
    Bucket(20, 30, False, drawn=False),
    Bucket(20, 30, True),
    Bucket(50, 100, True),
    Bucket(4, 9, False, everyday.TEST, drawn=False),
    Bucket(12, 20, False, everyday.TEST, drawn=False),
)


@dataclass(frozen=True)
class BucketTexts:
    """The texts of a bucket. sentences : how many they are made of. left_out : texts too long for the models."""

    bucket: Bucket
    pairs: Pairs
    sentences: int
    left_out: int


def single(pairs: Pairs, low: int, high: int) -> list[Pairs]:
    """The pairs whose source has `low` to `high` words, each as a group of one."""
    return [[pair] for pair in pairs if low <= len(pair[0].split()) <= high]


def joined(pairs: Pairs, low: int, high: int) -> list[Pairs]:
    """Groups of consecutive pairs whose sources have at least `low` words; groups with more than `high` are left
    out."""
    groups, group, words = [], [], 0
    for pair in pairs:
        group, words = [*group, pair], words + len(pair[0].split())
        if words >= low:
            groups += [group] if words <= high else []
            group, words = [], 0
    return groups


def texts(tests: dict[str, Pairs], text: SubwordTokenizer) -> list[BucketTexts]:
    """The texts of each bucket that are short enough for the models; buckets of a test that is not there are left
    out."""
    result = []
    for bucket in (bucket for bucket in BUCKETS if bucket.test in tests):
        groups = (joined if bucket.join else single)(tests[bucket.test], bucket.low, bucket.high)
        made = [tuple(" ".join(side) for side in zip(*group)) for group in groups]
        short = [i for i, (source, _) in enumerate(made) if len(text.ids(source)) <= LONGEST]
        sentences = sum(len(groups[i]) for i in short)
        result.append(BucketTexts(bucket, [made[i] for i in short], sentences, len(made) - len(short)))
    return result
