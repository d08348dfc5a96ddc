"""Train mechanisms on a toy task side by side, and observe them during training (`watch`).

All mechanisms read the same batches in the same order, and each has its own random numbers, so a run is the same bit
for bit with any pauses and any other mechanisms beside it. Letters: N sequences, L layers, H heads, T target letters, S
source letters, the <eos> row and column included.
"""

import functools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from attnviz import arguments, mechanisms, python_file
from attnviz.data import corpora, tasks
from attnviz.data.batching import encode, pad
from attnviz.data.readers import Pairs
from attnviz.data.task import Letter, Task
from attnviz.data.tokenizer import BOS, PAD, SubwordTokenizer, train_vocabulary
from attnviz.evaluation.translation import attention_sums
from attnviz.mechanisms import Mechanism
from attnviz.models import checkpoint_files, checkpoints, machine
from attnviz.models.names import CARD, TOKENIZER
from attnviz.networks import decode, registry
from attnviz.python_file import ANYTHING
from attnviz.training import initial
from attnviz.training.recipes import LETTERS, TrainingConfig, short, short_run
from attnviz.training.seen import AT_ONCE, MOST_PAIRS, SHOWN, Moment, Seen, Settings
from attnviz.training.trainer import Diverged, Example, SharingTrainer, Trainer, token_loss

TESTED = 60  # sequences that are measured at a moment
VOCABULARY = 1000  # pieces, at most; a toy task has few
SHARE, OFTEN = 0.14, 0.5  # of the training time, for looking; processor seconds from look to look, if that allows it


class Learner:
    """A model in training, with its own random numbers, and its processor time so far."""

    def __init__(self, trainer: Trainer):
        self.trainer = trainer
        self.seconds, self.batches, self.loss, self.problem = 0.0, 0, math.nan, ""
        self._batches = self._order()
        self._random = torch.Generator().manual_seed(trainer.config.seed).get_state()

    @property
    def name(self) -> str:
        return self.trainer.config.mechanism

    def _order(self) -> Iterator[list[int]]:
        for epoch in range(self.trainer.config.epochs):
            yield from self.trainer.batches.order(epoch)

    @contextmanager
    def _own_random_numbers(self) -> Iterator[None]:
        with torch.random.fork_rng(devices=[]):
            torch.set_rng_state(self._random)
            yield
            self._random = torch.get_rng_state()

    def advance(self) -> float:
        """Train one batch -> its processor time. ValueError if a user's module raises."""
        started = time.process_time()
        try:
            with self._own_random_numbers():
                loss = float(self.trainer.update(next(self._batches)))
        except Diverged:
            self.problem = f"diverged after {self.batches} batches"
        except ANYTHING as error:  # a person's code may raise anything
            words = machine.too_large(error) or python_file.in_words(error)
            raise ValueError(f"{mechanisms.find(self.name).title} cannot be trained: {words}") from error
        else:
            self.batches += 1
            self.loss = loss if self.batches == 1 else 0.9 * self.loss + 0.1 * loss
        took = time.process_time() - started
        self.seconds += took
        return took


class _LessonTrainer(SharingTrainer):
    """A Trainer that follows the settings of a race."""

    def __init__(self, settings: Settings, config: TrainingConfig, lesson: "_Lesson"):
        self.settings = settings
        super().__init__(config, lesson.tokenizer, lesson.corpus.train, lesson.examples)
        models: list[Any] = [self.optimizer.master, self.optimizer.working]
        for model in models:
            model.causal = settings.causal

    def loss(self, indices: list[int]) -> Tensor:
        """The loss; with the model's own letters in place of some inputs if the settings say so."""
        source, target = self.batches.tensors(indices, self.device)
        model: Any = self.optimizer.working
        memory = model.encode(source, source != PAD)
        before = F.pad(target[:, :-1], (1, 0), value=BOS)
        if self.settings.teacher_forcing < 1:
            before = self._with_own(model, memory, before)
        return self._smoothed_loss(model.logits(model.readouts(memory, before)), target)

    def _with_own(self, model: Any, memory: Any, before: Tensor) -> Tensor:
        """The inputs `before` (B, T), with a share of the letters replaced by the model's own predictions: scheduled
        sampling in two passes (Bengio et al. 2015; Mihaylova and Martins 2019)."""
        with torch.no_grad():
            own = decode.without(decode.NEVER, model.logits(model.readouts(memory, before)).flatten(0, 1)).argmax(-1)
        written = F.pad(own.view_as(before)[:, :-1], (1, 0), value=BOS)
        keep = torch.rand(before.shape) < self.settings.teacher_forcing
        return torch.where(keep | (before == PAD), before, written)


