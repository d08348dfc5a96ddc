"""A causal model of the transformers library with a language-model head, such as GPT-2 or Llama, which continues a
text. The generation loop is ours, with the model's own cache of keys and values, so the weights are those of the actual
computation of every token.

Letters: n tokens, V vocabulary.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from attnviz import storage
from attnviz.arguments import within
from attnviz.models import probabilities
from attnviz.models.huggingface import LIBRARY_ERRORS, FileError, folder_rules, one_line, tokenization
from attnviz.models.huggingface.opened import Openable, cache_name
from attnviz.models.huggingface.single_stack import OpenedWriter, SingleStackModel
from attnviz.models.model import TextError
from attnviz.models.names import HuggingFaceName, without_prefix
from attnviz.models.probabilities import TokenProbabilities
from attnviz.networks import writing
from attnviz.networks.decoder_only import Contributions
from attnviz.networks.projections import Projection, Watched, bias_of, of_heads
from attnviz.networks.writing import Candidate, Sampling
from attnviz.trace import Token, Trace
from attnviz.trace.generated import by_layer

_SPACES = ("Ġ", "▁")  # before a piece of a vocabulary that begins a word
_FINAL_NORMS = ("norm", "ln_f", "final_layer_norm", "final_layernorm")  # as families call it
_FEEDS = ("mlp", "feed_forward", "fc2")  # of a layer, as families call it
_SAME = 1e-3  # by which two ways to the same logits may differ
_TEMPLATE = 2**20  # bytes of a chat template, at most


class WritingModel(Openable[OpenedWriter], SingleStackModel):
    """A causal model that reads and continues a text.

    In a trace of `write` the start is the first token of the text, and the target is all other tokens: the prompt's,
    then the generated ones. A row of a map is the attention that produced its token.
    """

    possible = "its maps can be shown, and heads switched off (attnviz.ablation)"

    def write(
        self,
        prompt: str,
        steps: int = 40,
        temperature: float = 1.0,
        *,
        top_k: int = 0,
        top_p: float = 1.0,
        seed: int = 1,
        choices: Mapping[int, int] | None = None,
        chat: bool = False,
    ) -> Trace:
        """Continue `prompt`: a trace of the whole text, with the arguments and errors of `Writer.write`.

        At temperature 0 the text is that of the library's `generate` without sampling. chat : put the prompt into the
        model's chat template, as a user's message; the text of the trace shows it. ValueError for a model without one.
        """
        how = Sampling(temperature, top_k, top_p, seed)
        writing.check_steps(steps)
        taken = writing.checked_choices(choices or {}, self._writes, self.name)
        text = self.chat(prompt) if chat else prompt
        source = self._beginning(text)
        room = self.limit - len(source.ids)
        if not room:
            raise TextError(f"the prompt is too long to write on: {self.limit} tokens are the limit here; shorten it")
        try:
            ids, logits, maps = self._written(source.ids, min(steps, room), how, taken)
        except LIBRARY_ERRORS as error:
            raise TextError(f"{self.name} cannot write on after this text: {one_line(error)}") from None
        return self._trace_of(text, source, ids, logits, maps)

    def chat(self, prompt: str) -> str:
        """The prompt in the chat template of the model's folder, as text: a user's message, and the beginning of the
        answer.

        ValueError for a model that has no template, or one that cannot be filled. A template is a small program, which
        the library runs in a sandbox without files and network; it is read only here.
        """
        template = _chat_template(folder_rules.folder(HuggingFaceName(without_prefix(self.name)).place))
        if not template:
            raise ValueError(f"{self.name} has no chat template; give the prompt as it is")
        messages = [{"role": "user", "content": prompt}]
        more = {"chat_template": template, "tokenize": False, "add_generation_prompt": True}
        try:
            text = self.tokenizer.apply_chat_template(messages, **more)
        except Exception as error:  # a stranger's program may raise anything
            raise ValueError(f"the chat template of {self.name} cannot be filled: {one_line(error)}") from None
        start = self.tokenizer.bos_token or ""  # the tokenizer adds it to that of the template, as Llama's does
        twice = start and self._beginning(text).ids[:2] == (self.tokenizer.bos_token_id,) * 2
        return text.removeprefix(start) if twice else text

    @torch.inference_mode()
    def candidates(self, trace: Trace, place: int | None, how: Sampling, count: int = 8) -> tuple[Candidate, ...]:
        """As `Writer.candidates`: the most probable tokens at a place of the trace's target, None for the next.
        ValueError for another model's trace, and for a place out of range."""
        ids = self.ids(trace)
        place = len(ids) - 1 if place is None else place
        within("place", place, 0, len(ids) - 1)
        before = ids[: place + 1]
        if len(before) >= self.limit or (before[-1] in self.ends and place):
            return ()
        logits = self._pass(torch.tensor([before])).logits[0, -1]
        return writing.candidates(logits, writing.allowed(logits, how, ()), self.output, count)

    @torch.inference_mode()
    def lens(self, trace: Trace) -> tuple[TokenProbabilities, ...]:
        """The predictions before the first layer and after each, as in `Writer.lens`: the final norm and the output
        matrix are applied to the vectors after each layer. The last are the model's own.

        ValueError for another model's trace, and if the family's final norm is unknown (norm and matrix must reproduce
        the model's own logits from the last layer).
        """
        ids = self.ids(trace)
        norm, inputs_of_norm = self._final_norm(), []
        handle = norm.register_forward_pre_hook(lambda module, inputs: inputs_of_norm.append(inputs[0]))
        try:
            output = self.model(input_ids=torch.tensor([ids[:-1]]), output_hidden_states=True)
        finally:
            handle.remove()
        head = self.model.get_output_embeddings()
        streams = (*output.hidden_states[:-1], inputs_of_norm[-1])
        layers = [head(norm(stream))[0].float() for stream in streams]
        if not torch.allclose(layers[-1], output.logits[0].float(), atol=_SAME):
            raise self._other_logits()
        return tuple(probabilities.of_sentence(logits, ids[1:], self.output) for logits in layers)

    @torch.inference_mode()
    def contributions(self, trace: Trace) -> Contributions:
        """The direct parts of the logit of every token of the trace's target, as in `Writer.contributions`.

        ValueError for another model's trace, and for a family whose layers do more than add the output of attention and
        that of a feed-forward network to what they read (such as a norm between, in Gemma 2), or whose logits are not
        a norm and a matrix: the parts must sum to the vectors after each layer, and to the model's own logits.
        """
        ids = self.ids(trace)
        places = [place for place in self.projections() if place.kind == "decoder"]
        feeds = [self._feed(place) for place in places]
        modules = [self.model.get_submodule(place.path) for place in places]
        with Watched([*modules, *feeds, self._final_norm()]) as watched:
            output = self.model(input_ids=torch.tensor([ids[:-1]]), output_hidden_states=True)
        count = len(places)
        streams = torch.cat([*output.hidden_states[:count], watched.inputs[-1]]).float()
        attended, fed = (  # (L, T, D); OPT runs its feed-forward network on all rows of a batch at once
            torch.stack([output.reshape(streams.shape[1:]).float() for output in outputs])
            for outputs in (watched.outputs[:count], watched.outputs[count:-1])
        )
        added = streams[:-1] + attended + fed
        if len({place.heads for place in places}) > 1 or not torch.allclose(added, streams[1:], atol=_SAME, rtol=_SAME):
            raise ValueError(
                f"the layers of {self.name} ({self.mechanism}) are more than sums of attention and feed-forward"
            )
        heads = torch.stack([of_heads(m, x[0], p.heads) for m, x, p in zip(modules, watched.inputs, places)])
        directions, constant = self._directions(watched, torch.tensor(ids[1:]))
        biases = torch.stack([bias_of(module) for module in modules])
        parts = Contributions(
            (streams[0] * directions).sum(-1),
            torch.einsum("lhtd,td->lht", heads, directions),
            biases @ directions.T,
            torch.einsum("ltd,td->lt", fed, directions),
            constant,
        )
        wanted = output.logits[0].float().gather(1, torch.tensor(ids[1:])[:, None])[:, 0]
        if not torch.allclose(parts.total(), wanted, atol=_SAME, rtol=_SAME):
            raise self._other_logits()
        return parts

    def _other_logits(self) -> ValueError:
        words = "makes its logits in another way than by a norm and a matrix"
        return ValueError(f"{self.name} ({self.mechanism}) {words}")

    def _directions(self, watched: Watched, produced: Tensor) -> tuple[Tensor, Tensor]:
        """(T, D) vectors whose product with the stream is the logit of each produced token, and (T,) constants to add.

        The final norm multiplies every entry by a gain and all by one number. A LayerNorm subtracts the mean first."""
        norm, stream, normed = self._final_norm(), watched.inputs[-1][0].float(), watched.outputs[-1][0].float()
        centred = isinstance(norm, nn.LayerNorm)
        bias = norm.bias.float() if centred and norm.bias is not None else torch.zeros(stream.shape[1])
        gain = norm.weight.float() if centred else norm(torch.ones(1, 1, stream.shape[1]))[0, 0].float()
        scaled = gain * (stream - stream.mean(-1, keepdim=True) if centred else stream)
        scale = ((normed - bias) * scaled).sum(-1, keepdim=True) / scaled.square().sum(-1, keepdim=True)
        head = self.model.get_output_embeddings()
        rows = head.weight[produced].float()
        directions = rows * gain * scale
        directions = directions - directions.mean(-1, keepdim=True) if centred else directions
        added = 0 if head.bias is None else head.bias[produced].float()
        return directions, rows @ bias + added

    def _feed(self, place: Projection) -> nn.Module:
        """The feed-forward network of the layer of a projection. ValueError where the family has none that is known."""
        parts = place.path.split(".")
        number = next(at for at, part in enumerate(parts) if part.isdecimal())
        layer = self.model.get_submodule(".".join(parts[: number + 1]))
        feed = next((getattr(layer, name) for name in _FEEDS if hasattr(layer, name)), None)
        if feed is None:
            raise ValueError(f"the feed-forward networks of {self.name} ({self.mechanism}) are not known")
        return feed

    def logit(self, trace: Trace) -> float:
        """The logit of the last token of the trace's target, in a pass of its own. ValueError as of `ids`."""
        ids = self.ids(trace)
        with torch.inference_mode():
            return float(self.model(input_ids=torch.tensor([ids[:-1]])).logits[0, -1, ids[-1]])

    def _final_norm(self) -> nn.Module:
        """The norm after the last layer. ValueError where the family has none that is known."""
        for name, module in self.body.named_modules():
            if name.rpartition(".")[2] in _FINAL_NORMS and name.count(".") <= 1:
                return module
        raise ValueError(f"the final norm of {self.name} ({self.mechanism}) is not known")

    @torch.inference_mode()
    def again(self, trace: Trace, prompt: str | None = None) -> tuple[Trace, Tensor]:
        """As `Writer.again`. ValueError for another model's trace, TextError for a prompt that leaves no room."""
        text, ids = trace.text if prompt is None else prompt, self.ids(trace)
        source = self._beginning(text)
        whole = [*source.ids, *ids[len(trace.source) :]]
        if len(whole) > self.limit:
            raise TextError(
                f"the prompt is too long: with what was written it has {len(whole)} tokens; the limit is {self.limit}"
            )
        output = self._pass(torch.tensor([whole[:-1]]))
        logits, maps = output.logits[0].float(), [weights for _, weights in self.attending("decoder", output)]
        return self._trace_of(text, source, whole, logits, by_layer([maps], [0])), logits

    def read_for(self, trace: Trace) -> list[int]:
        """As `Writer.read_for`."""
        return self.ids(trace)[:-1]

    def _open(self) -> OpenedWriter:
        heads = self.head_counts["decoder"]
        return OpenedWriter(self.model, len(heads), min(heads), self.limit)

    @property
    def ends(self) -> frozenset[int]:
        """The ids of the tokens that end a text."""
        settings = (self.model.generation_config, self.model.config, self.tokenizer)
        claimed = next((ids for config in settings if (ids := getattr(config, "eos_token_id", None)) is not None), ())
        return frozenset(claimed if isinstance(claimed, list | tuple) else [claimed])

    def ids(self, trace: Trace) -> list[int]:
        """The ids of a trace of `write`, its start included; for a trace of `trace`, those of its text. ValueError if
        the ids do not spell the text."""
        given = self._beginning(trace.text)
        if not trace.target and trace.source[: len(given.tokens)] == given.tokens:
            return list(given.ids)
        tokens = (trace.start, *trace.target)
        numbers = [*given.ids, *map(self._number, tokens[len(given.ids) - 1 :], tokens[len(given.ids) :])]
        if None in numbers or tokens[: len(given.ids)] != given.tokens or not trace.target:
            raise ValueError(f"trace must be of a text that {self.name} wrote; it divides the text otherwise")
        return numbers

    def _beginning(self, text: str):
        """The tokens of a text without the end token that the tokenizer adds, because the text is continued."""
        source = self.read(text)
        count = len(source.ids)
        while count > 1 and source.ids[count - 1] in self.ends and source.tokens[count - 1].special:
            count -= 1
        return replace(source, ids=source.ids[:count], tokens=source.tokens[:count])

    @torch.inference_mode()
    def _written(self, given, steps: int, how: Sampling, taken: Mapping[int, int]) -> tuple[list[int], Tensor, list]:
        """ids of the prompt and the continuation, logits (n - 1, V) of all tokens but the first, and the attention of
        each pass."""
        choose, ids, cache = writing.chooser(how, never=()), list(given), None
        new, logits, passes = ids, [], []
        for step in range(steps):
            output = self._pass(torch.tensor([new]), cache, len(ids))
            cache = output[self._cache]
            logits.append(output.logits[0].float())
            passes.append([weights for _, weights in self.attending("decoder", output)])
            sampled = choose(logits[-1][-1])  # also where a person chose: later steps keep their random numbers
            new = [taken.get(step, sampled)]
            ids = ids + new
            if new[0] in self.ends:
                break
        return ids, torch.cat(logits), by_layer(passes, [0] * len(passes))

    @property
    @torch.inference_mode()
    def keeps_cache(self) -> bool:
        """Does it return a cache of keys and values, with which it can read one more token?"""
        try:
            first = self._pass(torch.zeros((1, 2), dtype=torch.long))
            return self._cache in first and bool(
                self._pass(torch.zeros((1, 1), dtype=torch.long), first[self._cache], 3)
            )
        except (*LIBRARY_ERRORS, ValueError):
            return False

    def _pass(self, ids: Tensor, cache: Any = None, length: int | None = None) -> Any:
        """One pass over ids (1, t) after those in the cache. length : of the whole text."""
        seen = torch.ones(1, length or ids.shape[1], dtype=torch.long)
        cache_options = {self._cache: cache, "use_cache": True}
        return self.model(input_ids=ids, attention_mask=seen, output_attentions=True, **cache_options)

    @property
    def _cache(self) -> str:
        return cache_name(self.model)

    def _trace_of(self, text: str, source, ids: list[int], logits: Tensor, layers: list) -> Trace:
        count = len(source.ids)
        whole, tokens = self._joined(text, source.tokens, ids)
        token_probabilities = probabilities.of_sentence(logits, ids[1:], self.output)
        numbers = [place.number for place in self.places.get("decoder", ())] or range(len(layers))
        maps = tuple(self.map_of("decoder", number, weights) for number, weights in zip(numbers, layers))
        return Trace(
            model=self.name,
            mechanism=self.mechanism,
            text=text,
            translation=whole,
            forced=len(ids) == count,
            complete=ids[-1] in self.ends,
            source=source.tokens,
            target=tokens[1:],
            log_probs=token_probabilities.log_probs,
            alternatives=token_probabilities.alternatives,
            maps=maps,
            notes=self.notes,
            start=tokens[0],
        )

    def _joined(self, text: str, given: tuple[Token, ...], ids: list[int]) -> tuple[str, tuple[Token, ...]]:
        """The text as typed with its continuation, and all tokens; those of the prompt keep their offsets."""
        spelled, tokens = tokenization.spell(self.tokenizer, ids)
        first = tokens[len(given) - 1].end  # where the tokenizer spells the last one given
        shift = len(text) - first
        last = next((token.word for token in reversed(tokens[: len(given)]) if token.word is not None), None)
        own = next((token.word for token in reversed(given) if token.word is not None), None)
        words = 0 if last is None or own is None else own - last
        written = [
            replace(
                token,
                start=token.start + shift,
                end=token.end + shift,
                word=None if token.word is None else token.word + words,
            )
            for token in tokens[len(given) :]
        ]
        return text + spelled[first:], (*given, *written)

    def _writes(self, number: int) -> bool:
        return 0 <= number < len(self.tokenizer)

    def _number(self, before: Token, token: Token) -> int | None:
        """The id of a generated token, from its piece and the number of spaces before it."""
        piece, vocabulary = token.text if token.special else token.piece or token.text, self.tokenizer.get_vocab()
        counts = sorted((0, 1), key=lambda count: count != token.start - before.end)
        spaced = (f"{space * count}{piece}" for count in (token.start - before.end, *counts) for space in _SPACES)
        if number := next((vocabulary[name] for name in spaced if name in vocabulary), None):
            return number
        unnamed = piece.removeprefix("#")  # a row of the embedding that the tokenizer has no piece for
        return int(unnamed) if piece != unnamed and unnamed.isdecimal() else vocabulary.get(piece)


def _chat_template(folder: Path) -> str:
    """The template in a file of its own, or in the settings of the tokenizer; "" for none. Raises FileError."""
    try:
        if (alone := folder / "chat_template.jinja").is_file():
            return storage.read(alone, _TEMPLATE).decode("utf-8", "replace")
        if (settings := folder / "tokenizer_config.json").is_file():
            template = storage.parse_json(storage.read(settings, folder_rules.JSON)).get("chat_template")
            return template if isinstance(template, str) else ""
    except (OSError, ValueError, AttributeError) as error:
        raise FileError(f"its chat template cannot be read: {one_line(error)}") from None
    return ""
