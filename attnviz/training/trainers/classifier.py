"""The trainer of a classifier: each sentence has one label."""

from collections.abc import Sequence

from torch import Tensor, nn

from attnviz.data.readers import Pairs
from attnviz.data.tokenizer import PAD, SubwordTokenizer
from attnviz.models import classifier
from attnviz.training.config import TrainingConfig
from attnviz.training.trainers.batches import Example
from attnviz.training.trainers.trainer import Trainer


class ClassifierTrainer(Trainer):
    """Trains a classifier on pairs of a sentence and its label. Letters: B sentences, S pieces, C labels.

    labels : those of the task, in the order of the network's outputs.
    """

    padding = -1  # every target is one label, and none is missing

    def __init__(
        self,
        config: TrainingConfig,
        text: SubwordTokenizer,
        pairs: Pairs,
        device: str,
        compile: bool = True,
        *,
        labels: Sequence[str],
    ):
        self.labels = tuple(labels)
        super().__init__(config, text, pairs, device, compile)

    def encode(self, pairs: Pairs, text: SubwordTokenizer) -> list[Example]:
        """Each pair as the ids of its sentence and, alone in a list, the index of its label."""
        sentences = text.batch_ids([sentence for sentence, _ in pairs])
        return [(ids, [self.labels.index(label)]) for ids, (_, label) in zip(sentences, pairs)]

    @staticmethod
    def logits(model: nn.Module, source: Tensor, target: Tensor) -> Tensor:
        """source (B, S) -> logits (B, 1, C) of the labels; the target is not used."""
        return model(source, source != PAD).logits.unsqueeze(1)

    def predict(self, model: nn.Module, text: SubwordTokenizer, sentences: list[str]) -> list[str]:
        """The most probable label of each sentence."""
        return classifier.predict(model, text, self.labels, sentences)
