"""Many texts through one model, in batches of similar lengths, with results in the order given.

A window of texts is read at a time, so memory does not grow with their number. Within a window, texts of similar
lengths go through the model together. A text that cannot be read has its error as its result.
"""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from typing import Any

from attnviz.arguments import is_list, shown
from attnviz.data.tokenizer import Tokens
from attnviz.models import measured
from attnviz.models.measured import TraceStatistics
from attnviz.models.model import TextError
from attnviz.trace import Trace

KEEP = ("maps", "statistics")
BATCH = 32  # sentences that go through a model together; more are no faster on a processor
WINDOW = 16  # batches that are read before the first of them runs
PIECES = 2048  # of source and target of a batch, padding included, at most
START = 200  # pieces of work that take as long as the start of a batch, about
CELLS = 4_000_000  # of the maps of a window, one head and layer of each kind, at most
Result = Trace | TraceStatistics
Read = Callable[[str, str], Tokens]  # a text, and what it is called in errors


@dataclass(frozen=True)
class Job:
    """A text to trace, with its tokens.

    target, wanted : the text to force, and its tokens; None if the model chooses.
    """

    text: str
    source: Tokens
    target: str | None = None
    wanted: Tokens | None = None

    @property
    def lengths(self) -> tuple[int, int]:
        """The number of pieces of the target (if not forced, as many as the source has) and of the source."""
        source = len(self.source.ids)
        return len(self.wanted.ids) if self.wanted else source, source


def parts_kept(keep: Collection[str]) -> frozenset[str]:
    """What to keep of each trace. ValueError unless it is a tuple or list of at least one entry of KEEP."""
    if not isinstance(keep, tuple | list | set | frozenset) or not keep or not all(name in KEEP for name in keep):
        raise ValueError(f"keep must be a tuple of some of {', '.join(KEEP)}; got {shown(keep)}")
    return frozenset(keep)


def check_size(batch_size: int) -> None:
    if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size < 1:
        raise ValueError(f"batch_size must be an integer of at least 1; got {shown(batch_size)}")


def pairs(texts: Iterable[str], targets: Iterable[str | None] | None) -> Iterator[tuple[str, str | None]]:
    """Each text with its target, or None. ValueError when one of the two ends before the other."""
    if isinstance(texts, str) or isinstance(targets, str):
        raise ValueError("texts and targets must be lists of strings; got one string")
    for name, given in (("texts", texts), ("targets", () if targets is None else targets)):
        if not is_list(given):
            raise ValueError(f"{name} must be a list of strings; got {shown(given)}")
    if targets is None:
        return ((text, None) for text in texts)
    return _pairs(texts, targets)


def _pairs(texts: Iterable[str], targets: Iterable[str | None]) -> Iterator[tuple[str, str | None]]:
    missing: Any = object()
    for number, (text, target) in enumerate(zip_longest(texts, targets, fillvalue=missing)):
        if text is missing or target is missing:
            ended = "text" if text is missing else "target"
            plural = "" if number == 1 else "s"
            raise ValueError(f"targets must be as many as texts; got {number} {ended}{plural} and more of the other")
        yield text, target


def jobs(read: Read, texts: Iterable[str], targets: Iterable[str | None] | None) -> Iterator[Job | TextError]:
    """Each text as a job, or as the error that occurred when reading it."""

    def job(text: str, target: str | None) -> Job | TextError:
        try:
            source = read(text, "text")
            wanted = None if target is None else read(target, "target")
        except TextError as error:
            return error
        return Job(text, source, target, wanted)

    return (job(text, target) for text, target in pairs(texts, targets))


def in_order(
    given: Iterable[Job | TextError], run: Callable[[list[Job]], Sequence[Result]], batch_size: int
) -> Iterator[Result | TextError]:
    """The results of `run` on batches of jobs, one for each job, in the order given. Errors stay in their places."""
    for window in _windows(given, batch_size):
        results: list[Any] = list(window)
        jobs = {place: job for place, job in enumerate(window) if isinstance(job, Job)}
        for batch in _batches(jobs, batch_size):
            for place, result in zip(batch, run([jobs[place] for place in batch]), strict=True):
                results[place] = result
        yield from results


class OneByOne:
    """`traces` of a model that reads one text at a time."""

    def traces(
        self: Any,
        texts: Iterable[str],
        targets: Iterable[str | None] | None = None,
        *,
        batch_size: int = BATCH,
        beam: int = 1,
        keep: Collection[str] = ("maps",),
    ) -> Iterator[Result | TextError]:
        """`trace` of each text, in the order given, as in `Translator.traces`; one at a time for any batch_size."""
        check_size(batch_size)
        self.check_beam(beam)
        trace = self.trace if beam == 1 else partial(self.trace, beam=beam)
        wanted = parts_kept(keep)

        def result(text: str, target: str | None) -> Result | TextError:
            try:
                made = trace(text, target)
            except TextError as error:
                return error
            return measured.of_trace(made, "maps" in wanted) if "statistics" in wanted else made

        return (result(text, target) for text, target in pairs(texts, targets))


def _windows(given: Iterable[Job | TextError], batch_size: int) -> Iterator[list[Job | TextError]]:
    window, cells = [], 0
    for job in given:
        window.append(job)
        if isinstance(job, Job):
            target, source = job.lengths
            cells += target * source + source**2 + target**2
        if len(window) == WINDOW * batch_size or cells > CELLS:
            yield window
            window, cells = [], 0
    if window:
        yield window


def _batches(jobs: Mapping[int, Job], batch_size: int) -> Iterator[list[int]]:
    """Places of the jobs of a window, grouped by similar lengths. Forced and free jobs are in different batches."""
    lengths = {place: job.lengths for place, job in jobs.items()}
    for forced in (True, False):
        places = [place for place, job in jobs.items() if (job.wanted is not None) == forced]
        places.sort(key=lengths.__getitem__)
        for start, end in _cuts([lengths[place] for place in places], batch_size):
            yield places[start:end]


def _cuts(lengths: Sequence[tuple[int, int]], batch_size: int) -> list[tuple[int, int]]:
    """Where to cut a list of lengths (target, source) into batches, start and end of each, so that the work is least.

    The work of a batch is its pieces, padding included, and START. Few large batches have much padding, and many small
    ones start often.
    """
    least: list[float] = [0]
    begins: list[int] = []
    for end in range(1, len(lengths) + 1):
        best: float = math.inf
        begin, target, source = end - 1, 0, 0
        for start in range(end - 1, max(end - batch_size, 0) - 1, -1):
            target, source = max(target, lengths[start][0]), max(source, lengths[start][1])
            pieces = (end - start) * (target + source)
            if best < math.inf and pieces > PIECES:
                break
            if least[start] + pieces + START < best:
                best, begin = least[start] + pieces + START, start
        least.append(best)
        begins.append(begin)
    cuts, end = [], len(lengths)
    while end:
        cuts.append((begins[end - 1], end))
        end = begins[end - 1]
    return cuts[::-1]
