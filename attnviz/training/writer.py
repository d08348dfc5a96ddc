"""The trainer of a model that writes: every pass reads the texts in a new order, cut into windows as long as the
context.
"""

import hashlib
import math
import random
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from attnviz.data.readers import Pairs
from attnviz.data.tokenizer import BOS, SubwordTokenizer
from attnviz.evaluation.language import windows
from attnviz.networks.registry import options
from attnviz.training.recipes import TrainingConfig
from attnviz.training.trainer import Augment, Example, Trainer


class TextBatches:
    """Texts as batches of windows, with the interface of `Batches`. Letters: B windows, T tokens of the context.

    In each pass the texts are joined in a new order, <eos> after each, and cut into windows from a new place on. So
    every token is read once a pass, at another place of its window. Of a part in `config.passes` a pass reads only its
    share of the texts. digest : SHA-256 of the pieces. total : updates of
    the whole run.
    """

    def __init__(self, config: TrainingConfig, tokenizer: SubwordTokenizer, pairs: Pairs):
        self.config = config
        self.longest = (options(config.mechanism) | config.options)["longest"]
        self._texts = [np.array(ids, dtype=np.int32) for ids in tokenizer.batch_ids([text for text, _ in pairs])]
        self._passes = [config.passes.get(part, 1) for _, part in pairs]  # in which each text is read once
        self.digest = hashlib.sha256(np.concatenate(self._texts).tobytes()).hexdigest()
        shortest = min(sum(map(len, self._read_in(number))) for number in range(math.lcm(*set(self._passes))))
        if shortest < 2 * self.longest:
            raise ValueError(
                f"a pass needs at least {2 * self.longest} pieces of text, two contexts of the model; got {shortest}"
            )
        self.stream = np.zeros(0, dtype=np.int32)  # the texts of the current pass
        self._windows = shortest // self.longest - 1  # whatever the pass, and the place of the first window
        self._batch = max(1, config.batch_tokens // self.longest)
        self.total = config.epochs * -(-self._windows // self._batch)

    def order(self, epoch: int) -> list[list[int]]:
        """The first place of each window in each batch of an epoch. It depends on seed and epoch alone."""
        generator = random.Random(f"{self.config.seed}/{epoch}")
        texts = self._read_in(epoch)
        generator.shuffle(texts)
        self.stream = np.concatenate(texts)
        first = generator.randrange(self.longest)
        places = [first + self.longest * number for number in range(self._windows)]
        generator.shuffle(places)
        return [places[start : start + self._batch] for start in range(0, len(places), self._batch)]

    def _read_in(self, epoch: int) -> list[np.ndarray]:
        """The texts that a pass reads."""
        numbered = enumerate(zip(self._texts, self._passes))
        return [text for number, (text, passes) in numbered if number % passes == epoch % passes]

    def tensors(self, indices: list[int], device: str | torch.device) -> tuple[Tensor, Tensor]:
        """What is read, from <bos> on, and what is predicted, both (B, T), of the windows that begin at these
        places."""
        rows = np.stack([self.stream[place : place + self.longest] for place in indices]).astype(np.int64)
        target = torch.from_numpy(rows).to(device)
        return F.pad(target[:, :-1], (1, 0), value=BOS), target


class WriterTrainer(Trainer):
    """Trains a model that writes on texts; the second of a pair is the part of the data that the text is from."""

    def make_batches(self, tokenizer: SubwordTokenizer, pairs: Pairs, augment: Augment | None = None) -> TextBatches:
        return TextBatches(self.config, tokenizer, pairs)

    def encode(self, pairs: Pairs, tokenizer: SubwordTokenizer) -> list[Example]:
        """The windows of each text: what is read, and what is predicted."""
        longest = (options(self.config.mechanism) | self.config.options)["longest"]
        rows = tokenizer.batch_ids([text for text, _ in pairs])
        return [(source, target) for ids in rows for source, target, _ in windows(ids, longest, longest)]

    @staticmethod
    def logits(model: Any, source: Tensor, target: Tensor) -> Tensor:
        """source (B, T) from <bos> on -> logits (B, T, V) of each next token; the target is not used."""
        return model.logits(model.readouts(source))
