"""A run that reads its sentences as people type them, changed anew for each pass, and keeps moments of the model on the way."""

from pathlib import Path

from torch import Tensor

from attnviz import augment, corpora, moments
from attnviz.recipes import Settings
from attnviz.run import Run
from attnviz.text import Text
from attnviz.trained import LONGEST


class TypedRun(Run):
    """pair : such as en-fr. moments : folder for the weights as they were now and then, None for none."""

    def __init__(
        self, plan: Settings, text: Text, pairs: corpora.Pairs, device: str, compile: bool = True, *, pair: str, moments: Path | None = None
    ):
        self.augmenter = None  # the length of the run is that of the sentences as they are
        super().__init__(plan, text, pairs, device, compile)
        self.text, self.moments = text, moments
        if plan.augment:
            self.augmenter = augment.for_pairs(pairs, pair, plan.augment, plan.seed)

    def order(self, epoch: int) -> list[list[int]]:
        """The epoch's batches, of sentences as that pass reads them: a function of seed and epoch, but under piece dropout."""
        if self.augmenter is None:
            return super().order(epoch)
        pairs = self.augmenter(self.pairs, epoch)
        changed = self.encode(pairs, self.loose if epoch < self._loose_epochs else self.text)
        self.data = [new if max(map(len, new)) <= LONGEST else old for new, old in zip(changed, self.whole)]
        return self.batches(epoch)

    def learn(self, batch: list[int]) -> Tensor:
        """One update on a batch of indices -> its loss; a moment before it where one is due."""
        if self.moments and self.update in moments.due(self.total):
            moments.keep(self.moments, self.update, self.config, self.average)
        return super().learn(batch)
