"""The order of the training data: which sentences each update reads, and as which pieces."""

import hashlib
import random
from collections.abc import Callable

import torch
from torch import Tensor

from attnviz.data import batching
from attnviz.data.limits import LONGEST
from attnviz.data.readers import Pairs
from attnviz.data.tokenizer import SPECIALS, UNK, SubwordTokenizer
from attnviz.training.config import TrainingConfig

Example = tuple[list[int], list[int]]  # ids of the source, ids of the target
Encode = Callable[[Pairs, SubwordTokenizer], list[Example]]
Augment = Callable[[Pairs, int], Pairs]  # pairs and the number of a pass -> the pairs as that pass reads them


class Batches:
    """Training pairs as batches of piece ids. Letters: B sentences, S source pieces, T target tokens.

    pairs : (source, target) texts. encode : pairs and tokenizer -> examples. augment : changes the pairs anew for each
    epoch. digest : SHA-256 of the examples, by which a resumed run knows its data. total : updates of the whole run.
    """

    def __init__(
        self,
        config: TrainingConfig,
        text: SubwordTokenizer,
        pairs: Pairs,
        encode: Encode,
        augment: Augment | None = None,
    ):
        self.config, self.pairs = config, pairs
        self._encode, self._text, self._unchanged = encode, text, encode(pairs, text)
        self.examples = self._unchanged  # as the current epoch reads them
        self._dropout_tokenizer = text.loosened(config.piece_dropout) if config.piece_dropout else None
        self._dropout_epochs = round(config.epochs * 0.8) if config.piece_dropout else 0
        self.digest = hashlib.sha256(repr(self.examples).encode()).hexdigest()
        self._augment = None  # the number of updates is that of the pairs as they are
        self.total = self._dropout_epochs * len(self.order(0))
        self.total += (config.epochs - self._dropout_epochs) * len(self.order(config.epochs))
        self._augment = augment

    def order(self, epoch: int) -> list[list[int]]:
        """Indices of the examples in each batch of an epoch. It depends on seed and epoch alone, so a resumed run
        repeats it.

        Piece dropout encodes the pairs anew for each epoch, with random numbers that no seed controls; then the order
        is only about the same. The last fifth of the epochs reads pieces without dropout, as the trained model will.
        """
        self.examples = self._changed(epoch)
        lengths = [max(len(source), len(target)) for source, target in self.examples]
        return batching.batches(lengths, self.config.batch_tokens, random.Random(f"{self.config.seed}/{epoch}"))

    def _changed(self, epoch: int) -> list[Example]:
        """The examples, augmented and under piece dropout; one that becomes too long for the models stays as it is."""
        dropout = epoch < self._dropout_epochs
        if not dropout and self._augment is None:
            return self._unchanged
        pairs = self.pairs if self._augment is None else self._augment(self.pairs, epoch)
        encoded = zip(self._encode(pairs, self._dropout_tokenizer if dropout else self._text), self._unchanged)
        return [changed if max(map(len, changed)) <= LONGEST else unchanged for changed, unchanged in encoded]

    def tensors(self, indices: list[int], device: str | torch.device) -> tuple[Tensor, Tensor]:
        """Sources (B, S), under word dropout, and targets (B, T) of some examples."""
        source, target = (batching.pad([self.examples[i][side] for i in indices]).to(device) for side in (0, 1))
        return drop_words(source, self.config.word_dropout), target


def drop_words(source: Tensor, probability: float) -> Tensor:
    """source (B, S) with pieces replaced by <unk> at random; special tokens stay."""
    if not probability:
        return source
    dropped = torch.rand(source.shape, device=source.device) < probability
    return source.masked_fill(dropped & (source >= len(SPECIALS)), UNK)
