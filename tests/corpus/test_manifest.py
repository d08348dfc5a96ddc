"""corpus/manifest.py: a run whose input or model changes stops, computes nothing of what is new, and can be resumed."""

import gzip
import os
import shutil

import pytest
import tiny
from corpora_files import same_files, write_lines

from attnviz import corpus
from attnviz.corpus import manifest

MODELS = ("en-fr/bahdanau", "en-fr/luong-dot")
SENTENCES = [english for english, _ in tiny.sentences(22, 1)]
OTHER = [english for english, _ in tiny.sentences(22, 2)]


def replaced(path):
    write_lines(path.with_suffix(".new"), OTHER).replace(path)


def appended(path):
    with path.open("a") as file:
        file.write("A dog runs.\n" * 7)


def cut(path):
    os.truncate(path, path.stat().st_size // 2)


def of_the_same_size_and_time(path):
    status, content = path.stat(), path.read_text()
    path.write_text(content.swapcase())
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def deleted(path):
    path.unlink()


@pytest.fixture(scope="module")
def settings(root, tmp_path_factory):
    path = tmp_path_factory.mktemp("lines") / "in.txt"
    return corpus.CorpusConfig(MODELS, str(write_lines(path, SENTENCES)), root=str(root), shard=5)


@pytest.fixture(scope="module")
def finished_run(settings, tmp_path_factory):
    list(corpus.run(settings, folder := tmp_path_factory.mktemp("whole")))
    return folder


FIRST_MODEL, BETWEEN, LAST_SHARD = 2, 6, 11  # shards that are done when the sentences change


@pytest.mark.xdist_group("inputs")
@pytest.mark.parametrize(
    "change, progress",
    [
        *((replaced, progress) for progress in (FIRST_MODEL, BETWEEN, LAST_SHARD)),
        (appended, FIRST_MODEL),
        (appended, LAST_SHARD),
        (cut, BETWEEN),
        (cut, LAST_SHARD),
        (of_the_same_size_and_time, LAST_SHARD),
        (deleted, BETWEEN),
        (deleted, LAST_SHARD),
    ],
)
def test_sentences_that_change_stop_the_run(change, progress, settings, finished_run, tmp_path):
    path = tmp_path / "in.txt"
    shutil.copyfile(settings.input, path)
    mine = corpus.CorpusConfig(MODELS, str(path), root=settings.root, shard=5)
    run = corpus.run(mine, tmp_path / "out")
    for _ in range(progress):
        next(run)
    change(path)
    with pytest.raises(ValueError, match=f"^{path} changed while the run was at work: .* continue with --resume"):
        list(run)
    assert not (tmp_path / "out" / "sentences.parquet").exists()
    shutil.copyfile(settings.input, path)
    list(corpus.run(mine, tmp_path / "out", resume=True))
    same_files(tmp_path / "out", finished_run)


@pytest.mark.parametrize("ending", ["txt.gz", "parquet"])
def test_files_of_other_formats_that_are_cut_have_changed_and_are_not_called_damaged(ending, root, tmp_path):
    path = tmp_path / f"in.{ending}"
    lines = "".join(f"{line}\n" for line in SENTENCES * 400).encode()
    if ending == "parquet":
        import pyarrow as pa
        from pyarrow import parquet

        parquet.write_table(pa.table({"source": SENTENCES * 400}), path, row_group_size=1000)
    else:
        path.write_bytes(gzip.compress(lines))
    run = corpus.run(corpus.CorpusConfig(MODELS[:1], str(path), root=str(root), shard=5), tmp_path / "out")
    next(run)
    next(run)
    cut(path)
    with pytest.raises(ValueError, match="changed while the run was at work: its content is another"):
        list(run)


def test_a_file_that_is_touched_has_not_changed(settings, finished_run, tmp_path):
    path = tmp_path / "in.txt"
    shutil.copyfile(settings.input, path)
    run = corpus.run(corpus.CorpusConfig(MODELS, str(path), root=settings.root, shard=5), tmp_path / "out")
    next(run)
    os.utime(path)
    shutil.copyfile(path, tmp_path / "copy")
    (tmp_path / "copy").replace(path)
    list(run)
    same_files(tmp_path / "out", finished_run)


@pytest.mark.parametrize("progress", [2, 11])
def test_a_model_that_changes_stops_the_run(progress, settings, tmp_path):
    shutil.copytree(settings.root, tmp_path / "models")
    run = corpus.run(
        corpus.CorpusConfig(MODELS, settings.input, root=str(tmp_path / "models"), shard=5), tmp_path / "out"
    )
    for _ in range(progress):
        next(run)
    weights = [tmp_path / "models" / name / "model.safetensors" for name in ("en-fr/luong-dot", "en-fr/luong-general")]
    shutil.copyfile(weights[1], weights[0])
    with pytest.raises(
        ValueError, match="^the files of en-fr/luong-dot changed while the run was at work; begin again"
    ):
        list(run)
    assert not (tmp_path / "out" / "sentences.parquet").exists()


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", ""),
        (b"\n \n\n", ""),
        ("\ufeff".encode(), ""),
        (b"\n\xe9t\xe9\n\xe9\n", ": line 2: it must be UTF-8 text; got byte 0xe9"),
    ],
)
def test_a_file_without_a_sentence_is_an_error(content, why, settings, tmp_path):
    (path := tmp_path / "in.txt").write_bytes(content)
    with pytest.raises(ValueError, match=f"^{path} must hold at least one sentence; got none{why}$"):
        next(corpus.run(corpus.CorpusConfig(MODELS, str(path), root=settings.root), tmp_path / "out"))
    assert not (tmp_path / "out").exists()


@pytest.mark.xdist_group("hf")  # one process imports the library
def test_a_model_on_the_hub_is_known_by_the_files_that_were_downloaded(folder, tmp_path, monkeypatch):
    local_name, hub_name = f"hf:{folder('marian')}", "hf:some/marian"
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda name, **_: str(folder("marian")))
    made = manifest.model_files(corpus.CorpusConfig((local_name, hub_name), str(tmp_path / "in.txt")))
    assert made[hub_name] == made[local_name]
    assert {"model.safetensors", "tokenizer.json"} <= made[hub_name]["files_sha256"].keys()
