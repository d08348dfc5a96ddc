"""One step of attention with every number on the way: query, scores, weights, values, context, next token.

    >>> opened = inside.step(model, trace, step=2)
    >>> opened.scores, opened.weights, opened.parts.terms

`step` computes it, from a trace; `temperatures`, `other_scores` and `spread` compute alternatives to the scores;
`formula` writes one score with its numbers; `symbols` explains its letters. `windows` is for local attention.
In a model that writes, the keys are the tokens that a row of its self-attention sees.

The trace's decoding is repeated up to the step, to capture the inputs of its attention. The model is not changed:
numbers that no function returns are captured in a copy of the model that shares all its weights. Letters: S source
tokens, D width of query and keys, W width of a state, V width of values.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from attnviz import mechanisms
from attnviz.arguments import checked, within
from attnviz.attention import Attention, MultiHead, dot_scores, scaled_dot_scores
from attnviz.data.styles import SPACE
from attnviz.data.tokenizer import BOS, EOS, SubwordTokenizer
from attnviz.inside.values import (
    REFERENCES,
    Comparison,
    Parts,
    Step,
    Window,
    formula,
    softmax,
    spread,
    symbols,
    temperatures,
)
from attnviz.models import probabilities
from attnviz.models.huggingface.encoder_decoder import EncoderDecoderModel
from attnviz.models.huggingface.opened import Scaled
from attnviz.models.huggingface.writing import WritingModel
from attnviz.models.model import Trained
from attnviz.models.writer import Writer
from attnviz.networks import decode, sharing
from attnviz.networks.classifier import SelfAttention
from attnviz.networks.decoder_only import DecoderOnly
from attnviz.networks.recurrent import Recurrent
from attnviz.networks.transformer import Transformer
from attnviz.trace import AttentionMap, Token, Trace

__all__ = [
    "REFERENCES",
    "Comparison",
    "Parts",
    "Step",
    "Window",
    "formula",
    "other_scores",
    "spread",
    "step",
    "symbols",
    "temperatures",
    "windows",
]


CLOSE = 1e-4  # weights of a trace and of its replay may differ by so much


@dataclass(frozen=True, eq=False)
class AttentionInputs:
    """The inputs of one attention at one step. In a Transformer, query, prepared and values are those of one head.

    query (D,), prepared (S, ...) the keys as the score function wants them, values (S, V), logits of the next token.
    asks, states : as in `values.Step`. seen (S,) : bool, of a row with a window; None if it sees all.
    """

    attention: Attention | MultiHead
    query: Tensor
    prepared: Tensor
    values: Tensor
    logits: Tensor
    asks: str
    states: tuple[Tensor, ...] = ()
    seen: Tensor | None = None

    def parts(self) -> Parts:
        """The terms of each key's score."""
        terms = self.attention.terms(self.query[None, None], self.prepared[None])[0, 0]
        return Parts(terms.numpy(), self.attention.unit, self.attention.extra)

    def scores(self) -> Tensor:
        """Scores (S,) before any window or mask."""
        return self.attention.score(self.query[None, None], self.prepared[None])[0, 0]

    def window(self) -> tuple[float, Tensor, Tensor] | None:
        """Centre, logarithm of the Gaussian (S,) and window (S,) bool of local attention; None for other attention."""
        if (place := self.attention.window(self.query[None, None], len(self.values))) is None:
            return None
        centre, gaussian, seen = place
        return float(centre), gaussian[0, 0], seen[0, 0]


Opening = Trained | EncoderDecoderModel | WritingModel


def target_ids(model: Opening, trace: Trace) -> list[int]:
    """The piece ids of a trace's target, <eos> included where the trace has it: from a given target, from greedy
    decoding, or from the pieces of the tokens (beam search).

    ValueError if the ids do not spell the target; then the trace is of another model.
    """
    if isinstance(model, EncoderDecoderModel):
        return model.target_ids(trace)
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
    """The ids of produced tokens; the piece with the mark of a word's beginning is used if the vocabulary has it."""
    ids, before = [], None
    for token in trace.target:
        begins = before is None or trace.translation[: token.start].endswith(" ") or token.word != before.word
        spellings = (SPACE + token.text, token.text) if begins else (token.text, SPACE + token.text)
        numbers = [tokenizer.backend.token_to_id(spelling) for spelling in spellings]
        ids.append(EOS if token.special else next((number for number in numbers if number is not None), EOS))
        before = token
    return ids


@torch.inference_mode()
def attention_inputs(model: Opening, trace: Trace, step: int, layer: int, head: int) -> AttentionInputs:
    """Replay `trace` up to a step (0-based, checked by the caller)."""
    if isinstance(model, EncoderDecoderModel):
        return _foreign(model, trace, step, layer, head)
    if isinstance(model, WritingModel):
        return _foreign_writer(model, torch.tensor([model.read_for(trace)[: step + 1]]), layer, head)
    if isinstance(model, Writer):
        return _looking_back(model.model, torch.tensor([model.read_for(trace)[: step + 1]]), layer, head)
    asks = mechanisms.find(model.mechanism).asks
    source = torch.tensor([model.read(trace.text).ids])
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


