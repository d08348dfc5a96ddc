"""The kinds of hostile input, and how many cases of each are run."""

import contextlib
import traceback
from collections.abc import Callable
from pathlib import Path

import hypothesis
import hypothesis.errors

from tests.hostile.kinds import (
    api,
    arguments,
    arrays,
    cards,
    configs,
    foreign,
    lessons,
    links,
    own,
    pages,
    pairs,
    runs,
    stopped,
    texts,
    tokenizers,
    traces,
    visitors,
    writing,
)
from tests.hostile.workplace import Failure, Workplace, prepared

KINDS = {
    "texts": texts,
    "arguments": arguments,
    "configs": configs,
    "cards": cards,
    "traces": traces,
    "arrays": arrays,
    "tokenizers": tokenizers,
    "foreign": foreign,
    "links": links,
    "api": api,
    "writing": writing,
    "own": own,
    "pairs": pairs,
    "lessons": lessons,
    "runs": runs,
    "visitors": visitors,
    "stopped": stopped,
    "pages": pages,
}
SHARES = {  # of a long run, in parts of a thousand
    "texts": 220,
    "lessons": 10,
    "arguments": 60,
    "configs": 70,
    "cards": 80,
    "traces": 230,
    "arrays": 60,
    "tokenizers": 80,
    "foreign": 20,
    "links": 20,
    "api": 50,
    "writing": 10,
    "own": 20,
    "pairs": 10,
    "runs": 20,
    "visitors": 34,
    "stopped": 1,
    "pages": 5,
}


def run(
    kind: str, seed: int, count: int, folder: Path, say: Callable[..., None], limit: Callable[[], None] = lambda: None
) -> None:
    """`count` cases of a kind; say(case=…) before each, say(failed=…) after one that did not hold.

    limit : is called when a server or a browser that the cases need has started, before the first of them.
    """
    with prepared(folder, KINDS[kind]) as place:
        limit()
        with contextlib.suppress(Failure):
            KINDS[kind].check(place, KINDS[kind].WARM)  # what is imported on the way is no case's own time
        _run(KINDS[kind], seed, count, place, say)


def _run(kind, seed: int, count: int, place: Workplace, say: Callable[..., None]) -> None:
    """The cases themselves. kind : a module of this kind."""

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(kind.strategy())
    def check(case) -> None:
        say(case=f"{case!r:.1200}")
        try:
            kind.check(place, case)
        except (hypothesis.errors.HypothesisException, KeyboardInterrupt):
            raise
        except BaseException as error:  # the product failed, by SystemExit or a panic of Rust code too: no Exceptions
            where = traceback.extract_tb(error.__traceback__)[-1]
            say(failed=f"{type(error).__name__}: {str(error)[:400]} ({Path(where.filename).name}:{where.lineno})")

    check()
