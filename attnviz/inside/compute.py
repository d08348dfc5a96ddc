"""From a trace to one of its steps, with every number on the way."""

import numpy as np
import torch

from attnviz import mechanisms
from attnviz.arguments import checked
from attnviz.inside import parts, replay
from attnviz.inside.values import Parts, Step, Window, softmax
from attnviz.models.tracing import probabilities
from attnviz.models.trained import Trained
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
    terms, unit = parts.terms(inputs)
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
    scores, size = parts.scores(inputs), len(inputs.values)
    mask, window = np.ones(size, dtype=bool), None
    if place := parts.window(inputs):
        centre, gaussian, seen = place
        scores, mask = scores + gaussian, seen.numpy()
        window = Window(centre, inputs.attention.reach, gaussian.exp().numpy())
    scores, values = scores.numpy(), inputs.values.numpy()
    weights = softmax(scores, mask)
    return dict(scores=scores, mask=mask, weights=weights, values=values, context=weights @ values, window=window)
