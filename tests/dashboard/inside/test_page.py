"""The page of one step run by Streamlit's own test driver: every panel, changes, tests, and what cannot be shown."""

import base64
import io
import json
import re
import zipfile
from dataclasses import replace

import numpy as np
import pytest
import synthetic
from inside_app import SCRIPT, cells, described, figures, opened, page, run
from opened_steps import step
from streamlit.testing.v1 import AppTest

from attnviz import intervene, mechanisms
from attnviz.inside import Parts
from attnviz.mechanisms import MECHANISMS
from dashboard.choices.options import title
from dashboard.inside import downloads
from dashboard.inside.change import CHANGES, PARTS, WHERE, places
from dashboard.inside.pictures import Opened, parts_cell, scores_cell
from dashboard.inside.scene import Column
from dashboard.pages import PAGES
from dashboard.session import caches
from dashboard.session.waiting_line import WaitingLine
from dashboard.shell import turns

pytestmark = pytest.mark.usefixtures("models_served")
ATTENDING = [name for name in MECHANISMS if MECHANISMS[name].kinds]


@pytest.mark.parametrize("name", ATTENDING)
def test_every_mechanism_has_a_step_to_open(name):
    app = run(show=title(name), step="2", tables="true")
    scores, parts, values = described(app, "opened")
    assert scores.startswith("Scores and weights of step 2, ") and parts.startswith("The score of ")
    assert values.startswith("Weighted values and context of step 2, ")
    assert app.latex and "scores and weights of this step" in page(app) and "weighted values and their sum" in page(app)
    asks = {"bahdanau": "<b>before</b>", "transformer": "query matrix"}
    assert asks.get(name, "<b>after</b>") in page(app) and '<ol class="order"' in page(app)


def test_the_same_step_of_several_models_is_one_row_of_pictures():
    app = run(show=["Bahdanau", "Luong general", "Transformer"], target="One text for all: typed", force="Le chien.")
    words = [cell["words"] for cell in cells(app, "opened")]
    assert len(words) == 15  # five pictures of three models, row by row
    assert ["Bahdanau" in words[0], "Luong general" in words[1], "Transformer" in words[2]] == [True] * 3
    assert all("who asks" in cell for cell in words[:3]) and all("what comes next" in cell for cell in words[-3:])
    assert len(app.latex) == 3 and not any("different texts" in caption.value for caption in app.caption)
    app.selectbox(key="target").set_value("own").run()
    assert any("choose one text for all under “French text” on the left" in caption.value for caption in app.caption)


def test_the_terms_of_a_step_are_explained():
    shown = page(run())
    for term in ("log-probability", "entropy", "piece", "&lt;eos&gt;", "head"):
        assert shown.count(f"<summary>{term}</summary>") == 1


def test_who_asks_names_the_token_that_the_query_has_read_or_not():
    app = run(show=["Bahdanau", "Luong general"], target="One text for all: typed", force="Le chien.", step="2")
    before, after = (cell["words"] for cell in cells(app, "opened")[:2])
    assert '<b>before</b> this step. It has not yet read <b lang="fr" dir="auto">Le</b>, the token before.' in before
    assert "it reads yₜ₋₁ and cₜ" in before and "the state steps first: it reads yₜ₋₁" in after
    assert 'The decoder first reads <b lang="fr" dir="auto">Le</b>, the token before.' in after
    assert "It has not yet read <b>&lt;bos&gt;</b>, the sign of the start." in page(run(step="1"))


@pytest.mark.parametrize("query", [{"change": "uniform"}, {"word": "2 black", "instead": "white"}, {"step": "500"}])
def test_every_status_and_heading_that_repeats_for_each_model_names_it(query):
    """A screen reader hears them one after another, without the columns."""
    app, names = run(show=["Bahdanau", "Luong general"], tests="true", **query), ("Bahdanau", "Luong general")
    shown = re.findall(r'(<(h4|\w+ [^>]*role="status")[^>]*>.*?</)', page(app), re.DOTALL)
    repeated = [words for words, _ in shown if "Choose a " not in words]
    assert all(any(name in words for name in names) for words in repeated), repeated
    assert min(sum(name in words for words in repeated) for name in names) > 5


