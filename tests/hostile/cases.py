"""The kinds of hostile input, and how many cases of each are run."""

import contextlib
import traceback
from collections.abc import Callable
from pathlib import Path

import hypothesis
import hypothesis.errors

from tests.hostile.kinds import api, arguments, arrays, cards, configs, foreign, links, texts, tokenizers, traces
from tests.hostile.workplace import Failure, prepare

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
}
SHARES = {  # of a long run, in parts of a hundred
    "texts": 30,
    "arguments": 5,
    "configs": 8,
    "cards": 10,
    "traces": 25,
    "arrays": 5,
    "tokenizers": 8,
    "foreign": 2,
    "links": 2,
    "api": 5,
}


def run(kind: str, seed: int, count: int, folder: Path, say: Callable[..., None]) -> None:
    """`count` cases of a kind; say(case=…) before each, say(failed=…) after one that did not hold."""
    place, done = prepare(folder, kind), 0
    with contextlib.suppress(Failure):
        KINDS[kind].check(place, KINDS[kind].WARM)  # what is imported on the way is no case's own time

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(KINDS[kind].strategy())
    def check(case) -> None:
        nonlocal done
        done += 1
        say(case=f"{case!r:.1200}")
        try:
            KINDS[kind].check(place, case)
        except (hypothesis.errors.HypothesisException, KeyboardInterrupt):
            raise
        except BaseException as error:  # the product failed, by SystemExit or a panic of Rust code too: no Exceptions
            where = traceback.extract_tb(error.__traceback__)[-1]
            say(failed=f"{type(error).__name__}: {str(error)[:400]} ({Path(where.filename).name}:{where.lineno})")

    check()
