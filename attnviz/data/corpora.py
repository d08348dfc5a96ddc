"""The sentences that a model is trained and measured on: those of a task, which `fetch` downloads, or a user's own.

Where the data folder holds everyday sentences of Tatoeba, a task's own corpus is read with them:
everyday_SOURCETARGET/{train,val,test}.tsv[.gz]; without that folder tatoeba_SOURCETARGET/pairs.tsv[.gz], only to train.
Japanese there has no spaces: it is divided into words as the corpus of the task is.

Sentences that no model can read are left out: those without visible text, and those of more than MOST_PIECES pieces.

A downloaded file is stored only if it is complete and its hash is right. The hash is of the unpacked text, because a
host may compress it again. The hashes come from local copies of the corpora, not from a download: the names and dates
in the gzip headers of Multi30K are those of its authors, and the numbers of lines and characters of the Tanaka
sentences agree with the published ones. The everyday sentences of Tatoeba have no public address with the same bytes; a
task without them is trained on its own corpus alone.
"""

import hashlib
import random
import re
import tempfile
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from attnviz import storage
from attnviz.data import MOST_PIECES, tasks
from attnviz.data.batching import pieces
from attnviz.data.readers import DataFolder, Pairs, find_file, unpack
from attnviz.data.styles import UNSPACED
from attnviz.data.task import Download, Everyday, Splits, Task
from attnviz.data.tokenizer import SubwordTokenizer, train_vocabulary

EVERYDAY = "everyday"  # the name of their part of validation, and of their test
_PIECES = 20_000  # of the vocabulary that divides Japanese: most words that a corpus has more than once are whole
_KATAKANA = "ァ-ヺー"
_NATIVE = "ぁ-ゖ一-鿿"
# Few words in katakana, and few numbers, are in the corpus: each stays whole, and ends where the script changes.
_WITHIN = re.compile(rf"(?<=[{_KATAKANA}]) (?=[{_KATAKANA}])|(?<=\d) (?=\d)")
_BETWEEN = re.compile(
    rf"(?<=[{_NATIVE}])(?=[{_KATAKANA}]{{2}}|\d)|(?<=[{_KATAKANA}]{{2}})(?=[ぁ-ゖ])|(?<=\d)(?=[{_NATIVE}{_KATAKANA}])"
)
_NO_LETTER = re.compile(r"[\s\W_]+")


@dataclass(frozen=True)
class Corpus:
    """Parallel sentences, or sentences with their labels, and the files (name -> SHA-256) they came from.

    tests : name -> pairs. metric : chooses the best epoch, a key of metrics.METRICS. style : how the text is written,
    one of styles.STYLES. labelled : the second element of a pair is not a text, but a label or the part of the data
    that the text is from. parts : the part of the data that each pair of val is from; () when there is one part.
    """

    train: Pairs
    val: Pairs
    tests: dict[str, Pairs]
    files: dict[str, str]
    metric: str = "bleu_lc"
    style: str = "written"
    labelled: bool = False
    parts: tuple[str, ...] = ()

    def texts(self) -> list[str]:
        """All texts of train, for a vocabulary."""
        return [side for pair in self.train for side in (pair[:1] if self.labelled else pair)]


def load(name: str, data: Path | None, repeat: int | None = None) -> Corpus:
    """The corpus of a task from the folder `data`; may be None for a task whose data are generated.

    repeat : how often an epoch reads each of the task's own pairs beside everyday ones; None for the task's setting.

    Raises ValueError for a pair without a corpus, or `repeat` without everyday sentences; FileNotFoundError when the
    folder lacks a file.
    """
    task = tasks.find(name)
    if task.read is None:
        raise ValueError(
            f"there are no corpora for {name}; choose one of {', '.join(tasks.TASKS)}, or give files of your own"
        )
    splits, metric = task.read(data), task.validation_metric
    if task.everyday is not None:
        splits = with_everyday(task, splits, data, repeat)
        metric = task.everyday.validation_metric if splits.parts else metric
    train, val, tests, files, parts = splits
    if repeat is not None and not parts:
        raise ValueError(f"{name} has no everyday sentences in the data folder, and `repeat` needs them")
    return Corpus(train, val, tests, files, metric, task.style, task.classifies or task.writes, parts)