def test_a_score_that_is_no_sum_is_one_number(monkeypatch):
    """Of a score function of a person's own, which need not say its terms; its words say what its scores are."""
    opened = step()
    whole = replace(opened, parts=Parts(opened.scores[:, None], "dimension"))
    column = Column(synthetic.trace(model="en-fr/bahdanau"), 0, 0, None)
    for reference, start in (("mean", "the mean of all tokens"), ("runner-up", "the score of ")):
        words = parts_cell(Opened(column, whole, 2, 1.0, reference), False).words
        assert f"so it is one number. The bar: how far it is from {start}" in words and " sum over " not in words
    for added in (False, True):
        monkeypatch.setattr(mechanisms, "was_added", lambda name: added)
        words = scores_cell(Opened(column, whole, 2, 1.0, "mean"), False).words
        assert (MECHANISMS["bahdanau"].words in words.replace("&#x27;", "'")) == added


def test_a_text_that_ends_sooner_says_so():
    app = run(show=["Bahdanau", "Transformer"])
    lengths = [len(column.trace.target) for column in app.session_state["last scene of inside"].columns]
    app = run(show=["Bahdanau", "Transformer"], step=str(max(lengths)))
    if lengths[0] != lengths[1]:
        assert f"This text ends after {min(lengths)} steps." in page(app)
    assert app.session_state["step"] == max(lengths)


def test_the_score_that_is_taken_apart_is_in_the_address():
    app = run(show=["Bahdanau", "Luong general"], cell="2 black")
    assert [words.startswith("The score of ‘black’") for words in described(app, "opened")[2:4]] == [True, True]


def test_the_temperature_changes_weights_and_entropy():
    cold, warm = (run(heat=heat) for heat in ("0.25", "4"))
    weights = [figures(app, "opened")[0]["data"][0]["y"] for app in (cold, warm)]
    assert max(weights[0]) > max(weights[1])
    assert "At temperature 4: " in page(warm)


def test_other_scores_are_worked_out_when_opened():
    assert not figures(run(), "functions")
    app = opened()
    app.session_state["functions"] = True
    app.run()
    [words] = described(app, "functions")
    assert words.startswith("The largest weight of the same query through ") and "scaled dot" in page(app)


def test_a_model_that_does_not_attend_is_not_on_offer():
    options = run().pills(key="show").options if hasattr(AppTest, "pills") else run().button_group(key="show").options
    names = [getattr(option, "content", option) for option in options]
    assert title("fixed-context") not in names and title("bahdanau") in names


def test_the_head_of_a_transformer():
    app = run(show="Transformer", layer="1", head="2")
    assert ", layer 1, head 2." in page(app)


def test_the_mean_of_heads_has_weights_and_says_where_its_scores_are():
    app = run(show=["Bahdanau", "Transformer"], layer="1", head="mean of heads", step="2", tables="true")
    [column] = [column for column in app.session_state["last scene of inside"].columns if column.several]
    mean = column.trace.map("cross", 0).weights.mean(0)[1]
    [bars] = [figure for figure in figures(app, "opened") if "looks at" in str(figure["data"][0].get("hovertext"))]
    shown = np.frombuffer(base64.b64decode(bars["data"][0]["y"]["bdata"]), "float32")
    assert np.allclose(shown, mean, atol=1e-4)
    assert "Transformer, layer 1, mean of heads: The mean of heads has weights, but no query" in page(app)
    assert "Transformer: weights of this step, mean of heads" in page(app) and len(app.latex) == 1
    rows = app.session_state["shown panels of inside"].frames["step"]
    rows = rows[rows["model"] == column.model]
    assert np.allclose(rows["weight"], mean) and rows["head"].isna().all() and set(rows["step"]) == {1}
    assert rows["token"].tolist() == [token.text for token in column.trace.source] and rows["score"].isna().all()