def _looking_back(network: DecoderOnly, inputs: Tensor, layer: int, head: int) -> AttentionInputs:
    """inputs (1, t + 1) from <bos> on -> the last step, in one head of self-attention."""
    watched: DecoderOnly = sharing(network)
    read: list[Tensor] = []
    watched.decoder[layer].norms[0].register_forward_hook(lambda _module, _inputs, output: read.append(output))
    logits = watched.logits(watched.read(inputs).readouts[0, -1])
    attention = watched.decoder[layer].attention
    queries, keys, values = (both[0, head] for both in attention.rotated(read[0]))
    return AttentionInputs(attention, queries[-1], keys, values, logits, "text")


def _foreign(model: EncoderDecoderModel, trace: Trace, step: int, layer: int, head: int) -> AttentionInputs:
    """The same for a model of the transformers library. ValueError, with the reason, if it cannot be opened."""
    network = model.opened_network()
    memory = network.encode(torch.tensor([model.read(trace.text).ids]))
    readouts = network.readouts(memory, torch.tensor([[network.bos, *model.target_ids(trace)[:step]]]))
    read = network.inputs[layer]
    query, keys, values = read.query[0, head, -1], read.key[0, head], read.value[0, head]
    return AttentionInputs(Scaled(read.scaling), query, keys, values, network.logits(readouts[0, -1]), "layer")


def _foreign_writer(model: WritingModel, inputs: Tensor, layer: int, head: int) -> AttentionInputs:
    """inputs (1, t + 1) of a causal model of the transformers library -> the last step. ValueError as of `last_row`."""
    places = [place.number for place in model.places.get("decoder", ())]
    network, number = model.opened_network(), places.index(layer) if places else layer
    read, visible, logits = network.last_row(inputs, number, head, f"{model.name} is of the family {model.mechanism}")
    return AttentionInputs(Scaled(read.scaling), read.query, read.key, read.value, logits, "text", seen=visible)


def _pooling(network: SelfAttention, source: Tensor) -> AttentionInputs:
    """source (1, S) -> the one query of the attention that pools a sentence."""
    watched: SelfAttention = sharing(network)
    seen: list[tuple[Tensor, Tensor]] = []
    watched.pooling.key.register_forward_hook(lambda _module, inputs, output: seen.append((inputs[0], output)))
    verdict = watched(source)
    values, prepared = seen[-1]
    return AttentionInputs(watched.pooling, values.new_ones(1), prepared[0], values[0], verdict.logits[0], "always")


@torch.inference_mode()
@checked
def step(model: Opening, trace: Trace, step: int, layer: int = -1, head: int = 0) -> Step:
    """All numbers of one head of cross-attention when `model` produced target token `step` (0-based) of `trace`; of a
    model that writes, of self-attention. The text is decoded again up to that step.

    layer, head : of a Transformer, 0-based, -1 is the last layer.
    ValueError for a model without attention, a step, layer or head out of range, a trace of words or of another model.

    >>> inside.step(model, trace, step=2)
    Step(en-fr/bahdanau, step 2, layer 0, head 0: 'noir' looks at 'black' (0.80) most)
    """
    attention = _check(model, trace, step, layer, head)
    layer, keys = attention.layer, trace.keys(attention)
    if attention.kind == "decoder":  # the row sees no later ones
        keys = keys[: step + 1]
    inputs = attention_inputs(model, trace, step, layer, head)
    values = _attended(inputs)
    difference = np.abs(values["weights"] - attention.weights[head, step, : len(keys)]).max()
    if difference > CLOSE:
        raise ValueError(
            f"trace must be one that {model.name} made as it is now: at step {step} its weights differ by up to "
            f"{difference:.2g}; trace the text again"
        )
    return Step(
        model=model.name,
        mechanism=model.mechanism,
        step=step,
        layer=layer,
        head=head,
        token=trace.target[step],
        before=trace.target[max(step - 1, 0) : step],
        keys=keys,
        query=inputs.query.numpy(),
        asks=inputs.asks,
        states=tuple(state.numpy() for state in inputs.states),
        parts=inputs.parts(),
        scaling=inputs.attention.scaling if isinstance(inputs.attention, Scaled) else None,
        alternatives=probabilities.alternatives(inputs.logits.unsqueeze(0), model.output)[0],
        **values,
    )


def _check(model: Opening, trace: Trace, step: int, layer: int, head: int) -> AttentionMap:
    """The map of the layer. ValueError as in `step`."""
    kind = mechanisms.find(model.mechanism) if isinstance(model, Trained) else None
    if kind and not kind.asks:
        raise ValueError(f"model must have attention to a source; no step of {model.name} can be opened")
    if trace.level != "pieces":
        raise ValueError("trace must be at the level of pieces, as a model makes it; got one of words")
    within("step", step, 0, len(trace.target) - 1, ", as the target has tokens")
    writes = isinstance(model, Writer | WritingModel)
    attention = trace.map("decoder" if writes else "cross", layer)
    within("head", head, 0, len(attention.weights) - 1)
    return attention