def own(pairs: Pairs, files: dict[str, str], val_size: int | None = None, style: str = "written") -> Corpus:
    """A user's own sentences. `val_size` of them are val, always the same; by default a twentieth (at most 1,000) or a
    fifth (at most 20), whichever is larger.

    No source sentence of val stays in train. ValueError when train or val would be empty.
    """
    size = max(1, min(20, len(pairs) // 5), min(1000, len(pairs) // 20)) if val_size is None else val_size
    if not 1 <= size < len(pairs):
        raise ValueError(
            f"validation and training need at least one sentence pair each; got {len(pairs)} pairs, "
            f"{size} of them for validation"
        )
    val = [pairs[i] for i in sorted(random.Random(0).sample(range(len(pairs)), size))]
    val_sources = {source for source, _ in val}
    train = [pair for pair in pairs if pair[0] not in val_sources]
    if not train:
        raise ValueError(
            "no sentence is left for training: validation has every source sentence; give more different sentences"
        )
    return Corpus(train, val, {}, files, _metric([b for _, b in val], style), style)


def own_labelled(pairs: Pairs, files: dict[str, str], val_size: int | None = None, style: str = "plain") -> Corpus:
    """`own` for sentences with labels."""
    return replace(own(pairs, files, val_size, style), metric="accuracy", labelled=True)


def _metric(targets: list[str], style: str) -> str:
    """The metric for these targets: BLEU on words where spaces separate them, else on characters."""
    if style != "written":
        return {"tokenised": "bleu_words", "plain": "bleu_words", "symbols": "exact_match"}[style]
    text = "".join(targets)
    return "bleu_char" if len(re.findall(f"[{UNSPACED}]", text)) > len(text) / 2 else "bleu_lc"


def length_filter(corpus: Corpus, tokenizer: SubwordTokenizer) -> tuple[Corpus, list[str]]:
    """The corpus with only those pairs of train and val that fit on both sides (a label always fits), and the sources
    of the pairs left out. The tests are not filtered.

    ValueError when no pair of train, or none of val, fits.
    """
    splits: dict[str, Any] = {}
    left_out = []
    for name in ("train", "val"):
        pairs = getattr(corpus, name)
        fitting = [all(map(_fits, ids)) for ids in pieces(pairs, tokenizer, corpus.labelled)]
        splits[name] = [pair for pair, fits in zip(pairs, fitting) if fits]
        if name == "val" and corpus.parts:
            splits["parts"] = tuple(part for part, fits in zip(corpus.parts, fitting) if fits)
        left_out += [pair[0] for pair, fits in zip(pairs, fitting) if not fits]
        if not splits[name]:
            raise ValueError(
                f"no sentence of {name} has visible text and at most {MOST_PIECES} pieces, the limit of the models; "
                "give other or shorter sentences"
            )
    return replace(corpus, **splits), left_out


def fits(sentences: Sequence[str], tokenizer: SubwordTokenizer) -> list[bool]:
    """For each sentence: does it have visible text, and at most MOST_PIECES pieces?"""
    return [_fits(ids) for ids in tokenizer.batch_ids(list(sentences))]


def _fits(ids: list[int]) -> bool:
    return 1 < len(ids) <= MOST_PIECES  # <eos> is one of them


def with_everyday(task: Task, own: Splits, data: Path | None, repeat: int | None = None) -> Splits:
    """The task's own sentences with everyday ones of Tatoeba. `own` itself when the data folder has no everyday
    sentences.

    repeat : how often an epoch reads each of the own pairs; None for the task's setting.

    Raises FileNotFoundError when a folder lacks a file.
    """
    if task.everyday is None or data is None:
        return own
    languages = task.source + task.target
    folder, few = DataFolder(data, f"everyday_{languages}"), DataFolder(data, f"tatoeba_{languages}")
    if folder.path.is_dir():
        return _with_parts(task.everyday, own, folder, task.everyday.repeat if repeat is None else repeat)
    if not few.path.is_dir():
        return own
    return own._replace(train=own.train + few.tsv("pairs.tsv"), files=own.files | few.files)


def _with_parts(everyday: Everyday, own: Splits, folder: DataFolder, repeat: int) -> Splits:
    train, val, test = (folder.tsv(f"{split}.tsv") for split in ("train", "val", "test"))
    if everyday.divided:
        divider = WordDivider([target for _, target in own.train])
        train, val, test = map(divider.targets, (train, val, test))
    distinct = without_duplicates if everyday.same_source else list
    joined = (repeat - 1) * distinct(own.train) + distinct(own.train + train)
    parts = (everyday.own_part,) * len(own.val) + (EVERYDAY,) * len(val)
    return Splits(joined, own.val + val, own.tests | {EVERYDAY: test}, own.files | folder.files, parts)


class WordDivider:
    """Finds words by their share of a corpus that has spaces between its words.

    divided : the sentences of the corpus. The division of a text is its most probable one (`SubwordTokenizer.divide`).
    """

    def __init__(self, divided: list[str], size: int = _PIECES):
        self.tokenizer: SubwordTokenizer = train_vocabulary(divided, size, "tokenised")

    def __call__(self, sentence: str) -> str:
        """A sentence with a space between its words."""
        divided = _WITHIN.sub("", self.tokenizer.divide(sentence))
        return _BETWEEN.sub(" ", divided)

    def targets(self, pairs: Pairs) -> Pairs:
        """The pairs with their targets divided."""
        return [(source, self(target)) for source, target in pairs]


def without_duplicates(pairs: Pairs) -> Pairs:
    """The pairs without those that differ from an earlier pair only in case, punctuation and spaces."""
    different = {}
    for pair in pairs:
        different.setdefault(tuple(map(_letters, pair)), pair)
    return list(different.values())


def _letters(text: str) -> str:
    return _NO_LETTER.sub("", unicodedata.normalize("NFKC", text).lower()) or text


def fetch(name: str, data: Path, report: Callable[[str], object] = lambda line: None) -> None:
    """Put the corpora of a task into the folder `data`; a file that is already there is checked and kept.

    report : called with one line per file. Raises ValueError for a task without public corpora, and for a file,
    here or there, whose hash is wrong; OSError when the host cannot be reached.
    """
    task = tasks.find(name)
    if task.generated:
        raise ValueError(f"{name} is generated; there is nothing to fetch")
    if not task.downloads:
        offered = [other.name for other in tasks.TASKS.values() if other.downloads]
        raise ValueError(f"there are no public corpora for {name}; choose one of {', '.join(offered)}")
    for file in task.downloads:
        path = Path(data) / file.name
        present = find_file(path.parent, path.name.removesuffix(".gz"))
        if present is None:
            _download(file, path)
        elif (digest := _digest(unpack(present.read_bytes(), present))) != file.sha256:
            raise ValueError(
                f"{present} is not the file of that name in the corpus: the SHA-256 of its text is {digest}, and "
                f"should be {file.sha256}; move it away"
            )
        report(f"{present or path}: {'already there' if present else 'fetched'}, hash correct")


def _download(file: Download, path: Path) -> None:
    import pooch  # only a download needs it

    pooch.get_logger().setLevel("WARNING")
    storage.make_folder(path.parent)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=path.parent) as folder:
        parts = []
        for number, url in enumerate(file.urls):
            try:
                parts.append(Path(pooch.retrieve(url, known_hash=None, fname=str(number), path=folder)).read_bytes())
            except OSError as error:  # those of `requests` are
                raise OSError(f"cannot fetch {url}: {error}") from None
    text = b"".join(map(unpack, parts, file.urls))
    if file.lines is not None:
        text = b"\n".join(text.split(b"\n")[: file.lines]) + b"\n"
    if (digest := _digest(text)) != file.sha256:
        raise ValueError(
            f"{' '.join(file.urls)} has changed: the SHA-256 of its text is {digest}, and should be "
            f"{file.sha256}; nothing is kept"
        )
    content = parts[0] if len(parts) == 1 else text
    storage.replace(path, lambda temporary: temporary.write_bytes(content))


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
