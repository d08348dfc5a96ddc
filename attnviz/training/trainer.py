"""Trainer: joins the data order, the optimiser step and the loss. Saving and resuming are in saved_run.py.
Also the trainer of a model that writes: every epoch reads the texts in a new order, cut into windows of the context's
length.

Letters: B batch, S source pieces, T target tokens, V vocabulary.
"""

import hashlib
import math
import random
import shutil
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from attnviz.data import MOST_PIECES, batching
from attnviz.data.readers import Pairs
from attnviz.data.tokenizer import BOS, PAD, SPECIALS, UNK, SubwordTokenizer
from attnviz.evaluation.language import windows
from attnviz.evaluation.translation import translate
from attnviz.mechanisms import Config
from attnviz.networks.registry import build, options
from attnviz.training.optimizer import Optimizer
from attnviz.training.recipes import TrainingConfig

Example = tuple[list[int], list[int]]  # ids of the source, ids of the target
Encode = Callable[[Pairs, SubwordTokenizer], list[Example]]
Augment = Callable[[Pairs, int], Pairs]  # pairs and the number of a pass -> the pairs as that pass reads them


class Batches:
    """Training pairs as batches of piece ids. Letters: B sentences, S source pieces, T target tokens.

    pairs : (source, target) texts. encode : pairs and tokenizer -> examples. augment : changes the pairs anew for each
    epoch. digest : SHA-256 of the examples, by which a resumed run recognises its data. total : updates of the whole
    run.
    """

    def __init__(
        self,
        config: TrainingConfig,
        tokenizer: SubwordTokenizer,
        pairs: Pairs,
        encode: Encode,
        augment: Augment | None = None,
    ):
        self.config, self.pairs = config, pairs
        self._encode, self._text, self._unchanged = encode, tokenizer, encode(pairs, tokenizer)
        self.examples = self._unchanged  # as the current epoch reads them
        self._dropout_tokenizer = tokenizer.loosened(config.piece_dropout) if config.piece_dropout else None
        self._dropout_epochs = round(config.epochs * 0.8) if config.piece_dropout else 0
        self.digest = hashlib.sha256(repr(self.examples).encode()).hexdigest()
        self._augment = None  # the number of updates is that of the pairs as they are
        self.total = self._dropout_epochs * len(self.order(0))
        self.total += (config.epochs - self._dropout_epochs) * len(self.order(config.epochs))
        self._augment = augment

    def order(self, epoch: int) -> list[list[int]]:
        """Indices of the examples in each batch of an epoch. It depends on seed and epoch alone, so a resumed run
        repeats it.

        Piece dropout encodes the pairs anew for each epoch, with unseeded random numbers; then the order is only
        approximately the same. The last fifth of the epochs has no piece dropout, like the trained model.
        """
        self.examples = self._changed(epoch)
        lengths = [max(len(source), len(target)) for source, target in self.examples]
        return batching.batches(lengths, self.config.batch_tokens, random.Random(f"{self.config.seed}/{epoch}"))

    def _changed(self, epoch: int) -> list[Example]:
        """The examples, augmented and with piece dropout; an example that would become too long for the models is
        unchanged."""
        loosened = self._dropout_tokenizer if epoch < self._dropout_epochs else None
        if loosened is None and self._augment is None:
            return self._unchanged
        pairs = self.pairs if self._augment is None else self._augment(self.pairs, epoch)
        encoded = zip(self._encode(pairs, self._text if loosened is None else loosened), self._unchanged)
        return [changed if max(map(len, changed)) <= MOST_PIECES else unchanged for changed, unchanged in encoded]

    def tensors(self, indices: list[int], device: str | torch.device) -> tuple[Tensor, Tensor]:
        """Sources (B, S), with word dropout, and targets (B, T) of some examples."""
        source, target = (batching.pad([self.examples[i][side] for i in indices]).to(device) for side in (0, 1))
        return drop_words(source, self.config.word_dropout), target


