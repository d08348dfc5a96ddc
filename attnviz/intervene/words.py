"""One source word replaced or masked, and what the model says then: freely, and when the same words are forced."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch

from attnviz.arguments import brief, checked
from attnviz.intervene.changed import OnStep, Scope
from attnviz.intervene.changes import Identity
from attnviz.intervene.run import forced_with_logits, free_text, own_text
from attnviz.models.translator import Translator
from attnviz.trace import Trace

MASK = "□"  # in no vocabulary of this project: the model reads one unknown piece


class Word(NamedTuple):
    """A word of a source text: text[start:end]."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, eq=False)
class Rewritten:
    """A translation of a text, and of the same text with another word.

    before : of the text as it was, its translation forced. forced : the same translation forced, of the new text.
    free : what the model says of the new text. total_variation (T,) : between the two next-token distributions of each
    step of the forced translation, 0 to 1.
    """

    before: Trace
    forced: Trace
    free: Trace
    total_variation: np.ndarray

    __repr__ = brief

    @property
    def log_prob_changes(self) -> np.ndarray:
        """(T,): log-probability (natural) of each target token with the new word, minus that with the old one."""
        return np.subtract(self.forced.log_probs, self.before.log_probs)


@checked
def words(trace: Trace) -> tuple[Word, ...]:
    """The words of a trace's source, in order; special tokens and white space are none."""
    spans: dict[int, tuple[int, int]] = {}
    for token in trace.source:
        if token.word is not None and token.end > token.start:
            start, end = spans.get(token.word, (token.start, token.end))
            spans[token.word] = min(start, token.start), max(end, token.end)
    each = (Word(trace.text[start:end], start, end) for start, end in spans.values())
    return tuple(word for word in each if word.text.strip())


@checked
def replaced(text: str, word: Word, new: str = MASK) -> str:
    """The text with another word in that place. ValueError where the word does not stand there, or nothing changes."""
    if text[word.start : word.end] != word.text:
        raise ValueError(f"word must stand at {word.start} of the text; got {word.text!r:.80}")
    if new.strip() == word.text.strip():
        raise ValueError(f"the new word must be another one; got {new!r:.80}")
    changed = text[: word.start] + new.strip() + text[word.end :]
    return changed if new.strip() else " ".join(changed.split())


@checked
@torch.inference_mode()
def rewrite(
    model: Translator,
    text: str,
    word: Word,
    new: str = MASK,
    target: str | None = None,
    on_step: OnStep = lambda: None,
) -> Rewritten:
    """Translate a text, and the text with a word replaced: by MASK, by another word, or by "" which deletes it.

    target : the text that is forced on both; None for the model's own (greedy) translation. Errors as of `replaced`
    and `trace`. on_step : as of `run`.
    """
    other = replaced(text, word, new)
    target = own_text(model, text) if target is None else target
    before, plain = forced_with_logits(model, text, target, Identity(), Scope(), None, on_step)
    forced, changed = forced_with_logits(model, other, target, Identity(), Scope(), None, on_step)
    variation = (plain.softmax(-1) - changed.softmax(-1)).abs().sum(-1) / 2
    free = free_text(model, other, Identity(), Scope(), on_step)
    return Rewritten(before, forced, free, variation.numpy())
