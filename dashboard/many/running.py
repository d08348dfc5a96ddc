"""The statistics of many sentences, measured a slice at a time, with the progress and a button that stops it."""

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from types import MappingProxyType
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd
import streamlit as st

from attnviz import across
from attnviz.data.records import Record
from attnviz.gold import LinkedPair
from attnviz.models import measured
from attnviz.models.measured import TraceStatistics
from attnviz.models.names import is_hugging_face
from attnviz.service import ServiceError
from attnviz.service.request import RESTARTING, RUNNING
from attnviz.trace import Trace
from dashboard.choices.options import mechanism_of, title
from dashboard.session import address, caches
from dashboard.session.waiting_line import Full
from dashboard.shell import turns
from dashboard.shell.problems import SceneError, sentence, without_places

SLICE = 32  # sentences of one model that are asked for together
OWN_SLICE = 4  # where one of the models is of the transformers library, and may be slow: Stop waits for a slice
QUICK = 4 * SLICE  # sentences that take no longer than a moment
LOOK = 0.25  # s between two calls of `meanwhile`
ROW = 1500  # bytes of a sentence and a model, about
_LIMITS = "limits of many"  # in the session, of runs that were stopped: how many translations are shown
_WRITTEN = "measured"  # in the address: the same, of all runs together
_PACES = 16  # slices whose pace says how long the rest will take

PLACES = (*across.LOOKS, "alignment_error")  # numbers of cross-attention alone
_NONE = np.full(len(across.VALUES), np.nan, dtype=np.float32)

Submit = Callable[[str, Sequence[tuple[str, str | None]]], list[Future]]  # model, (source, target) of each
Meanwhile = Callable[[Sequence[Future]], None]
Row = dict[str, object]


class Run:
    """A run of sentences through models. All sessions with the same request share it.

    The models take turns after each slice, so that a stopped run has the same sentences for all.
    done, total : sentences, of all models. bytes : its approximate size when finished.
    """

    def __init__(
        self,
        models: Sequence[str],
        sentences: Sequence[Record],
        forced: bool,
        submit: Submit,
        links: Mapping[tuple[str, str], LinkedPair] = MappingProxyType({}),
    ):
        """links : of (source, target); if `submit` answers with a trace, its alignment error is measured."""
        self.forced, self._submit, self._links, self.models = forced, submit, links, models
        size = OWN_SLICE if any(map(is_hugging_face, models)) else SLICE
        parts = [sentences[start : start + size] for start in range(0, len(sentences), size)]
        self._left = [(model, part) for part in parts for model in models]
        self._rows: list[Row] = []
        self._lock = threading.Lock()
        self._paces: deque[tuple[int, float]] = deque(maxlen=_PACES)  # sentences and seconds of the last slices
        self.total, self.done = len(models) * len(sentences), 0
        self.bytes = ROW * self.total

    @property
    def finished(self) -> bool:
        return not self._left

    @property
    def pace(self) -> float:
        """Recent sentences per second; 0 before the first."""
        paces = list(self._paces)
        seconds = sum(seconds for _, seconds in paces)
        return sum(count for count, _ in paces) / seconds if seconds > 0 else 0.0

    def advance(self, since: float | None = None, meanwhile: Meanwhile = lambda futures: None) -> None:
        """Do the next slice. since : when the wait for it began (time.monotonic), if not now. meanwhile : called every
        quarter of a second with the request while the models compute.

        Raises ServiceError if the models cannot be reached; the slice then remains to be done.
        """
        since = time.monotonic() if since is None else since
        with self._lock:
            if self.finished:
                return
            model, part = self._left[0]
            texts = [(record.source, record.target if self.forced else None) for record in part]
            futures = self._submit(model, texts)
            while wait(futures, LOOK).not_done:
                meanwhile(futures)
            answers = [_result(future) for future in futures]
            self._rows += [
                _row(model, record, answer, self._links) for record, answer in zip(part, answers, strict=True)
            ]
            self._left.pop(0)
            self.done += len(part)
            self._paces.append((len(part), time.monotonic() - since))

    def frame(self, kind: str, most: int | None = None) -> pd.DataFrame:
        """One row per model and sentence so far, up to a limit: texts, lengths and `across.VALUES` of a kind of
        attention, NaN for a model without it. `error` has the reason for missing values."""
        with self._lock:
            rows = self._rows[:most]
        columns = ["model", "mechanism", "number", "id", "source", "translation", "source_tokens", "target_tokens"]
        columns += ["log_prob", *PLACES, "error"]
        values = [row["values"].get(kind, _NONE) for row in rows]
        texts = pd.DataFrame([{name: row.get(name) for name in columns} for row in rows], columns=columns)
        numbers = pd.DataFrame(np.array(values).reshape(-1, len(_NONE)), columns=list(across.VALUES), dtype=float)
        for name in ("source_tokens", "target_tokens", "log_prob", *PLACES):
            texts[name] = texts[name].astype(float)
        if kind != "cross":
            texts[list(PLACES)] = np.nan
        return pd.concat([texts, numbers], axis=1)