def test_the_file_of_a_step_at_another_temperature_has_both_weights():
    app = run(show=["Bahdanau", "Transformer"], layer="1", head="mean of heads", heat="4")
    rows = app.session_state["shown panels of inside"].frames["step"]
    recurrent, mean = (rows[rows["model"].str.endswith(name)] for name in ("/bahdanau", "/transformer"))
    heated = np.exp(recurrent["score"] / 4)
    assert np.allclose(recurrent["weight_at_temperature"], heated / heated.sum(), atol=1e-5)
    assert set(recurrent["temperature"]) == {4} and mean["weight_at_temperature"].isna().all()
    assert any("weights, mean of heads, at temperature 1" in cell["words"] for cell in cells(app, "opened"))


@pytest.mark.parametrize("change", ["uniform", "by hand: drag the bars"])
def test_a_change_under_the_mean_of_heads_is_of_the_layer_or_of_all(change):
    parameters = {"part": "this head", "step": "2", "given": "0, 1, 0, 0, 0, 0"}
    app = run(show="Transformer", head="2", change=change, **parameters)
    app.session_state["head"] = -1
    app.run()
    [part] = [box for box in app.selectbox if box.label == "In the Transformer"]
    assert part.value == "layer" and "this head" not in part.options and len(figures(app, "changed")) == 3


@pytest.mark.parametrize("change", [change for change in CHANGES.values() if change != "no change"])
def test_every_change(change):
    app = run(change=change, show=["Bahdanau", "Transformer"], tables="true")
    maps = figures(app, "changed")
    assert len(maps) == 6  # two maps and the bars of two models
    assert "Under the change" in page(app) and "each target token" in page(app)
    assert sum(words.startswith("Effect on ") for words in described(app, "changed")) == 2


@pytest.mark.parametrize("where", WHERE.values())
@pytest.mark.parametrize("part", PARTS.values())
def test_every_place(where, part):
    app = run(change="uniform", where=where, show="Transformer", part=part)
    assert len(figures(app, "changed")) == 3


def test_weights_by_hand_are_divided_by_their_sum():
    count = len(run().session_state["last scene of inside"].columns[0].trace.source)
    app = run(change="by hand: drag the bars", step="2", given=",".join(["0", "3"] + ["0"] * (count - 2)))
    changed = figures(app, "changed")[1]["data"][0]["z"]
    assert weights_of(changed, 1)[1] == 1


@pytest.mark.parametrize(
    "mechanisms", [["Bahdanau", "Luong dot", "Luong concat", "Luong local"], ["Scaled dot", "Transformer"]]
)
def test_bars_that_nobody_moved_change_nothing(mechanisms):
    """Each model starts from its own weights, not from those of the first."""
    app = run(change="by hand: drag the bars", step="2", show=mechanisms)
    assert "No bar has been moved" in page(app)
    effects = figures(app, "changed")[-len(mechanisms) :]
    assert all(value == 0 for effect in effects for bars in effect["data"] for value in bars["y"])


def test_each_model_has_weights_of_its_own():
    shown = ["Bahdanau", "Luong dot"]
    count = len(run().session_state["last scene of inside"].columns[0].trace.source)
    typed = ",".join(["0", "3"] + ["0"] * (count - 2))
    app = run(change="by hand: drag the bars", step="2", show=shown, **{"given-luong-dot": typed})
    first, _ = app.session_state["last scene of inside"].columns
    changed = [weights_of(figure["data"][0]["z"], 1) for figure in figures(app, "changed")[2:4]]
    assert changed[0] == pytest.approx(first.grid(first.trace).weights[1].tolist(), abs=1e-3) and changed[1][1] == 1


def test_what_does_not_follow_the_temperature_is_grey():
    assert "at temperature" not in page(run())
    shown = page(run(heat="2"))
    assert "weighted values make the context, at temperature 2" in shown
    assert "what comes next, at temperature 1" in shown and 'class="pale"' in shown


def test_by_hand_is_at_the_step_and_what_was_chosen_stays():
    app = run(change="by hand: drag the bars", where="at steps of content words")
    assert [box.value for box in app.selectbox if box.label == "Where"] == ["step"]
    app.selectbox(key="change").set_value("uniform").run()
    assert app.session_state["where"] == "content"


