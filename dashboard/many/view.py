"""The page of many sentences: what was given, measured, drawn. Every panel is a separate module."""

from collections.abc import Sequence

import streamlit as st

from dashboard.browser.plot import bridge
from dashboard.choices import pairs
from dashboard.choices.options import model
from dashboard.many import caches, charts, downloads, running, scene, sources
from dashboard.many.given import Given
from dashboard.many.running import Run
from dashboard.many.scene import ManyChoices, ManyScene
from dashboard.markup import terms
from dashboard.session import address, memory
from dashboard.session.memory import NoRoom
from dashboard.shell import frame
from dashboard.shell.problems import SceneError, sentence


@address.fragment
def show(fields: dict) -> None:
    """Draw the page for the sidebar's choices; sentences that fail leave the last good picture."""
    given = [sources.show(fields["pair"]), sources.show(fields["pair"], other=True)]
    corpora = [answer for answer in given if isinstance(answer, Given)]
    has_targets = not pairs.task(fields["pair"]).writes and any(corpus.has_targets for corpus in corpora)
    forced = has_targets and st.toggle(
        "Force the given translations",
        key="forced",
        bind="query-params",
        help="The models are made to write the translation beside each sentence, where there is one. Otherwise each "
        "model writes its own translation with greedy decoding.",
    )
    choices = ManyChoices(forced=forced, **fields)
    problem = next((answer for answer in given if isinstance(answer, SceneError)), None)
    names = [model(choices.pair, mechanism) for mechanism in choices.mechanisms]
    runs = [caches.run(choices.pair, names, corpus, forced) for corpus in corpora] if names and not problem else []
    problem = problem or _no_room(runs) or running.measure(runs)
    with frame.composed("many", lambda: _compose(choices, corpora, runs, problem)) as current:
        if current is not None:
            _draw(current, frame.is_dark())


def _no_room(runs: list[Run]) -> SceneError | None:
    """Store these runs in the session -> the reason if they do not fit, else None."""
    try:
        memory.claim([(run, run.bytes) for run in runs], st.session_state, "many")
    except NoRoom as error:
        return SceneError(sentence(str(error)))
    st.session_state["runs of many"] = runs
    return None


def _compose(choices: ManyChoices, given: Sequence[Given], runs: Sequence, problem: SceneError | None) -> ManyScene:
    if problem:
        raise problem
    return scene.compose(choices, [(corpus, run, running.shown(run)) for corpus, run in zip(given, runs)])


def _draw(current: ManyScene, dark: bool) -> None:
    st.html(terms.line("entropy", "effective positions", "Gini coefficient", "expected position", "<eos>"))
    of_sentences = charts.sentences_panel, charts.token_panel
    for panel in (charts.distribution_panel, charts.points_panel, *of_sentences, charts.differences_panel):
        panel(current, dark)
    downloads.show(current)
    st.html(terms.caveat())
    bridge()
