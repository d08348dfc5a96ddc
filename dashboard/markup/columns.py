"""How many columns of mechanisms stand in a row, by the room that there is: the variables that style.css reads."""

_TWO_AND_TWO = "--columns: 2; --row3: 1; --row4: 1; --whose: block;"
_ONE = "--columns: 1; --row2: 1; --row3: 2; --row4: 3; --whose: block;"
_NARROWER = ((4, "80rem", _TWO_AND_TWO), (3, "55rem", _TWO_AND_TWO), (2, "36rem", _ONE))  # the least columns it is for


def style(columns: int) -> str:
    """A style element. columns : how many there are."""
    rules = [f".stMainBlockContainer > * {{ --columns: {columns}; }}"] + [
        f"@container (max-width: {width}) {{ .stMainBlockContainer > * {{ {values} }} }}"
        for least, width, values in _NARROWER
        if columns >= least
    ]
    return f"<style>{' '.join(rules)}</style>"
