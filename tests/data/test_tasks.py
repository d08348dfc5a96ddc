"""The table of tasks: each fact of a pair follows from its one entry."""

import re
from dataclasses import fields
from functools import partial

import pytest
import tiny
import tiny_writer

from attnviz.__main__ import main
from attnviz.data import corpora, language_pairs, tasks
from attnviz.data.styles import STYLES
from attnviz.data.tasks import Task, chapters
from attnviz.evaluation import metrics
from attnviz.evaluation.language import BITS
from attnviz.evaluation.translation import ATTENTION_METRICS
from attnviz.mechanisms import ALL
from attnviz.models.names import ModelName
from attnviz.training.recipes import TrainingConfig, training_config
from dashboard.choices import pairs

EN_NL = Task(
    name="en-nl",
    source="en",
    target="nl",
    title="English → Dutch",
    output="Dutch text",
    read=partial(language_pairs._read_multi30k, "en", "nl"),
    recipe_changes={"vocabulary": 60, "epochs": 2},
    examples=("The black dog runs.",),
    ask="Your English sentence",
)


@pytest.fixture
def dutch(monkeypatch, tmp_path):
    """A language pair, added as a user would: one entry, and its files in the data folder."""
    monkeypatch.setitem(tasks.TASKS, "en-nl", EN_NL)
    data = tiny.write_data(tmp_path / "data", train=20)
    for path in (data / "multi30k").glob("*.fr.gz"):
        path.rename(path.with_name(path.name.replace(".fr.", ".nl.")))
    return data


def test_one_entry_adds_a_language_pair(dutch):
    corpus = corpora.load("en-nl", dutch)
    assert corpus.train == tiny.sentences(20, 0) and corpus.val == tiny.sentences(12, 1)
    assert (corpus.metric, corpus.style, corpus.labelled) == ("bleu_lc", "written", False)
    assert training_config("en-nl", "bahdanau").vocabulary == 60 and training_config("en-nl", "bahdanau").epochs == 2
    assert training_config("en-nl", "luong-dot").epochs == 2 < training_config("en-fr", "luong-dot").epochs
    assert [metric.key for metric in metrics.for_pair("en-nl")] == ["bleu", "bleu_lc", "bleu_tok_lc", "chrf"]
    assert ModelName.parse("en-nl/bahdanau").task is EN_NL
    page = pairs.task("en-nl")
    assert (page.title, page.output, page.first, page.ask) == (
        "English → Dutch",
        "Dutch text",
        "The black dog runs.",
        "Your English sentence",
    )
    assert pairs.translates("en-nl") and pairs.ordered(["xx-yy", "en-nl", "en-fr"]) == ["en-fr", "en-nl", "xx-yy"]


def test_an_added_pair_is_trained_and_listed(dutch, tmp_path, capsys):
    small = [part for option in ("width=8", "embedding_width=8") for part in ("--set", option)]
    command = ["train", "--pair", "en-nl", "--mechanism", "bahdanau", "--data", str(dutch), "--epochs", "1"]
    assert main([*command, "--out", str(tmp_path / "out"), *small]) == 0
    assert main(["models", "--root", str(tmp_path / "out")]) == 0
    assert "en-nl/bahdanau" in capsys.readouterr().out


def test_an_added_pair_without_public_files_cannot_be_downloaded(dutch):
    with pytest.raises(ValueError) as caught:
        corpora.fetch("en-nl", dutch)
    assert str(caught.value) == "there are no public corpora for en-nl; choose one of en-fr, en-de, en-ja"


@pytest.mark.parametrize("task", tasks.TASKS.values(), ids=lambda task: task.name)
def test_every_fact_names_something_that_exists(task):
    assert task.style in STYLES and {task.validation_metric, *task.metric_keys} <= {*metrics.METRICS, BITS}
    assert set(task.attention_metrics) <= ATTENTION_METRICS.keys()
    assert set(task.recipe_changes) <= {field.name for field in fields(TrainingConfig)}
    assert task.read is not None and len(task.examples) == 4 and all((task.title, task.output, task.ask, task.hint))
    assert tasks.find(task.name) is task and task.translates + task.classifies + task.writes == 1
    kind = task.classifies, task.writes
    fitting = [name for name, mechanism in ALL.items() if (mechanism.classifies, mechanism.writes) == kind]
    assert list(task.mechanisms) == fitting
    for name in fitting:
        assert training_config(task.name, name).mechanism == name


def test_no_two_tasks_share_a_name_or_a_title():
    assert all(name == task.name for name, task in tasks.TASKS.items())
    assert len({task.title for task in tasks.TASKS.values()}) == len(tasks.TASKS)


def test_a_pair_of_the_users_own_has_what_its_name_says():
    task = tasks.find("ja-zh")
    assert (task.source, task.target, task.title, task.output) == ("ja", "zh", "Japanese → Chinese", "Chinese text")
    assert (task.ask, task.hint) == ("Your Japanese sentence", "Type a sentence in Japanese and press Enter")
    assert task.translates and not task.classifies and task.read is None and task.first == ""
    assert task.metric_keys == ("bleu_words", "bleu_char", "chrf")
    assert not tasks.find("notes").translates  # a folder that is no language pair


