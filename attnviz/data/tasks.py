"""The table of tasks: language pairs and other tasks, one entry each. To add one, list its Task here.

No torch here: the command line and the page read the table before they read a model.
"""

import datetime
import functools
import hashlib
import random
import re
import string
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

from attnviz.data.language_pairs import EN_DE, EN_FR, EN_JA
from attnviz.data.readers import DataFolder, Pairs
from attnviz.data.task import Letter, Splits, Task

__all__ = ["TASKS", "Task", "find"]


_VOWELS, _CONSONANTS = "aeiou", "bcdfghjklmnpqrstvwxyz"
_MONTHS = "january february march april may june july august september october november december".split()
_DATES = (
    r"(?P<day>\d{1,2})(?P<month>[a-z]{3,9})(?P<year>\d{4})",
    r"(?P<month>[a-z]{3,9})(?P<day>\d{1,2}),(?P<year>\d{4})",
)
_FIRST_DAY, _DAYS = datetime.date(1900, 1, 1), 73_049  # to the end of 2099


def in_reverse(letters: Sequence[str]) -> list[Letter]:
    return in_order(letters)[::-1]


def in_order(letters: Sequence[str]) -> list[Letter]:
    return [(letter, (place,)) for place, letter in enumerate(letters)]


def by_alphabet(letters: Sequence[str]) -> list[Letter]:
    places = {letter: tuple(i for i, other in enumerate(letters) if other == letter) for letter in letters}
    return [(letter, places[letter]) for letter in sorted(letters)]


def shifted(letters: Sequence[str], by: int) -> list[Letter]:
    """The letters rotated to the left by `by` places (modulo their number)."""
    return [(letters[(i + by) % len(letters)], ((i + by) % len(letters),)) for i in range(len(letters))]


def in_pig_latin(letters: Sequence[str]) -> list[Letter]:
    """The consonants before the first vowel move to the end, followed by "ay", which is aligned to no letter."""
    first = next((i for i, letter in enumerate(letters) if letter in _VOWELS), 0)
    return [*shifted(letters, first), ("a", ()), ("y", ())]


def as_iso_date(letters: Sequence[str]) -> list[Letter]:
    """The letters of "3 March 2021", "3 Mar 2021" or "March 3, 2021" -> 2021-03-03.

    The month is aligned to its name; both digits of a one-digit day are aligned to that digit. ValueError for any other
    text."""
    text = "".join(letters).lower()
    match = next((match for form in _DATES if (match := re.fullmatch(form, text))), None)
    month = next((i for i, name in enumerate(_MONTHS, 1) if match and name.startswith(match["month"])), 0)
    if not match or not month:
        raise ValueError(f"a date must be as 3 March 2021 or March 3, 2021; got {text!r:.80}")
    digits = [(digit, (match.start("day") + i,)) for i, digit in enumerate(match["day"])]
    day = digits if len(digits) == 2 else [("0", digits[0][1]), *digits]
    of_month = [(digit, tuple(range(*match.span("month")))) for digit in f"{month:02}"]
    year = [(digit, (match.start("year") + i,)) for i, digit in enumerate(match["year"])]
    return [*year, ("-", ()), *of_month, ("-", ()), *day]


def _letters(generator: random.Random) -> str:
    """1 to 20 letters; few of them are short."""
    return " ".join(generator.choices(string.ascii_lowercase, k=generator.randint(1, 20)))


def _word(generator: random.Random) -> str:
    """A made-up word of 3 to 10 letters: none to three consonants, then vowels and consonants in turn."""
    start, length = generator.randint(0, 3), generator.randint(3, 10)
    kinds = [_CONSONANTS if i < start or (i - start) % 2 else _VOWELS for i in range(length)]
    return " ".join(map(generator.choice, kinds))


def _date(generator: random.Random) -> str:
    """A day of the years 1900 to 2099, in one of three formats."""
    day = _FIRST_DAY + datetime.timedelta(generator.randrange(_DAYS))
    name = _MONTHS[day.month - 1].capitalize()
    return generator.choice(
        (f"{day.day} {name} {day.year}", f"{name} {day.day}, {day.year}", f"{day.day} {name[:3]} {day.year}")
    )


def read_letters(
    name: str,
    answer: Callable[[Sequence[str]], list[Letter]],
    data: Path | None = None,
    count: int = 20_000,
    seed: int = 1,
    source: Callable[[random.Random], str] = _letters,
) -> Splits:
    """`count` different sources, generated, with their answers. `data` is not used.

    A fortieth is val, a twentieth is test, the rest is train. name : of the task. answer : as in Task.
    """
    generator, targets = random.Random(f"{name}/{seed}"), {}
    while len(targets) < count:
        text = source(generator)
        targets[text] = " ".join(letter for letter, _ in answer("".join(text.split())))
    pairs = list(targets.items())
    generator.shuffle(pairs)
    digest = hashlib.sha256("\n".join(source for source, _ in pairs).encode()).hexdigest()
    size = count // 40
    train, val, test = pairs[3 * size :], pairs[:size], pairs[size : 3 * size]
    return Splits(train, val, {"test": test}, {f"generated, seed {seed}": digest})