def _result(future: Future) -> TraceStatistics | Trace | ValueError:
    """The answer, or the reason why a text has none. Raises ServiceError."""
    try:
        return future.result()
    except ServiceError:
        raise
    except ValueError as error:
        return error


def _row(model: str, record: Record, answer: TraceStatistics | Trace | ValueError, links: Mapping) -> Row:
    row: Row = {"model": model, "mechanism": title(mechanism_of(model)), "values": {}}
    row |= {"number": record.number, "id": record.id, "source": record.source}
    if isinstance(answer, ValueError):
        return row | {"error": without_places(str(answer))}
    if isinstance(answer, Trace):
        pair = links.get((answer.text, answer.translation))
        row |= {"alignment_error": across.alignment_error(answer, pair)} if pair else {}
        answer = measured.of_trace(answer, keep=False)
    columns = answer.columns()
    row |= {"translation": answer.translation, "log_prob": answer.log_prob}
    row |= {"source_tokens": len(answer.source), "target_tokens": len(answer.target)}
    row |= across.looks(columns, answer.source)
    kinds = dict.fromkeys(kind for kind, *_ in answer.maps)
    values = {kind: np.array(list(across.sentence(columns, kind).values()), dtype=np.float32) for kind in kinds}
    return row | {"values": values}


def measure(runs: list[Run]) -> SceneError | None:
    """Do the rest, unless stopped -> why it cannot be done, or None.

    A run of this fragment alone does one slice and requests the next run. A run of the whole page cannot. It does slice
    after slice and checks itself whether anything was pressed: Stop reruns only this fragment, for which Streamlit
    would let the page's run finish.
    """
    if _LIMITS not in st.session_state or address.came_back():
        _take_from_address(runs)
    limits = st.session_state[_LIMITS]
    address.also(_WRITTEN, lambda held: str(_count(runs)[0]) if any(run in limits for run in runs) else None)
    if not any(_is_left(run) for run in runs):
        _offer_the_rest(runs)
        return None
    bar, stop = st.empty(), st.empty()
    if sum(run.total for run in runs) > QUICK:
        stop.button("Stop", key="stop", on_click=_stop, args=(runs,), help="What is measured so far is shown.")
    try:
        while waiting := [run for run in runs if _is_left(run)]:
            done, total = _count(runs)

            def show(state: str) -> None:
                bar.progress(done / total, words_for(done, total, waiting[0].pace, state))

            show(RUNNING)
            since = time.monotonic()
            with turns.long_turn(waiting[0].models):
                waiting[0].advance(since, lambda futures: show(caches.state_of(futures)))
            turns.end_if_superseded()
            if address.runs_alone():
                st.rerun(scope="fragment")
    except (Full, ServiceError) as error:
        return SceneError(sentence(str(error)))
    bar.empty()
    stop.empty()
    _offer_the_rest(runs)
    return None


def _offer_the_rest(runs: list[Run]) -> None:
    """A button that continues a stopped run."""
    limits = st.session_state[_LIMITS]
    if any(run in limits for run in runs):
        count, total = _count(runs)
        st.button(f"Continue: {total - count:,} of {total:,} are left", key="go_on", on_click=limits.clear)


def words_for(done: int, total: int, pace: float, state: str = RUNNING) -> str:
    """The progress message. pace : sentences a second; 0 if unknown. state : of the models."""
    words = f"{done:,} of {total:,} translations are measured."
    if state == RESTARTING:
        return f"{words} The process of the models has stopped. It is being started again, then this goes on."
    words += turns.AFTER.get(state, "")
    if not pace:
        return words
    seconds = (total - done) / pace
    time_left = f"{seconds:.0f} s" if seconds < 99.5 else f"{seconds / 60:.0f} min"
    return f"{words} {pace:,.0f} a second, about {time_left} left."


def shown(run: Run) -> int:
    """The number of translations of a run that this visitor sees. A shared run may have advanced after this visitor
    stopped it."""
    return min(run.done, _limit(run))


def _limit(run: Run) -> int:
    return st.session_state.get(_LIMITS, {}).get(run, run.total)


def _is_left(run: Run) -> bool:
    return run.done < _limit(run)


def _stop(runs: list[Run]) -> None:
    limits = st.session_state[_LIMITS]
    limits.update({run: shown(run) for run in runs if shown(run) < run.total})


def _take_from_address(runs: list[Run]) -> None:
    """A link to a stopped run shows the same sentences again."""
    limits = st.session_state.setdefault(_LIMITS, WeakKeyDictionary())
    words = st.query_params.get(_WRITTEN, "")
    if not (words.isdecimal() and words.isascii() and len(words) < 9):
        return
    left = int(words)
    for run in runs:
        if left < run.total:
            limits[run] = left
        left = max(0, left - run.total)


def _count(runs: list[Run]) -> tuple[int, int]:
    return sum(map(shown, runs)), sum(run.total for run in runs)
