"""Differences between a source and its translation: numbers, powers and units that do not agree, compared as
characters; a phrase repeated only in the translation; a negation that one side lacks.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from attnviz.data.styles import UNSPACED
from attnviz.function_words import is_content
from attnviz.trace.visible import RAISED, plain

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
_NUMBER = re.compile(rf"[0-9]+|[{RAISED}]+")
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
_MULTIPLIED = re.compile(rf"([0-9][0-9,]*(?:\.[0-9]+)?) ({'|'.join(_TIMES)})", re.IGNORECASE)
_CHARACTERS = {character: value for value, character in enumerate("〇一二三四五六七八九")}  # of Japanese and Chinese
_PLACES, _GROUPS = {"十": 10, "百": 100, "千": 1000}, {"万": 10**4, "億": 10**8}
_MIXED = "[0-9〇一二三四五六七八九十百千万億]"
_IN_CHARACTERS = re.compile(f"{_MIXED}*[〇一二三四五六七八九十百千万億]{_MIXED}*")
_LETTER = "a-zà-ÿ"  # not \\w, which has raised digits: m²
_NAMES = "|".join(
    re.escape(unit) + f"(?![{_LETTER}])" * unit.isalpha() for unit in sorted(UNITS, key=len, reverse=True)
)
_UNIT = re.compile(rf"(?<=[0-9{RAISED}]) ?({_NAMES})|([€$£])(?= ?[0-9])")
SMALL = 12  # numbers up to here are often words in a translation ("4 people", "quatre personnes")


def changed(text: str, translation: str) -> tuple[str, ...]:
    """Numbers of the text that the translation lacks, then numbers that only the translation has, in digits, without
    thousands separators. A number that an English text spells in words ("six") is not reported.

    A small number may be there in words: it counts only where the translation has another number in its place. A number
    may be there in Chinese characters: 25 as 二十五, 30,000 as 3万, 1998 as 一九九八. One in characters alone that the
    text lacks is not reported: 一番 is no number.
    """
    after, in_characters = _numbers(translation), set(map(_value, _IN_CHARACTERS.findall(plain(translation))))
    before = _numbers(_MULTIPLIED.sub(lambda match: _product(match, in_characters.union(after)), text))
    missing, added = list((before - after).elements()), list((after - before).elements())
    missing = [number for number in missing if number not in in_characters]
    spelt = _spelt(text) if added else ()
    added = [number for number in added if number not in spelt]
    if not added:
        missing = [number for number in missing if not number.isdecimal() or int(number) > SMALL]
    return tuple(dict.fromkeys((*missing, *added)))


def lost_units(text: str, translation: str) -> tuple[str, ...]:
    """Units after numbers of a text (UNITS) that the translation has neither as a symbol nor by name."""
    typed = (match.group(1) or match.group(2) for match in _UNIT.finditer(plain(text).lower()))
    names = plain(translation).lower()
    return tuple(unit for unit in dict.fromkeys(typed) if not _has(names, UNITS[unit]))


def _numbers(text: str) -> Counter[str]:
    """The numbers in digits, also those that go on in Chinese characters, such as 3万."""

    def in_digits(match: re.Match) -> str:
        return f" {_value(match[0])} " if any(map(str.isdecimal, match[0])) else match[0]

    return Counter(_NUMBER.findall(_IN_CHARACTERS.sub(in_digits, _THOUSANDS.sub("", plain(text)))))


def _value(written: str) -> str:
    """A number in Chinese characters and digits: 二十五 is 25, 3万 30000, 一九九八 1998."""
    total, part, digits = 0, 0, ""
    for character in written:
        if character in _PLACES:
            part, digits = part + int(digits or 1) * _PLACES[character], ""
        elif character in _GROUPS:
            total, part, digits = total + (part + int(digits or 0) or 1) * _GROUPS[character], 0, ""
        else:
            digits += str(_CHARACTERS.get(character, character))
    return str(total + part + int(digits or 0))


def _product(match: re.Match, written: set[str]) -> str:
    """A match of _MULTIPLIED as one number if this number is written, else as it is: 3 million is 300万."""
    product = f"{float(match[1].replace(',', '')) * _TIMES[match[2].lower()]:.0f}"
    return product if product in written else match[0]


def _spelt(text: str) -> set[str]:
    """The numbers that an English text has in words: each word, and neighbours together ("two hundred and five")."""
    values, whole, part = set(), 0, 0
    for word in [*_WORD.findall(plain(text).lower()), ""]:
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


def in_digits(words: Iterable[str], text: str) -> bool:
    """Does a text have the number of one of these English words in digits?"""
    return any(map(str.isdecimal, text)) and not _spelt(" ".join(words)).isdisjoint(_numbers(text))


def _has(text: str, names: Iterable[str]) -> bool:
    """Does a word of the text begin with one of the names?"""
    ends = ((re.escape(name), f"(?![{_LETTER}])" if name.isalpha() and len(name) < 3 else "") for name in names)
    return any(re.search(f"(?<![{_LETTER}]){name}{end}", text) for name, end in ends)


LONGEST_PHRASE = 8  # words of a phrase that is said twice side by side
APART = 3  # words of a phrase that is said twice at a distance, at least
CHARACTERS = 6  # of a phrase in a text without spaces, at least
_CONJUNCTIONS = frozenset("and or nor et ou ni und oder noch sowie".split())
_ROOT = 4  # letters
_WORD = re.compile(r"[^\W\d_]+")
_UNSPACED = re.compile(f"[{UNSPACED}]+")


def repeated(text: str, translation: str, language: str) -> str:
    """The first phrase, in lower case, that a translation repeats although its source does not; "" if there is none.

    Each repetition in the source excuses one repetition of the same kind (adjacent or distant) in the translation. An
    adjacent repetition needs one content word, a distant one two: "in der Nähe" may come twice. text : English.
    language : of the translation, one of `function_words.languages()`; any other counts every word as a content word.
    """
    source = _words(text)
    excused = len(_again(source, 1, _content(source, "en"), 1))
    if _UNSPACED.search(translation):
        characters = "".join(_UNSPACED.findall(translation))
        return "".join(next(iter(_again(characters, CHARACTERS, set(characters), 1)[excused:]), ""))
    words = _words(translation)
    content = _content(words, language)
    near = _side_by_side(words)[len(_side_by_side(source)) :]
    near = [phrase for phrase in near if content.intersection(phrase)]
    return " ".join(next(iter(near or _again(words, APART, content, 2)[excused:]), ""))


def twice(text: str, translation: str, language: str, missing: bool = False) -> tuple[str, ...]:
    """Content words, in lower case, that a translation has twice where its source probably has different ones: those on
    both sides of a conjunction ("weder bestätigen noch bestätigen"); or else any two, or one if a word is `missing`,
    without as many as have the same root in the source ("brushes", "toothbrush"). () for a text without spaces.

    missing : a word of the source has none of its usual translations there. text, language : as for `repeated`. False
    alarms of words beside a conjunction: 0.01 % of the training pairs.
    """
    if _UNSPACED.search(translation):
        return ()
    source, words = _words(text), _words(translation)
    content = _content(words, language)
    if joined := _joined(words, content)[len(_joined(source, set(source))) :]:
        return tuple(dict.fromkeys(joined))
    source_content = _content(source, "en")
    alike = _same_roots([word for word in source if word in source_content])
    again = tuple(word for word, count in Counter(words).items() if count > 1 and word in content)[alike:]
    return again if missing or len(again) > 1 else ()


def _words(text: str) -> list[str]:
    return _WORD.findall(plain(text).lower())


def _content(words: Iterable[str], language: str) -> set[str]:
    return {word for word in words if is_content(word, language)}


def _side_by_side(words: Sequence[str]) -> list[Sequence[str]]:
    """The phrases that are repeated immediately, once per repetition."""
    result, place = [], 1
    while place < len(words):
        lengths = range(1, min(LONGEST_PHRASE, place) + 1)
        count = next((n for n in lengths if words[place - n : place] == words[place : place + n]), 0)
        if count:
            result.append(words[place : place + count])
        place += count or 1
    return result


def _again(units: Sequence[str], shortest: int, content: set[str], least: int) -> list[Sequence[str]]:
    """The longest runs of words or characters that also occur earlier and have at least this number of distinct content
    units, in order."""
    result, place = [], 0
    places: dict[str, list[int]] = {}  # of each unit
    for number, unit in enumerate(units):
        places.setdefault(unit, []).append(number)
    while place < len(units):
        earlier = (before for before in places[units[place]] if before < place)
        count = max((_same(units, before, place) for before in earlier), default=0)
        run = units[place : place + count]
        if count >= shortest and len(content.intersection(run)) >= least:
            result.append(run)
            place += count
        else:
            place += 1
    return result


def _joined(words: Sequence[str], among: set[str]) -> list[str]:
    """The words that stand before a conjunction and again after it, as its first word or, after another, its second."""
    result = []
    for before, joint, *after in zip(words, words[1:], words[2:], [*words[3:], ""]):
        if joint in _CONJUNCTIONS and before in among and (before == after[0] or before == after[1] != ""):
            result.append(before)
    return result


def _same_roots(words: Sequence[str]) -> int:
    """How many words have an earlier one with the same root: they are equal, or the first letters of one are in the
    other."""

    def alike(word: str, earlier: str) -> bool:
        roots = (word[:_ROOT], earlier), (earlier[:_ROOT], word)
        return word == earlier or any(len(root) == _ROOT and root in other for root, other in roots)

    return sum(any(alike(word, earlier) for earlier in words[:place]) for place, word in enumerate(words))


def _same(units: Sequence[str], before: int, place: int) -> int:
    """The number of units from `place` on that equal those from `before` on, up to `place`."""
    count = 0
    while before + count < place and place + count < len(units) and units[before + count] == units[place + count]:
        count += 1
    return count


# Words that deny, as patterns of whole words. English: those of which a right translation nearly always denies too.
_DENIES = r"\w+n['’]t|not|cannot|never|no|nobody|nothing|none|nor|neither|without|nowhere"
_NOT_ALWAYS = (  # … but not beside these: questions at the end, idioms, and what other languages say in other words
    r"\w+n['’]t (?:i|you|he|she|it|we|they|there|that|this)|why (?:don['’]t|not)|"
    r"(?:\w+n['’]t|not) (?:mind|worry|kid\w*|hesitate|forget|stop|let|matter|care|know|until|till)|"
    r"(?:can['’]t|cannot) (?:help|wait|be)|not only|not to|not at all|or not|if not|unless|nothing but|for nothing|"
    r"no (?:more|less|later|longer|sooner|doubt|wonder|matter|way|idea|kidding)|without fail|any ?more|any longer|sense"
)
_DENIED = {  # in a translation, with what often stands for it ("ignorer", "erst")
    "fr": r"ne|n['’]?|pas|jamais|rien|aucune?s?|non|sans|ni|personne|guère|nulle?s?|plus|sauf|hors|sinon|moins|mal|peu|"
    r"trop|loin|égal|faux|fausse\w*|dommage|nue?s?|(?:rare|seul|arrêt|cess|évit|ignor|refus|manqu|interdi|impossib|vide|"
    r"fich|regrett?|empêch|échou|oubli|perdu)\w*|i[mnr]\w{5,}|mé\w{4,}|d[ié]s?\w{5,}",
    "de": r"nie|niemals|weder|nein|nee|kaum|selten|einerlei|erst|nur|lediglich|außer|sonst|doch|oder|lässt|schade|"
    r"allein|noch|gar|bloß|(?:nicht|kein|nimmer|niemand|nirgend|ohne|miss|wenig|egal|anders|statt|lass|verbot|verbiet|verlor|"
    r"fehl|mangel|verg[ei]ss|gegen|nackt|frei|falsch|ablehn|weiger|hass|ernst|verhinder|vermeid|verzicht|verpass)\w*|"
    r"un(?!d|s|ter|ten)\w{3,}|i[nr]\w{6,}|\w+(?:los|frei)\w*|\w*leer\w*",
}

# Words of a translation that deny, and English words of which one nearly always stands in the source then.
_ADDS = {
    "fr": r"(?:ne|n['’](?!est-ce pas))\b.*\b(?:pas|jamais|rien|personne|aucune?)",
    "de": r"nicht|kein\w*|niemand\w*|niemals|nirgend\w*|weder",
}
_MAY_DENY = (
    rf"{_DENIES}|hardly|barely|scarcely|rarely|seldom|few|little|only|but|than|before|until|till|unless|except|else|"
    r"otherwise|out|off|away|from|keep\w*|kept|too|any ?more|instead|last|nope|far|hard\w*|difficult\w*|poor\w*|bad\w*|"
    r"wrong|absen\w+|afraid|ever|long|could use|how about|why|sick|down|fill\w*|over|have a point|"
    r"(?:refus|fail|lack|stop|quit|avoid|prevent|doubt|den|mis|ignor|hat|forg|fear|forbid|prohibit|object)\w*|"
    r"un\w{3,}|in\w{5,}|i[mr]\w{4,}|dis\w{4,}|\w+less\w*"
)


def _whole(words: str) -> re.Pattern:
    return re.compile(rf"(?<!\w)(?:{words})(?!\w)", re.IGNORECASE)


_PATTERNS = {language: _whole(words) for language, words in {**_DENIED, "en": _DENIES, "idioms": _NOT_ALWAYS}.items()}


_ADDED = {language: _whole(words) for language, words in {**_ADDS, "en": _MAY_DENY}.items()}


def added_negation(text: str, translation: str, language: str) -> str:
    """The words with which a translation denies although its English text does not; "" if there are none, and for a
    language without a list. False alarms: 0.1 % of the training pairs.
    """
    added = _ADDED[language].search(translation) if language in _ADDS else None
    return added.group() if added and not _ADDED["en"].search(text) else ""


def lost_negation(text: str, translation: str, language: str) -> str:
    """The negation word of an English text whose translation has no negation; "" if there is none.

    language : of the translation; always "" for a language without a list, and for texts with idioms (`_NOT_ALWAYS`).
    False alarms: 0.1 % (French) and 0.2 % (German) of the training pairs.
    """
    denies = _PATTERNS["en"].search(text) if language in _DENIED else None
    if not denies or _PATTERNS["idioms"].search(text) or _PATTERNS[language].search(translation):
        return ""
    return denies.group()