class Held:
    """The sequences that all mechanisms are measured on; the maps of the first SHOWN are stored."""

    def __init__(self, pairs: Pairs, tokenizer: SubwordTokenizer, task: Task | None, masked: bool = True):
        """masked : is the padding after a short sequence hidden from it?"""
        sources, targets = (tokenizer.batch_ids([pair[side] for pair in pairs]) for side in (0, 1))
        self.source, self.target = pad(sources), pad(targets)  # (N, S), (N, T)
        self.mask = (self.source != PAD) | (not masked)
        filled = sources if masked else self.source.tolist()
        self.lengths = [(len(source), len(target)) for source, target in zip(filled, targets)]
        self.right = None if task is None or task.answer is None else self._right(task.answer, pairs)  # (N, T, S)
        pieces = [
            [tuple(tokenizer.piece(number) for number in ids) for ids in side[:SHOWN]] for side in (filled, targets)
        ]
        self.sequences = tuple(zip(*pieces))
        self.texts = [source for source, _ in pairs[:SHOWN]]

    def _right(self, answer: Callable[[Sequence[str]], list[Letter]], pairs: Pairs) -> Tensor:
        """The letters that each target letter is made from, as True in (N, T, S)."""
        right = torch.zeros(*self.target.shape, self.source.shape[1], dtype=torch.bool)
        for row, (source, _) in enumerate(pairs):
            for step, (_, places) in enumerate(answer(_letters(source))):
                right[row, step, list(places)] = True
        return right

    @torch.inference_mode()
    def look(self, learner: Learner) -> Seen:
        """Measure a mechanism with the moving average of its weights, which would be saved."""
        model: Any = learner.trainer.optimizer.averaged_model()
        forced = decode.forced(model, self.source, self.target, self.mask)
        loss = token_loss(forced.rows(), self.target, 0.0)
        written = decode.unroll(model, self.source, self.mask, decode.best, self.target.shape[1]).tokens
        written = F.pad(written, (0, self.target.shape[1] - written.shape[1]), value=PAD)
        exact = ((written == self.target) | (self.target == PAD)).all(dim=1).double().mean()
        entropy, _, rows = attention_sums(forced.cross, [target - 1 for _, target in self.lengths]).tolist()
        return Seen(
            float(loss),
            float(exact),
            entropy / rows if rows else None,
            self.alignment_error(forced.cross),
            self._maps(forced.cross),
            learner.seconds,
            learner.problem,
            mechanisms.find(learner.name).title,
        )

    def alignment_error(self, layers: Sequence[Tensor]) -> float | None:
        """layers : weights (N, H, T, S) of each -> the error of the best head; None if the correct alignment is
        unknown."""
        if not layers or self.right is None:
            return None
        aligned = self.right.any(-1)  # (N, T)
        looks = torch.stack(list(layers)).argmax(-1)  # (L, N, H, T)
        hits = self.right[:, None].expand(*looks.shape[1:], -1).gather(-1, looks.movedim(0, -1)).movedim(-1, 0)
        return 1 - float((hits & aligned[:, None]).sum((1, 3)).max() / aligned.sum())

    def _maps(self, layers: Sequence[Tensor]) -> tuple[np.ndarray, ...]:
        if not layers:
            return ()
        shown = torch.stack([layer[:SHOWN] for layer in layers]).numpy()  # (L, N, H, T, S)
        return tuple(shown[:, i, :, :t, :s].copy() for i, (s, t) in enumerate(self.lengths[:SHOWN]))


def options(settings: Settings, mechanism: str) -> dict[str, object]:
    """The options of a mechanism's network under these settings; options that it lacks are left out."""
    wanted = dict(
        width=settings.width,
        embedding_width=settings.width,
        hidden=4 * settings.width,
        layers=settings.layers,
        heads=settings.heads,
        dropout=0.0,
        attention_dropout=settings.dropout,
    )
    return {name: value for name, value in wanted.items() if name in registry.options(mechanism)}


