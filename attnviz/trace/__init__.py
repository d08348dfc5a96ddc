"""The value that everything hangs on: a Trace of what one model looked at, its tokens and its maps. No torch here."""

from attnviz.trace.trace import KINDS, SIDES, Alternative, AttentionMap, Token, Trace

__all__ = ["KINDS", "SIDES", "Alternative", "AttentionMap", "Token", "Trace"]
