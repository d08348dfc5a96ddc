"""The table of tasks: language pairs and other tasks, one entry each. To add one, list its Task here.

No torch here: the command line and the page read the table before they read a model.
"""

import functools
import hashlib
import random
import string
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

from attnviz.data.language_pairs import EN_DE, EN_FR, EN_JA
from attnviz.data.readers import DataFolder, Pairs
from attnviz.data.task import Splits, Task

__all__ = ["TASKS", "Task", "find"]


def read_letters(
    name: str,
    answer: Callable[[list[str]], Iterable[str]],
    data: Path | None = None,
    count: int = 20_000,
    seed: int = 1,
) -> Splits:
    """`count` different sequences of 1 to 20 letters, generated; few of them are short. `data` is not used.

    A fortieth is val, a twentieth is test, the rest is train. name : of the task. answer : the letters to be written.
    """
    generator, targets = random.Random(f"{name}/{seed}"), {}
    while len(targets) < count:
        letters = generator.choices(string.ascii_lowercase, k=generator.randint(1, 20))
        targets[" ".join(letters)] = " ".join(answer(letters))
    pairs = list(targets.items())
    generator.shuffle(pairs)
    digest = hashlib.sha256("\n".join(source for source, _ in pairs).encode()).hexdigest()
    size = count // 40
    train, val, test = pairs[3 * size :], pairs[:size], pairs[size : 3 * size]
    return Splits(train, val, {"test": test}, {f"generated, seed {seed}": digest})


read_reverse = functools.partial(read_letters, "reverse", reversed)
REVERSE = Task(
    name="reverse",
    source="zxx",
    target="zxx",
    title="Reverse the sequence",
    output="reversed text",
    read=read_reverse,
    generated=True,
    style="symbols",
    # One right answer and as many sequences as wanted: small models, no label smoothing, no dropout.
    recipe_changes={
        "epochs": 10,
        "batch_tokens": 1000,
        "learning_rate": 3e-3,
        "warmup": 100,
        "label_smoothing": 0.0,
        "average": 0.99,
        "rates": {},
        "options": {"dropout": 0.0, "width": 128, "embedding_width": 64},
    },
    validation_metric="exact_match",
    metrics=("exact_match",),
    attention_metrics=("antidiagonal",),
    ask="Your sequence of letters",
    hint="Type letters with spaces between them and press Enter",
    examples=("a b c d e f", "k k k a b b", "m o t o r", "q w e r t y u i o p a s"),
    forced="f e d c b a",
    note="Toy task: reverse the letters. The correct alignment is the anti-diagonal. Ignore the <eos> row.",
    unit="letter",
)
COPY = replace(
    REVERSE,
    name="copy",
    title="Copy the sequence",
    output="copied text",
    read=functools.partial(read_letters, "copy", list),
    attention_metrics=(),
    trained_like="reverse",
    forced="a b c d e f",
    note="Toy task: write the letters again. The correct alignment is the diagonal. Ignore the <eos> row.",
)
SORT = replace(
    REVERSE,
    name="sort",
    title="Sort the sequence",
    output="sorted text",
    read=functools.partial(read_letters, "sort", sorted),
    attention_metrics=(),
    trained_like="reverse",
    forced="a b c d e f",
    note="Toy task: write the letters in the order of the alphabet. The correct alignment is on the letter that is "
    "written. Ignore the <eos> row.",
)
LABELS = ("negative", "positive")  # of a review, by their number in the data


def _read_sst2(data: Path) -> Splits:
    """sst2/{train,dev}.tsv[.gz]. There is no test set: dev chooses the epoch and is scored too."""
    folder = DataFolder(data, "sst2")
    train, dev = (folder.labelled(f"{name}.tsv", LABELS) for name in ("train", "dev"))
    return Splits(train, dev, {}, folder.files)


SST2 = Task(
    name="sst2",
    source="en",
    target="en",
    title="Sentiment of a sentence",
    output="label",
    read=_read_sst2,
    style="plain",
    labels=LABELS,
    validation_metric="accuracy",
    metrics=("accuracy",),
    ask="Your sentence about a film",
    hint="Type a sentence about a film and press Enter",
    examples=(
        "A funny, moving film that never gets dull.",
        "The plot is thin and the jokes are not funny.",
        "It is not without charm.",
        "An hour of beautiful pictures and not one idea.",
    ),
)
EVERYDAY = ("everyday_enfr", "everyday_ende", "everyday_enja")


def chapters(lines: Sequence[str]) -> list[str]:
    """Paragraphs, one a line, as texts: an empty line ends a text."""
    return ["\n".join(group) for blank, group in groupby(lines, key=lambda line: not line.strip()) if not blank]


