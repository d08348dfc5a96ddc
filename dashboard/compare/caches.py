"""The judge of each model: the thresholds of its card and the words of its training, read once for all sessions. For
some judges, models draw other translations of the sentence.
"""

import functools
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from attnviz import confidence, mechanisms, storage
from attnviz.confidence.training_words import FILE
from attnviz.models import checkpoint_files, checkpoint_values
from attnviz.models.names import CARD, WEIGHTS, ModelName, is_hugging_face, moments_file
from attnviz.service import Request, ServiceError
from attnviz.trace import Trace
from dashboard.choices.options import LIMIT, OWN
from dashboard.compare.scene import CompareChoices
from dashboard.markup import card
from dashboard.session import caches, catalogue
from dashboard.shell.problems import Wanted


@catalogue.once
def judge(name: str) -> confidence.Judge | None:
    """None for a model without thresholds on its card, or if its files cannot be read."""
    if is_hugging_face(name):
        return None
    root = catalogue.root_of(name)
    pair = os.path.join(root, ModelName.parse(name).pair)
    try:
        entries = sorted(os.listdir(pair))
    except OSError:
        return None
    files = (os.path.join(pair, entry, *(() if entry.endswith(".gz") else (WEIGHTS,))) for entry in entries)
    card_file, words, *others = storage.stamp(root / name / CARD, os.path.join(pair, FILE), *files)
    return _judge(name, str(root), (card_file, words, *others)) if card_file and words else None


def judgement(trace: Trace, its_judge: confidence.Judge | None) -> confidence.Judgement | None:
    """`judge_translation`; None also if the samples that the model's judge needs were not drawn."""
    requests = _requests(its_judge, trace.text) if its_judge else ()
    samples = [caches.answers().if_there(request) for request in requests]
    if any(answer is None for answer in samples) and not trace.forced:
        return None
    return judge_translation(trace, its_judge, [sample for answer in samples for sample in answer or ()])


def judge_translation(
    trace: Trace, its_judge: confidence.Judge | None, samples: Sequence[str] = ()
) -> confidence.Judgement | None:
    """None for a model without thresholds, and for a forced target. samples : of the model, if the judge needs them."""
    return None if its_judge is None or trace.forced or not trace.log_probs else its_judge(trace, samples)


def wanted(choices: CompareChoices, models: Sequence[str]) -> Iterator[Wanted]:
    """Request all translations that the judges of the models need, at once. Requests nothing, so that no sign is shown,
    for a text that cannot be drawn, if all models write one text, or if the queue is full."""
    judges = filter(None, map(judge, models))
    requests = [request for its_judge in judges for request in _requests(its_judge, choices.text)]
    if requests and choices.target == OWN and choices.text.strip() and len(choices.text) <= LIMIT:
        with suppress(ServiceError):
            yield caches.answers().ask(list(dict.fromkeys(requests)))


@catalogue.once
def course(name: str) -> tuple[dict, ...]:
    """The measurements at each packed moment of a model's training (`training.validation.measure_moments`, or
    `studies.writing.measure_moments`), the untrained model first; () if there are none or they cannot be read."""
    file = moments_file(name, catalogue.root_of(name))
    return _course(str(file), storage.stamp(file, file.with_suffix(".moments")))


@functools.lru_cache(32)
def _course(file: str, stamps: tuple) -> tuple[dict, ...]:
    if not all(stamps):
        return ()
    with catalogue.without_damaged(file):
        rows = checkpoint_files.read_json(Path(file))["moments"]
        of_kind = ("previous", "first", "induction") if _writes(file) else ("bleu_lc",)
        return tuple(row for row in rows if checkpoint_values.numbers(row, "update", "loss", *of_kind))
    return ()


def _writes(file: str) -> bool:
    return Path(file).stem in mechanisms.ALL and mechanisms.ALL[Path(file).stem].writes


def card_html(name: str) -> str:
    """The card of a trained model (`card.show`), cached while its files do not change."""
    return "" if is_hugging_face(name) else _card_html(name, caches.card_key(name))


@functools.lru_cache(64)
def _card_html(name: str, files: tuple) -> str:
    return card.show(caches.card(name))


def _requests(its_judge: confidence.Judge, text: str) -> list[Request]:
    count = its_judge.scale.sample_count
    return [replace(caches.request(name, text, None, 1), sample_count=count) for name in its_judge.samplers]


@functools.lru_cache(32)
def _judge(name: str, root: str, stamps: tuple) -> confidence.Judge | None:
    with catalogue.without_damaged(name):
        return confidence.Judge.load(name, Path(root))
    return None
