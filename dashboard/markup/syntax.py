"""The questions of syntax in words, and the stored study of them. No Streamlit here."""

import pandas as pd

from attnviz.models.checks import values
from attnviz.syntax import DIRECTIONS, RELATIONS, TO_GOVERNOR, by_head

_NUMBERS = ("layer", "head", "right", "count", "share", "offset", "baseline")


def asked(label: str, direction: str) -> str:
    """`the subject to its verb`, or `the verb to the subject`."""
    relation = RELATIONS[label]
    ends = relation.dependant, relation.governor
    return " to ".join(ends) if direction == TO_GOVERNOR else f"{ends[1].replace('its', 'the')} to {ends[0]}"


def rows(study: dict, model: str) -> pd.DataFrame:
    """The rows of a stored study for one model, in the columns of `by_head.table`; those that cannot be read are left
    out."""
    whole = [
        {**row, "kind": "encoder"}
        for row in study.get("rows", ())
        if row.get("model") == model
        and row.get("relation") in RELATIONS
        and row.get("direction") in DIRECTIONS
        and values.numbers(row, *_NUMBERS)
    ]
    return pd.DataFrame(whole, columns=list(by_head.COLUMNS))
