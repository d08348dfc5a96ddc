"""Which of the moments that a run kept are packed: those at about equal distances of their loss on validation."""

from pathlib import Path

from torch import nn

from attnviz import moments
from attnviz.data.readers import Pairs
from attnviz.evaluation import language
from attnviz.models import checkpoints
from attnviz.models.names import ModelName
from attnviz.moments import kept
from attnviz.networks.decoder_only import DecoderOnly
from attnviz.training.validation import mean_loss

NEAR = 0.1  # part of its loss by which that of a packed moment may differ from it


def pack_spaced(
    name: str, root: Path, folder: Path, val: Pairs, count: int
) -> tuple[Path, list[tuple[int, float, float]]]:
    """Pack `count` of the moments in `folder`, spaced by loss, for `name`: the untrained model, the trained one, and
    those between.

    -> the file, and of each packed moment its update, its loss as kept and its loss as restored (nats a token on
    `val`). Raises ValueError when fewer are there, CheckpointError.
    """
    text = checkpoints.load_tokenizer(ModelName.parse(name).pair, root)
    model, _ = checkpoints.load_model(name, root)

    def loss(network: nn.Module) -> float:
        if isinstance(network, DecoderOnly):
            return language.surprise(network, text, [a for a, _ in val]).nats_a_piece
        return mean_loss(network, text, val, "cpu")

    def loss_of_file(path: Path) -> float:
        model.load_state_dict({key: value.float() for key, value in checkpoints.load_tensors(path).items()})
        return loss(model)

    paths = moments.files(folder)
    kept.check_config(paths, checkpoints.read_config(name, root))
    losses = [loss_of_file(path) for path in paths]
    places = moments.spaced(losses, count)
    chosen, as_kept = [paths[place] for place in places], [losses[place] for place in places]
    path = moments.pack(
        name, root, chosen, as_kept, lambda number, network: abs(loss(network) / as_kept[number] - 1) <= NEAR
    )
    packed = [loss(moments.restore(name, number, root)) for number in range(count)]
    return path, [(kept.update(each), before, now) for each, before, now in zip(chosen, as_kept, packed)]