read_reverse = functools.partial(read_letters, "reverse", in_reverse)
REVERSE = Task(
    name="reverse",
    source="zxx",
    target="zxx",
    title="Reverse the sequence",
    output="reversed text",
    read=read_reverse,
    answer=in_reverse,
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
    read=functools.partial(read_letters, "copy", in_order),
    answer=in_order,
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
    read=functools.partial(read_letters, "sort", by_alphabet),
    answer=by_alphabet,
    attention_metrics=(),
    trained_like="reverse",
    forced="a b c d e f",
    note="Toy task: write the letters in the order of the alphabet. The correct alignment is on the letter that is "
    "written. Ignore the <eos> row.",
)
_BY_TWO = functools.partial(shifted, by=2)
SHIFT = replace(
    COPY,
    name="shift",
    title="Shift the sequence by two",
    output="shifted text",
    read=functools.partial(read_letters, "shift", _BY_TWO),
    answer=_BY_TWO,
    forced="c d e f a b",
    note="Toy task: begin with the third letter and write the first two last. The correct alignment is the diagonal "
    "two letters further on, which begins again at the first letter. Ignore the <eos> row.",
)
PIG_LATIN = replace(
    COPY,
    name="piglatin",
    title="Pig Latin of made-up words",
    output="pig Latin",
    read=functools.partial(read_letters, "piglatin", in_pig_latin, source=_word),
    answer=in_pig_latin,
    ask="Your word",
    hint="Type the letters of a word with spaces between them and press Enter",
    examples=("s t r i n g", "c l o u d", "a p p l e", "s c h o l a r"),
    forced="i n g s t r a y",
    note="Toy task: the consonants before the first vowel move to the end, then comes “ay”. The correct alignment is "
    "on the letter that is written; “ay” has none. Ignore the <eos> row.",
)
DATES = replace(
    COPY,
    name="dates",
    title="Dates as year, month and day",
    output="date",
    read=functools.partial(read_letters, "dates", as_iso_date, source=_date),
    answer=as_iso_date,
    ask="Your date",
    hint="Type a date such as 3 March 2021 and press Enter",
    examples=("3 March 2021", "July 14, 1989", "28 Dec 1999", "October 1, 2050"),
    forced="2 0 2 1 - 0 3 - 0 3",
    note="Toy task: write a date as year, month and day. The correct alignment of the year and the day is on their "
    "digits, and that of the month on its name. The hyphens have none. Ignore the <eos> row.",
)
TOYS = (REVERSE, COPY, SORT, SHIFT, PIG_LATIN, DATES)
IN_VISIT = " · trained in this visit"  # ends the title of a task whose models a visitor of the page has trained
OWN_PAIRS = Task(  # of a person who watches a training; no name of a file says what they are
    name="own-pairs",
    source="zxx",
    target="zxx",
    title="Pairs of your own",
    output="text",
    ask="Your text",
    hint="Type a text as in your pairs and press Enter",
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

    train has no English sentence of any val or test file, even if another language's train has it.
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
TASKS = {task.name: task for task in (EN_FR, EN_DE, EN_JA, *TOYS, SST2, ENGLISH, SHAKESPEARE)}


def find(name: str) -> Task:
    """The task of this name. `reverse~` and a key is reverse, trained by a visitor of the page.

    For a language pair that is not in the table, such as a user's nl-en, the task is derived from its name.
    """
    return TASKS.get(name) or _named(name)


@functools.lru_cache(256)
def _named(name: str) -> Task:
    watched, mark, _ = name.partition("~")
    if toy := next((toy for toy in (*TOYS, OWN_PAIRS) if toy.name == watched), None):
        return replace(toy, name=name, title=toy.title + IN_VISIT) if mark else toy
    source, _, target = name.partition("-")
    read, written = _language(source), _language(target)
    words: dict[str, Any] = (
        {"ask": f"Your {read} sentence", "hint": f"Type a sentence in {read} and press Enter"} if read else {}
    )
    output = f"{written} text" if written else f"text in “{target}”"
    return Task(name, source, target, f"{read or source} → {written or target}", output, **words)


def _language(tag: str) -> str:
    """The English name of a language, as Unicode's CLDR has it: nl is Dutch, pt-BR Brazilian Portuguese; "" for an
    unknown tag."""
    from babel import Locale  # takes 80 ms, and few need it

    names = Locale("en").languages
    return "" if tag in _NO_LANGUAGE else names.get(tag.replace("-", "_"), "")
