"""Fetching corpora from a real server on this machine: checked, kept, and never half there."""

import gzip
import hashlib
import http.server
import socket
import threading
from dataclasses import replace

import pytest

from attnviz.__main__ import main
from attnviz.data import tasks
from attnviz.data.corpora import fetch
from attnviz.data.task import Download

POLL = 0.01  # s: how soon a server that is told to stop looks
ENGLISH, JAPANESE = "one\ntwo\n", "一\n二\n三\n"


class Server(http.server.ThreadingHTTPServer):
    """Serves `pages` (path -> content), and counts what was asked for. cut : paths whose content breaks off."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.pages, self.requested, self.cut = {}, [], set()

    def url(self, name):
        return f"http://127.0.0.1:{self.server_port}/{name}"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        name = self.path.strip("/")
        self.server.requested.append(name)
        if name not in self.server.pages:
            return self.send_error(404)
        content = self.server.pages[name]
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: len(content) // 2] if name in self.server.cut else content)

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    with Server() as server:
        threading.Thread(target=server.serve_forever, args=(POLL,), daemon=True).start()
        yield server
        server.shutdown()


def sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture
def corpora(server, monkeypatch):
    """Two corpora on the server: a packed file, and one in two parts of which the last line is not kept."""
    server.pages = {
        "train.en.gz": gzip.compress(ENGLISH.encode()),
        "train.ja.000": "一\n二\n".encode(),
        "train.ja.001": "三\n四\n".encode(),
    }
    parts = (server.url("train.ja.000"), server.url("train.ja.001"))
    files = (
        Download("tiny/train.en.gz", (server.url("train.en.gz"),), sha256(ENGLISH)),
        Download("tiny/train.ja", parts, sha256(JAPANESE), lines=3),
    )
    monkeypatch.setattr(
        tasks, "TASKS", {"en-ja": replace(tasks.find("en-ja"), downloads=files), "reverse": tasks.find("reverse")}
    )
    return server


def names(folder):
    return sorted(path.name for path in folder.rglob("*") if path.is_file() or path.name.startswith("."))


def test_fetched_and_whole(corpora, tmp_path):
    lines = []
    fetch("en-ja", tmp_path, lines.append)
    assert (tmp_path / "tiny" / "train.en.gz").read_bytes() == corpora.pages["train.en.gz"]  # as it came
    assert (tmp_path / "tiny" / "train.ja").read_text(encoding="utf-8") == JAPANESE
    assert names(tmp_path) == ["train.en.gz", "train.ja"]
    assert lines == [f"{tmp_path / 'tiny' / name}: fetched, hash correct" for name in ("train.en.gz", "train.ja")]


def test_the_second_time_nothing_is_asked_for(corpora, tmp_path):
    fetch("en-ja", tmp_path)
    requested, lines = list(corpora.requested), []
    fetch("en-ja", tmp_path, lines.append)
    assert corpora.requested == requested and len(requested) == 3
    assert [line.rpartition(": ")[2] for line in lines] == ["already there, hash correct"] * 2


@pytest.mark.parametrize("name", ["train.en", "train.en.gz"])
def test_a_file_that_is_there_packed_or_not_is_enough(corpora, tmp_path, name):
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / name).write_bytes(ENGLISH.encode())
    fetch("en-ja", tmp_path)
    assert corpora.requested == ["train.ja.000", "train.ja.001"] and names(tmp_path) == [name, "train.ja"]


def test_a_file_packed_anew_is_the_same_file(corpora, tmp_path):
    corpora.pages["train.en.gz"] = gzip.compress(ENGLISH.encode(), compresslevel=1, mtime=12345)
    fetch("en-ja", tmp_path)
    assert names(tmp_path) == ["train.en.gz", "train.ja"]


def test_another_text_is_refused_and_nothing_kept(corpora, tmp_path):
    other = JAPANESE.replace("三", "三!")
    corpora.pages["train.ja.001"] = "三!\n四\n".encode()
    with pytest.raises(ValueError) as caught:
        fetch("en-ja", tmp_path)
    assert str(caught.value) == (
        f"{corpora.url('train.ja.000')} {corpora.url('train.ja.001')} has changed: the SHA-256 of its text is "
        f"{sha256(other)}, and should be {sha256(JAPANESE)}; nothing is kept"
    )
    assert names(tmp_path) == ["train.en.gz"]  # what came before was sound


def test_a_file_there_that_is_not_the_one_is_not_overwritten(corpora, tmp_path):
    (tmp_path / "tiny").mkdir()
    mine = "mine\n"
    (tmp_path / "tiny" / "train.en").write_text(mine)
    with pytest.raises(ValueError) as caught:
        fetch("en-ja", tmp_path)
    assert str(caught.value) == (
        f"{tmp_path / 'tiny' / 'train.en'} is not the file of that name in the corpus: the SHA-256 of its text is "
        f"{sha256(mine)}, and should be {sha256(ENGLISH)}; move it away"
    )
    assert (tmp_path / "tiny" / "train.en").read_text() == mine and corpora.requested == []


@pytest.mark.parametrize("name", ["train.en.gz", "train.ja.001"])
def test_a_download_that_breaks_off_leaves_nothing_and_can_be_repeated(corpora, tmp_path, name):
    corpora.cut = {name}
    with pytest.raises(OSError, match=f"^cannot fetch {corpora.url(name)}: "):
        fetch("en-ja", tmp_path)
    assert names(tmp_path) == ([] if name == "train.en.gz" else ["train.en.gz"])
    corpora.cut = set()
    fetch("en-ja", tmp_path)
    assert names(tmp_path) == ["train.en.gz", "train.ja"]


def test_a_damaged_archive_is_refused(corpora, tmp_path):
    corpora.pages["train.en.gz"] = corpora.pages["train.en.gz"][:-9]
    with pytest.raises(ValueError, match=f"^{corpora.url('train.en.gz')} is a damaged gzip file: "):
        fetch("en-ja", tmp_path)
    assert names(tmp_path) == []


def test_interrupted_by_hand_leaves_nothing(corpora, tmp_path, monkeypatch):
    import pooch

    def interrupt(*_, path, fname, **__):
        (path if hasattr(path, "joinpath") else tmp_path.__class__(path)).joinpath(fname).write_bytes(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(pooch, "retrieve", interrupt)
    with pytest.raises(KeyboardInterrupt):
        fetch("en-ja", tmp_path)
    assert names(tmp_path) == []


def test_command(corpora, tmp_path, capsys, monkeypatch):
    assert main(["download", "--pair", "en-ja", "--data", str(tmp_path)]) == 0
    captured = capsys.readouterr()
    assert captured.out.splitlines()[-1] == f"{tmp_path} holds the corpora of en-ja" and captured.err == ""
    monkeypatch.setenv("ATTNVIZ_DATA", str(tmp_path))
    assert main(["download", "--pair", "en-ja"]) == 0


def test_command_errors(corpora, tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("ATTNVIZ_DATA", raising=False)

    def error(*arguments):
        assert main(["download", *arguments]) == 2
        line = capsys.readouterr().err
        assert line.count("\n") == 1
        return line.removeprefix("python -m attnviz download: ").rstrip("\n")

    data = ("--data", str(tmp_path))
    assert error("--pair", "en-ja") == "there is no data folder; give it with --data DIR or set ATTNVIZ_DATA"
    assert error("--pair", "xx-yy", *data) == "there are no public corpora for xx-yy; choose one of en-ja"
    assert error("--pair", "reverse", *data) == "reverse is generated; there is nothing to fetch"
    del corpora.pages["train.en.gz"]
    assert error("--pair", "en-ja", *data).startswith(f"cannot fetch {corpora.url('train.en.gz')}: 404 Client Error")


def test_nobody_answers(tmp_path, monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, and nobody listens
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/x"
        task = replace(tasks.find("en-fr"), downloads=(Download("tiny/x", (url,), "0"),))
        monkeypatch.setitem(tasks.TASKS, "en-fr", task)
        with pytest.raises(OSError, match=f"^cannot fetch {url}: "):
            fetch("en-fr", tmp_path)


def test_the_table_is_of_the_files_that_loading_reads():
    named = {task.name: {file.name for file in task.downloads} for task in tasks.TASKS.values()}
    splits = ("train", "val", "test_2016_flickr", "test_2017_flickr")
    for pair in ("en-fr", "en-de"):
        assert named[pair] == {f"multi30k/{split}.{language}.gz" for split in splits for language in pair.split("-")}
    assert named["en-ja"] == {
        f"tanaka_enja/{s}.{language}" for s in ("train", "dev", "test") for language in ("en", "ja")
    }
    hashes = [file.sha256 for task in tasks.TASKS.values() for file in task.downloads]
    assert len(set(hashes)) == len(hashes) - 4 and all(
        len(bytes.fromhex(digest)) == 32 for digest in hashes
    )  # en is shared
