"""Trainer: joins the data order, the optimiser step and the loss. Saving and resuming are in saved_run.py."""

import shutil
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attnviz.data import batching
from attnviz.data.readers import Pairs
from attnviz.data.tokenizer import BOS, PAD, SubwordTokenizer
from attnviz.evaluation.translation import translate
from attnviz.mechanisms import Config
from attnviz.networks.registry import build
from attnviz.training.config import TrainingConfig
from attnviz.training.trainers.batches import Augment, Batches, Example
from attnviz.training.trainers.losses import consistency_loss, token_loss
from attnviz.training.trainers.optimizer import Optimizer


class Diverged(ValueError):
    """The loss or its gradient is not finite. What was saved before stays as it is."""

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
        text: SubwordTokenizer,
        pairs: Pairs,
        device: str,
        compile: bool = True,
        augment: Augment | None = None,
    ):
        torch.manual_seed(config.seed)
        self.config, self.device = config, device
        self.model_config = Config(config.mechanism, len(text), config.options)
        model = build(self.model_config).to(device)
        self.batches = self.make_batches(text, pairs, augment)
        self.optimizer = Optimizer(model, config, self.batches.total)
        fuse = partial(torch.compile, dynamic=True) if compile and shutil.which("g++") else lambda function: function
        self._token_loss, self._consistency_loss = fuse(token_loss), fuse(consistency_loss)
        self.epoch, self.batch, self.seconds = 0, 0, 0.0
        self.losses = (0.0, 0)
        self.history: list[dict] = []

    def make_batches(self, text: SubwordTokenizer, pairs: Pairs, augment: Augment | None) -> Batches:
        """The data in the order that updates read them in."""
        return Batches(self.config, text, pairs, self.encode, augment)

    @staticmethod
    def encode(pairs: Pairs, text: SubwordTokenizer) -> list[Example]:
        """Each pair as the ids of its source and of its target."""
        return batching.encode(pairs, text)

    @staticmethod
    def logits(model: nn.Module, source: Tensor, target: Tensor) -> Tensor:
        """source (B, S), target (B, T) -> logits (B, T, V) of each target token, given the tokens before it."""
        memory = model.encode(source, source != PAD)
        return model.logits(model.readouts(memory, F.pad(target[:, :-1], (1, 0), value=BOS)))

    @staticmethod
    def predict(model: nn.Module, text: SubwordTokenizer, sentences: list[str]) -> list[str]:
        """The output of a model in evaluation mode for each sentence."""
        return translate(model, text.spaced(), sentences, next(model.parameters()).device)

    def update(self, indices: list[int]) -> Tensor:
        """One optimiser step on a batch of examples -> its loss. Diverged when the gradient is not finite."""
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
