"""A file of sentences through models: statistics of every sentence in a folder of Parquet files."""

from attnviz.corpus.kept import read
from attnviz.corpus.run import Progress, run, skipped, too_long
from attnviz.corpus.config import KEEP, CorpusConfig

__all__ = ["KEEP", "Progress", "CorpusConfig", "read", "run", "skipped", "too_long"]
