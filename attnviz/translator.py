"""A trained translation model with its tokenizer and card: text in, Trace out."""

import torch
from torch import Tensor

from attnviz import decode
from attnviz.text import BOS
from attnviz.trace import Alternative, AttentionMap, Trace
from attnviz.trained import LONGEST, TextError, Trained, describe

__all__ = ["BEAMS", "LONGEST", "TextError", "Translator", "describe"]

BEAMS = 20  # hypotheses beam search may keep


class Translator(Trained):
    """A checkpoint that translates."""

    def trace(self, text: str, target: str | None = None, beam: int = 1) -> Trace:
        """Translate a text, or force the model to produce `target`, keeping everything it attended to.

        beam : hypotheses kept; 1 is greedy decoding, 5 translates better. The trace is of the best hypothesis.
        Raises TextError for an empty or too long text, ValueError for a beam out of range.
        """
        if not 1 <= beam <= BEAMS:
            raise ValueError(f"beam must be from 1 to {BEAMS}; got {beam}")
        source = self.read(text)
        ids = torch.tensor([source.ids])
        if target is not None:
            wanted = self.read(target, "target")
            unrolled = decode.forced(self.model, ids, torch.tensor([wanted.ids]))
            return self._trace(text, source, target, wanted.tokens, unrolled, forced=True)
        if beam > 1:
            best = decode.beam(self.model, ids, beam, end_loops=True)
            unrolled = decode.forced(self.model, ids, torch.tensor([best]))
        else:
            unrolled = decode.greedy(self.model, ids, end_loops=True)
        translation, tokens = self.text.spell(unrolled.tokens[0].tolist())
        return self._trace(text, source, translation, tokens, unrolled, forced=False)

    @torch.inference_mode()
    def log_prob(self, text: str, target: str) -> float:
        """`trace(text, target).log_prob`, to rounding, of all steps in one call: sooner, and nothing is kept."""
        source, wanted = torch.tensor([self.read(text).ids]), torch.tensor([self.read(target, "target").ids])
        inputs = torch.cat([wanted.new_tensor([[BOS]]), wanted[:, :-1]], dim=1)
        log_probs = torch.log_softmax(self.model(source, inputs)[0][0], dim=-1)  # (T, V)
        return float(log_probs.gather(1, wanted[0].unsqueeze(1)).double().sum())

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
