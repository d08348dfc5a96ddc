"""What tests of `python -m attnviz train` share."""

from attnviz.models import checkpoint_files

SMALL = [
    "--epochs",
    "1",
    "--batch-tokens",
    "200",
    "--set",
    "width=16",
    "--set",
    "embedding_width=16",
    "--set",
    "vocabulary=120",
]


def card_of(tmp_path, name="en-fr/bahdanau"):
    return checkpoint_files.read_json(tmp_path / "out" / name / "card.json")
