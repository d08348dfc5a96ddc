"""What goes along from page to page."""

import ast
from collections import defaultdict

import pytest
from source_files import DASHBOARD, ROOT, nodes

from dashboard.choices.options import HF, OWN, target_title
from dashboard.session import address, catalogue

PAIRS = {
    "en-fr": ["bahdanau", "transformer"],
    "en-de": ["transformer"],
    "en-ja": ["bahdanau"],
    "reverse": ["transformer"],
}
MODELS = ["en-fr/transformer", "en-de/transformer", "reverse/transformer", "sst2/self-attention"]
HEADS, SENTENCE = "heads", ""


@pytest.fixture(autouse=True)
def models_offered(monkeypatch):
    monkeypatch.setattr(catalogue, "offered", lambda: PAIRS)
    monkeypatch.setattr(catalogue, "many_headed", lambda: MODELS)


def change_page(start: str, to: str, **session) -> dict:
    address.arrive(start, session)
    address.arrive(to, session)
    return session


def test_nothing_is_touched_on_the_page_that_a_link_opened_nor_when_it_is_run_again():
    assert {"text": "x", "kind": "cross"}.items() <= change_page(HEADS, HEADS, text="x", kind="cross").items()


@pytest.mark.parametrize(
    "pair, text, model",
    [
        ("en-fr", "a dog", "en-fr/transformer"),
        ("en-de", "a dog", "en-de/transformer"),
        ("en-ja", "a dog", None),  # it has no Transformer: the first model of the page, which is asked in English too
        ("reverse", "a b", "reverse/transformer"),
    ],
)
def test_the_sentence_and_the_pair_go_to_the_page_of_heads(pair, text, model):
    session = change_page(SENTENCE, HEADS, text=text, pair=pair)
    assert (session["text"], session.get("model")) == (text, model)


@pytest.mark.parametrize(
    "model, pair, text",
    [
        ("en-de/transformer", "en-de", "a dog"),
        ("sst2/self-attention", "en-fr", "a dog"),
        ("reverse/transformer", "reverse", "a dog"),
    ],
)
def test_and_back(model, pair, text):
    session = change_page(HEADS, SENTENCE, text=text, model=model)
    assert (session.get("text"), session["pair"]) == (text, pair)


def test_a_model_of_no_pair_stays():
    session = change_page(SENTENCE, HEADS, text="a dog", pair="en-de", model="sst2/self-attention")
    assert session["model"] == "sst2/self-attention" and session["text"] == "a dog"


def test_the_address_says_what_went_along():
    session = {"text": "a dog", "special": False, "units": "pieces", "kind": "decoder", "layer": 0, "head": -1}
    address.arrive(HEADS, session)
    expected = {"text": "a dog", "special": "false", "pair": "English → French"}
    assert address.arrive(SENTENCE, session) == expected and address.arrive(SENTENCE, session) == {}
    back = address.arrive(HEADS, session)
    assert (back["kind"], back["layer"], back["head"]) == ("Self-attention of the decoder", "1", "mean of heads")


def test_the_sentence_goes_to_a_model_that_a_person_brought_too():
    session = change_page(SENTENCE, HEADS, text="a dog", pair="en-fr", model=HF)
    assert (session["text"], session["model"]) == ("a dog", HF)
    address.arrive(SENTENCE, session)
    assert (session["text"], session["pair"]) == ("a dog", "en-fr")


def test_a_sentence_of_another_language_stays_behind():
    assert "text" not in change_page(SENTENCE, HEADS, text="a b c", pair="reverse", model="sst2/self-attention")


def test_each_page_keeps_its_own_head_and_shares_what_is_the_same_question():
    session = change_page(SENTENCE, HEADS, kind="cross", layer=2, special=False)
    assert session["special"] is False and not {"kind", "layer", "head"} & session.keys()
    session.update(kind="encoder", layer=0, head=1)
    address.arrive(SENTENCE, session)
    assert (session["kind"], session["layer"], session.get("head")) == ("cross", 2, None)
    address.arrive(HEADS, session)
    assert (session["kind"], session["layer"], session["head"]) == ("encoder", 0, 1)


def test_the_name_of_a_model_that_a_person_brought_is_kept():
    session = change_page(HEADS, SENTENCE, model=HF, own="./my-bert", text="a dog")
    assert "own" not in session
    assert address.arrive(HEADS, session)["own"] == "./my-bert" and session["own"] == "./my-bert"


