"""Trace: what one model attended to in one text, with its tokens and its attention maps. No torch here."""

from attnviz.trace.token import BOS, KINDS, SIDES, Alternative, Hypothesis, Token
from attnviz.trace.trace import AttentionMap, Trace

__all__ = ["BOS", "KINDS", "SIDES", "Alternative", "AttentionMap", "Hypothesis", "Token", "Trace"]
