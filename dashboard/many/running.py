"""The statistics of many sentences, a few at a time, so that the page can say how far it is and stop. No Streamlit."""

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from types import MappingProxyType

import numpy as np
import pandas as pd

from attnviz import across
from attnviz.data.records import Record
from attnviz.gold import LinkedPair
from attnviz.models.names import ModelName
from attnviz.models.tracing import measured
from attnviz.models.tracing.measured import Measured
from attnviz.service import ServiceError
from attnviz.trace import Trace
from dashboard.choices.options import title
from dashboard.shell.problems import without_places

SLICE = 32  # sentences of one model that are asked for together
LOOK = 0.25  # s between two calls of `meanwhile`
ROW = 1500  # bytes of a sentence and a model, about
_PACES = 16  # slices whose pace says how long the rest will take

PLACES = (*across.LOOKS, "alignment_error")  # numbers of cross-attention alone
_NONE = np.full(len(across.VALUES), np.nan, dtype=np.float32)

Submit = Callable[[str, Sequence[tuple[str, str | None]]], list[Future]]  # model, (source, target) of each
Meanwhile = Callable[[Sequence[Future]], None]
Row = dict[str, object]


class Run:
    """Sentences through models. All sessions that ask for the same share one.

    The models take turns after each slice, so that a run that was stopped has the same sentences of all.
    done, total : sentences, of all models. bytes : that it takes when it is finished, about.
    """

    def __init__(
        self,
        models: Sequence[str],
        sentences: Sequence[Record],
        forced: bool,
        submit: Submit,
        links: Mapping[tuple[str, str], LinkedPair] = MappingProxyType({}),
    ):
        """links : of (source, target); where `submit` answers with a trace, its alignment error is measured."""
        self.forced, self._submit, self._links = forced, submit, links
        parts = [sentences[start : start + SLICE] for start in range(0, len(sentences), SLICE)]
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
        """Sentences a second, of late; 0 before the first."""
        paces = list(self._paces)
        seconds = sum(seconds for _, seconds in paces)
        return sum(count for count, _ in paces) / seconds if seconds > 0 else 0.0

    def advance(self, since: float | None = None, meanwhile: Meanwhile = lambda futures: None) -> None:
        """One slice more. since : when the wait for it began (time.monotonic), if not now. meanwhile : is called every
        quarter of a second while the models compute, with what they compute.

        Raises ServiceError when the models cannot be reached; the slice is then still to do.
        """
        since = time.monotonic() if since is None else since
        with self._lock:
            if self.finished:
                return
            model, part = self._left[0]
            asked = [(record.source, record.target if self.forced else None) for record in part]
            futures = self._submit(model, asked)
            while wait(futures, LOOK).not_done:
                meanwhile(futures)
            answers = [_result(future) for future in futures]
            self._rows += [
                _row(model, record, answer, self._links) for record, answer in zip(part, answers, strict=True)
            ]
            self._left.pop(0)
            self.done += len(part)
            self._paces.append((len(part), time.monotonic() - since))

    def frame(self, kind: str) -> pd.DataFrame:
        """One row per model and sentence, so far: texts, lengths and `across.VALUES` of a kind of attention, NaN of a
        model without it. `error` says why there are none."""
        with self._lock:
            rows = list(self._rows)
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


def _result(future: Future) -> Measured | Trace | ValueError:
    """The answer, or why a text has none. Raises ServiceError."""
    try:
        return future.result()
    except ServiceError:
        raise
    except ValueError as error:
        return error


def _row(model: str, record: Record, answer: Measured | Trace | ValueError, links: Mapping) -> Row:
    row: Row = {"model": model, "mechanism": title(ModelName.parse(model).mechanism), "values": {}}
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