class Race:
    """Mechanisms that learn a task side by side. `advance` is one batch of each, `look` a moment.

    task : the name of a toy task, a Task with an `answer`, or pairs of a person's own. names : of mechanisms, at most
    AT_ONCE, or Mechanisms, which are added. Raises ValueError.
    """

    def __init__(self, task: str | Task | Pairs, names: Sequence[str | Mechanism], settings: Settings | None = None):
        self.settings = settings or Settings()
        if isinstance(names, str) or not 1 <= len(names) <= AT_ONCE:
            raise ValueError(f"mechanisms must be a list of 1 to {AT_ONCE}; got {names!r:.200}")
        self.task = _task(task)
        machine.use_threads(machine.THREADS)
        lesson = _of_toy(self.task.name) if self.task and self.task in tasks.TOYS else _own(_corpus(self.task, task))
        self.tokenizer = lesson.tokenizer
        self.held = Held(lesson.corpus.val[:TESTED], self.tokenizer, self.task, self.settings.masked)
        self.learners = [self._learner(name, lesson) for name in dict.fromkeys(map(self._named, names))]

    def _named(self, mechanism: str | Mechanism) -> str:
        """The name of a mechanism; a Mechanism is added, and `asks` of the settings replaces the mechanism's own."""
        kind = mechanisms.find(mechanism) if isinstance(mechanism, str) else mechanism
        if mechanisms.ALL.get(getattr(kind, "name", "")) is not kind:
            mechanisms.add(kind)
        if not kind.translates:
            raise ValueError(f"{kind.title} does not write an output from a source; choose another mechanism")
        if self.settings.asks in ("", kind.asks) or not kind.score or kind.network:
            return kind.name
        words = f"asks {self.settings.asks} the step"
        changed = replace(kind, name=f"{kind.name}-{self.settings.asks}", title=f"{kind.title}, {words}", color="")
        return mechanisms.add(replace(changed, asks=self.settings.asks)).name

    def _learner(self, name: str, lesson: "_Lesson") -> Learner:
        rate = self.settings.learning_rate
        config = short_run(name, options(self.settings, name), self.settings.seed, learning_rate=rate)
        with torch.random.fork_rng(devices=[]):
            return Learner(_LessonTrainer(self.settings, config, lesson))

    @property
    def seconds(self) -> float:
        """Total processor time of all."""
        return sum(learner.seconds for learner in self.learners)

    @property
    def batch(self) -> int:
        return max(learner.batches for learner in self.learners)

    @property
    def learning(self) -> list[Learner]:
        """Those that have not diverged."""
        return [learner for learner in self.learners if not learner.problem]

    def advance(self) -> None:
        """Train one batch of each mechanism that has not diverged. ValueError if a user's module raises."""
        for learner in self.learning:
            learner.advance()

    def look(self) -> Moment:
        """Measure all mechanisms now. This does not affect the training."""
        of = {learner.name: self.held.look(learner) for learner in self.learners}
        return Moment(self.batch, self.seconds, of, self.held.sequences)

    def save(self, folder: Path, name: str = "") -> list[str]:
        """Save the models as a folder for ATTNVIZ_CHECKPOINTS -> their names. name : of the task, for own pairs."""
        pair = self.task.name if self.task else name or "own-pairs"
        initial.save_tokenizer(Path(folder) / pair / TOKENIZER, self.tokenizer)
        for learner in self.learners:
            save(learner, Path(folder), pair, {}, self.held.texts)
        return [f"{pair}/{learner.name}" for learner in self.learners]


def save(learner: Learner, folder: Path, pair: str, scores: dict, examples: Sequence[str] = ()) -> str:
    """Write the model of a learner with its card below a folder of checkpoints -> its name. examples : texts for it."""
    trainer, name = learner.trainer, f"{pair}/{learner.name}"
    checkpoints.save_model(folder / name, trainer.model_config, trainer.optimizer.average)
    card = {"pair": pair, "mechanism": learner.name, "seed": trainer.config.seed, "scores": scores}
    card |= {"options": dict(trainer.config.options), "seconds": round(learner.seconds), "examples": [*examples]}
    checkpoint_files.write_json(folder / name / CARD, card)
    return name


def watch(
    task: str | Task | Pairs,
    mechanisms: Sequence[str | Mechanism],
    settings: Settings | None = None,
    *,
    batches: int | None = None,
    seconds: float = 60.0,
    every: int | None = None,
) -> Iterator[Moment]:
    """Train mechanisms on a task, and yield a Moment at intervals, from the untrained to the final models.

    Training pauses until the next moment is requested; other code cannot affect it meanwhile.
    task : the name of a toy task (`tasks.TOYS`), a Task that has an `answer`, or pairs of texts, at most MOST_PAIRS.
    mechanisms : at most AT_ONCE names or Mechanisms. batches : after which the run ends; without it, it ends after
    `seconds` of processor time per mechanism. every : batches between two moments; without it, measuring takes SHARE of
    the time. ValueError if something cannot be trained.

    >>> moment = list(training.watch("reverse", ["luong-general"], batches=2))[-1]
    >>> moment.batch, moment.of["luong-general"].exact, moment.trace("luong-general").text
    (2, 0.0, 'a b c d e f')
    """
    return moments_of(Race(task, mechanisms, settings), batches, seconds, every)


