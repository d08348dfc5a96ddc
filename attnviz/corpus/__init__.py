"""A file of sentences through models: statistics of every sentence in a folder of Parquet files."""

from attnviz.corpus.run import Progress, run
from attnviz.corpus.settings import KEEP, Settings

__all__ = ["KEEP", "Progress", "Settings", "run"]