def _attended(inputs: AttentionInputs) -> dict:
    """Scores, mask, weights, values, context and window, as the fields of a Step."""
    scores, window = inputs.scores(), None
    mask = np.ones(len(inputs.values), dtype=bool) if inputs.seen is None else inputs.seen.numpy()
    if place := inputs.window():
        centre, gaussian, seen = place
        scores, mask = scores + gaussian, seen.numpy()
        window = Window(centre, inputs.attention.reach, gaussian.exp().numpy())
    scores, values = scores.numpy(), inputs.values.numpy()
    weights = softmax(scores, mask)
    return dict(scores=scores, mask=mask, weights=weights, values=values, context=weights @ values, window=window)


@checked
@torch.inference_mode()
def windows(model: Trained | EncoderDecoderModel, trace: Trace) -> tuple[tuple[float, float], ...]:
    """(centre, reach) of each step: the predicted place p_t and D, Luong et al. 2015, eq. 9 and 10; () without windows.

    centre : a real number in source tokens, counted from 0. reach : source tokens to either side. The target is forced
    in one pass, so p_t is that of the trace to rounding.
    ValueError for a trace of words, or of another model.

    >>> inside.windows(model, trace)  # Bahdanau's attention sees all tokens
    ()
    """
    if not isinstance(model, Trained) or not mechanisms.find(model.mechanism).local:
        return ()
    if trace.level != "pieces":
        raise ValueError("trace must be at the level of pieces, as a model makes it; got one of words")
    watched, centres = sharing(model.model), []
    attention, read = watched.attention, watched.attention.read
    source, target = torch.tensor([model.read(trace.text).ids]), torch.tensor([target_ids(model, trace)])

    def recorded(query: Tensor, *given) -> tuple[Tensor, Tensor]:
        centres.append(attention.window(query, source.shape[1])[0].item())
        return read(query, *given)

    attention.read = recorded
    decode.forced(watched, source, target)
    return tuple((centre, attention.reach) for centre in centres)


@checked
def other_scores(opened: Step, others: Iterable[Trained] = ()) -> pd.DataFrame:
    """The scores of one query and its annotations with other score functions: columns score, trained_with, mechanism,
    key, token, value, weight.

    others : recurrent translators, whose learnt score is included if its widths fit; of local attention without the
    window. trained_with, mechanism : the one whose weights the score has, and its mechanism; None for a score without
    parameters. The weights were learnt with other states, so this compares formulas, not models.

    Dot products need queries and annotations of one width. An annotation twice as wide as the query is forward and
    backward state, concatenated; then the two are added, as the dot-product models of this project do. ValueError
    for any other width.

    >>> inside.other_scores(inside.step(model, trace, step=2))["score"].unique().tolist()
    ['dot', 'scaled dot']
    """
    query, annotations = torch.from_numpy(opened.query.copy()), torch.from_numpy(opened.values.copy())
    summed = _summed(query, annotations)
    rows: list[tuple[str, str | None, str | None, Tensor]] = [
        ("dot", None, None, dot_scores(query[None], summed)[0]),
        ("scaled dot", None, None, scaled_dot_scores(query[None], summed)[0]),
    ]
    for model in others:
        attention = getattr(model.model, "attention", None)
        if attention is not None and attention.widths == (query.shape[-1], annotations.shape[-1]):
            scores = _scored(attention, query, annotations)
            rows.append((attention.name, model.name, model.mechanism, scores))
    return pd.concat([_frame(opened, *row) for row in rows], ignore_index=True)


def _summed(query: Tensor, annotations: Tensor) -> Tensor:
    """Annotations (S, D or 2D) reduced to the width of the query (D,)."""
    width = query.shape[-1]
    if annotations.shape[-1] == width:
        return annotations
    if annotations.shape[-1] != 2 * width:
        raise ValueError(
            f"annotations must be as wide as the query, {width}, or twice that, to be scored by a dot product; "
            f"got {annotations.shape[-1]}"
        )
    return annotations.unflatten(-1, (2, -1)).sum(-2)


@torch.inference_mode()
def _scored(attention: Attention, query: Tensor, annotations: Tensor) -> Tensor:
    return attention.score(query[None, None], attention.prepare(annotations[None]))[0, 0]


def _frame(opened: Step, score: str, trained_with: str | None, mechanism: str | None, values: Tensor) -> pd.DataFrame:
    numbers = values.double().numpy()
    return pd.DataFrame(
        {
            "score": score,
            "trained_with": trained_with,
            "mechanism": mechanism,
            "key": range(len(opened.keys)),
            "token": [token.text for token in opened.keys],
            "value": numbers,
            "weight": softmax(numbers, np.ones(len(numbers), dtype=bool)),
        }
    )
