"""Study: how translations and attention change with the length of a sentence, with and without attention."""

from attnviz.studies.length.measurements import measure
from attnviz.studies.length.picture import panels
from attnviz.studies.length.section import text

__all__ = ["COLUMNS", "DESCRIPTION", "TITLE", "measure", "panels", "text"]

TITLE = "Sentence length"
DESCRIPTION = (
    "BLEU and loss against the length of the source for each mechanism, and entropy against the logarithm of length"
)
COLUMNS = 3
