"""The models and sentences that the chapters show. No Streamlit here."""

from attnviz.data.tasks import TASKS
from attnviz.models.names import ModelName
from attnviz.trace import Trace
from dashboard.choices import pairs
from dashboard.choices.options import model, title
from dashboard.inside.scene import Column
from dashboard.session import caches

PAIR = "en-fr"
SENTENCE = TASKS[PAIR].first
TRANSLATION = TASKS[PAIR].forced  # of SENTENCE
SHORT = "Two boys play with a yellow ball."
LONG = (
    "A young woman in a red dress sits on a bench in front of a brick house and reads a book while two small dogs "
    "sleep in the shade of a tall tree."
)


def trace(mechanism: str, text: str, target: str | None = None) -> Trace:
    """Raises ValueError where the model is missing."""
    return caches.trace(model(PAIR, mechanism), text, target, 1)


def column(mechanism: str, text: str, target: str | None = None, layer: int = 0, head: int = 0) -> Column:
    """A model as the page of one step has it."""
    return Column(trace(mechanism, text, target), layer, head, target)


def state(*mechanisms: str, text: str = SENTENCE, **others: str) -> dict[str, str | list[str]]:
    """The parameters that open the first page, or that of one step, with these mechanisms."""
    return {"pair": pairs.of(PAIR).title, "text": text, "show": [title(name) for name in mechanisms]} | others


def heads_state(text: str = SENTENCE, **others: str) -> dict[str, str]:
    """The parameters that open the page of heads with the Transformer."""
    return {"model": f"{ModelName.parse(model(PAIR, 'transformer')).task.title} · Transformer", "text": text} | others
