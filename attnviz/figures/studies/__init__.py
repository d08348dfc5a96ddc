"""Figures of the results of studies, for the page."""

from attnviz.figures.studies.length import by_length

__all__ = ["by_length"]