def drop_words(source: Tensor, probability: float) -> Tensor:
    """source (B, S) with pieces replaced by <unk> at random; special tokens stay."""
    if not probability:
        return source
    dropped = torch.rand(source.shape, device=source.device) < probability
    return source.masked_fill(dropped & (source >= len(SPECIALS)), UNK)


def token_loss(logits: Tensor, target: Tensor, smoothing: float, padding: int = PAD) -> Tensor:
    """logits (B, T, V), target (B, T) -> mean cross-entropy (nats) over the tokens that are not `padding`."""
    flat = logits.float().flatten(0, 1)
    return F.cross_entropy(flat, target.flatten(), ignore_index=padding, label_smoothing=smoothing)


def consistency_loss(logits: Tensor, target: Tensor, padding: int = PAD) -> Tensor:
    """logits (2 B, T, V) of two passes one after the other, target (B, T) -> half of KL(p || q) + KL(q || p) (nats),
    mean over the tokens that are not `padding`. R-Drop, Liang et al. 2021, eq. 2."""
    p, q = (torch.log_softmax(half.float(), dim=-1) for half in logits.chunk(2))
    symmetric_kl, real = ((p.exp() - q.exp()) * (p - q)).sum(dim=-1), target != padding
    return (symmetric_kl * real).sum() / real.sum() / 2


class Diverged(ValueError):
    """The loss or its gradient is not finite. The saved state is unchanged."""

    def __init__(self, epoch: int, reason: str):
        super().__init__(f"training diverged in epoch {epoch}: {reason}; use a lower learning_rate and --restart")


class Trainer:
    """Trains an encoder-decoder model on pairs of texts. Letters: B sentences, S source pieces, T target tokens, V
    vocabulary.

    compile : fuse the loss over the vocabulary, which saves memory; compiling takes some seconds and needs a C++
        compiler.
    augment : changes the pairs anew for each epoch, see `Batches`.
    epoch, batch : finished epochs, and finished batches of the current one. losses : of these batches, their sum and
    number. A subclass for another task replaces `padding`, `encode`, `logits` and `predict`.
    """

    padding = PAD  # this id in a target marks the absence of a token

    def __init__(
        self,
        config: TrainingConfig,
        tokenizer: SubwordTokenizer,
        pairs: Pairs,
        device: str,
        compile: bool = True,
        augment: Augment | None = None,
    ):
        torch.manual_seed(config.seed)
        self.config, self.device = config, device
        self.model_config = Config(config.mechanism, len(tokenizer), config.options)
        model = build(self.model_config).to(device)
        self.batches = self.make_batches(tokenizer, pairs, augment)
        self.optimizer = Optimizer(model, config, self.batches.total)
        fuse = partial(torch.compile, dynamic=True) if compile and shutil.which("g++") else lambda function: function
        self._token_loss, self._consistency_loss = fuse(token_loss), fuse(consistency_loss)
        self.epoch, self.batch, self.seconds = 0, 0, 0.0
        self.losses = (0.0, 0)
        self.history: list[dict] = []

    def make_batches(self, tokenizer: SubwordTokenizer, pairs: Pairs, augment: Augment | None) -> Any:
        """The data in the order of the updates."""
        return Batches(self.config, tokenizer, pairs, self.encode, augment)

    def encode(self, pairs: Pairs, tokenizer: SubwordTokenizer) -> list[Example]:
        """Each pair as the ids of its source and of its target."""
        return batching.encode(pairs, tokenizer)

    @staticmethod
    def logits(model: Any, source: Tensor, target: Tensor) -> Tensor:
        """source (B, S), target (B, T) -> logits (B, T, V) of each target token, given the tokens before it."""
        memory = model.encode(source, source != PAD)
        return model.logits(model.readouts(memory, F.pad(target[:, :-1], (1, 0), value=BOS)))

    def predict(self, model: Any, tokenizer: SubwordTokenizer, sentences: list[str]) -> list[str]:
        """The output of a model in evaluation mode for each sentence."""
        return translate(model, tokenizer.spaced(), sentences, next(model.parameters()).device)

    def update(self, indices: list[int]) -> Tensor:
        """One optimiser step on a batch of examples -> its loss. Raises Diverged if the gradient is not finite."""
        loss = self.loss(indices)
        loss.backward()
        try:
            self.optimizer.step()
        except FloatingPointError as error:
            raise Diverged(self.epoch + 1, str(error)) from None
        return loss.detach()

    def loss(self, indices: list[int]) -> Tensor:
        """The loss on a batch of examples."""
        source, target = self.batches.tensors(indices, self.device)
        if self.config.consistency:
            return self._loss_of_two_passes(source, target)
        return self._smoothed_loss(self.logits(self.optimizer.working, source, target), target)

    def _smoothed_loss(self, logits: Tensor, target: Tensor) -> Tensor:
        return self._token_loss(logits, target, self.config.label_smoothing, self.padding)

    def _loss_of_two_passes(self, source: Tensor, target: Tensor) -> Tensor:
        """R-Drop, Liang et al. 2021, half of eq. 4: two passes, each under its own dropout."""
        twice = target.repeat(2, 1)
        logits = self.logits(self.optimizer.working, source.repeat(2, 1), twice)
        divergence = self._consistency_loss(logits, target, self.padding)
        return self._smoothed_loss(logits, twice) + self.config.consistency / 2 * divergence


