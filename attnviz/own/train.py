"""A module trained for a fixed time on a toy task, beside shipped mechanisms trained the same way in the same time.

The right alignment of a toy task is known: each letter is copied from one in the sequence. Sequences are short and
networks narrow, so that a minute on one core shows whether a mechanism learns it. The models take turns, so that
whenever a person stops, all have had the same processor time.
"""

import math
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from attnviz import loading, mechanisms
from attnviz.data import corpora
from attnviz.data.readers import Pairs
from attnviz.data.tokenizer import SubwordTokenizer
from attnviz.evaluation import translation
from attnviz.mechanisms import Mechanism
from attnviz.models import checkpoints, machine
from attnviz.models.names import CARD, TOKENIZER
from attnviz.models.translator import Translator
from attnviz.own.source import in_words
from attnviz.own.wrap import NAME
from attnviz.progress import bar as progress_bar
from attnviz.python_file import ANYTHING
from attnviz.training import initial
from attnviz.training.recipes import TrainingConfig
from attnviz.training.trainer import Diverged, Trainer

TOYS, FILE = ("reverse", "copy", "sort"), f"{NAME}.py"
BESIDE = ("bahdanau", "luong-general")
SECONDS = 90.0  # of all models together
_LETTERS = range(3, 11)  # of a sequence
_TESTED = 300  # sequences of the test


@dataclass(frozen=True)
class Score:
    """How far a model came. exact : share (%) of test sequences that are right. alignment_error : share of the letters
    whose largest weight is not on the letter that they copy; None where nothing was written. loss : of the last
    batches, nats a letter."""

    mechanism: str
    title: str
    exact: float
    alignment_error: float | None
    batches: int
    seconds: float
    loss: float
    problem: str = ""


class _Learner:
    """A model in training, and the processor time that it has had."""

    def __init__(self, mechanism: str, options: dict, tokenizer: SubwordTokenizer, pairs: Pairs):
        config = TrainingConfig(
            mechanism,
            epochs=1_000,  # the time ends the run
            batch_tokens=512,  # about 64 sequences
            learning_rate=3e-3,
            warmup=30,
            label_smoothing=0.0,
            average=0.95,
            decay=1e-6,  # no end is known, towards which the rate could fall
            options=options,
        )
        self.trainer = Trainer(config, tokenizer, pairs, "cpu", compile=False)
        self.seconds, self.batches, self.loss, self.problem = 0.0, 0, math.nan, ""
        self._batches = self._order()

    @property
    def name(self) -> str:
        return self.trainer.config.mechanism

    def _order(self) -> Iterator[list[int]]:
        for epoch in range(self.trainer.config.epochs):
            yield from self.trainer.batches.order(epoch)

    def advance(self) -> float:
        """One batch -> its processor time. ValueError for what a person's module raises."""
        started = time.process_time()
        try:
            loss = float(self.trainer.update(next(self._batches)))
        except Diverged:
            self.problem = f"diverged after {self.batches} batches"
        except ANYTHING as error:  # a person's code may raise anything
            raise ValueError(f"{mechanisms.find(self.name).title} cannot be trained: {in_words(error)}") from error
        else:
            self.batches += 1
            self.loss = loss if self.batches == 1 else 0.9 * self.loss + 0.1 * loss
        took = time.process_time() - started
        self.seconds += took
        return took


def train_beside(
    yours: Mechanism, folder: Path, seconds: float = SECONDS, task: str = TOYS[0]
) -> tuple[list[Score], bool]:
    """Train a mechanism on a task of TOYS beside those of BESIDE, and save all in a folder of checkpoints -> scores on
    the test, and whether Ctrl-C ended it early.

    seconds : of processor time, which the models share equally. What was trained until Ctrl-C is kept. ValueError.
    """
    if not 0 < seconds < math.inf:
        raise ValueError(f"seconds must be positive and finite; got {seconds}")
    machine.use_threads(machine.THREADS)
    corpus = _short(corpora.load(task, None))
    for other in TOYS:  # those of an earlier module
        shutil.rmtree(folder / other, ignore_errors=True)
    text = initial.choose_tokenizer(folder / task / TOKENIZER, corpus, 100)
    options = yours.training_on[TOYS[0]]["options"]
    learners = [_Learner(name, dict(options), text, corpus.train) for name in (yours.name, *BESIDE)]
    stopped = _take_turns(learners, seconds, task)
    initial.save_tokenizer(folder / task / TOKENIZER, text)
    test = corpus.tests["test"][:_TESTED]
    return [_score(learner, folder, test, task) for learner in learners], stopped


