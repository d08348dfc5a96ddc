"""The page of many sentences run by Streamlit's own test driver: sources, panels, comparisons, limits, bad input."""

import csv
import gzip
import html
import io
import json
import re
import zipfile

import pytest
import tiny
import tiny_writer
from client import chart_cells
from page_script import script_of
from streamlit.testing.v1 import AppTest

import attnviz
from attnviz import across, stats
from dashboard.choices.options import sentence_numbers, title
from dashboard.many import charts, downloads, given
from dashboard.pages import PAGES
from dashboard.session import catalogue
from dashboard.session.waiting_line import WaitingLine
from dashboard.shell import turns
from dashboard.shell.problems import SceneError

NUMBERS = sentence_numbers()
SCRIPT = script_of("many")
LINES = "\n".join(f"{english}\t{french}" for english, french in tiny.sentences(12, 5))
NAMED = "A file on this machine"


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return tiny.write_models(tmp_path_factory.mktemp("many"))


@pytest.fixture(autouse=True)
def models_served(models, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_CHECKPOINTS", str(models))


def opened(**query) -> AppTest:
    app = AppTest.from_string(SCRIPT, default_timeout=120)
    for key, value in {"from": "Pasted", "lines": LINES, "show": "Bahdanau", **query}.items():
        app.query_params[key] = value
    return app.run()


def run(**query) -> AppTest:
    app = opened(**query)
    assert not app.exception and not app.error, (app.exception, app.error)
    return app


def described(app: AppTest, key: str) -> str:
    for element in app.get("bidi_component"):
        if f"chart-{key}" in element.proto.id:
            (cell,) = chart_cells(element.proto)
            return cell["figure"]["layout"]["meta"]["description"]
    return ""


def page(app: AppTest) -> str:
    return html.unescape("".join(element.proto.body for element in app.get("html")))


def scene(app: AppTest):
    return app.session_state["last scene of many"]


def test_pasted_sentences_are_measured_drawn_and_listed():
    app = run(show=["Bahdanau", "Transformer"], tables="true")
    frame = scene(app).corpus.frame
    assert len(frame) == 24 and frame["error"].isna().all() and set(frame["mechanism"]) == {"Bahdanau", "Transformer"}
    assert described(app, "spread").startswith("Normalised entropy of the sentences, by mechanism. Means: Bahdanau ")
    assert "Entropy (nats) against Length of the sentence (tokens)" in described(app, "points")
    words = page(app)
    assert "Bahdanau: 12 of 12 sentences" in words and "Bahdanau minus Transformer" in words
    assert "12 pairs of sentences" in words and "correlation (Pearson’s r)" in words
    assert "Transformer: Entropy (nats) by Length of the sentence (tokens)" in words


def test_each_sentence_is_a_link_to_the_first_page():
    app = run()
    links = re.findall(r'<a href="(\./\?[^"]*)"', "".join(element.proto.body for element in app.get("html")))
    assert len(links) == 12 and "pair=English" in links[0] and "show=Bahdanau" in links[0] and "force" not in links[0]


@pytest.mark.parametrize("count, words", [(1, "1 outlier of"), (2, "2 outliers of")])
def test_sentences_that_stand_out_are_counted(count, words, monkeypatch):
    monkeypatch.setattr(charts, "unusual", lambda frame, statistic: frame.head(count).assign(z=4.0))
    assert f"Bahdanau: {words} normalised entropy, {count} shown" in page(run())


def test_given_translations_are_forced_when_asked_for():
    app = run(forced="true")
    frame = scene(app).corpus.frame
    assert frame["translation"].tolist() == [line.split("\t")[1] for line in LINES.splitlines()]
    assert "force=Le+" in page(app)


@pytest.mark.parametrize("statistic", NUMBERS.values())
def test_every_number_can_be_shown_sorted_and_compared(statistic):
    app = run(
        statistic=statistic,
        across=statistic,
        upwards=statistic,
        sort=statistic,
        direction="largest first",
        **{"from": "Sentences of this project", "forced": str(statistic == NUMBERS["alignment_error"]).lower()},
    )
    assert described(app, "spread").startswith(statistic)
    frame = app.session_state["shown panels of many"].frames["sentences"]
    (name,) = [name for name, title in NUMBERS.items() if title == statistic]
    assert frame[name].dropna().is_monotonic_decreasing and "Bahdanau: 25 of 40 sentences" in page(app), page(app)


def test_sentences_are_found_by_their_words_in_either_language():
    app = run(find="chien", forced="true")
    frame = app.session_state["shown panels of many"].frames["sentences"]
    assert 0 < len(frame) < 12 and frame["translation"].str.contains("chien").all()


def test_another_kind_of_attention_leaves_out_who_has_none():
    app = run(show=["Bahdanau", "Transformer"], kind="Self-attention of the encoder")
    assert scene(app).titles == ["Transformer"]
    assert "Bahdanau is not shown: it has no self-attention of the encoder" in app.warning[0].value.replace("\\", "")


def test_two_sets_of_sentences_are_samples_or_pairs():
    choices = {"other_from": "Pasted", "other_lines": LINES.replace("The", "A")}
    app = run(**choices)
    assert "two independent samples of sentences" in page(app) and "Bahdanau, other sentences" in page(app)
    assert "12 pairs of sentences" in page(run(paired="true", **choices))


def test_a_named_file_is_read(tmp_path):
    path = tmp_path / "in.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"source": "The dog runs."}\n[]\n{"source": "The cat sleeps."}\n'))
    app = run(**{"from": NAMED, "path": str(path)})
    assert "Bahdanau: 2 of 2 sentences" in page(app)
    assert "One line of in.jsonl.gz cannot be read: line 2, it must be a JSON object" in app.warning[0].value.replace(
        "\\", ""
    )


@pytest.mark.parametrize(
    "path", ["/nowhere/at all", "/dev/zero", "//evil.example/share", "\x00", "/etc", "~nobody-here/x"]
)
def test_a_name_that_is_no_file(path):
    app = opened(**{"from": NAMED, "path": path})
    assert not app.exception and [len(app.error), len(app.info)] in ([1, 0], [0, 1])


def test_no_translation_is_not_the_translation_none():
    without, with_one = given.of_text("The dog runs.\n"), given.of_text("The dog runs.\tNone\n")
    assert without.digest != with_one.digest


@pytest.mark.parametrize(
    "text, reason", [("target\tsource\nUn chien.\tA dog.", "first line says"), ("a\0b", "a NUL byte")]
)
def test_a_pasted_text_that_cannot_be_read_is_refused_in_a_sentence(text, reason):
    with pytest.raises(SceneError, match=f"^The pasted sentences cannot be read: the text must .*{reason}"):
        given.of_text(text)


def test_a_public_server_reads_no_files(monkeypatch, tmp_path):
    monkeypatch.setenv("ATTNVIZ_PUBLIC", "1")
    (tmp_path / "in.txt").write_text("The dog runs.")
    app = run(**{"from": NAMED, "path": str(tmp_path / "in.txt")})
    assert scene(app).text == "the 40 sentences linked by hand"
    assert not [box for box in app.text_input if box.key == "path"]


def test_only_so_many_sentences_are_read(monkeypatch):
    monkeypatch.setenv("ATTNVIZ_SENTENCES", "5")
    app = run()
    assert len(scene(app).corpus.frame) == 5
    assert "Only the first 5 lines of the pasted sentences are read" in app.warning[0].value.replace("\\", "")


def test_a_text_that_is_too_long_is_left_out_and_said():
    app = run(lines=f"\n{'a' * 501}\n \nThe dog runs.\n")
    assert scene(app).corpus.frame["number"].tolist() == [4]
    assert "line 2, it must have at most 500 characters" in app.warning[0].value


def test_a_translation_without_a_sentence_is_left_out_and_said():
    app = run(lines="\n\tUn chien.\nThe dog runs.\n")
    assert len(scene(app).corpus.frame) == 1
    assert "line 2, it has a translation and no sentence" in app.warning[0].value


def test_many_pasted_sentences_do_not_go_into_the_address():
    app = run()
    app.text_area(key="lines").set_value("The dog runs.\n" * 200).run()
    assert "lines" not in app.query_params and "too long for the address" in app.caption[0].value
    assert len(scene(app).corpus.frame) == 200
    app.text_area(key="lines").set_value("The dog runs.").run()
    assert app.query_params["lines"] == "The dog runs."


@pytest.mark.parametrize("lines", ["", " \n "])
def test_no_sentences_leave_the_last_result(lines):
    app = run()
    app.text_area(key="lines").set_value(lines).run()
    assert app.info[0].value.startswith("There are no sentences yet") and "Bahdanau: 12 of 12" in page(app)
    assert app.query_params["lines"] == LINES  # of the result


def test_the_address_keeps_what_a_result_was_made_with_when_its_control_has_gone():
    """Streamlit takes it out when all else is done."""
    app = run(forced="true")
    app.button_group(key="from").set_value("named").run()
    assert "Bahdanau: 12 of 12" in page(app) and app.query_params["forced"] == "true"
    app.button_group(key="from").set_value("pasted").run()
    app.text_area(key="lines").set_value("The dog runs.").run()
    assert "Bahdanau: 1 of 1" in page(app) and "forced" not in app.query_params


def test_stop_goes_when_a_run_that_a_link_has_begun_is_finished(monkeypatch):
    monkeypatch.setattr("dashboard.many.running.QUICK", 4)
    app = run(lines=LINES.replace("The", "This"))  # which no other test has measured
    assert "Bahdanau: 12 of 12 sentences" in page(app) and "stop" not in [button.key for button in app.button]


def test_a_run_that_was_stopped_is_in_the_address_and_goes_on_even_where_others_have_gone_further(monkeypatch):
    monkeypatch.setattr("dashboard.many.running.SLICE", 4)
    lines = LINES.replace("The", "One")  # which no other test has measured
    for _ in range(2):  # the first time the run ends there, the second time it had gone on
        app = run(lines=lines, measured="4")
        assert "4 of 12 translations are measured" in app.warning[0].value and "Bahdanau: 4 of 4 sentences" in page(app)
        assert app.query_params["measured"] == "4" and app.button(key="go_on").label == "Continue: 8 of 12 are left"
        app.button(key="go_on").click().run()
        assert "Bahdanau: 12 of 12 sentences" in page(app) and not app.warning


def test_the_zip_has_what_is_shown():
    app = run(statistic="Gini coefficient")
    with zipfile.ZipFile(
        io.BytesIO(downloads.bundle(scene(app), app.session_state["shown panels of many"]))
    ) as archive:
        names, manifest = set(archive.namelist()), json.loads(archive.read("manifest.json"))
        rows = archive.read("all-numbers.csv").decode("utf-8-sig").splitlines()
    assert {"figures/distribution.html", "figures/two-numbers.html", "shown-sentences.csv"} <= names
    assert len(rows) == 13 and rows[0].startswith("model,mechanism,number,id,source,translation,")
    wanted = [row["expected_position"] for frame in scene(app).lines().values() for row in frame.to_dict("records")]
    saved = [float(row["expected_position"]) for row in csv.DictReader(rows)]
    assert sorted(saved) == pytest.approx(sorted(wanted)) and min(saved) >= 1  # as on the page
    assert manifest["query"].startswith("many?") and manifest["measured"] == [{"done": 12, "of": 12}]


def test_texts_are_text():
    app = run(lines="<img src=x onerror=alert(1)>\n=1+1")
    raw = "".join(element.proto.body for element in app.get("html"))
    assert "<img" not in raw and "&lt;img" in raw


def test_the_navigation_has_the_page():
    (entry,) = [entry for entry in PAGES if entry.path == "many"]
    assert (entry.title, entry.folder) == ("Many sentences", "many")


def test_the_difference_of_two_mechanisms_can_be_sorted():
    choices = dict(show=["Bahdanau", "Transformer"], line="Bahdanau", sort="Entropy (nats)", direction="largest first")
    plain = run(**choices).session_state["shown panels of many"].frames["sentences"]
    app = run(minus="Transformer", **choices)
    frame = app.session_state["shown panels of many"].frames["sentences"]
    other = run(**choices | {"line": "Transformer"}).session_state["shown panels of many"].frames["sentences"]
    wanted = plain["entropy_nats"] - other["entropy_nats"].reindex(plain.index)
    assert frame["difference"].to_dict() == pytest.approx(wanted.to_dict())
    assert frame["difference"].is_monotonic_decreasing
    assert "Bahdanau minus Transformer: " in page(app) and "Difference: entropy (nats)" in page(app)
    assert app.selectbox(key="minus").options == ["no other mechanism", "Transformer"]  # not the mechanism itself
    app.selectbox(key="line").select("Transformer").run()
    assert app.selectbox(key="minus").value == "no other mechanism" and not app.exception


def test_the_alignment_error_is_that_of_linked_sentences_that_are_forced():
    chosen = dict.fromkeys(["statistic", "across", "sort"], "Alignment error")
    forced, own = (
        run(forced=forced, **{"from": "Sentences of this project"}, **chosen) for forced in ("true", "false")
    )
    frame = forced.session_state["shown panels of many"].frames["sentences"]
    assert frame["alignment_error"].between(0, 1).all() and frame["coverage"].between(0, 1).all()
    frame = own.session_state["shown panels of many"].frames["sentences"]
    assert frame["alignment_error"].isna().all() and frame["order_swaps"].ge(0).all()
    reason = "The alignment error needs sentences of this project that are linked by hand"
    assert (page(forced).count(reason), page(own).count(reason)) == (0, 3)  # beside each of the panels that lack it


def test_a_token_is_searched_in_all_sentences_that_have_it():
    app = run(show=["Bahdanau", "Luong general"], token="dog")
    rows = re.findall(
        r'<tr><th scope="row">(.*?)</tr>', page(app).partition("heads and ways")[2].partition("</table>")[0]
    )
    having = {line.split("\t")[0] for line in LINES.splitlines() if "dog" in line.split("\t")[0]}
    assert f"{2 * len(having)} translations that may have the token were searched." in page(app) and having
    assert len(rows) == 2 and all("gets most from" in row and '<a href="./?' in row for row in rows)
    frame = app.session_state["shown panels of many"].frames["token"]
    assert frame["sentences"].tolist() == [len(having)] * 2 and frame["weight"].is_monotonic_decreasing
    ends = run(show=["Bahdanau"], token="<eos>").session_state["shown panels of many"].frames["token"]
    sentences = {line.split("\t")[0] for line in LINES.splitlines()}
    assert ends.set_index("way")["sentences"]["gets"] == len(sentences)  # though it stands in no text
    assert "No head of this kind meets “zebra”" in page(run(token="zebra")) and not run().session_state[
        "shown panels of many"
    ].frames.get("token")


def test_the_search_for_a_token_says_that_too_many_people_wait(monkeypatch):
    app = run(show=["Bahdanau"])
    monkeypatch.setattr(turns, "LONG", WaitingLine(1, 0))
    app.text_input(key="token").set_value("dog").run()
    assert not app.exception and "this server takes no more" in app.error[0].value, app.exception
    assert "No head of this kind" not in page(app)


@pytest.mark.xdist_group("hf")  # one process imports the library
def test_a_model_of_the_transformers_library_stands_beside_ours(folder, load, monkeypatch):
    """Named by a visitor; its numbers are those of its traces; its sentences, its tokens and its link are found."""
    name = catalogue.guest(str(folder("marian")))
    query = {"guest": str(folder("marian")), "show": ["Bahdanau", title(name)], "forced": "true", "token": "dog"}
    lines = "\n".join(LINES.splitlines()[:6])
    app = run(lines=lines, **query)
    frame = scene(app).corpus.frame
    mine = frame[frame["model"] == name].reset_index(drop=True)
    assert len(mine) == 6 and frame["error"].isna().all() and set(scene(app).titles) == {"Bahdanau", title(name)}
    source, target = lines.splitlines()[0].split("\t")
    (wanted,) = load("marian").traces([source], [target], keep=("statistics",))
    values = {key: mine[key][0] for key in across.VALUES}
    assert values == pytest.approx(across.sentence(wanted.columns()), rel=1e-5)
    assert mine["log_prob"][0] == pytest.approx(wanted.log_prob) and mine["coverage"].between(0, 1).all()
    words = page(app)
    assert f"Bahdanau minus {title(name)}" in words and "6 pairs of sentences" in words
    links = re.findall(r'<a href="(\./\?[^"]*)"', "".join(element.proto.body for element in app.get("html")))
    assert links and all("guest=" in link for link in links)
    assert {*app.session_state["shown panels of many"].frames["token"]["model"]} == {"en-fr/bahdanau", name}
    app = run(lines=lines, kind="Self-attention of the encoder", **query)
    assert scene(app).titles == [title(name)] and scene(app).corpus.frame["gini"].notna().sum() == 6
    monkeypatch.setattr("dashboard.many.running.OWN_SLICE", 2)
    app = run(lines=lines.replace("The", "My"), measured="4", **query)
    assert "4 of 12 translations are measured" in app.warning[0].value and app.button(key="go_on")


@pytest.mark.xdist_group("hf")
def test_one_that_the_operator_names_and_that_cannot_stand_there_leaves_ours(folder, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_BESIDE", f"en-fr=hf:{folder('bert')}")
    name = catalogue.guest(str(folder("bert")))
    app = run(show=["Bahdanau", title(name)])
    assert scene(app).titles == ["Bahdanau"] and f"{title(name)} reads a text and produces none" in page(app)


def test_a_model_that_writes_reads_every_text(models):
    root = tiny_writer.write_models(models)
    texts = ["The dog runs.", "The cat sleeps. A black horse", "A boy"]
    app = run(pair="Stories and sentences · written on", show="", lines="\n".join(texts), find="black")
    (corpus,) = [app.session_state["last scene of many"].corpus]
    writer = attnviz.load("en/writer", root)
    for text, row in zip(texts, corpus.frame.itertuples(), strict=True):
        trace = writer.trace(text)
        assert row.log_prob == pytest.approx(trace.log_prob, abs=1e-3) and row.target_tokens == len(trace.target)
        assert row.max_weight == pytest.approx(stats.steps(trace)["max_weight"].mean(), abs=1e-4)
    shown = html.unescape(page(app))
    assert "./heads?model=Stories+and+sentences" in shown and '<th scope="col">translation</th>' not in shown
    assert not any(box.key == "guest" for box in app.text_input)
