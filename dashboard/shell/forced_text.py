"""The one text that all models are made to write, where a person chose one. No Streamlit here."""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from attnviz.trace import Trace
from dashboard.choices import pairs
from dashboard.choices.options import FROM, LIMIT, OWN, TYPED, model, title
from dashboard.shell.problems import SceneError, Wanted, check_text

Tracer = Callable[[str, str, str | None, int], Trace]  # model, text, target, beam
Ask = Callable[[Sequence[str], str, str | None, int], Wanted]  # models, text, target, beam


class ForcedTextChoices(Protocol):
    """What a page's choices say of it. target : OWN, TYPED, or FROM and a mechanism. forced : what was typed."""

    pair: str
    text: str
    target: str
    forced: str
    beam: int


def forced_text(choices: ForcedTextChoices, tracer: Tracer) -> str | None:
    """The text; None where each model writes its own. Raises SceneError when there is none to use."""
    if choices.target == OWN:
        return None
    if choices.target == TYPED:
        output = pairs.of(choices.pair).output
        if not choices.forced.strip():
            raise SceneError(
                f"Type the {output} that all models should write on the left, or choose another {output} there."
            )
        if len(choices.forced) > LIMIT:
            raise SceneError(f"The {output} has {len(choices.forced):,} characters; the limit is {LIMIT}. Shorten it.")
        return choices.forced
    giver = choices.target.removeprefix(FROM)
    try:
        return tracer(model(choices.pair, giver), choices.text, None, choices.beam).translation
    except ValueError as error:
        raise SceneError(f"The text of {title(giver)} cannot be used for all models: {error}") from None


def wanted(choices: ForcedTextChoices, models: Sequence[str], ask: Ask, tracer: Tracer) -> Iterator[Wanted]:
    """Ask for the traces of these models, all at once; first for the text of one model, where all are to write it.

    Nothing for choices that cannot be drawn: composing the scene says why.
    """
    try:
        check_text(choices.text)
        if choices.target.startswith(FROM):
            yield ask([model(choices.pair, choices.target.removeprefix(FROM))], choices.text, None, choices.beam)
        target = forced_text(choices, tracer)
    except SceneError:
        return
    if models:
        yield ask(models, choices.text, target, choices.beam)
