"""en and shakespeare: texts that a model learns to write on. The second of a pair is the part a text is from."""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from attnviz.data.readers import DataFolder, Pairs
from attnviz.data.tasks.task import Splits, Task

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


_WRITER = {"output": "what comes next", "target": "", "writes": True, "validation_metric": "bits_a_character"}

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
