"""Study: does attention matter to what the models produce? Changes of attention, and attention beside gradients.

Every number is a share or a mean over target tokens; its interval comes from samples of the sentences.
"""

from attnviz.studies.faithfulness.measure import measure
from attnviz.studies.faithfulness.panels import panels
from attnviz.studies.faithfulness.words import text

TITLE = "Does attention matter?"
DESCRIPTION = (
    "Does attention matter: preserved function and content words, agreement with gradients, comprehensiveness, by "
    "mechanism"
)
COLUMNS = 2

__all__ = ["COLUMNS", "DESCRIPTION", "TITLE", "measure", "panels", "text"]