def _short(corpus: corpora.Corpus) -> corpora.Corpus:
    def short(pairs: Pairs) -> Pairs:
        return [pair for pair in pairs if len(pair[0].split()) in _LETTERS]

    tests = {name: short(pairs) for name, pairs in corpus.tests.items()}
    return replace(corpus, train=short(corpus.train), val=short(corpus.val), tests=tests)


def _take_turns(learners: list[_Learner], seconds: float, task: str) -> bool:
    """Train until the time is over -> did Ctrl-C end it early?"""
    form = "{desc} {percentage:3.0f}% {bar} {n:.0f} of {total:.0f} s{postfix}"
    with progress_bar(total=seconds, desc=task, bar_format=form) as bar:
        try:
            while learning := [learner for learner in learners if not learner.problem]:
                learner = min(learning, key=lambda learner: learner.seconds)
                if learner.seconds >= seconds / len(learners):
                    return False
                took = learner.advance()
                losses = {learner.name: f"{learner.loss:.2f}" for learner in learners}
                bar.set_postfix_str("loss " + ", ".join(map(" ".join, losses.items())), refresh=False)
                bar.update(min(took, seconds - bar.n))
        except KeyboardInterrupt:
            return True
    return False


def _score(learner: _Learner, folder: Path, test: Pairs, task: str) -> Score:
    """Save a model with its card, and measure it as it was saved."""
    trainer, name = learner.trainer, f"{task}/{learner.name}"
    checkpoints.save_model(folder / name, trainer.model_config, trainer.optimizer.average)
    model = loading.load_translator(name, folder)
    sources, references = zip(*test)
    measured = translation.score(model, sources, references)
    checkpoints.write_json(
        folder / name / CARD,
        {
            "pair": task,
            "mechanism": learner.name,
            "seed": trainer.config.seed,
            "options": dict(trainer.config.options),
            "seconds": round(learner.seconds),
            "scores": {"test": measured},
        },
    )
    share = measured["antidiagonal"] if task == TOYS[0] else _on_its_letter(model, test)
    return Score(
        learner.name,
        mechanisms.find(learner.name).title,
        measured["exact_match"],
        None if share is None else round(1 - share / 100, 4),
        learner.batches,
        round(learner.seconds, 1),
        round(learner.loss, 4),
        learner.problem,
    )


def _on_its_letter(model: Translator, test: Pairs) -> float | None:
    """The share (%) of the letters written whose largest weight is on such a letter; None where none was written."""
    right = []
    traces: Iterable[Any] = model.traces([source for source, _ in test])  # of sentences that can be read
    for trace in traces:
        looks = trace.map("cross").weights[0].argmax(axis=-1)
        right += [trace.source[key].text == token.text for key, token in zip(looks, trace.target) if not token.special]
    return 100 * sum(right) / len(right) if right else None


def write_file(
    folder: Path, place: str, settings: Mapping[str, object], order: str, trained: tuple[str, str] | None = None
) -> Path:
    """The file in a folder of checkpoints that brings the mechanism `yours` to the page and to every command. trained :
    the mechanism in whose trained model it is too, and the notes of `trained.network`."""
    path, colon, name = place.rpartition(":")
    absolute = f"{Path(path).resolve()}:{name}" if colon and path.endswith(".py") else str(Path(place).resolve())
    file = folder / FILE
    more = f"of_trained({absolute!r}, {dict(settings)!r}, {trained[0]!r}, {trained[1]!r})\n" if trained else ""
    file.write_text(
        '"""Written by `python -m attnviz try`. ATTNVIZ_MECHANISMS names this file; it runs the one below."""\n\n'
        "from attnviz.own.wrap import of_file, of_trained\n\n"
        f"YOURS = of_file({absolute!r}, {dict(settings)!r}, {order!r})\n{more}",
        encoding="utf-8",
    )
    return file