def test_a_forced_text_is_not_taken_for_the_translation():
    """Only what the model writes by itself, with and without the change, can say whether the translation changes."""
    app = run(change="uniform", target="One text for all: typed", force="Le chat.")
    [column] = app.session_state["last scene of inside"].columns
    own, model = caches.trace(column.model, column.text).translation, caches.model(column.model)
    changed = intervene.run(model, column.text, intervene.Uniform()).free.translation
    verdict = "stays the same" if own == changed else "changes"
    words = re.sub("<[^>]+>", "", cells(app, "changed")[0]["words"])
    assert own != "Le chat." and f"The translation of Bahdanau {verdict}.As it is{own} " in words
    assert "The text at the top of the page, forced under the changeLe chat. " in words


def weights_of(z, row: int) -> list[float]:
    """Of a heatmap's cells, which plotly may send as bytes."""
    if not isinstance(z, dict):
        return z[row]
    shape = [int(size) for size in z["shape"].split(",")]
    return np.frombuffer(base64.b64decode(z["bdata"]), "float32").reshape(shape)[row].tolist()


@pytest.mark.parametrize("typed", ["1, 2", "a", "0,0", "-1", "nan", "1e999"])
def test_weights_that_cannot_be_used_are_asked_for_again(typed):
    app = run(change="by hand: drag the bars", given=typed)
    assert "numbers separated by commas, one for each source token" in page(app) and not figures(app, "changed")


def test_a_source_word_replaced():
    app = run(word="2 black", instead="white", show=["Bahdanau", "Transformer"], tables="true")
    assert "The black dog" not in page(app).split("The other text: ")[1][:40]
    assert "The white dog runs." in page(app) and len(figures(app, "replaced")) == 6


def test_a_source_word_masked():
    app = run(word="3 dog")
    assert "The black □ runs." in page(app) and len(figures(app, "replaced")) == 3


def test_the_same_word_is_no_replacement():
    app = opened(word="3 dog", instead="dog")
    assert [error.value for error in app.error] == ["Bahdanau: The new word must be another one; got 'dog'\\."] or (
        "must be another" in app.error[0].value
    )


def test_the_zip_has_what_is_shown():
    app = run(change="uniform", step="2")
    current, shown = app.session_state["last scene of inside"], app.session_state["shown panels of inside"]
    with zipfile.ZipFile(io.BytesIO(downloads.bundle(current, shown))) as archive:
        names = set(archive.namelist())
        manifest = json.loads(archive.read("manifest.json"))
        assert {"step.csv", "change.csv", "figures/weighted-values-bahdanau.html"} <= names
        assert len([name for name in names if name.startswith("traces/")]) == 3  # as it is, forced, free
        assert archive.read("step.csv").decode("utf-8-sig").startswith("model,step,layer,head,key,token,")
    assert manifest["query"].startswith("inside?") and "change=uniform" in manifest["query"]
    assert manifest["panels"] == ["step", "change"]


def test_a_saved_picture_says_which_change_it_shows():
    app = run(
        change="permuted", seed="3", step="2", where="at the step chosen above", show="Transformer", part="this head"
    )
    [before, after, tokens] = [figure["layout"]["meta"]["saved"]["title"]["text"] for figure in figures(app, "changed")]
    change = "Attention changed: permuted, at step 2; in the Transformer: this head"
    assert change in after and change in tokens and "Attention changed" not in before
    replaced = figures(run(word="2 black", instead="white"), "replaced")
    assert "Other text: The white dog runs." in replaced[1]["layout"]["meta"]["saved"]["title"]["text"]


def test_the_zip_has_the_pictures_of_every_panel():
    """Of a change, of a replaced word, and of what is opened below the formulas: each by a name of its own."""
    app = run(change="uniform", word="2 black", instead="white", functions="true", scaled="true")
    drawn = [figure for key in ("opened", "functions", "spread", "changed", "replaced") for figure in figures(app, key)]
    shown = app.session_state["shown panels of inside"]
    with zipfile.ZipFile(io.BytesIO(downloads.bundle(app.session_state["last scene of inside"], shown))) as archive:
        pictures = [name for name in archive.namelist() if name.startswith("figures/") and name.endswith(".html")]
        tables = {name for name in archive.namelist() if name.endswith(".csv")}
    assert len(pictures) == len(drawn) - 1  # the map as it is stands in two panels
    assert tables == {"step.csv", "functions.csv", "spread.csv", "change.csv", "replaced.csv"}
    for how in ("under-the-change", "with-the-other-word"):
        assert f"figures/bahdanau-each-token-{how}-same-text.html" in pictures


