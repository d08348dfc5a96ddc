"""Attention of your own: its signature, its correctness, and its weights.

from attnviz import own
own.check(module)               # an nn.Module, its class, or a function -> a Report
own.load("attention.py:Attn")   # the module that a file names
own.in_trained(module)          # it reads real sentences in the trained model of its formula
"""

from attnviz.own.check import Report, check, in_trained
from attnviz.own.checks import Line
from attnviz.own.source import load
from attnviz.own.watch import Watched, watch
from attnviz.own.wrap import wrap

__all__ = ["Line", "Report", "Watched", "check", "in_trained", "load", "watch", "wrap"]
