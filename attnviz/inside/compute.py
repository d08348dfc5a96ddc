"""From a trace to one of its steps, with every number on the way; and to the windows of local attention.

The trace's decoding is run again up to the step, to see what its attention read there. Nothing is written to the
model: where a number is needed that no function returns, it is caught in a copy of the model that shares all its
weights. Letters: S source tokens, D width of query and keys, W width of a state, V width of values.
"""

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attnviz import mechanisms
from attnviz.arguments import checked
from attnviz.attention import Attention, Local, MultiHead
from attnviz.data.styles import SPACE
from attnviz.data.tokenizer import BOS, EOS, SubwordTokenizer
from attnviz.inside.values import Parts, Step, Window, softmax
from attnviz.models import probabilities
from attnviz.models.model import Trained
from attnviz.networks import decode
from attnviz.networks.classifier import SelfAttention
from attnviz.networks.recurrent import Recurrent
from attnviz.networks.transformer import Transformer
from attnviz.trace import Token, Trace

CLOSE = 1e-4  # weights of a trace and of its replay may differ by so much


@dataclass(frozen=True, eq=False)
class AttentionInputs:
    """What one attention reads at one step. In a Transformer, query, prepared and values are those of one head.

    query (D,), prepared (S, ...) the keys as the score function wants them, values (S, V), logits of the next token.
    asks, states : as of `values.Step`.
    """

    attention: Attention | MultiHead
    query: Tensor
    prepared: Tensor
    values: Tensor
    logits: Tensor
    asks: str
    states: tuple[Tensor, ...] = ()

    def terms(self) -> tuple[Tensor, str]:
        """The terms of each key's score (S, N), and what one term belongs to."""
        return self.attention.terms(self.query[None, None], self.prepared[None])[0, 0], self.attention.unit

    def scores(self) -> Tensor:
        """Scores (S,) before any window or mask."""
        return self.attention.score(self.query[None, None], self.prepared[None])[0, 0]

    def window(self) -> tuple[float, Tensor, Tensor] | None:
        """Centre, logarithm of the Gaussian (S,) and window (S,) bool of local attention; None of any other."""
        if (place := self.attention.window(self.query[None, None], len(self.values))) is None:
            return None
        centre, gaussian, seen = place
        return float(centre), gaussian[0, 0], seen[0, 0]


def target_ids(model: Trained, trace: Trace) -> list[int]:
    """The piece ids of a trace's target, <eos> included where the trace has it: of a target that was given, of what
    greedy decoding says, or of the pieces that the tokens (a beam's) show.

    ValueError if the vocabulary does not spell the target so: then the trace is of another model.
    """
    if trace.forced:
        given = model.tokenizer.encode(trace.translation)
        if _spelt(given.tokens, trace):
            return list(given.ids)
    else:
        source = torch.tensor([model.read(trace.text).ids])
        greedy = decode.greedy(model.model, source, end_loops=True).tokens[0].tolist()
        for ids in (greedy, _pieces(model.tokenizer, trace)):
            if _spelt(model.tokenizer.spell(ids)[1], trace):
                return ids
    raise ValueError(f"trace must be of a model with this vocabulary; it divides {trace.translation!r:.80} otherwise")


def _spelt(tokens: tuple[Token, ...], trace: Trace) -> bool:
    return [token.text for token in tokens] == [token.text for token in trace.target]


def _pieces(tokenizer: SubwordTokenizer, trace: Trace) -> list[int]:
    """The ids of produced tokens: with the mark of a word's beginning where the vocabulary has such a piece."""
    ids, before = [], None
    for token in trace.target:
        begins = before is None or trace.translation[: token.start].endswith(" ") or token.word != before.word
        spellings = (SPACE + token.text, token.text) if begins else (token.text, SPACE + token.text)
        numbers = [tokenizer.backend.token_to_id(spelling) for spelling in spellings]
        ids.append(EOS if token.special else next((number for number in numbers if number is not None), EOS))
        before = token
    return ids


