"""The study of faithfulness that ships is of the models that ship."""

import json

import attnviz
from attnviz.models import checkpoint_files
from attnviz.models.checkpoint_files import read_card
from attnviz.studies.faithfulness import PATH


def test_it_was_measured_on_their_weights():
    """All but the models without attention, and those that write, which have no other side to be faithful to."""
    study = json.loads((checkpoint_files.ROOT / PATH).read_text(encoding="utf-8"))
    shipped = {
        read_card(name)["weights_sha256"]
        for name in attnviz.available()
        if not name.endswith(("fixed-context", "writer"))
    }
    assert {model["weights_sha256"] for model in study["models"]} == shipped
