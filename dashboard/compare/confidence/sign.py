"""The sign beside a translation: usual, unusual, or outside what the model has learnt. A click says why."""

from collections.abc import Sequence

from attnviz.confidence import Judge, Judgement
from attnviz.trace import Trace
from dashboard.markup.text import escape


def judgement(trace: Trace, judge: Judge | None, samples: Sequence[str] = ()) -> Judgement | None:
    """None for a model without thresholds, and for a target that the model was made to write. samples : of the model,
    where the judge needs them."""
    return None if judge is None or trace.forced or not trace.log_probs else judge(trace, samples)


def sign(judgement: Judgement | None) -> str:
    """A `details` element, which the browser opens without a request to the server; "" without a judgement."""
    if judgement is None:
        return ""
    why = "".join(f"<li>{escape(sentence)}</li>" for sentence in judgement.why)
    return f'<details class="sign {judgement.level}"><summary>{judgement.title}</summary><ul>{why}</ul></details>'
