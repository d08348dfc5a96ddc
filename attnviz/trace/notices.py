"""How a model read a text, where that is not as a person expects; in sentences, to be read before the result."""

import re

from attnviz.trace.trace import Trace

_END = re.compile(r"[.!?…。！？]+[\"'”’»)]*(?=\s|$)")


def notices(trace: Trace) -> tuple[str, ...]:
    """Sentences on a trace's text; () where it was read as typed and is no longer than those of training."""
    lines = []
    if trace.read_as:
        lines.append(f"Words in capitals were read as normal words: “{trace.read_as}”")
    if trace.longest:
        sentences = len(_END.findall(trace.text))
        todo = f" It has {sentences} sentences: translate one at a time." if sentences > 1 else ""
        lines.append(
            f"This text is too long for the model: nearly all of its training texts have at most {trace.longest} "
            f"pieces, this one has {sum(token.pieces for token in trace.source)}. Expect parts to be left out or said "
            f"twice.{todo}"
        )
    return tuple(lines)
