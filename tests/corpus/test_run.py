"""A run over a corpus: the numbers are those of the traces; the files do not depend on workers, stops and resumes."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import tiny
from corpora_files import files, same_files, write_lines
from pyarrow import parquet
from safetensors.numpy import load_file

from attnviz import alignment, corpus, gold, stats
from attnviz.__main__ import main
from attnviz.corpus.manifest import shard_of
from attnviz.models.translator import Translator

MODELS = ("en-fr/transformer", "en-fr/bahdanau")
SENTENCES = [english for english, _ in tiny.sentences(22, 1)]
WITH_BAD = [*SENTENCES[:5], "", *SENTENCES[5:], "The dog " * 200]


@pytest.fixture
def settings(root, tmp_path):
    lines = write_lines(tmp_path / "in.txt", WITH_BAD)
    return corpus.CorpusConfig(MODELS, str(lines), batch_size=4, root=str(root), shard=5)


@pytest.fixture
def finished_run(settings, tmp_path):
    """The folder of a run from beginning to end."""
    list(corpus.run(settings, tmp_path / "whole"))
    return tmp_path / "whole"


def test_numbers_are_those_of_the_traces(finished_run, root):
    rows = parquet.read_table(finished_run / "statistics.parquet").to_pandas().astype({"model": str, "kind": str})
    table = parquet.read_table(finished_run / "sentences.parquet").to_pandas().astype({"model": str})
    for name in MODELS:
        model = Translator.load(name, root)
        mine = table[table["model"] == name].reset_index(drop=True)
        assert mine["sentence"].tolist() == list(range(1, len(WITH_BAD) + 1))
        for line, text in enumerate(WITH_BAD, start=1):
            row, statistics = mine.iloc[line - 1], rows[(rows["model"] == name) & (rows["sentence"] == line)]
            if line in (6, len(WITH_BAD)):
                assert statistics.empty and "the text is" in row["error"] and pd.isna(row["translation"])
                continue
            trace = model.trace(text)
            assert (row["source"], row["translation"]) == (text, trace.translation) and pd.isna(row["error"])
            assert (row["id"], row["target_tokens"]) == (str(line), len(trace.target))
            assert row["log_prob"] == pytest.approx(trace.log_prob, abs=1e-3)
            wanted, columns = stats.steps(trace), ["kind", "layer", "head", "step", "token", "entropy_nats", "gini"]
            pd.testing.assert_frame_equal(
                statistics[columns].reset_index(drop=True), wanted[columns], check_dtype=False, atol=1e-4, rtol=0
            )


def test_a_second_model_that_cannot_be_read_stops_the_run_before_the_first_is_computed(settings, tmp_path):
    models = (MODELS[0], f"hf:{tmp_path / 'nowhere'}")
    with pytest.raises(ValueError, match="there is no such folder"):
        next(corpus.run(replace(settings, models=models), tmp_path / "out"))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("records, shard", [(0, 32), (1, 32), (257, 33), (4096, 512), (10**6, 512)])
def test_small_files_have_small_shards(records, shard):
    assert shard_of(records) == shard


def test_what_is_kept_may_be_said_in_any_order(settings, tmp_path):
    both = replace(settings, models=MODELS[:1], keep=("weights", "statistics"))
    next(run := corpus.run(both, tmp_path / "out"))
    run.close()
    *_, last = corpus.run(replace(both, keep=("statistics", "weights")), tmp_path / "out", resume=True)
    assert last.done == last.total


def test_the_manifest_says_what_made_the_files(finished_run, settings):
    manifest = json.loads((finished_run / "manifest.json").read_text())
    assert manifest["complete"] is True and manifest["input"]["records"] == len(WITH_BAD)
    assert set(manifest["models"]) == set(MODELS) and len(manifest["models"][MODELS[0]]["weights_sha256"]) == 64
    assert manifest["settings"] == {"batch_size": 4, "beam": 1, "keep": ["statistics"], "shard": 5}
    assert str(Path(settings.input).parent) not in (finished_run / "manifest.json").read_text()  # no path leaves
    assert sorted(files(finished_run)) == ["manifest.json", "sentences.parquet", "statistics.parquet"]


def test_only_what_repeats_has_a_dictionary(finished_run):
    """A dictionary of other numbers is larger than the numbers, and takes most of the time of writing."""
    metadata = parquet.ParquetFile(finished_run / "statistics.parquet").metadata
    assert metadata.num_row_groups == 2 * 5  # one of each shard
    group = metadata.row_group(0)
    columns = [group.column(place) for place in range(group.num_columns)]
    floats = {column.path_in_schema for column in columns if column.physical_type in ("FLOAT", "DOUBLE")}
    plain = {column.path_in_schema for column in columns if "RLE_DICTIONARY" not in column.encodings}
    assert plain == floats and {"gini", "entropy_nats"} < floats


def test_two_workers_give_the_same_files(settings, finished_run, tmp_path):
    *_, last = corpus.run(settings, tmp_path / "two", workers=2)
    assert last.done == last.total == 2 * len(WITH_BAD)
    same_files(tmp_path / "two", finished_run)


def test_stopped_anywhere_and_resumed_it_gives_the_same_files(settings, finished_run, tmp_path):
    folder, reported = tmp_path / "stopped", []
    running = corpus.run(settings, folder)
    for _ in range(4):
        reported.append(next(running))
    running.close()
    (folder / "parts" / "0-000002-sentences.arrow").unlink()  # as if it had died between a shard's two files
    resumed = list(corpus.run(settings, folder, resume=True))
    assert resumed[0].done == reported[-1].done - 5 and resumed[-1].done == resumed[-1].total
    same_files(folder, finished_run)
    assert [progress.done for progress in corpus.run(settings, folder, resume=True)] == [resumed[-1].total]


def test_files_that_a_killed_process_had_begun_are_cleared_away(settings, finished_run, tmp_path):
    """A kill in the middle of a write leaves a part of a file beside the whole ones, in any folder of the run."""
    out = tmp_path / "out"
    running = corpus.run(settings, out)
    for _ in range(4):
        next(running)
    running.close()
    for name in ("parts/0-000001-sentences.arrow", "manifest.json"):
        (out / f"{name}.{'0a' * 8}.part").write_bytes(b"half")
    list(corpus.run(settings, out, resume=True))
    same_files(out, finished_run)
    assert not [*out.rglob("*.part")]


@pytest.mark.parametrize("deleted", [0, 1, 3])
def test_stopped_while_its_parts_are_deleted_it_is_complete_and_resuming_deletes_the_rest(
    settings, finished_run, tmp_path, monkeypatch, deleted
):
    out, unlink, left = tmp_path / "out", Path.unlink, [deleted]

    def interrupted(path, *arguments, **named):
        if path.suffix == ".arrow":
            left[0] -= 1
            if left[0] < 0:
                raise KeyboardInterrupt
        unlink(path, *arguments, **named)

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Path, "unlink", interrupted)
        list(corpus.run(settings, out))
    assert [*out.glob("parts/*.arrow")]
    list(corpus.run(settings, out, resume=True))
    same_files(out, finished_run)


def test_lines_that_are_skipped_are_reported_by_number(settings, tmp_path):
    errors = [error for progress in corpus.run(settings, tmp_path / "out") for error in progress.errors]
    assert [(model, line) for model, line, _ in errors] == [(m, n) for m in MODELS for n in (6, len(WITH_BAD))]
    assert errors[0][2] == "the text is empty; type a sentence" and "the text is too long" in errors[1][2]


def test_targets_are_forced_and_weights_kept(root, tmp_path):
    path = tmp_path / "in.tsv"
    path.write_text("".join(f"{number}\t{a}\t{b}\n" for number, (a, b) in enumerate(tiny.sentences(6, 2))))
    settings = corpus.CorpusConfig(MODELS[:1], str(path), keep=("weights",), root=str(root), shard=4)
    list(corpus.run(settings, tmp_path / "out"))
    assert not (tmp_path / "out" / "statistics.parquet").exists()
    table = parquet.read_table(tmp_path / "out" / "sentences.parquet").to_pandas()
    assert table["forced"].all() and table["translation"].tolist() == [b for _, b in tiny.sentences(6, 2)]
    weights = load_file(tmp_path / "out" / "weights" / "en-fr--transformer" / "000001.safetensors")
    trace = Translator.load(MODELS[0], root).trace(*tiny.sentences(6, 2)[5])
    assert weights["6/cross.1"] == pytest.approx(trace.map("cross", 1).weights, abs=1e-5)
    assert {name.split("/")[0] for name in weights} == {"5", "6"}


@pytest.mark.xdist_group("hf")
def test_models_of_the_transformers_library_take_part(root, folder, load, tmp_path, capsys):
    """Forced and free texts, an empty line, weights, a stop, two processes; one model only reads."""
    lines = ["The black dog is running.\tLe chien noir court.", "The dog runs.", "", "The white ball\tLe chien"]
    path, out = write_lines(tmp_path / "in.tsv", lines), tmp_path / "out"
    names = [f"hf:{folder('marian')}", f"hf:{folder('t5')}", MODELS[1], f"hf:{folder('bert')}"]
    command = ["corpus", "--input", str(path), "--root", str(root), "--keep", "statistics", "weights"]
    assert main([*command, "--model", *names, "--out", str(out)]) == 0
    assert "4 sentences through 4 models" in capsys.readouterr().out
    rows = parquet.read_table(out / "statistics.parquet").to_pandas().astype({"model": str, "kind": str})
    sentences_table = parquet.read_table(out / "sentences.parquet").to_pandas().astype({"model": str})
    assert sentences_table["error"].notna().groupby(sentences_table["model"]).sum().to_dict() == dict.fromkeys(
        names, 1
    ) | {names[3]: 3}
    for family in ("marian", "t5"):
        name = names[("marian", "t5").index(family)]
        texts = [tuple(line.split("\t")) for line in lines if line]
        wanted = [load(family).trace(*text) for text in texts]
        assert list(corpus.read(out, name)) == wanted
        table = pd.concat([stats.steps(trace) for trace in wanted], ignore_index=True)
        mine = rows[rows["model"] == name].reset_index(drop=True)
        columns = ["kind", "layer", "head", "step", "token", "argmax_token", "entropy_nats", "gini"]
        pd.testing.assert_frame_equal(mine[columns], table[columns], check_dtype=False, atol=1e-4, rtol=0)
        translated = sentences_table[(sentences_table["model"] == name) & sentences_table["error"].isna()]
        assert translated["forced"].tolist() == [True, False, True]
        assert translated["log_prob"].tolist() == pytest.approx([trace.log_prob for trace in wanted], abs=1e-3)
    manifest = json.loads((out / "manifest.json").read_text())
    assert "transformers" in manifest["versions"] and "tokenizer.json" in manifest["models"][names[0]]["files_sha256"]
    settings = corpus.CorpusConfig(tuple(names), str(path), keep=("statistics", "weights"), root=str(root))
    stopped = corpus.run(settings, tmp_path / "stopped")
    next(stopped), next(stopped)
    stopped.close()
    list(corpus.run(settings, tmp_path / "stopped", workers=2, resume=True))
    same_files(tmp_path / "stopped", out)


def test_traces_that_were_kept_are_read_again_whole(settings, finished_run, root, tmp_path):
    both = replace(settings, keep=("statistics", "weights"))
    list(corpus.run(both, tmp_path / "out"))
    traces = list(corpus.read(tmp_path / "out"))
    wanted = [
        trace
        for name in MODELS
        for trace in Translator.load(name, root).traces(WITH_BAD, batch_size=4)
        if not isinstance(trace, Exception)
    ]
    assert [(trace.model, trace.text) for trace in traces] == [(trace.model, trace.text) for trace in wanted]
    for trace, other in zip(traces, wanted):
        assert (trace.source, trace.target, trace.complete) == (other.source, other.target, other.complete)
        assert trace.log_probs == pytest.approx(other.log_probs, abs=1e-4)
        for mine, theirs in zip(trace.maps, other.maps, strict=True):
            assert mine.name == theirs.name and mine.weights == pytest.approx(theirs.weights, abs=1e-4)
    assert {trace.model for trace in corpus.read(tmp_path / "out", MODELS[1])} == {MODELS[1]}
    for folder, model, message in (
        (tmp_path, None, f"{tmp_path} holds no run: there is no manifest.json"),
        (finished_run, None, f"{finished_run} has no weights; run `corpus` with --keep statistics weights"),
        (tmp_path / "out", "x", f"model must be one of {', '.join(MODELS)}; got 'x'"),
    ):
        with pytest.raises(ValueError) as error:
            list(corpus.read(folder, model))
        assert str(error.value) == message
    last = sorted((tmp_path / "out" / "weights" / MODELS[1].replace("/", "--")).iterdir())[-1]
    last.write_bytes(b"cut")
    for problem in ("damaged", "missing"):
        with pytest.raises(ValueError, match=f"^{last} is {problem}; run `corpus` again in a new folder$"):
            list(corpus.read(tmp_path / "out"))
        last.unlink(missing_ok=True)


def test_refusals(settings, finished_run, tmp_path):
    def refused(message, *given, **options):
        with pytest.raises(ValueError) as error:
            list(corpus.run(*given, **options))
        assert str(error.value) == message

    refused(
        f"{finished_run} is not empty; give a new folder, or --resume to continue the run in it", settings, finished_run
    )
    file = finished_run / "sentences.parquet"
    refused(f"{file} is not a folder; give the name of a new folder", settings, file)
    (nowhere := tmp_path / "link").symlink_to(tmp_path / "nowhere")
    refused(f"{nowhere} is not a folder; give the name of a new folder", settings, nowhere)
    empty = tmp_path / "empty"
    refused(f"{empty} holds no run to resume: there is no manifest.json", settings, empty, resume=True)
    other = corpus.CorpusConfig(MODELS[:1], settings.input, root=settings.root)
    message = f"{finished_run} holds a run with other models, settings; begin again in a new folder"
    refused(message, other, finished_run, resume=True)
    (finished_run / "manifest.json").write_text("{")
    damaged = f"{finished_run / 'manifest.json'} is damaged; begin again in a new folder"
    refused(damaged, settings, finished_run, resume=True)
    for values, message in (
        ({"models": ()}, "models must be different names, at least one; got none"),
        ({"models": ("a", "a")}, "models must be different names, at least one; got a, a"),
        ({"keep": ("maps",)}, "keep must be some of statistics, weights; got maps"),
        ({"batch_size": 0}, "batch_size must be an integer of at least 1; got 0"),
        ({"beam": 0}, "beam must be from 1 to 20; got 0"),
    ):
        with pytest.raises(ValueError) as error:
            corpus.CorpusConfig(**{"models": MODELS, "input": settings.input} | values)
        assert str(error.value) == message


def test_a_model_that_cannot_run_is_refused_before_anything_is_written(settings, tmp_path):
    for values, message in (
        ({"models": ("en-fr/nosuch",)}, "no checkpoint 'en-fr/nosuch' in checkpoints; "),
        ({"models": ("sst2/self-attention",), "beam": 3}, "beam must be 1 for sst2/self-attention, which chooses a "),
    ):
        with pytest.raises(ValueError) as error:
            list(corpus.run(corpus.CorpusConfig(input=settings.input, **values), tmp_path / "out"))
        assert str(error.value).startswith(message) and not (tmp_path / "out").exists()


def test_a_run_that_stopped_before_its_first_shard_can_begin_anew(settings, finished_run, tmp_path):
    folder = tmp_path / "begun"
    next(corpus.run(settings, folder))
    assert files(folder).keys() == {"manifest.json"}
    list(corpus.run(settings, folder))
    same_files(folder, finished_run)
    lone = tmp_path / "lone"
    lone.mkdir()
    for content in ('{"complete": true}', "{}", "["):  # of another program, perhaps
        (lone / "manifest.json").write_text(content)
        with pytest.raises(ValueError, match="is not empty"):
            list(corpus.run(settings, lone))
        assert (lone / "manifest.json").read_text() == content


def test_two_runs_do_not_write_into_one_folder(settings, finished_run, tmp_path):
    folder = tmp_path / "shared"
    next(first := corpus.run(settings, folder))
    for resume in (False, True):
        with pytest.raises(ValueError, match=f"^another run is at work in {folder} .*; wait until it ends, or choose"):
            next(corpus.run(settings, folder, resume=resume))
    *_, last = first
    assert last.done == last.total
    same_files(folder, finished_run)  # and no lock is left


def test_a_wrong_label_is_skipped_alone(root, tmp_path):
    (tmp_path / "in.tsv").write_text("a good film\tpositive\na bad film\tblue\na dull film\n")
    config = corpus.CorpusConfig(("sst2/self-attention",), str(tmp_path / "in.tsv"))
    *_, last = corpus.run(config, tmp_path / "out")
    assert last.errors == (("sst2/self-attention", 2, "target must be one of negative, positive; got 'blue'"),)
    rows = parquet.read_table(tmp_path / "out" / "sentences.parquet").to_pandas()
    assert rows["forced"].tolist() == [True, None, False]


def test_a_command_that_skips_every_sentence_ends_with_status_1(settings, tmp_path, capsys):
    (tmp_path / "in.txt").write_text("dog " * 500)
    options = ["--model", "en-fr/luong-dot", "--input", str(tmp_path / "in.txt"), "--root", settings.root]
    assert main(["corpus", *options, "--out", str(tmp_path / "out")]) == 1
    assert "1 of 1 skipped" in capsys.readouterr().out


def test_the_command(settings, finished_run, tmp_path, capsys):
    options = ["--model", *MODELS, "--input", settings.input, "--batch-size", "4", "--root", settings.root]
    assert main(["corpus", *options, "--out", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr()
    total = 2 * len(WITH_BAD)
    assert printed.out == (
        f"{len(WITH_BAD)} sentences through 2 models in {tmp_path / 'out'}; "
        f"4 of {total} skipped, see the column `error` of sentences.parquet\n"
    )
    assert main(["corpus", *options, "--out", str(tmp_path / "out"), "--resume"]) == 0
    assert capsys.readouterr().out == printed.out
    assert "en-fr/transformer: line 6 is skipped: the text is empty; type a sentence" in printed.err
    assert main(["corpus", *options, "--out", str(tmp_path / "out")]) == 2
    assert "is not empty; give a new folder, or --resume" in capsys.readouterr().err


def test_the_command_says_how_many_texts_are_longer_than_those_of_training(root, tmp_path, capsys):
    copy, lines = tmp_path / "models", write_lines(tmp_path / "in.txt", ["The dog.", *SENTENCES[:3], ""])
    shutil.copytree(root, copy)
    card = copy / MODELS[0] / "card.json"
    card.write_text(json.dumps(json.loads(card.read_text()) | {"longest": 4}))
    command = [
        "corpus",
        "--model",
        MODELS[0],
        "--input",
        str(lines),
        "--out",
        str(tmp_path / "out"),
        "--root",
        str(copy),
    ]
    assert main(command) == 0
    long = sum(len(Translator.load(MODELS[0], copy).read(text).ids) > 4 for text in ["The dog.", *SENTENCES[:3]])
    assert 0 < long < 4 and f"{long} of 5 texts are longer than nearly all texts of training" in capsys.readouterr().err


def test_the_alignment_error_rate_where_links_are_given(root, tmp_path):
    """Of the mean of all heads, as `alignment.measure` has it; none without links or without attention."""
    linked = [
        {"source": "The black dog|.", "target": "Le chien noir|.", "links": "0-0 1-2 2-1 3-3?"},
        {"source": "The dog runs.", "target": "Le chien court."},
        {"source": "A cat sleeps|.", "target": "Un chat dort|.", "links": "0-0 1-1 2-2 3-"},
        {"source": "A cat sleeps.", "target": "Un chat dort.", "links": "0-9"},
    ]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(line) + "\n" for line in linked), encoding="utf-8")
    models = ("en-fr/transformer", "en-fr/bahdanau", "en-fr/fixed-context")
    config = corpus.CorpusConfig(models, str(tmp_path / "in.jsonl"), root=str(root))
    list(corpus.run(config, tmp_path / "out"))
    rows = parquet.read_table(tmp_path / "out" / "sentences.parquet").to_pandas().astype({"model": str})
    pairs = [
        gold.parse("\n".join((linked[place]["source"], linked[place]["target"], linked[place]["links"])))[0]
        for place in (0, 2)
    ]
    for name in models:
        mine, model = rows[rows["model"] == name].reset_index(drop=True), Translator.load(name, root)
        assert mine["source"].tolist()[:3] == ["The black dog.", "The dog runs.", "A cat sleeps."]
        assert mine["error"][3] == "the target has words 0 to 2; got word 9 among the links"
        assert pd.isna(mine["aer"][1]) and pd.isna(mine["aer"][3])
        for place, pair in zip((0, 2), pairs, strict=True):
            rates = alignment.measure([model.trace(pair.source, pair.target)], [pair])
            if rates.empty:
                assert pd.isna(mine["aer"][place])
                continue
            mean = rates[rates["layer"].isna()] if len(rates) > 1 else rates
            assert mine["aer"][place] == pytest.approx(mean["error_rate"].item(), abs=1e-4)  # which is rounded
