"""The trainings of all visitors: each in a process of its own, and so many at once as the server allows.

A training ends where its visitor stops looking, as with a closed tab (`attnviz.training.apart`).
"""

import threading
import weakref
from collections.abc import Callable

from streamlit.runtime import Runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx

from attnviz.training.apart import ENDED, Apart
from dashboard.choices import settings
from dashboard.session import address
from dashboard.shell.problems import SceneError

_KEY = "training"  # in the session
_running: "weakref.WeakSet[Apart]" = weakref.WeakSet()
_lock = threading.Lock()


def of(session) -> Apart | None:
    """The training of this visit."""
    return session.get(_KEY)


def start(session, task, mechanisms, how) -> None:
    """Start a training, in place of the one that the visit has. SceneError where the server takes no more."""
    with _lock:
        stop(session)
        most = settings.value(settings.TRAIN)
        if not most:
            raise SceneError("This server trains no models: whoever runs it has switched it off (ATTNVIZ_TRAIN=0).")
        if sum(training.state != ENDED for training in _running) >= most:
            raise SceneError(
                f"{most} {'training runs' if most == 1 else 'trainings run'} on this server already, as many as it "
                "takes. Try again when one has ended."
            )
        training = Apart(task, mechanisms, how, is_open=_is_open())
        _running.add(training)
        session[_KEY] = training


def stop(session) -> None:
    """End the training of this visit; what was seen stays until the next one."""
    if training := of(session):
        training.tell("stop")


def _is_open() -> Callable[[], bool]:
    """Is the page of this visit open, also in a tab in the background, where a browser lets it ask once a minute?"""
    context = get_script_run_ctx()
    if context is None or not Runtime.exists():
        return lambda: False
    runtime, state, session = Runtime.instance(), context.session_state, context.session_id
    return lambda: runtime.is_active_session(session) and state.filtered_state.get(address.AT) == "train"
