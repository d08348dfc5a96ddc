"""The sign beside a translation: usual, unusual, or outside what the model has learnt. A click says why. As HTML."""

import html

from attnviz.confidence import Judge
from attnviz.trace import Trace

WORDS = {
    "usual": "usual for this model",
    "unusual": "unusual for this model",
    "outside": "outside what this model has learnt",
}


def sign(trace: Trace, judge: Judge | None) -> str:
    """A `details` element, which the browser opens without a request to the server.

    "" for a model without thresholds, and for a target that the model was made to write.
    """
    if judge is None or trace.forced or not trace.log_probs:
        return ""
    judgement = judge(trace)
    risk = f"Risk of a poor translation, estimated: {judgement.risk:.0%}."
    reasons = "".join(f"<li>{html.escape(reason)}</li>" for reason in (*judgement.reasons, risk))
    summary = f"<summary>{WORDS[judgement.level]}</summary>"
    return f'<details class="sign {judgement.level}">{summary}<ul>{reasons}</ul></details>'
