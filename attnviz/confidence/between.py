"""What only one of the two sides has: numbers, powers and units that are other ones in a translation, compared as
characters; a phrase that the translation says twice and its source does not.
"""

import itertools
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence

from attnviz import function_words
from attnviz.data.styles import UNSPACED

# A unit as it is typed -> how its names begin in a translation, in any language of the models; a name of one or two
# letters is a whole word.
UNITS = {
    "km": ("km", "kilom", "キロ"),
    "km/h": ("km/h", "km / h", "kmh", "kilomètres par heure", "kilomètres à l'heure", "kilometer", "stundenkm", "時速"),
    "mph": ("mph", "mi/h", "miles", "milles", "meilen", "マイル"),
    "m/s": ("m/s", "mètres par seconde", "meter pro", "metern pro", "秒速"),
    "m": ("m", "met", "mèt", "メートル"),
    "cm": ("cm", "centim", "zentim", "センチ"),
    "mm": ("mm", "millim", "ミリ"),
    "kg": ("kg", "kilo", "キロ"),
    "g": ("g", "gram", "グラム"),
    "l": ("l", "lit", "リットル"),
    "ml": ("ml", "millil", "ミリ"),
    "gb": ("gb", "go", "gigab"),
    "mb": ("mb", "mo", "megab", "mégao"),
    "ghz": ("ghz", "gigah"),
    "kw": ("kw", "kilow"),
    "mile": ("mile", "mille", "meile", "マイル"),
    "miles": ("mile", "mille", "meile", "マイル"),
    "%": ("%", "pour cent", "pourcent", "prozent", "パーセント"),
    "°": ("°", "degr", "grad", "度"),
    "€": ("€", "euro", "ユーロ"),
    "$": ("$", "dollar", "ドル"),
    "£": ("£", "livre", "pfund", "ポンド"),
}
_RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹½¼¾⅓⅔"  # NFKC would make 102 of 10²
_NUMBER = re.compile(rf"[0-9]+|[{_RAISED}]+")
_THOUSANDS = re.compile(r"(?<=[0-9])[ .,'](?=[0-9]{3}(?![0-9]))")
_SPELT = {  # English words for numbers; "a couple of days" may be two or three, "half an hour" 30 minutes
    **dict(zip("zero one two three four five six seven eight nine ten eleven twelve thirteen".split(), range(14))),
    **dict(zip("fourteen fifteen sixteen seventeen eighteen nineteen".split(), range(14, 20))),
    **dict(zip("twenty thirty forty fifty sixty seventy eighty ninety".split(), range(20, 100, 10))),
    **dict(zip("first second third fourth fifth sixth seventh eighth ninth tenth".split(), range(1, 11))),
    **dict(zip("january february march april may june july august september october november".split(), range(1, 12))),
    **{"a": 1, "an": 1, "once": 1, "single": 1, "twice": 2, "couple": 2, "few": 2, "eleventh": 11, "twelfth": 12},
    **{"december": 12, "dozen": 12, "noon": 12, "quarter": 15, "half": 30},
}
_TIMES = {"hundred": 100, "thousand": 1000, "million": 1_000_000, "billion": 1_000_000_000}
_IN_CHARACTERS = re.compile("[〇一二三四五六七八九十百千万億]")
_LETTER = "a-zà-ÿ"  # not \\w, which has raised digits: m²
_NAMES = "|".join(
    re.escape(unit) + f"(?![{_LETTER}])" * unit.isalpha() for unit in sorted(UNITS, key=len, reverse=True)
)
_UNIT = re.compile(rf"(?<=[0-9{_RAISED}]) ?({_NAMES})|([€$£])(?= ?[0-9])")
SMALL = 12  # numbers up to here are often words in a translation ("4 people", "quatre personnes")


def changed(text: str, translation: str) -> tuple[str, ...]:
    """Numbers of the text that the translation lacks, then those that only it has, as they stand there, thousands not
    divided. A number that an English text has in words ("six") is none of these.

    A small number, or any where the translation has numbers in Chinese characters, may be there in words: it counts
    only where the translation has another number in its place.
    """
    before, after = _numbers(text), _numbers(translation)
    missing, added = list((before - after).elements()), list((after - before).elements())
    spelt = _spelt(text) if added else ()
    added = [number for number in added if number not in spelt]
    if not added:
        missing = (
            [] if _IN_CHARACTERS.search(translation) else [n for n in missing if not n.isdecimal() or int(n) > SMALL]
        )
    return tuple(dict.fromkeys((*missing, *added)))


