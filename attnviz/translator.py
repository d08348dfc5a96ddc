"""A trained model with its tokenizer and card: text in, Trace out."""

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from attnviz import checkpoints, decode
from attnviz.mechanisms import MECHANISMS
from attnviz.text import Text, Tokens
from attnviz.trace import Alternative, AttentionMap, Trace

LONGEST = 200  # pieces of a text, <eos> included
BEAMS = 20  # hypotheses beam search may keep


class TextError(ValueError):
    """A text that no model can take; the message says why and what to do."""


@dataclass(frozen=True, eq=False)
class Translator:
    """A checkpoint, ready to trace.

    name : `pair/mechanism`. text : the tokenizer of the pair. card : what the model was trained on and scored.
    """

    name: str
    mechanism: str
    model: nn.Module
    text: Text
    card: dict

    @classmethod
    def load(cls, name: str, root: Path | None = None, text: Text | None = None) -> "Translator":
        """Read a checkpoint below `root` (this project's own by default). Raises checkpoints.CheckpointError.

        text : the pair's tokenizer, when it is at hand already.
        """
        root = root or checkpoints.ROOT
        model, config = checkpoints.load_model(name, root)
        text = text or checkpoints.load_text(name.split("/")[0], root)
        if len(text) != config["vocabulary"]:
            raise checkpoints.CheckpointError(
                f"{name}: the model knows {config['vocabulary']} pieces and the tokenizer {len(text)}; "
                "they do not belong together"
            )
        return cls(name, config["mechanism"], model, text, checkpoints.verify(name, root))

    @property
    def title(self) -> str:
        """The mechanism's name for readers."""
        return MECHANISMS[self.mechanism].title

    def trace(self, text: str, target: str | None = None, beam: int = 1) -> Trace:
        """Translate a text, or force the model to produce `target`, keeping everything it attended to.

        beam : hypotheses kept; 1 is greedy decoding, 5 translates better. The trace is of the best hypothesis.
        Raises TextError for an empty or too long text, ValueError for a beam out of range.
        """
        if not 1 <= beam <= BEAMS:
            raise ValueError(f"beam must be from 1 to {BEAMS}; got {beam}")
        source = self._read(text, "text")
        ids = torch.tensor([source.ids])
        if target is not None:
            wanted = self._read(target, "target")
            unrolled = decode.forced(self.model, ids, torch.tensor([wanted.ids]))
            return self._trace(text, source, target, wanted.tokens, unrolled, forced=True)
        if beam > 1:
            best = decode.beam(self.model, ids, beam)
            unrolled = decode.forced(self.model, ids, torch.tensor([best]))
        else:
            unrolled = decode.greedy(self.model, ids)
        translation, tokens = self.text.spell(unrolled.tokens[0].tolist())
        return self._trace(text, source, translation, tokens, unrolled, forced=False)

    def _read(self, text: str, what: str) -> Tokens:
        if not text.strip():
            raise TextError(f"the {what} is empty; type a sentence")
        if any("\ud800" <= character <= "\udfff" for character in text):  # bytes of the command line that are not UTF-8
            raise TextError(f"the {what} holds bytes that are no characters; type it again, in UTF-8")
        tokens = self.text.encode(text)
        if len(tokens.ids) == 1:
            raise TextError(f"the {what} holds no visible character; type a sentence")
        if len(tokens.ids) > LONGEST:
            raise TextError(
                f"the {what} is too long: {len(tokens.ids)} pieces with the end mark, and the models read at most "
                f"{LONGEST}; shorten it or split it into sentences"
            )
        return tokens

    def _trace(self, text, source, translation, target, unrolled: decode.Unrolled, forced: bool) -> Trace:
        log_probs = torch.log_softmax(unrolled.logits[0], dim=-1)  # (T, V)
        chosen = log_probs.gather(1, unrolled.tokens[0].unsqueeze(1)).squeeze(1)
        maps = [
            AttentionMap(kind, layer, weights[0].numpy())
            for kind in ("cross", "encoder", "decoder")
            for layer, weights in enumerate(getattr(unrolled, kind))
        ]
        return Trace(
            model=self.name, mechanism=self.mechanism, text=text, translation=translation, forced=forced,
            source=source.tokens, target=target, log_probs=tuple(chosen.clamp(max=0).tolist()),
            alternatives=self._alternatives(log_probs), maps=tuple(maps), complete=target[-1].special,
        )

    def _alternatives(self, log_probs: Tensor, count: int = 5) -> tuple[tuple[Alternative, ...], ...]:
        values, ids = log_probs.topk(count)
        return tuple(
            tuple(Alternative(self.text.piece(i), p) for i, p in zip(*row))
            for row in zip(ids.tolist(), values.exp().tolist())
        )


def load(name: str, root: Path | None = None) -> Translator:
    """`Translator.load`."""
    return Translator.load(name, root)


def describe(name: str, root: Path | None = None) -> dict:
    """A checkpoint's card and state without reading its weights: name, mechanism, title, problem (None when sound)."""
    root = root or checkpoints.ROOT
    try:
        config, card = checkpoints.check(name, root), checkpoints.verify(name, root)
    except checkpoints.CheckpointError as error:
        return {"name": name, "problem": str(error)}
    return card | {"name": name, "mechanism": config.mechanism, "title": MECHANISMS[config.mechanism].title, "problem": None}
