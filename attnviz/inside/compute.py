"""From a trace to one of its steps, with every number on the way; and to the windows of local attention."""

import numpy as np
import torch
from torch import Tensor

from attnviz import mechanisms
from attnviz.arguments import checked
from attnviz.inside import replay
from attnviz.inside.values import Parts, Step, Window, softmax
from attnviz.models import probabilities
from attnviz.models.trained import Trained
from attnviz.networks import decode
from attnviz.trace import Trace

CLOSE = 1e-4  # weights of a trace and of its replay may differ by so much


@torch.inference_mode()
@checked
def step(model: Trained, trace: Trace, step: int, layer: int = -1, head: int = 0) -> Step:
    """What one head of cross-attention did when `model` produced target token `step` (0-based) of `trace`.

    layer, head : of a Transformer, 0-based, -1 is the last layer; recurrent translators and the classifier's pooling
    have one of each. The text is decoded again up to that step, so every number is the model's own.

    ValueError for a model without attention, for a step, layer or head that is not there, for a trace of words, or of
    another model.
    """
    layer = _check(model, trace, step, layer, head)
    inputs = replay.attention_inputs(model, trace, step, layer, head)
    values = _attended(inputs)
    difference = np.abs(values["weights"] - trace.map("cross", layer).weights[head, step]).max()
    if difference > CLOSE:
        raise ValueError(
            f"trace must be one that {model.name} made as it is now: at step {step} its weights differ by up to "
            f"{difference:.2g}; trace the text again"
        )
    terms, unit = inputs.terms()
    return Step(
        model=model.name,
        mechanism=model.mechanism,
        step=step,
        layer=layer,
        head=head,
        token=trace.target[step],
        keys=trace.source,
        query=inputs.query.numpy(),
        asks=inputs.asks,
        states=tuple(state.numpy() for state in inputs.states),
        parts=Parts(terms.numpy(), unit),
        alternatives=probabilities.alternatives(inputs.logits.unsqueeze(0), model.output)[0],
        **values,
    )


def _check(model: Trained, trace: Trace, step: int, layer: int, head: int) -> int:
    """The number of the layer. ValueError as of `step`."""
    if not isinstance(model, Trained) or not mechanisms.find(model.mechanism).asks:
        raise ValueError(f"model must be of this project and have attention; no step of {model.name} can be opened")
    if trace.level != "pieces":
        raise ValueError("trace must be at the level of pieces, as a model makes it; got one of words")
    if not 0 <= step < len(trace.target):
        raise ValueError(f"step must be from 0 to {len(trace.target) - 1}, as the target has tokens; got {step}")
    attention = trace.map("cross", layer)
    if not 0 <= head < len(attention.weights):
        raise ValueError(f"head must be from 0 to {len(attention.weights) - 1}; got {head}")
    return attention.layer


def _attended(inputs: replay.AttentionInputs) -> dict:
    """Scores, mask, weights, values, context and window, as the fields of a Step."""
    scores, size = inputs.scores(), len(inputs.values)
    mask, window = np.ones(size, dtype=bool), None
    if place := inputs.window():
        centre, gaussian, seen = place
        scores, mask = scores + gaussian, seen.numpy()
        window = Window(centre, inputs.attention.reach, gaussian.exp().numpy())
    scores, values = scores.numpy(), inputs.values.numpy()
    weights = softmax(scores, mask)
    return dict(scores=scores, mask=mask, weights=weights, values=values, context=weights @ values, window=window)


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
    watched, seen = replay.sharing(model.model), []
    watched.attention.place.register_forward_hook(lambda _module, _inputs, output: seen.append(output.flatten()))
    source, target = torch.tensor([model.read(trace.text).ids]), torch.tensor([replay.target_ids(model, trace)])
    decode.forced(watched, source, target)
    return tuple((float(centre), watched.attention.reach) for centre in _places(torch.cat(seen), source.shape[1]))


def _places(logits: Tensor, length: int) -> Tensor:
    """v_p . tanh(W_p s_t) of each step (T,) -> p_t (T,)."""
    return length * torch.sigmoid(logits)
