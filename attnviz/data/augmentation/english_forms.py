"""English contractions and their full forms: "do not" and "don't"."""

import random
import re

SHORT = {
    "do not": "don't",
    "does not": "doesn't",
    "did not": "didn't",
    "is not": "isn't",
    "are not": "aren't",
    "was not": "wasn't",
    "were not": "weren't",
    "have not": "haven't",
    "has not": "hasn't",
    "had not": "hadn't",
    "will not": "won't",
    "would not": "wouldn't",
    "should not": "shouldn't",
    "could not": "couldn't",
    "cannot": "can't",
    "I am": "I'm",
    "I have": "I've",
    "I will": "I'll",
    "you are": "you're",
    "we are": "we're",
    "they are": "they're",
    "you have": "you've",
    "we have": "we've",
    "they have": "they've",
    "you will": "you'll",
    "we will": "we'll",
    "they will": "they'll",
    "he will": "he'll",
    "she will": "she'll",
}


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


CONTRACT = SHORT | {_capital(full): _capital(short) for full, short in SHORT.items()}
EXPAND = {short: full for full, short in CONTRACT.items()}
_FULL = re.compile(r"\b(?:" + "|".join(CONTRACT) + r")(?= \w)")  # "Yes, I am." stays
_SHORT = re.compile(r"\b(?:" + "|".join(EXPAND) + r")\b")
_SUBJECTS = "I you he she it we they this that there the Tom anyone anybody someone"
_QUESTION = re.compile(rf"\w+n't (?:{'|'.join(_SUBJECTS.split())})\b")  # "Don't you know?"


def other_form(english: str, chance: random.Random) -> str:
    """Contractions instead of full forms, or the other way round."""
    if chance.random() < 0.5:
        return _FULL.sub(lambda match: CONTRACT[match.group()], english)
    if _QUESTION.search(english):  # "Do not you know?" is wrong
        return english
    return _SHORT.sub(lambda match: EXPAND[match.group()], english)
