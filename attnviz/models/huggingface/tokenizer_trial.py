"""A process in which a text is tried on a tokenizer before this process does the same.

Some steps of a foreign tokenizer may take very long or write very much. Its output for a text is always the same, so
the text is first given to a copy of it in a process with limited time and memory. If that process does not answer, it
is ended and the text is refused. This process goes on in any case.

Run as `python -m attnviz.models.huggingface.tokenizer_trial json FILE`, or `folder FOLDER` for a tokenizer that only
the transformers library can read: it reads lines of JSON, `{"text": …}` or `{"ids": […]}`, and answers each
with a line: `ok`, or an error.
"""

import importlib.util
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, Any

from attnviz.arguments import cut
from attnviz.data.tokenizer_rules import TokenizerError, contained

SECONDS = 10  # of processor time for one text
LOADING = 60  # seconds to read the tokenizer
MEMORY = 4 * 2**30  # bytes of address space
ERRORS = 2**16  # bytes of what the process wrote as errors
LENGTH = 1_000_000  # tokens, or characters, that may come out
_MODULES = {"sentencepiece": "sentencepiece", "tiktoken": "tiktoken", "protobuf": "google.protobuf"}  # by package


class _Piped(subprocess.Popen[str]):
    """A process whose input and output are pipes."""

    stdin: IO[str]
    stdout: IO[str]


class Trial:
    """One process, started at the first request, and restarted after it was ended. kind : `json` or `folder`, see
    above."""

    def __init__(self, kind: str, place: Path, keep: tempfile.TemporaryDirectory) -> None:
        self._command = [sys.executable, "-m", __name__, kind, str(place)]
        self._keep, self._lock = keep, threading.Lock()  # the files are there as long as this is
        self._process: _Piped | None = None
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - as long as this is

    def ask(self, **question: str | list[int]) -> None:
        """Wait until the process has answered. Raises TokenizerError when it fails or takes too long."""
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self._process = self._start()
            answer = self._answer(self._process, json.dumps(question), SECONDS * 2)
        if answer != "ok":
            raise TokenizerError(answer)

    def _start(self) -> _Piped:
        process = _Piped(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            cwd=Path(__file__).parents[3],
            text=True,
            encoding="utf-8",
        )
        weakref.finalize(self, _end, process)
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=_pass_on, args=(process, self._lines), daemon=True).start()
        answer = self._answer(process, None, LOADING)
        if answer != "ok":
            _end(process)
            raise TokenizerError(answer)
        return process

    def _answer(self, process: _Piped, line: str | None, seconds: float) -> str:
        try:
            if line is not None:
                process.stdin.write(f"{line}\n")
                process.stdin.flush()
            return self._lines.get(timeout=seconds) or self._cause(process)
        except OSError:  # it ended before it was asked
            return self._cause(process)
        except queue.Empty:
            _end(process)
            return f"the tokenizer takes more than {seconds:g} seconds for it"

    def _cause(self, process: _Piped) -> str:
        """Why the process has ended, from its exit status and its last output."""
        code = process.wait()
        self._errors.seek(0)
        written = self._errors.read(ERRORS).decode("utf-8", "replace").strip().splitlines()
        self._errors.truncate(0)
        if code in (-getattr(signal, "SIGXCPU", 0), -getattr(signal, "SIGKILL", 0)):
            return f"the tokenizer takes more than {SECONDS} seconds for it"
        if code == -signal.SIGABRT or "MemoryError" in "".join(written[-1:]):
            return f"the tokenizer takes more than {MEMORY // 2**30} GB for it"
        last = written[-1] if written else f"it ended with code {code}"
        if any(name in last for name in ("ImportError", "ModuleNotFoundError")):
            return _why_unread(last, self._command[-1], lacking=True)
        return f"the program that reads it ended: {cut(' '.join(last.split()), 120)}"


