"""Words on the command line."""

import argparse
import contextlib
import functools
import io
import json
import os

from hypothesis import strategies as st

from tests.hostile import strategies
from tests.hostile.workplace import LONG, Failure, Workplace

WARM = ["trace", "the dog runs", "--model", "en-fr/bahdanau", "--root", "checkpoints", "--html", "x.html"]
STATUSES = (0, 2, 130, 141)
FAULTS = 1  # of `check`: what it tests is not right


# Not run: `download` and `study` take minutes of allowed work; a Ray address is a machine to connect to.
COMMANDS = ("trace", "write", "models", "evaluate", "align", "train", "corpus")
LEFT_OUT = ("--help", "--ray", "--model")
NEEDED = {  # what comes before the hostile words, so that some of them are reached
    "trace": ["--root", "checkpoints"],
    "write": ["--root", "checkpoints"],
    "models": ["--root", "checkpoints"],
    "evaluate": ["--root", "checkpoints"],
    "align": ["--root", "checkpoints"],
    "train": ["--out", "trained"],
    "corpus": ["--root", "checkpoints", "--input", "lines.txt", "--out", "measured"],
}
PATHS = ("mine.json", "-", "", ".", "/", "/dev/full", "no/such/x.json", "checkpoints", "lines.txt", "mine.svg")
SETTINGS = ("width", "layers", "heads", "hidden", "embedding_width", "vocabulary", "learning_rate", "warmup", "cell")
HUGE = (
    "100000000000000000000",
    "2147483648",
    "4294967296",
    "1e20",
    "nan",
    "inf",
    "-1",
    "0",
    "true",
    "9" * 5000,
    "lstm",
)
MODELS = ("en-fr/bahdanau", "en-fr/transformer", "en/writer", "en-fr/none", "../x", "hf:", "hf:.", "hf:checkpoints")


def strategy():
    value = st.one_of(
        strategies.texts.filter(lambda text: "\x00" not in text),
        st.sampled_from(PATHS),
        st.sampled_from(["en-fr", "1", "2.5", "weights", "slide", "reverse", "transformer", "0", "1e400", "9" * 400]),
        st.tuples(st.sampled_from(SETTINGS), st.one_of(st.sampled_from(HUGE), strategies.numbers.map(str))).map(
            "=".join
        ),
        strategies.numbers.map(str),
    )
    model_name = st.one_of(st.sampled_from(MODELS), value)

    def words_of(command: str):
        named = model_name.map(lambda name: ["--model", name]) if command not in ("models", "train") else st.just([])
        text = value.map(lambda text: [text]) if command in ("trace", "write") else st.just([])
        chosen = st.lists(st.tuples(st.sampled_from(options(command)), value).map(list), max_size=4)
        parts = st.tuples(
            st.just([command]), text, named, st.just(NEEDED[command]), chosen.map(lambda some: sum(some, []))
        )
        return parts.map(lambda lists: sum(lists, [])).filter(_stays)

    return st.sampled_from(COMMANDS).flatmap(words_of)


@functools.cache
def options(command: str) -> list[str]:
    """The options of a command, as its parser has them."""
    from attnviz.cli import COMMANDS as modules

    parser = argparse.ArgumentParser()
    modules[command].add_arguments(parser)
    return sorted(
        action.option_strings[-1]
        for action in parser._actions
        if action.option_strings[-1:] and action.option_strings[-1] not in LEFT_OUT
    )


def _stays(words: list[str]) -> bool:
    """No case names a model of the hub, or writes where the person's own files are."""
    hub = any(word.startswith("hf:") and word not in ("hf:", "hf:.", "hf:checkpoints") for word in words)
    return not hub and not any("\x00" in word for word in words)


def check(place: Workplace, case) -> None:
    """The command line: an exit status, no traceback, and no file of the person's own half written."""
    own_file = place.folder / "mine.json"
    own_file.write_text("mine, and as long as it was", encoding="utf-8")
    (place.folder / "lines.txt").write_text("the dog runs\n\nthe man\n", encoding="utf-8")
    before = os.getcwd()
    os.chdir(place.folder)
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="strict") for _ in range(2))
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = _status(case)
    finally:
        os.chdir(before)
    for stream in (out, err):
        stream.flush()
    errors = err.buffer.getvalue().decode("utf-8", "replace")
    if (status not in STATUSES and (case[0], status) != ("check", FAULTS)) or "Traceback" in errors:
        raise Failure(f"status {status}: {errors[-300:]}")
    if status == 2 and (len(errors) > 2 * LONG or not errors.strip()):
        raise Failure(f"an error of {len(errors)} characters: {errors[:200]!r}")
    content = own_file.read_bytes()
    if content != b"mine, and as long as it was" and not _whole(content):
        raise Failure("a file of the person's own was left broken")


def _status(arguments: list[str]) -> int:
    from attnviz.__main__ import main

    try:
        return main(arguments)
    except SystemExit as end:  # argparse
        return end.code


def _whole(content: bytes) -> bool:
    try:
        return bool(json.loads(content))
    except ValueError:
        return content.endswith(b"</html>\n")
