"""Texts by length: sentences as they are, and consecutive sentences joined."""

from dataclasses import dataclass

from attnviz.data.limits import LONGEST
from attnviz.data.readers import Pairs
from attnviz.data.tokenizer import SubwordTokenizer


@dataclass(frozen=True)
class Bucket:
    """Sources of `low` to `high` words. join : made of consecutive captions. drawn : part of the picture."""

    low: int
    high: int
    join: bool
    drawn: bool = True

    @property
    def key(self) -> dict:
        """The entries by which a row of numbers names its bucket."""
        return {"low": self.low, "high": self.high, "joined": self.join}

    @property
    def title(self) -> str:
        return f"{self.low}–{self.high} words{', joined' if self.join else ''}"

    def of(self, rows: list[dict]) -> list[dict]:
        """The rows of this bucket."""
        return [row for row in rows if self.key.items() <= row.items()]


# The second bucket separates the effect of joining from the effect of length.
BUCKETS = (Bucket(5, 10, False), Bucket(20, 30, False, drawn=False), Bucket(20, 30, True), Bucket(50, 100, True))


@dataclass(frozen=True)
class BucketTexts:
    """The texts of a bucket. captions : how many captions they are made of. left_out : texts too long for the
    models."""

    bucket: Bucket
    pairs: Pairs
    captions: int
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


def texts(pairs: Pairs, text: SubwordTokenizer) -> list[BucketTexts]:
    """The texts of each bucket that are short enough for the models."""
    result = []
    for bucket in BUCKETS:
        groups = (joined if bucket.join else single)(pairs, bucket.low, bucket.high)
        made = [tuple(" ".join(side) for side in zip(*group)) for group in groups]
        short = [i for i, (source, _) in enumerate(made) if len(text.ids(source)) <= LONGEST]
        captions = sum(len(groups[i]) for i in short)
        result.append(BucketTexts(bucket, [made[i] for i in short], captions, len(made) - len(short)))
    return result