@pytest.mark.parametrize(
    "name, title, output",
    [
        ("en-pt-BR", "English → Brazilian Portuguese", "Brazilian Portuguese text"),
        ("EN-xx", "EN → xx", "text in “xx”"),
        ("zxx-und", "zxx → und", "text in “und”"),
        ("en-", "English → ", "text in “”"),
    ],
)
def test_a_tag_that_names_no_language_stays_as_it_is(name, title, output):
    assert (tasks.find(name).title, tasks.find(name).output) == (title, output)


def test_each_language_pair_has_one_example_that_goes_wrong():
    failing = {name for name, task in tasks.TASKS.items() if task.failing and task.failing not in task.examples}
    assert failing == {"en-fr", "en-de", "en-ja"}
    assert tasks.find("en-fr").offered[-1] == tasks.find("en-fr").failing and tasks.find("sst2").offered[4:] == ()


@pytest.mark.parametrize("example", tasks.find("reverse").examples)
def test_the_examples_of_reverse_are_sequences_that_it_was_trained_on(example):
    assert re.fullmatch("[a-z]( [a-z]){0,19}", example)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return tiny_writer.write_data(tmp_path_factory.mktemp("texts"))


def test_an_empty_line_ends_a_text():
    lines = ["A king.", "He slept.", "", " ", "A queen.", ""]
    assert chapters(lines) == ["A king.\nHe slept.", "A queen."] and chapters(["", ""]) == []


def test_books_captions_and_everyday_sentences(data):
    corpus = corpora.load("en", data)
    parts = [part for _, part in corpus.train]
    assert parts.count("stories") == 6 and parts.count("captions") == 5  # the others are in val or in a test
    assert [text for text, part in corpus.train if part == "everyday"] == ["Hi there.", "Go on!", "Who is it?"]
    assert corpus.train[0][0].count("\n") == 2  # three paragraphs
    assert [part for _, part in corpus.val] == list(corpus.parts) == ["stories"] * 2 + ["captions"] * 9 + ["everyday"]
    assert {name: len(pairs) for name, pairs in corpus.tests.items()} == {
        "stories": 2,
        "captions_2016": 9,
        "captions_2017": 9,
        "everyday": 1,
    }
    assert corpus.metric == "bits_a_character" and corpus.style == "prose" and len(corpus.files) == 16


def test_no_sentence_of_val_or_test_is_trained_on(data):
    """“Run!” is in the test of one language and in the train of others."""
    corpus = corpora.load("en", data)
    held_out = {text for pairs in (corpus.val, *corpus.tests.values()) for text, _ in pairs}
    assert "Run!" in held_out and not held_out & {text for text, _ in corpus.train}


def test_shakespeare_is_divided_by_its_characters(data):
    corpus = corpora.load("shakespeare", data)
    ((train, _),), ((val, _),) = corpus.train, corpus.val
    whole = (data / "tinyshakespeare" / "input.txt").read_text(encoding="utf-8")
    assert train + val == whole and len(train) == int(0.9 * len(whole)) and corpus.tests == {}


@pytest.mark.parametrize(
    "task, source, target, places",
    [
        (tasks.REVERSE, "abc", "cba", [(2,), (1,), (0,)]),
        (tasks.COPY, "aab", "aab", [(0,), (1,), (2,)]),
        (tasks.SORT, "bab", "abb", [(1,), (0, 2), (0, 2)]),
        (tasks.SHIFT, "abcde", "cdeab", [(2,), (3,), (4,), (0,), (1,)]),
        (tasks.SHIFT, "a", "a", [(0,)]),
        (tasks.PIG_LATIN, "string", "ingstray", [(3,), (4,), (5,), (0,), (1,), (2,), (), ()]),
        (tasks.PIG_LATIN, "apple", "appleay", [*((i,) for i in range(5)), (), ()]),
        (tasks.PIG_LATIN, "rhythm", "rhythmay", [*((i,) for i in range(6)), (), ()]),
        (
            tasks.DATES,
            "3march2021",
            "2021-03-03",
            [(6,), (7,), (8,), (9,), (), (1, 2, 3, 4, 5), (1, 2, 3, 4, 5), (), (0,), (0,)],
        ),
        (
            tasks.DATES,
            "May14,1989",
            "1989-05-14",
            [(6,), (7,), (8,), (9,), (), (0, 1, 2), (0, 1, 2), (), (3,), (4,)],
        ),
    ],
)
def test_the_answer_of_a_toy_task_and_its_alignment(task, source, target, places):
    answer = task.answer(source)
    assert "".join(letter for letter, _ in answer) == target and [place for _, place in answer] == places


@pytest.mark.parametrize("text", ["", "march2021", "3march21", "32021", "3smarch2021", "3/3/2021"])
def test_what_is_no_date_has_no_answer(text):
    with pytest.raises(ValueError, match="a date must be as 3 March 2021"):
        tasks.as_iso_date(text)


@pytest.mark.parametrize("task", tasks.TOYS, ids=lambda task: task.name)
def test_generated_pairs_are_the_answers(task):
    splits = task.read(None, count=200)
    assert len({source for source, _ in splits.train + splits.val + splits.tests["test"]}) == 200
    for source, target in splits.train:
        letters = "".join(source.split())
        answer = task.answer(letters)
        assert target == " ".join(letter for letter, _ in answer)
        if task is not tasks.DATES:
            assert all(letters[place] == letter for letter, places in answer for place in places)