@torch.inference_mode()
def attention_inputs(model: Trained, trace: Trace, step: int, layer: int, head: int) -> AttentionInputs:
    """Replay `trace` up to a step (0-based, checked by the caller)."""
    source, asks = torch.tensor([model.read(trace.text).ids]), mechanisms.find(model.mechanism).asks
    if asks == "always":
        return _pooling(model.model, source)
    inputs = [BOS, *target_ids(model, trace)][: step + 1]
    if asks == "layer":
        return _cross(model.model, source, torch.tensor([inputs]), layer, head)
    return _recurrent(model.model, source, torch.tensor(inputs), asks)


def _recurrent(network: Recurrent, source: Tensor, inputs: Tensor, asks: str) -> AttentionInputs:
    """source (1, S), inputs (t + 1,) from <bos> on -> the last step."""
    memory = network.encode(source)
    state = memory.state
    for token in inputs[:-1]:
        state = network.step(memory, state, token.view(1)).state
    last = network.step(memory, state, inputs[-1:])
    states = state[0][0], last.state[0][0]
    query = states[0] if asks == "before" else states[1]
    return AttentionInputs(network.attention, query, memory.prepared[0], memory.values[0], last.logits[0], asks, states)


def _cross(network: Transformer, source: Tensor, inputs: Tensor, layer: int, head: int) -> AttentionInputs:
    """source (1, S), inputs (1, t + 1) from <bos> on -> the last step, in one head of cross-attention."""
    watched: Transformer = sharing(network)
    attention, queries = watched.decoder[layer].cross, []
    if not isinstance(attention, MultiHead):
        raise ValueError("the step must be of heads of this project; a module of your own shows its weights alone")
    attention.query.register_forward_hook(lambda _module, _inputs, output: queries.append(output))
    memory = watched.encode(source)
    state = memory.state
    for token in inputs[0]:  # one at a time, as the trace was made: the same sums in the same order
        last = watched.step(memory, state, token.view(1))
        state = last.state
    keys, values = (both[0, head] for both in memory.cross[layer])
    query = attention.split(queries[-1])[0, head, 0]
    return AttentionInputs(attention, query, keys, values, last.logits[0], "layer")


def _pooling(network: SelfAttention, source: Tensor) -> AttentionInputs:
    """source (1, S) -> the one query of the attention that pools a sentence."""
    watched: SelfAttention = sharing(network)
    seen: list[tuple[Tensor, Tensor]] = []
    watched.pooling.key.register_forward_hook(lambda _module, inputs, output: seen.append((inputs[0], output)))
    verdict = watched(source)
    values, prepared = seen[-1]
    return AttentionInputs(watched.pooling, values.new_ones(1), prepared[0], values[0], verdict.logits[0], "always")


def sharing(network: Any) -> Any:
    """A copy of a network, of the same class, that shares all weights: what is hung on it is not on the network."""
    shared = {id(tensor): tensor for tensor in [*network.parameters(), *network.buffers()]}
    return copy.deepcopy(network, shared)


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
    inputs = attention_inputs(model, trace, step, layer, head)
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
        before=trace.target[max(step - 1, 0) : step],
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


def _attended(inputs: AttentionInputs) -> dict:
    """Scores, mask, weights, values, context and window, as the fields of a Step."""
    scores, size = inputs.scores(), len(inputs.values)
    mask, window = np.ones(size, dtype=bool), None
    if (place := inputs.window()) and isinstance(inputs.attention, Local):
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
    watched, seen = sharing(model.model), []
    watched.attention.place.register_forward_hook(lambda _module, _inputs, output: seen.append(output.flatten()))
    source, target = torch.tensor([model.read(trace.text).ids]), torch.tensor([target_ids(model, trace)])
    decode.forced(watched, source, target)
    return tuple((float(centre), watched.attention.reach) for centre in _places(torch.cat(seen), source.shape[1]))


def _places(logits: Tensor, length: int) -> Tensor:
    """v_p . tanh(W_p s_t) of each step (T,) -> p_t (T,)."""
    return length * torch.sigmoid(logits)