def lost_units(text: str, translation: str) -> tuple[str, ...]:
    """Units beside the numbers of a text (UNITS) that the translation has neither as a sign nor by name."""
    typed = (match.group(1) or match.group(2) for match in _UNIT.finditer(_plain(text).lower()))
    plain = _plain(translation).lower()
    return tuple(unit for unit in dict.fromkeys(typed) if not _has(plain, UNITS[unit]))


def _numbers(text: str) -> Counter[str]:
    return Counter(_NUMBER.findall(_THOUSANDS.sub("", _plain(text))))


def _spelt(text: str) -> set[str]:
    """The numbers that an English text has in words: each word, and neighbours together ("two hundred and five")."""
    values, whole, part = set(), 0, 0
    for word in [*_WORD.findall(text.lower()), ""]:
        if word in _TIMES:
            part = max(part, 1) * _TIMES[word]
            whole, part = (whole + part, 0) if _TIMES[word] > 100 else (whole, part)
        elif word in _SPELT:
            part += _SPELT[word]
            values |= {_SPELT[word]} | ({3} if word in ("couple", "few") else set())
        elif word != "and":
            whole = part = 0
        values |= {part, whole + part}
    return set(map(str, values))


def _plain(text: str) -> str:
    """Full-width digits and signs as usual ones; raised digits and fractions stay as they are."""
    if unicodedata.is_normalized("NFKC", text):  # nearly always
        return text
    return "".join(c if c in _RAISED else unicodedata.normalize("NFKC", c) for c in text)


def _has(text: str, names: Iterable[str]) -> bool:
    """Does one of the names begin a word of the text?"""
    ends = ((re.escape(name), f"(?![{_LETTER}])" if name.isalpha() and len(name) < 3 else "") for name in names)
    return any(re.search(f"(?<![{_LETTER}]){name}{end}", text) for name, end in ends)


LONGEST_PHRASE = 8  # words of a phrase that is said twice side by side
APART = (3, 4, 5)  # words of a phrase that is said twice at a distance
CHARACTERS = 6  # of a phrase in a text without spaces
_WORD = re.compile(r"[^\W\d_]+")
_UNSPACED = re.compile(f"[{UNSPACED}]+")


def repeated(text: str, translation: str, language: str) -> str:
    """The first phrase that comes twice, in lower case; "" where none does, or where the text itself repeats words.

    Side by side a phrase needs one content word, at a distance two: "in der Nähe" may come twice. language : of the
    translation, one of `function_words.languages()`; any other counts every word as a content word.
    """
    source = _words(text)
    if _side_by_side(source, 1, source) or max(Counter(itertools.pairwise(source)).values(), default=0) > 1:
        return ""
    if _UNSPACED.search(translation):
        return _characters(translation)
    words = _words(translation)
    listed = language in function_words.languages()
    content = [w for w in words if not listed or function_words.kind(w, language) == function_words.CONTENT]
    near = next(filter(None, (_side_by_side(words, count, content) for count in range(1, LONGEST_PHRASE + 1))), "")
    return near or next(filter(None, (_at_a_distance(words, count, content) for count in APART)), "")


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _side_by_side(words: Sequence[str], count: int, content: Sequence[str]) -> str:
    """The first phrase of so many words that follows itself and has a content word."""
    for start in range(len(words) - 2 * count + 1):
        phrase = words[start : start + count]
        if phrase == words[start + count : start + 2 * count] and set(phrase) & set(content):
            return " ".join(phrase)
    return ""


def _at_a_distance(words: Sequence[str], count: int, content: Sequence[str]) -> str:
    """The first phrase of so many words that comes twice and has two content words."""
    phrases = Counter(zip(*(words[start:] for start in range(count))))
    twice = (phrase for phrase, times in phrases.items() if times > 1)
    return next((" ".join(phrase) for phrase in twice if len(set(phrase) & set(content)) > 1), "")


def _characters(text: str) -> str:
    """The first run of CHARACTERS characters that comes twice in a text without spaces."""
    runs = [run.group() for run in _UNSPACED.finditer(text)]
    parts = Counter(run[i : i + CHARACTERS] for run in runs for i in range(len(run) - CHARACTERS + 1))
    return next((part for part, times in parts.items() if times > 1), "")