@pytest.mark.parametrize(
    "text, message", [("", "There is no sentence yet."), ("a" * 501, "The sentence has 501 characters")]
)
def test_a_text_that_cannot_be_shown(text, message):
    app = AppTest.from_string(SCRIPT, default_timeout=60)
    app.query_params["text"] = text
    app.session_state["text"] = text
    app.run()
    messages = [element.value for element in (*app.info, *app.error)]
    assert any(message in words for words in messages), messages


def test_every_panel_has_its_numbers_as_a_file():
    app = run(change="uniform", word="2 black", instead="white", tests="true")
    names = {button.proto.id.split("csv-")[-1] for button in app.get("download_button") if "csv-" in button.proto.id}
    assert names == {"step", "change", "replaced", "tests"}
    assert {"tests", "agreement"} <= set(app.session_state["shown panels of inside"].panels)


def test_the_step_is_that_of_the_beam():
    """Changes force the text that the beam has found."""
    app = run(beam="beam of 5", change="uniform")
    [column] = app.session_state["last scene of inside"].columns
    assert column.target == column.trace.translation and not column.trace.forced
    assert "Both translations are decoded greedily." in page(app)


def test_the_tests_are_run_when_asked_for():
    assert not figures(run(), "tests")
    app = run(tests="true", show=["Bahdanau", "Transformer"], tables="true")
    words = described(app, "tests")
    assert len(words) == 10
    assert words[0].startswith("Total variation of the next-token distribution")
    assert words[2].startswith("Source tokens erased in the order of ")
    maps = figures(app, "tests")
    assert maps[4]["layout"]["xaxis"]["ticktext"] == maps[6]["layout"]["xaxis"]["ticktext"]
    assert words[8].startswith("Kendall’s τ-b of attention and attributions for ")
    assert "Kendall’s τ-b with attention, by target token" in page(app) and "What these tests cannot show." in page(app)
    papers = ("N19-1357", "D19-1002", "D19-5624", "2020.acl-main.408")
    assert all(page(app).split("verdict")[1].count(f"aclanthology.org/{paper}/") >= 1 for paper in papers)
    assert "Permuting attention at a step moves" in page(app) and "Kendall’s τ-b" in page(app)
    assert "the study has not been run on these weights" in page(app)


def test_tests_wait_for_nobody_where_too_many_wait(monkeypatch):
    monkeypatch.setattr(turns, "LONG", WaitingLine(1, 0))
    app = AppTest.from_string(SCRIPT, default_timeout=60)
    app.query_params["tests"] = "true"
    app.run()
    assert not app.exception and "this server takes no more" in app.error[0].value, app.exception
    monkeypatch.setattr(turns, "LONG", WaitingLine(1, 1))
    assert not app.run().error and figures(app, "tests")


def test_integrated_gradients_of_all_tokens_say_how_complete_they_are():
    app = run(tests="true", method="integrated gradients")
    *_, attention, integrated, agreement = figures(app, "tests")
    assert integrated["layout"]["yaxis"]["ticktext"] == attention["layout"]["yaxis"]["ticktext"]
    assert "Attributions by integrated gradients" in integrated["layout"]["meta"]["description"]
    assert "Completeness error: at most " in page(app) and "Attention and integrated gradients order" in page(app)
    assert '<th scope="row" lang="en">integrated gradients</th>' in page(app)  # beside the other methods
    assert len(agreement["data"][0]["y"]) == len(attention["layout"]["yaxis"]["ticktext"])


def test_the_debate_is_on_the_page():
    words = page(run())
    assert "Attention is not by itself an explanation." in words and words.count("aclanthology.org") == 3


def test_the_navigation_has_the_page():
    page = next(page for page in PAGES if page.path == "inside")
    assert page.title == "Inside a step" and page.folder == "inside"


def test_steps_of_function_words_need_a_list_of_them():
    assert places("fr") == list(WHERE) and places("zxx") == ["all", "step"]