def read_english(data: Path) -> Splits:
    """stories/{train,val,test}.txt, the English sides of multi30k and of everyday_*, each plain or gzipped.

    No English sentence of a val or test file is in train, also where another language's train has it.
    """
    books, captions = DataFolder(data, "stories"), DataFolder(data, "multi30k")
    folders = [DataFolder(data, name) for name in EVERYDAY]
    stories = {split: _of("stories", chapters(books.lines(f"{split}.txt"))) for split in ("train", "val", "test")}
    names = ("train", "val", "test_2016_flickr", "test_2017_flickr")
    caption = {name: _of("captions", filter(None, captions.lines(f"{name}.en"))) for name in names}
    everyday = {
        split: [pair for folder in folders for pair in _of("everyday", (a for a, _ in folder.tsv(f"{split}.tsv")))]
        for split in ("train", "val", "test")
    }
    everyday = {split: list(dict.fromkeys(pairs)) for split, pairs in everyday.items()}
    tests = {"stories": stories["test"], "captions_2016": caption[names[2]], "captions_2017": caption[names[3]]}
    tests["everyday"] = everyday["test"]
    val = stories["val"] + caption["val"] + everyday["val"]
    held_out = {text for pairs in (val, *tests.values()) for text, _ in pairs}
    train = stories["train"] + caption["train"] + everyday["train"]
    train = [pair for pair in train if pair[0] not in held_out]
    files = {name: digest for folder in (books, captions, *folders) for name, digest in folder.files.items()}
    return Splits(train, val, tests, files, tuple(part for _, part in val))


def _of(part: str, texts) -> Pairs:
    return [(text, part) for text in texts]


def read_shakespeare(data: Path) -> Splits:
    """tinyshakespeare/input.txt: the first 90 % of its characters are train, the rest is val. There is no test."""
    folder = DataFolder(data, "tinyshakespeare")
    text = "\n".join(folder.lines("input.txt")) + "\n"
    cut = int(0.9 * len(text))
    return Splits([(text[:cut], "scenes")], [(text[cut:], "scenes")], {}, folder.files)


_WRITER: dict[str, Any] = {
    "output": "what comes next",
    "target": "",
    "writes": True,
    "validation_metric": "bits_a_character",
}
ENGLISH = Task(
    name="en",
    source="en",
    title="Stories and sentences · written on",
    read=read_english,
    style="prose",
    # The books are harder than captions and everyday sentences, so a pass reads all books and a quarter of the rest.
    recipe_changes={"vocabulary": 4000, "passes": {"captions": 4, "everyday": 4}},
    ask="How the text begins",
    hint="Type how the text begins and press Enter",
    examples=(
        "Once upon a time there was a king who had three daughters. The youngest",
        "“Come in, Mrs. Appleby,” said the fox. The door opened, and Mrs. App",
        "A man in a blue shirt is standing on a ladder and",
        "I don't know what I",
    ),
    **_WRITER,
)
SHAKESPEARE = Task(
    name="shakespeare",
    source="en",
    title="Shakespeare by letters · written on",
    read=read_shakespeare,
    style="letters",
    recipe_changes={"vocabulary": 200, "epochs": 12, "options": {"longest": 256, "layers": 4, "dropout": 0.15}},
    ask="How the scene begins",
    hint="Type how the scene begins and press Enter",
    examples=(
        "ROMEO:\nO, ",
        "First Citizen:\nBefore we proceed any further, hear me speak.\n\nAll:\n",
        "KING RICHARD III:\nWhat, is the k",
        "JULIET:\nO Romeo, Rom",
    ),
    unit="letter",
    **_WRITER,
)
_NO_LANGUAGE = ("mul", "und", "zxx")  # several, unknown, none
TASKS = {task.name: task for task in (EN_FR, EN_DE, EN_JA, REVERSE, COPY, SORT, SST2, ENGLISH, SHAKESPEARE)}


def find(name: str) -> Task:
    """The task of this name.

    A language pair that is not in the table, such as a user's nl-en, has what its name says.
    """
    return TASKS.get(name) or _named(name)


@functools.lru_cache(256)
def _named(name: str) -> Task:
    source, _, target = name.partition("-")
    read, written = _language(source), _language(target)
    words: dict[str, Any] = (
        {"ask": f"Your {read} sentence", "hint": f"Type a sentence in {read} and press Enter"} if read else {}
    )
    output = f"{written} text" if written else f"text in “{target}”"
    return Task(name, source, target, f"{read or source} → {written or target}", output, **words)


def _language(tag: str) -> str:
    """The English name of a language, as Unicode's CLDR has it: nl is Dutch, pt-BR Brazilian Portuguese; "" for a tag
    that it does not have."""
    from babel import Locale  # takes 80 ms, and few need it

    names = Locale("en").languages
    return "" if tag in _NO_LANGUAGE else names.get(tag.replace("-", "_"), "")