class SharingTrainer(Trainer):
    """One of several that read the same pairs, which are ids already. It is not compiled."""

    def __init__(self, config: TrainingConfig, tokenizer: SubwordTokenizer, pairs: Pairs, examples: list[Example]):
        self._examples = examples
        super().__init__(config, tokenizer, pairs, "cpu", compile=False)

    def encode(self, pairs: Pairs, tokenizer: SubwordTokenizer) -> list[Example]:
        return self._examples


class TextBatches:
    """Texts as batches of windows, with the interface of `Batches`. Letters: B windows, T tokens of the context.

    In each epoch the texts are joined in a new order, with <eos> after each, and cut into windows from a new offset on.
    So every token is read once per epoch, at a new place in its window. For a part in `config.passes`, an epoch reads
    only its share of the texts. digest : SHA-256 of the pieces. total : updates of the whole run.
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
        """The texts of an epoch."""
        numbered = enumerate(zip(self._texts, self._passes))
        return [text for number, (text, passes) in numbered if number % passes == epoch % passes]

    def tensors(self, indices: list[int], device: str | torch.device) -> tuple[Tensor, Tensor]:
        """Inputs from <bos> on, and targets, both (B, T), of the windows that begin at these places."""
        rows = np.stack([self.stream[place : place + self.longest] for place in indices]).astype(np.int64)
        target = torch.from_numpy(rows).to(device)
        return F.pad(target[:, :-1], (1, 0), value=BOS), target


class WriterTrainer(Trainer):
    """Trains a model that writes on texts; the second of a pair is the part of the data that the text is from."""

    def make_batches(self, tokenizer: SubwordTokenizer, pairs: Pairs, augment: Augment | None = None) -> TextBatches:
        return TextBatches(self.config, tokenizer, pairs)

    def encode(self, pairs: Pairs, tokenizer: SubwordTokenizer) -> list[Example]:
        """The windows of each text: inputs and targets."""
        longest = (options(self.config.mechanism) | self.config.options)["longest"]
        rows = tokenizer.batch_ids([text for text, _ in pairs])
        return [(source, target) for ids in rows for source, target, _ in windows(ids, longest, longest)]

    @staticmethod
    def logits(model: Any, source: Tensor, target: Tensor) -> Tensor:
        """source (B, T) from <bos> on -> logits (B, T, V) of each next token; the target is not used."""
        return model.logits(model.readouts(source))