class Tried:
    """A tokenizer of the transformers library that reads a text only after its trial has succeeded."""

    def __init__(self, tokenizer: Any, trial: Trial) -> None:
        self.untried, self._trial = tokenizer, trial

    def again(self, tokenizer: Any) -> "Tried":
        """Another tokenizer of the same files, with the same trial."""
        return Tried(tokenizer, self._trial)

    def __call__(self, text: str | None = None, text_target: str | None = None, **how: Any) -> Any:
        for tried in ((text or "") if text_target is None else text_target, how.get("text_pair")):
            if tried is not None:
                self._trial.ask(text=tried)
        given = {"text": text} if text_target is None else {"text_target": text_target}
        return self.untried(**given, **how)

    def decode(self, ids: Iterable[int], **how: Any) -> str:
        self._trial.ask(ids=list(ids))
        return self.untried.decode(ids, **how)

    def __len__(self) -> int:
        return len(self.untried)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.untried, name)


def _pass_on(process: _Piped, lines: queue.Queue) -> None:
    for line in process.stdout:
        lines.put(line.strip())
    lines.put("")  # it has ended


def _end(process: _Piped) -> None:
    process.kill()
    process.wait()
    process.stdin.close()


def _reader(kind: str, place: str) -> tuple[Callable[[str], int], Callable[[list[int]], int]]:
    """Functions that give the size of a tokenizer's output, for a text and for tokens."""
    if kind == "json":
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(place)
        tokenizer.to_str()  # as the process does that is protected: it takes memory for each number up to the last
        return lambda text: len(tokenizer.encode(text).ids), lambda ids: len(tokenizer.decode(ids))
    sys.modules["torch"] = None  # type: ignore[assignment]  # no tokenizer needs it, and to import it takes a second
    os.environ["TRANSFORMERS_VERBOSITY"] = "error"  # else it says so
    import transformers

    whole = transformers.AutoTokenizer.from_pretrained(place, trust_remote_code=False, local_files_only=True)
    return lambda text: len(whole(text)["input_ids"]), lambda ids: len(whole.decode(ids))


def _limit_memory() -> None:
    try:
        import resource
    except ImportError:  # Windows has no such limits; `Trial` keeps the one of time
        return
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def _limit_time() -> None:
    try:
        import resource
    except ImportError:
        return
    used = resource.getrusage(resource.RUSAGE_SELF)
    soft = int(used.ru_utime + used.ru_stime) + SECONDS + 1
    resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def _why_unread(error: str, place: str, lacking: bool) -> str:
    """Why the files at `place` cannot be read, from an error of the transformers library: where it lacks a library,
    what to install. It asks for tiktoken too where it lacks sentencepiece. lacking : was something not imported?"""
    words = " ".join(error.split())
    compiled = any(path.suffix in (".model", ".spm") for path in Path(place).glob("*"))
    named = [name for name in _MODULES if name in words.lower()]
    if compiled and (lacking or named):
        named.insert(0, "sentencepiece")
    if library := next((name for name in named if not _is_installed(_MODULES[name])), None):
        damaged = "it is damaged, or needs" if compiled and library == "tiktoken" else "it needs"
        return f"{damaged} the {library} library: pip install {library}"
    return f"a library is missing for it: {words[:80]}" if lacking else words[:80]


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ImportError:  # of the package around it
        return False


def main(kind: str, place: str) -> None:
    _limit_memory()
    try:
        with contained():
            read, spell = _reader(kind, place)
    except MemoryError:
        print(f"the tokenizer takes more than {MEMORY // 2**30} GB for it", flush=True)
        return
    except Exception as error:  # the files are a stranger's: any error is the answer
        words = str(error) or type(error).__name__  # an empty line would say that the process has ended
        print(_why_unread(words, place, isinstance(error, ImportError)), flush=True)
        return
    print("ok", flush=True)
    for line in sys.stdin:
        _limit_time()
        question = json.loads(line)
        try:
            with contained():
                count = read(question["text"]) if "text" in question else spell(question["ids"])
            answer = "ok" if count <= LENGTH else f"the tokenizer makes more than {LENGTH:,} tokens of it"
        except (ValueError, MemoryError, TypeError, KeyError, AttributeError, IndexError, OverflowError) as error:
            answer = "ok" if not isinstance(error, MemoryError) else "the tokenizer takes too much memory for it"
        print(answer, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:3])
