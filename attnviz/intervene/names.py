"""Changes by the names that they have in an address."""

from collections.abc import Callable

from attnviz.arguments import checked
from attnviz.intervene import changes
from attnviz.intervene.changes import Change, Given, Hide, Permuted, Temperature

KINDS: dict[str, type[Change]] = {
    kind.name: kind
    for kind in (
        changes.Identity,
        changes.Uniform,
        changes.ZeroLargest,
        changes.OnlyLargest,
        changes.KeepLargest,
        Permuted,
        changes.LastOnly,
        Temperature,
        Hide,
        Given,
    )
}
READ: dict[str, Callable[[str], Change]] = {  # those that have a value
    Permuted.name: lambda text: Permuted(int(text)),
    Temperature.name: lambda text: Temperature(float(text)),
    Hide.name: lambda text: Hide(tuple(int(part) for part in text.split(","))),
    Given.name: lambda text: Given(tuple(float(part) for part in text.split(","))),
}


@checked
def parse(text: str) -> Change:
    """The change of a text that `str` wrote: `uniform`, `permuted:3`, `temperature:0.5`, `hide:1,2`, `given:0.5,0.5`.

    ValueError for any other text.
    """
    name, colon, value = text.partition(":")
    if name not in KINDS or (name in READ) != bool(colon):
        forms = ", ".join(f"{kind}:…" if kind in READ else kind for kind in KINDS)
        raise ValueError(f"change must be one of {forms}; got {text!r:.80}")
    try:
        return READ[name](value) if colon else KINDS[name]()
    except ValueError as error:
        raise ValueError(f"change {text!r:.80} cannot be read: {error}") from None
