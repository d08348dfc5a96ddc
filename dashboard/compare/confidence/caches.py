"""The judge of each model: the thresholds of its card and the words of its training, read once for all sessions. For
some, models draw other translations of the sentence.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import streamlit as st

from attnviz import confidence
from attnviz.confidence.training_words import FILE
from attnviz.models import checkpoint_files
from attnviz.models.names import CARD, ModelName
from attnviz.service import Request, ServiceError
from attnviz.trace import Trace
from dashboard.choices.options import LIMIT, OWN
from dashboard.compare.choices import CompareChoices
from dashboard.compare.confidence import sign
from dashboard.session import caches, catalogue
from dashboard.shell.problems import Wanted


def judge(name: str) -> confidence.Judge | None:
    """None for a model without thresholds on its card, and where its files cannot be read."""
    root = catalogue.root()
    files = (root / name / CARD, root / ModelName.parse(name).pair / FILE)
    stamps = tuple((path.stat().st_mtime_ns, path.stat().st_size) if path.is_file() else None for path in files)
    return _judge(name, str(root), stamps) if all(stamps) else None


def judgement(trace: Trace) -> confidence.Judgement | None:
    """`sign.judgement` of the model's judge; None also where the model service does not answer."""
    its_judge = judge(trace.model)
    try:
        return sign.judgement(trace, its_judge, _samples(trace, its_judge))
    except ServiceError:
        return None


def wanted(choices: CompareChoices, models: Sequence[str]) -> Iterator[Wanted]:
    """Have the translations drawn that the judges of the models need, all at once. Nothing for a text that cannot be
    drawn, or where all models write one text. Raises ServiceError."""
    judges = filter(None, map(judge, models))
    requests = [request for its_judge in judges for request in _requests(its_judge, choices.text)]
    if requests and choices.target == OWN and choices.text.strip() and len(choices.text) <= LIMIT:
        yield caches.answers().ask(list(dict.fromkeys(requests)))


def _samples(trace: Trace, its_judge: confidence.Judge | None) -> list[str]:
    requests = () if its_judge is None or trace.forced else _requests(its_judge, trace.text)
    return [sample for request in requests for sample in caches.answers().get(request)]


def _requests(its_judge: confidence.Judge, text: str) -> list[Request]:
    count = its_judge.scale.samples
    return [replace(caches.request(name, text, None, 1), samples=count) for name in its_judge.samplers]


@st.cache_resource(show_spinner=False, max_entries=32)
def _judge(name: str, root: str, stamps: tuple) -> confidence.Judge | None:
    try:
        return confidence.Judge.load(name, Path(root))
    except checkpoint_files.CheckpointError:
        return None
