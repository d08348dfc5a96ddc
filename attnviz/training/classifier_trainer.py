"""The run of a classifier: what comes out for a sentence is one label."""

from torch import Tensor, nn

from attnviz.data.readers import Pairs
from attnviz.data.tokenizer import PAD, Text
from attnviz.mechanisms import LABELS
from attnviz.models import classifier
from attnviz.training.trainer import Run


class LabelRun(Run):
    """A run whose pairs are sentences and their labels. Letters: B sentences, S tokens, C labels."""

    padding = -1  # every target is one label, and none is missing

    @staticmethod
    def encode(pairs: Pairs, text: Text) -> list[tuple[list[int], list[int]]]:
        """Each pair as its piece ids and, alone in a list, the number of its label."""
        return [(ids, [LABELS.index(label)]) for ids, (_, label) in zip(text.batch_ids([a for a, _ in pairs]), pairs)]

    @staticmethod
    def logits(model: nn.Module, source: Tensor, target: Tensor) -> Tensor:
        """source (B, S) -> logits (B, 1, C) of the labels; what the target is does not matter."""
        return model(source, source != PAD).logits.unsqueeze(1)

    @staticmethod
    def answers(model: nn.Module, text: Text, sentences: list[str]) -> list[str]:
        """The most probable label of each sentence."""
        return classifier.labels(model, text, sentences)
