"""Trace: what one model attended to in one text, with its tokens and its attention maps. No torch here."""

from attnviz.trace.attention_map import AttentionMap
from attnviz.trace.axes import KINDS, SIDES
from attnviz.trace.token import BOS, Alternative, Token
from attnviz.trace.trace import Trace

__all__ = ["BOS", "KINDS", "SIDES", "Alternative", "AttentionMap", "Token", "Trace"]