def moments_of(
    race: Race, batches: int | None = None, seconds: float = 60.0, every: int | None = None
) -> Iterator[Moment]:
    """The moments of a race, as in `watch`. ValueError for numbers that are not positive."""
    if not 0 < seconds < math.inf or (batches is not None and batches < 1) or (every is not None and every < 1):
        raise ValueError(f"seconds, batches and every must be positive; got {seconds}, {batches} and {every}")
    return _moments(race, math.inf if batches is None else batches, seconds, every)


def _moments(race: Race, batches: float, seconds: float, every: int | None) -> Iterator[Moment]:
    rhythm = Rhythm(race, every)
    yield rhythm.look()
    while race.learning and race.batch < batches:
        race.advance()
        over = batches == math.inf and race.seconds >= seconds * len(race.learners)
        if over or race.batch >= batches or not race.learning or rhythm.due():
            yield rhythm.look()
        if over:
            return


class Rhythm:
    """When to measure a race: after a fixed number of batches, or twice a second if its share of the time allows it."""

    def __init__(self, race: Race, every: int | None = None):
        self.race, self.every, self._looked, self._batch, self._pause = race, every, 0.0, 0, 0.0

    def look(self) -> Moment:
        """A moment of the race."""
        started = time.process_time()
        moment, took = self.race.look(), time.process_time() - started
        self._pause = max(OFTEN - took, took / SHARE if self.race.batch else 0.0)  # the first is slow: torch begins
        self._looked, self._batch = self.race.seconds, self.race.batch
        return moment

    def due(self) -> bool:
        """Is it time to measure again?"""
        if self.every:
            return self.race.batch % self.every == 0
        trained, batches = self.race.seconds - self._looked, self.race.batch - self._batch
        return batches > 0 and trained + trained / batches / 2 >= self._pause  # nearer now than a batch later


def _task(task: str | Task | Pairs) -> Task | None:
    """The Task, or None for pairs. ValueError for a task without a known alignment."""
    names = ", ".join(toy.name for toy in tasks.TOYS)
    if isinstance(task, str):
        task = next((toy for toy in tasks.TOYS if toy.name == task), task)
        if isinstance(task, str):
            raise ValueError(f"task must be one of {names}, a Task, or pairs of texts; got {task!r:.80}")
    if isinstance(task, Task):
        if task.answer is None or task.read is None:
            raise ValueError(f"a task must have an answer, as {names} have; got {task.name!r:.80}")
        return task
    return None


class _Lesson(NamedTuple):
    """What all learners of a race read. examples : train as ids."""

    corpus: corpora.Corpus
    tokenizer: SubwordTokenizer
    examples: list[Example]


def _own(corpus: corpora.Corpus) -> _Lesson:
    tokenizer = train_vocabulary(corpus.texts(), VOCABULARY, corpus.style)
    corpus, _ = corpora.length_filter(corpus, tokenizer)
    return _Lesson(corpus, tokenizer, encode(corpus.train, tokenizer))


@functools.cache
def _of_toy(name: str) -> _Lesson:
    """Of a task that ships: the same in every race, and without a sequence that is too long."""
    corpus = _corpus(_task(name), name)
    tokenizer = train_vocabulary(corpus.texts(), VOCABULARY, corpus.style)
    return _Lesson(corpus, tokenizer, encode(corpus.train, tokenizer))


def _corpus(task: Task | None, pairs: Any) -> corpora.Corpus:
    """The training data, with the measured sequences as val (the examples of a task first). ValueError for own pairs
    that are too many, too few or not texts."""
    if task and task.read and task.answer:
        splits, answer_to = task.read(None), task.answer
        letters = {text: answer_to(_letters(text)) for text in task.examples if len(text.split()) in LETTERS}
        examples = [(text, " ".join(letter for letter, _ in answer)) for text, answer in letters.items()]
        train, val = ([pair for pair in short(part) if pair[0] not in letters] for part in (splits.train, splits.val))
        return corpora.Corpus(train, examples + val, {}, {}, style=task.style)
    pairs = list(pairs) if arguments.is_list(pairs) else [None]
    if not all(map(_is_pair, pairs)):
        raise ValueError("task must be the name of a toy task, a Task, or a list of pairs of texts")
    if len(pairs) > MOST_PAIRS:
        raise ValueError(f"at most {MOST_PAIRS:,} pairs of texts can be watched; got {len(pairs):,}")
    symbols = all(len(word) == 1 for pair in pairs for side in pair for word in side.split())
    return corpora.own([(a, b) for a, b in pairs], {}, style="symbols" if symbols else "written")


def _is_pair(value: Any) -> bool:
    return isinstance(value, tuple | list) and len(value) == 2 and all(isinstance(side, str) for side in value)


def _letters(text: str) -> str:
    return "".join(text.split()).lower()
