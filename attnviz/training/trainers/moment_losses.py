"""Which of the moments that a run kept are packed: those at about equal distances of their loss on validation."""

from pathlib import Path

from torch import nn

from attnviz import moments
from attnviz.data.readers import Pairs
from attnviz.models import checkpoints
from attnviz.models.names import ModelName
from attnviz.moments import kept
from attnviz.training.validation import mean_loss


def pack_spaced(
    name: str, root: Path, folder: Path, val: Pairs, count: int
) -> tuple[Path, list[tuple[int, float, float]]]:
    """Pack `count` of the moments in `folder`, spaced by loss, beside the checkpoint `name`.

    -> the file, and of each packed moment its update, its loss as kept and its loss as restored (nats a token on
    `val`). The untrained model is not packed: its seed gives it. Raises ValueError when fewer are there,
    CheckpointError.
    """
    text = checkpoints.load_tokenizer(ModelName.parse(name).pair, root)
    model, _ = checkpoints.load_model(name, root)

    def loss(network: nn.Module) -> float:
        return mean_loss(network, text, val, "cpu")

    def loss_of_file(path: Path) -> float:
        model.load_state_dict({key: value.float() for key, value in checkpoints.load_tensors(path).items()})
        return loss(model)

    paths = [path for path in moments.files(folder) if kept.update(path) > 0]
    losses = [loss_of_file(path) for path in paths]
    places = moments.spaced(losses, count)
    path = moments.pack(name, root, [paths[place] for place in places], [losses[place] for place in places])
    packed = [loss(moments.restore(name, number, root)) for number in range(count)]
    return path, [(kept.update(paths[place]), losses[place], near) for place, near in zip(places, packed)]
