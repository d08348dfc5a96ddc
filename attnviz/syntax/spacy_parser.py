"""Parses of typed English sentences by spaCy, where a person has installed it with an English model.

spaCy's English models name relations as ClearNLP does and attach a noun to its preposition. `parse` says the same
sentence in Universal Dependencies for the relations of `syntax.RELATIONS`; other labels stay as spaCy has them.
"""

import functools
import importlib.util
from importlib.metadata import entry_points

from attnviz.arguments import checked
from attnviz.syntax import ROOT, Parse

MODEL = "en_core_web_sm"
INSTALL = f"pip install spacy && python -m spacy download {MODEL}"
_LABELS = {"nsubjpass": "nsubj:pass", "dobj": "obj", "dative": "iobj", "ROOT": "root", "neg": "advmod"}
_COMPLEMENTS = ("attr", "acomp")  # of a verb; of `be` they are the governor


def models() -> tuple[str, ...]:
    """The English models of spaCy that are installed, MODEL first; () without spaCy. Nothing is imported."""
    if importlib.util.find_spec("spacy") is None:
        return ()
    declared = {point.name for point in entry_points(group="spacy_models") if point.name.startswith("en_")}
    there = declared | {MODEL} if importlib.util.find_spec(MODEL) else declared
    return tuple(sorted(there, key=lambda name: (name != MODEL, name)))


@checked
def parse(text: str, model: str = "") -> Parse:
    """The dependencies of one sentence. model : one of `models()`; "" for the first.

    ValueError if spaCy or the model is not installed, or the text has no word.
    """
    installed = models()
    if not installed or model not in ("", *installed):
        raise ValueError(f"spaCy and {model or 'an English model'} must be installed to parse a sentence: {INSTALL}")
    model = model or installed[0]
    words = [word for word in _pipeline(model)(text) if not word.is_space]
    if not words:
        raise ValueError(f"the text must have at least one word; got {text!r:.80}")
    return of_words(text, words)


def of_words(text: str, words: list) -> Parse:
    """words : spaCy's tokens, without blanks."""
    places = {word.i: place for place, word in enumerate(words)}
    governors = [places.get(word.head.i, ROOT) if word.head.i != word.i else ROOT for word in words]
    labels = [_LABELS.get(word.dep_, word.dep_) for word in words]
    for place, word in enumerate(words):
        if word.dep_ == "pobj" and labels[governors[place]] in ("prep", "agent"):
            preposition = governors[place]
            governors[place], governors[preposition] = governors[preposition], place
            labels[place], labels[preposition] = "obl", "case"
    for place, word in enumerate(words):
        verb = governors[place]
        if word.dep_ in _COMPLEMENTS and verb != ROOT and words[verb].lemma_ == "be":
            governors = [place if governor == verb else governor for governor in governors]
            governors[place], labels[place] = governors[verb], labels[verb]
            governors[verb], labels[verb] = place, "cop"
    first, *others = [place for place, governor in enumerate(governors) if governor == ROOT]
    for place in others:  # a text of several sentences is one tree
        governors[place], labels[place] = first, "parataxis"
    return Parse(text, tuple((word.idx, word.idx + len(word.text)) for word in words), tuple(governors), tuple(labels))


@functools.cache
def _pipeline(model: str):
    import spacy

    return spacy.load(model)
