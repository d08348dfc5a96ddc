"""Where local attention predicts its place, at every step of a trace."""

import torch
from torch import Tensor

from attnviz import mechanisms
from attnviz.arguments import checked
from attnviz.inside.replay import sharing, target_ids
from attnviz.models.trained import Trained
from attnviz.networks import decode
from attnviz.trace import Trace


@checked
@torch.inference_mode()
def windows(model: Trained, trace: Trace) -> tuple[tuple[float, float], ...]:
    """(centre, reach) of each step: the predicted place p_t and D, Luong et al. 2015, eq. 9 and 10; () without windows.

    centre : a real number in source tokens, counted from 0. reach : source tokens to either side. The target is forced
    in one pass, so p_t is that of the trace to rounding.
    ValueError for a trace of words, or of another model.
    """
    if not mechanisms.find(model.mechanism).local:
        return ()
    if trace.level != "pieces":
        raise ValueError("trace must be at the level of pieces, as a model makes it; got one of words")
    watched, seen = sharing(model.model), []
    watched.attention.place.register_forward_hook(lambda _module, _inputs, output: seen.append(output.flatten()))
    source, target = torch.tensor([model.read(trace.text).ids]), torch.tensor([target_ids(model, trace)])
    decode.forced(watched, source, target)
    return tuple((float(centre), watched.attention.reach) for centre in _places(torch.cat(seen), source.shape[1]))


def _places(logits: Tensor, length: int) -> Tensor:
    """v_p . tanh(W_p s_t) of each step (T,) -> p_t (T,)."""
    return length * torch.sigmoid(logits)