def test_two_pages_of_a_pair_share_it_whatever_the_page_of_heads_last_showed():
    session = change_page(SENTENCE, "inside", text="a dog", pair="en-ja", model="reverse/transformer")
    assert (session["text"], session["pair"]) == ("a dog", "en-ja")


def test_the_mechanisms_and_their_text_go_to_the_page_of_one_step_and_back():
    parameters = {
        "pair": "en-fr",
        "text": "a dog",
        "show": ["bahdanau", "transformer"],
        "target": "typed",
        "force": "un chien",
    }
    session = change_page(SENTENCE, "inside", **parameters)
    assert {key: session[key] for key in parameters} == parameters
    written = address.arrive(SENTENCE, session)
    assert session["show"] == parameters["show"] and written["show"] == ["Bahdanau", "Transformer"]


def test_what_does_not_attend_stays_behind():
    session = {"page": SENTENCE, "pair": "en-fr", "text": "a dog", "show": ["fixed-context", "bahdanau"]}
    written = address.arrive("inside", session | {"target": "from-fixed-context"})
    assert written["show"] == ["Bahdanau"] and written["target"] == target_title(OWN)


@pytest.mark.parametrize(
    "chosen, opened",
    [
        ({"head": 3}, {"layer": 1, "head": 3}),
        ({"head": -1}, {"layer": 1, "head": -1}),
        ({"head": 3, "kind": "encoder"}, {}),
        ({"head": 3, "show": ["bahdanau"]}, {}),
    ],
)
@pytest.mark.parametrize("through", [[], ["learn"], [HEADS, "many"]])
def test_the_page_of_one_step_opens_the_head_of_the_first_page(chosen, opened, through):
    session = {"pair": "en-fr", "layer": 1} | chosen
    for page in (SENTENCE, *through, "inside"):
        address.arrive(page, session)
    assert {key: session[key] for key in ("layer", "head") if key in session} == opened


def test_nothing_goes_along_with_back():
    session = {"text": "a dog", "pair": "en-de", "page": SENTENCE}
    assert address.arrive("inside", session, came_back=True) == {} and session["page"] == "inside"


def test_what_belongs_to_the_page_that_was_left_with_back_stays_there():
    session = {"page": "learn", "chapter": "scores", "pair": "en-fr"}
    address.arrive("many", session, came_back=True)
    assert "chapter" not in session
    session["kind"] = "decoder"
    assert address.arrive("learn", session)["chapter"] == "3. Score functions" and "kind" not in session


@pytest.mark.parametrize("page", ["many", "learn"])
@pytest.mark.parametrize("before", [{}, {"page": SENTENCE, "text": "a cat"}])
def test_a_page_without_a_sentence_hands_on_that_of_its_address(page, before):
    """After a reload, and after Back to it."""
    session = {"pair": "en-fr"} | before
    address.arrive(page, session, came_back=bool(before), text="a dog")
    assert address.arrive("inside", session)["text"] == "a dog"
    address.arrive(page, session, came_back=True, text=None)
    assert "text" not in address.arrive("inside", session)


def test_learn_opens_at_the_chapter_that_was_left():
    session = change_page("learn", SENTENCE, chapter="scores", text="a dog", pair="en-fr")
    assert "chapter" not in session
    written = address.arrive("learn", session)
    assert session["chapter"] == "scores" and written["chapter"] == "3. Score functions"


def test_the_beam_goes_along_between_pages_of_a_pair_and_waits_while_others_are_open():
    assert change_page(SENTENCE, "inside", beam=5, text="a dog", pair="en-fr")["beam"] == 5
    session = change_page(SENTENCE, HEADS, beam=5, text="a dog", pair="en-fr")
    assert "beam" not in session
    assert address.arrive(SENTENCE, session)["beam"] == "beam of 5" and session["beam"] == 5


def test_a_control_takes_nothing_from_another_control_of_its_name_on_another_page():
    """The order of many sentences was once taken for the direction of a relation, which broke the page."""
    pages = defaultdict(set)
    for path in DASHBOARD:
        for node in nodes(path):
            key = next((word.value for word in getattr(node, "keywords", ()) if word.arg == "key"), None)
            if isinstance(key, ast.Constant):
                pages[key.value].add(path.relative_to(ROOT / "dashboard").parts[0])
    several = {key for key, folders in pages.items() if len(folders - {"shell"}) > 1}
    assert several == {"kind", "step", "direction", "row", "versus", "find", "keep"}
    session = change_page(HEADS, "many", direction="to governor", row=7, versus=1, find="dog", keep=5, step=2)
    assert "step" in session and not {"direction", "row", "versus", "find", "keep"} & set(session)
