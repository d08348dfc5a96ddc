"""The first weights of a training run, taken from a trained model."""

from pathlib import Path

from torch import Tensor

from attnviz.mechanisms import Config
from attnviz.models import checkpoint_files, checkpoints

_ALWAYS = ("embedding.", "encoder.")  # what two mechanisms must have in common


def read(start: Path, config: Config, own: dict[str, Tensor]) -> tuple[dict[str, Tensor], list[str]]:
    """The weights to begin with, and the names of those that stay random.

    start : folder of the checkpoint. config : of the model to train. own : its random weights. A checkpoint of the same
    mechanism gives all its weights. One of another mechanism gives those that have the same name and shape, so that a
    Luong model can begin with the encoder and the decoder of another one. ValueError when the embedding or the encoder
    does not fit, in width for instance; CheckpointError.
    """
    model, other = checkpoints.load_model(*checkpoint_files.locate(start))
    weights = model.state_dict()
    fitting = {name: value for name, value in weights.items() if name in own and own[name].shape == value.shape}
    random = [name for name in own if name not in fitting]
    same = other["mechanism"] == config.mechanism
    if any(same or name.startswith(_ALWAYS) for name in random) or (same and len(fitting) < len(weights)):
        raise ValueError(f"{start} holds a different model ({other}) from the one to train ({config.to_dict()})")
    return own | fitting, random
