"""A run over a corpus that is killed, whose input is damaged, or changes while it is at work: it stops with a sentence,
or writes the files of a run that nobody disturbed."""

import contextlib
import hashlib
import multiprocessing
import os
import shutil
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import processes
from hypothesis import strategies as st

from tests.hostile import strategies
from tests.hostile.workplace import Failure, Workplace, sentence

WARM = ("change", "append", 1)
MODELS = ("en-fr/bahdanau", "en-fr/luong-dot")
SHARD = 5
SECONDS = 60  # until the workers of a killed run have ended
AGAIN = 5  # s after which a person presses Ctrl-C a second time: the first waits for what is begun
TABLE = "id\tsource\ttarget\n1\tthe dog runs\tle chien court\n2\tthe cat\tle chat\n"
LINES = '{"id": "1", "source": "the dog runs", "target": "le chien court", "links": [[0, 0]]}\n{"source": "the cat"}\n'


@dataclass
class Around:
    """lines : the sentences. whole : what an undisturbed run writes. context : processes that have imported torch."""

    lines: bytes
    whole: Path
    context: multiprocessing.context.BaseContext


@contextlib.contextmanager
def around(place: Workplace) -> Iterator[Around]:
    import tiny

    lines = "".join(f"{english}\n" for english, _ in tiny.sentences(22, 1)).encode()
    (place.folder / "in.txt").write_bytes(lines)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["attnviz.corpus", "attnviz.loading", "torch", "pyarrow.parquet"])
    whole = place.folder / "undisturbed"
    _run(place.folder, whole)
    yield Around(lines, whole, context)


def strategy():
    change = st.tuples(
        st.just("change"),
        st.one_of(st.sampled_from(list(CHANGES)), strategies.damaged(b"The dog runs.\nThe cat sleeps.\n" * 40)),
        st.integers(1, 11),
    )
    signals = st.sampled_from(["SIGTERM", "SIGKILL", "SIGINT"])
    kill = st.tuples(st.just("kill"), signals, st.floats(0, 1.5), st.sampled_from([1, 1, 1, 2]))
    files = [("x.tsv", TABLE.encode()), ("x.jsonl", LINES.encode()), ("x.txt", b"the dog runs\r\n\xff\n")]
    read = st.sampled_from(files).flatmap(
        lambda made: st.tuples(st.just("file"), st.just(made[0]), strategies.damaged(made[1]))
    )
    return st.one_of(change, change, kill, read, read)


def check(place: Workplace, case) -> None:
    kind, *given = case
    for name in ("out", "models"):
        shutil.rmtree(place.folder / name, ignore_errors=True)
    {"change": _change, "kill": _kill, "file": _file}[kind](place, *given)


# --- the input, or a model, becomes another


def _append(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"A dog runs.\n" * 7)


def _swap(path: Path) -> None:
    status, content = path.stat(), path.read_bytes()
    path.write_bytes(content.swapcase())
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def _fill(path: Path) -> None:
    """A folder in its place."""
    path.unlink()
    path.mkdir()


CHANGES = {"append": _append, "swap": _swap, "delete": Path.unlink, "folder": _fill}
CHANGES |= {"cut": lambda path: os.truncate(path, path.stat().st_size // 2), "touch": lambda path: os.utime(path)}


def _change(place: Workplace, change: str | bytes, progress: int) -> None:
    """After so many shards."""
    from attnviz import corpus

    path, out = place.folder / "changing.txt", place.folder / "out"
    shutil.rmtree(path, ignore_errors=True)
    path.unlink(missing_ok=True)
    path.write_bytes(place.around.lines)
    run = corpus.run(corpus.CorpusConfig(MODELS, str(path), root=str(place.root), shard=SHARD), out)
    for _ in range(progress):
        next(run)
    path.write_bytes(change) if isinstance(change, bytes) else CHANGES[change](path)
    ended = False
    with sentence():
        list(run)
        ended = True
    same = path.is_file() and hashlib.sha256(path.read_bytes()).digest() == hashlib.sha256(place.around.lines).digest()
    if ended != same or (out / "sentences.parquet").exists() != same:
        raise Failure(
            f"the input is {'the same' if same else 'another'}, and the run {'ended' if ended else 'stopped'}"
        )


# --- a run is killed


def _run(folder: Path, out: Path, workers: int = 1, resume: bool = False) -> None:
    """A run in this process."""
    from attnviz import corpus

    settings = corpus.CorpusConfig(MODELS, str(folder / "in.txt"), root=str(folder / "checkpoints"), shard=SHARD)
    list(corpus.run(settings, out, workers=workers, resume=resume))


def _kill(place: Workplace, name: str, seconds: float, workers: int) -> None:
    """A run of a process of its own, after so many seconds; then the same with --resume, here."""
    out = place.folder / "out"
    running = place.around.context.Process(target=_run, args=(place.folder, out, workers))
    running.start()
    time.sleep(seconds)
    members = []
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it may have ended already
        members = processes.family(running.pid)
        os.kill(running.pid, getattr(signal, name))
    running.join(AGAIN)
    if name == "SIGINT" and running.exitcode is None:
        os.kill(running.pid, signal.SIGINT)
    running.join(SECONDS)
    if running.exitcode is None or not _ended(members):
        for pid in members:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        raise Failure(f"{SECONDS} s after {name} there are processes left of {members}")
    if not (out / "manifest.json").exists():
        shutil.rmtree(out, ignore_errors=True)
    _run(place.folder, out, resume=out.exists())
    made, wanted = _files(out), _files(place.around.whole)
    if made != wanted:
        raise Failure(f"after {name} and --resume the files differ: {sorted(made.items() ^ wanted.items())!r:.300}")


def _ended(members: list[int]) -> bool:
    def is_there(pid: int) -> bool:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        return False

    end = time.monotonic() + SECONDS
    while any(map(is_there, members)):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def _files(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


# --- a file is damaged


def _file(place: Workplace, name: str, content: bytes) -> None:
    """Its records are read, or it is said which are not."""
    from attnviz.data import records

    path = place.folder / name
    path.write_bytes(content)
    with sentence():
        for record in records.read(path):
            if isinstance(record, records.Unreadable) and ("\n" in record.reason or len(record.reason) > 500):
                raise Failure(f"a reason is no sentence: {record.reason!r:.200}")
