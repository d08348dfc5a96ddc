"""A source word replaced, masked or deleted, and each model's output for the new text."""

from functools import partial

import streamlit as st

from attnviz import intervene
from dashboard.inside import caches, downloads, effects
from dashboard.inside.scene import Column, InsideScene
from dashboard.markup.text import escape, markdown
from dashboard.session import address
from dashboard.shell import frame
from dashboard.shell.problems import sentence
from dashboard.shell.turns import Steps

TITLE = "Replace a word"

NONE = -1
CAUTION = (
    "Another word makes another sentence: word order and agreement may change with it. A masked word is read as an "
    "unknown piece, which the model saw rarely in training."
)


@address.fragment
def show(current: InsideScene, dark: bool) -> None:
    st.subheader(TITLE, divider="gray")
    words = intervene.words(current.columns[0].trace)
    chosen, new = _controls([word.text for word in words])
    if chosen == NONE:
        downloads.drop("replaced")
        st.html('<p class="small" role="status">Choose a word of the text above.</p>')
        return
    stop = partial(st.session_state.update, word=NONE)
    steps = Steps("Reading the other text", effects.steps(current.columns), "stop-replaced", stop)
    affected = [
        (column, rewritten)
        for column in current.columns
        if (rewritten := _rewritten(column, words[chosen], new, steps)) is not None
    ]
    steps.end()
    if not affected:
        return
    st.html(f'<p class="what">The other text: <b>{escape(affected[0][1].free.text)}</b></p>')
    effects.draw(current, affected, effects.REPLACED, f"Other text: {affected[0][1].free.text}", CAUTION, dark)


def _controls(words: list[str]) -> tuple[int, str]:
    """The controls -> the place of the word, and its replacement."""
    left, right = st.columns(2)
    place = frame.numbered("Word", key="word", names=words, none="none", within=left)
    new = right.text_input(
        "Its replacement",
        key="instead",
        bind="query-params",
        max_chars=50,
        disabled=place == NONE,
        placeholder="empty: masked, so that the model reads an unknown piece",
    )
    return place, new.strip() or intervene.MASK


def _rewritten(column: Column, word: intervene.Word, new: str, steps: Steps):
    """The result; None, with a message, if the new text cannot be read."""
    try:
        return caches.rewritten(column, word, new, steps)
    except ValueError as error:  # the same word again, a text that is too long
        st.error(markdown(f"{column.title}: {sentence(str(error))}"), icon=":material/info:")
        return None
