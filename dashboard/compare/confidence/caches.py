"""The judge of each model: the thresholds of its card and the words of its training, read once for all sessions. For
some, the model draws other translations of the sentence.
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
    """Have the models whose judges need it draw translations of the text, all at once. Nothing for a text that cannot
    be drawn, or where all models write one text. Raises ServiceError."""
    judges = {name: judge(name) for name in models}
    counts = {
        name: its_judge.scale.samples for name, its_judge in judges.items() if its_judge and its_judge.scale.samples
    }
    if counts and choices.target == OWN and choices.text.strip() and len(choices.text) <= LIMIT:
        yield caches.answers().ask([_request(name, choices.text, count) for name, count in counts.items()])


def _samples(trace: Trace, its_judge: confidence.Judge | None) -> tuple[str, ...]:
    if its_judge is None or trace.forced or not its_judge.scale.samples:
        return ()
    return caches.answers().get(_request(trace.model, trace.text, its_judge.scale.samples))


def _request(name: str, text: str, count: int) -> Request:
    return replace(caches.request(name, text, None, 1), samples=count)


@st.cache_resource(show_spinner=False, max_entries=32)
def _judge(name: str, root: str, stamps: tuple) -> confidence.Judge | None:
    try:
        return confidence.Judge.load(name, Path(root))
    except checkpoint_files.CheckpointError:
        return None
