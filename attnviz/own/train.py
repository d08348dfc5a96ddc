"""A module trained for a fixed time on a toy task, beside shipped mechanisms trained the same way in the same time.

The right alignment of a toy task is known: each letter is copied from one in the sequence. Sequences are short and
networks narrow, so that a minute on one core shows whether a mechanism learns it. The models take turns, so that all
have had the same processor time at any stop.
"""

import math
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from attnviz import loading, mechanisms
from attnviz.data import batching, corpora, tasks
from attnviz.data.readers import Pairs
from attnviz.evaluation import translation
from attnviz.mechanisms import Mechanism
from attnviz.models import machine
from attnviz.models.names import TOKENIZER
from attnviz.own.wrap import NAME
from attnviz.progress import bar as progress_bar
from attnviz.training import initial
from attnviz.training.race import Held, Learner, save
from attnviz.training.recipes import short, short_run
from attnviz.training.trainer import SharingTrainer

TOYS, FILE = tuple(toy.name for toy in tasks.TOYS), f"{NAME}.py"
BESIDE = ("bahdanau", "luong-general")
SECONDS = 90.0  # of all models together
_TESTED = 300  # sequences of the test


@dataclass(frozen=True)
class Score:
    """The result of a model. exact : share (%) of correct test sequences. alignment_error : share of letters whose
    largest weight is not on a letter that they are made from, with teacher forcing; None without attention. loss : of
    the last batches, nats a letter."""

    mechanism: str
    title: str
    exact: float
    alignment_error: float | None
    batches: int
    seconds: float
    loss: float
    problem: str = ""


def train_beside(
    yours: Mechanism, folder: Path, seconds: float = SECONDS, task: str = TOYS[0]
) -> tuple[list[Score], bool]:
    """Train a mechanism on a task of TOYS beside those of BESIDE, and save all in a folder of checkpoints, in place of
    those of an earlier module -> scores on the test, and whether Ctrl-C ended it early.

    seconds : of processor time, which the models share equally. The models trained until Ctrl-C are saved; another one
    ends the test, and the scores are those of the models before. Raises ValueError.
    """
    if not 0 < seconds < math.inf:
        raise ValueError(f"seconds must be positive and finite; got {seconds}")
    machine.use_threads(machine.THREADS)
    corpus = corpora.load(task, None)
    corpus = replace(corpus, train=short(corpus.train))
    text = initial.choose_tokenizer(folder / TOKENIZER, corpus, 100)  # a new one: there is no such file
    options = yours.training_on[TOYS[0]]["options"]
    configs = [short_run(name, dict(options)) for name in (yours.name, *BESIDE)]
    examples = batching.encode(corpus.train, text)
    learners = [Learner(SharingTrainer(config, text, corpus.train, examples)) for config in configs]
    stopped = _take_turns(learners, seconds, task)
    with tempfile.TemporaryDirectory(dir=folder) as new:  # a full disk leaves those of an earlier module
        initial.save_tokenizer(Path(new) / task / TOKENIZER, text)
        for learner in learners:
            save(learner, Path(new), task, {})
        for other in TOYS:
            shutil.rmtree(folder / other, ignore_errors=True)
        os.replace(Path(new) / task, folder / task)
    test = short(corpus.tests["test"])[:_TESTED]
    scores = []
    try:
        held = Held(test, text, tasks.find(task))
        for learner in learners:
            scores.append(_score(learner, folder, test, task, held))
    except KeyboardInterrupt:
        stopped = True
    return scores, stopped


def _take_turns(learners: list[Learner], seconds: float, task: str) -> bool:
    """Train until the time is up -> did Ctrl-C end it early?"""
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


def _score(learner: Learner, folder: Path, test: Pairs, task: str, held: Held) -> Score:
    """Measure a model as it was saved, and save it with its scores."""
    sources, references = zip(*test)
    measured = translation.score(loading.load_translator(f"{task}/{learner.name}", folder), sources, references)
    save(learner, folder, task, {"test": measured})
    error = held.look(learner).alignment_error
    return Score(
        learner.name,
        mechanisms.find(learner.name).title,
        measured["exact_match"],
        None if error is None else round(error, 4),
        learner.batches,
        round(learner.seconds, 1),
        round(learner.loss, 4),
        learner.problem,
    )


def write_file(
    folder: Path,
    place: str,
    settings: Mapping[str, object],
    order: str,
    trained_as: str = "",
    trained: tuple[str, str] | None = None,
) -> Path:
    """Write the file in a folder of checkpoints that adds the mechanism `yours` to the page and to every command.
    order : "" if it was not trained. trained_as : as in `of_file`. trained : the mechanism whose trained model also has
    the module, and the notes of `trained.network`."""
    path, colon, name = place.rpartition(":")
    absolute = f"{Path(path).resolve()}:{name}" if colon and path.endswith(".py") else str(Path(place).resolve())
    calls = [f"of_file({absolute!r}, {dict(settings)!r}, {order!r}, {trained_as!r})"] if order else []
    if trained:
        calls.append(f"of_trained({absolute!r}, {dict(settings)!r}, {trained[0]!r}, {trained[1]!r})")
    file = folder / FILE
    file.write_text(
        '"""Written by `python -m attnviz try`. ATTNVIZ_MECHANISMS names this file; it runs the one below."""\n\n'
        "from attnviz.own.wrap import of_file, of_trained\n\nYOURS = " + "\n".join(calls) + "\n",
        encoding="utf-8",
    )
    return file
