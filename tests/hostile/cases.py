"""What is done with hostile input, by kind; each returns nothing, and raises Failure when the product did not hold.

Allowed is a ValueError or an OSError with one sentence from the library, an exit status with one line on standard error
from the command line, and a page that is drawn or says why not.
"""

import contextlib
import io
import json
import os
import shutil
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import hypothesis
import hypothesis.errors
from hypothesis import strategies as st

HERE = Path(__file__).resolve().parent
sys.path[:0] = [
    path for path in (str(HERE), str(HERE.parent / "helpers" / "models"), str(HERE.parents[1])) if path not in sys.path
]

import strategies  # noqa: E402
import tiny  # noqa: E402

LONG = 1_500  # characters of a message
STATUSES = (0, 2, 130, 141)


class Failure(AssertionError):
    """The product did not hold."""


@dataclass(frozen=True)
class Workplace:
    """Folders that a batch of cases may damage; made by `prepare`. root : checkpoints."""

    folder: Path

    @property
    def root(self) -> Path:
        return self.folder / "checkpoints"

    def put_back(self, name: str) -> None:
        """A folder as it was."""
        shutil.rmtree(self.folder / name, ignore_errors=True)
        shutil.copytree(self.folder / "whole" / name, self.folder / name)


def prepare(folder: Path, kind: str) -> Workplace:
    """What a kind of cases needs, in an empty folder."""
    place = Workplace(folder)
    tiny.write_models(folder / "whole" / "checkpoints")
    place.put_back("checkpoints")
    os.environ["ATTNVIZ_CHECKPOINTS"] = str(place.root)
    if kind == "foreign":
        import families

        for family in ("bert", "gpt2", "t5"):
            families.write(folder / "whole" / family, family)
    return place


@contextlib.contextmanager
def sentence(*also: type[Exception]):
    """An error must be one sentence."""
    try:
        yield
    except (ValueError, OSError, *also) as error:
        if len(str(error)) > LONG or "\n" in str(error).strip() or "Traceback" in str(error):
            raise Failure(f"{type(error).__name__} is no sentence: {str(error)[:300]!r}") from error


@cache
def model(root: Path, name: str):
    import attnviz

    return attnviz.load(name, root)


def read_text(place: Workplace, case) -> None:
    """Texts, targets and beams in the library; what comes out can be saved and drawn."""
    from attnviz import figures, select
    from attnviz.export import bundle
    from attnviz.trace import Trace

    name, text, more = case
    found = None
    with sentence():
        found = model(place.root, name).trace(text, **more)
    if found is None:
        return
    if Trace.from_json(found.to_json()) != found:
        raise Failure("a trace is another one after it was saved")
    if found.maps:
        figures.heatmap(select.select(found, found.maps[0].kind)).to_json()
    bundle.trace_json(found)


def texts():
    name = st.sampled_from(["en-fr/bahdanau", "en-fr/luong-local", "en-fr/transformer", "en-fr/fixed-context"])
    beams = st.one_of(st.sampled_from([1, 2, 5, "5", None, 2.5, 0, 21, True, 10**30]), strategies.numbers)
    more = st.fixed_dictionaries({}, optional={"target": st.one_of(st.none(), strategies.texts), "beam": beams})
    return st.tuples(name, st.one_of(strategies.texts, strategies.texts, strategies.plain), more)


def run_command(place: Workplace, case) -> None:
    """The command line: an exit status, no traceback, and no file of the person's own half written."""
    kept = place.folder / "mine.json"
    kept.write_text("mine, and as long as it was", encoding="utf-8")
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
    said = err.buffer.getvalue().decode("utf-8", "replace")
    if status not in STATUSES or "Traceback" in said:
        raise Failure(f"status {status}: {said[-300:]}")
    if status == 2 and (len(said) > 2 * LONG or not said.strip()):
        raise Failure(f"an error of {len(said)} characters: {said[:200]!r}")
    content = kept.read_bytes()
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


def arguments():
    value = st.one_of(
        strategies.texts.filter(lambda text: "\x00" not in text),
        st.sampled_from(
            ["mine.json", "-", "", ".", "/", "/dev/full", "no/such/x.json", "checkpoints", "en-fr", "1", "2.5"]
        ),
        strategies.numbers.map(str),
    )
    model_name = st.one_of(
        st.sampled_from(["en-fr/bahdanau", "en-fr/transformer", "en-fr/none", "../x", "hf:", "hf:.", "hf:checkpoints"]),
        value,
    )
    options = {
        "trace": ["--target", "--beam", "--json", "--save", "--html", "--root"],
        "models": ["--json", "--root"],
        "evaluate": ["--source", "--reference", "--beam", "--json", "--root"],
        "align": ["--gold", "--threshold", "--json", "--root"],
        "train": ["--pair", "--mechanism", "--data", "--tsv", "--epochs", "--set", "--limit", "--start", "--out"],
    }

    def of(command: str):
        chosen = st.lists(st.tuples(st.sampled_from(options[command]), value), max_size=4)
        named = (
            model_name.map(lambda name: ["--model", name]) if command in ("trace", "evaluate", "align") else st.just([])
        )
        text = value.map(lambda text: [text]) if command == "trace" else st.just([])
        root = st.just(["--root", "checkpoints"] if command != "train" else ["--out", "trained"])
        parts = st.tuples(
            st.just([command]), text, named, root, chosen.map(lambda pairs: [word for pair in pairs for word in pair])
        )
        return parts.map(lambda lists: [word for part in lists for word in part]).filter(_stays)

    return st.sampled_from(list(options)).flatmap(of)


def _stays(words: list[str]) -> bool:
    """No case names a model of the hub, or writes where the person's own files are."""
    hub = any(word.startswith("hf:") and word not in ("hf:", "hf:.", "hf:checkpoints") for word in words)
    return not hub and not any("\x00" in word for word in words)


def _in_checkpoint(place: Workplace, name: str, file: str, content) -> None:
    path = place.root / name / file
    path.write_text(
        json.dumps(content) if not isinstance(content, str) else content, encoding="utf-8", errors="replace"
    )


def use_config(place: Workplace, case) -> None:
    """A config: the model is loaded and reads, or is refused; the others are as they were."""
    import attnviz

    name, content = case
    try:
        _in_checkpoint(place, name, "config.json", content)
        with sentence():
            attnviz.load(name, place.root).trace("the dog runs")
        run_command(place, ["models", "--root", str(place.root)])
    finally:
        place.put_back("checkpoints")


def configs():
    return _mutations("config.json")


def cards():
    return _mutations("card.json")


def _mutations(file: str):
    known = {
        name: json.loads(path.read_text())
        for name in ("en-fr/transformer", "en-fr/bahdanau", "sst2/self-attention")
        if (path := strategies.ROOT / "checkpoints" / name / file).is_file()
    }
    small = {"mechanism": "transformer", "vocabulary": 60, "options": tiny.WIDTHS["transformer"]}
    values = [*known.values(), *([small] if file == "config.json" else [])]
    return st.tuples(
        st.sampled_from(["en-fr/transformer", "en-fr/bahdanau"]), st.one_of(*map(strategies.mutated, values))
    )


def use_card(place: Workplace, case) -> None:
    """A card: it is listed and drawn, or left out."""
    from attnviz.models import checkpoint_files
    from dashboard.markup import card

    name, content = case
    try:
        _in_checkpoint(place, name, "card.json", content)
        run_command(place, ["models", "--root", str(place.root)])
        run_command(place, ["models", "--json", "--root", str(place.root)])
        with sentence():
            card.show(checkpoint_files.read_card(name, place.root)).encode("utf-8")
    finally:
        place.put_back("checkpoints")


def use_trace(place: Workplace, case) -> None:
    """A file with a trace: refused, or it can be measured and drawn as the page does."""
    from attnviz import figures, heads, select, stats
    from attnviz.trace import files

    found = None
    with sentence():
        found = files.unpack_for_page(case, "mine")
    if found is None or not found.maps:
        return
    kind = found.maps[0].kind
    grid = select.select(found, kind)
    figures.heatmap(grid).to_json().encode("utf-8")
    stats.of_grid(grid)
    heads.table(found)
    with sentence():
        select.words(found)


def traces():
    import numpy as np

    import attnviz

    weights = [np.full((2, 3, 3), 1 / 3, np.float32)] * 2
    made = [
        attnviz.from_arrays(weights, ["a", "b", "c"]),
        attnviz.from_arrays([np.full((1, 2, 3), 1 / 3)], ["a", "b", "<eos>"], ["x", "y"], special=["<eos>"]),
    ]
    from attnviz.trace import files

    written = [strategies.mutated(trace.to_dict()).map(lambda found: json.dumps(found).encode()) for trace in made]
    return st.one_of(*written, *(strategies.damaged(files.pack(trace)) for trace in made))


def use_tokenizer(place: Workplace, case) -> None:
    """A tokenizer.json of one's own: refused, or it reads a text."""
    import attnviz

    path = place.root / "en-fr" / "tokenizer.json"
    try:
        path.write_bytes(case if isinstance(case, bytes) else json.dumps(case).encode())
        with sentence():
            attnviz.load("en-fr/bahdanau", place.root).trace("the dog runs")
    finally:
        place.put_back("checkpoints")


def tokenizers():
    content = tiny.vocabulary().backend.to_str()
    return st.one_of(strategies.mutated(json.loads(content)), strategies.damaged(content.encode()))


def use_foreign(place: Workplace, case) -> None:
    """A folder of a model for the transformers library: refused, or it reads a text."""
    import attnviz

    family, file, content, text = case
    place.put_back(family)
    (place.folder / family / file).write_text(json.dumps(content), encoding="utf-8")
    with sentence():
        attnviz.load(f"hf:{place.folder / family}").trace(text)


def foreign():
    import families

    def of(family: str):
        made, name, settings = families.FAMILIES[family]
        tokenizer, special = made()
        import transformers

        config = getattr(transformers, name).config_class(vocab_size=tokenizer.get_vocab_size(), **settings).to_dict()
        config |= {"architectures": [name]}
        files = {
            "config.json": config,
            "tokenizer.json": json.loads(tokenizer.to_str()),
            "tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 40, **special},
            "generation_config.json": {
                "num_beams": 1,
                "max_length": 20,
                "eos_token_id": 1,
                "decoder_start_token_id": 0,
            },
        }
        one = st.sampled_from(list(files)).flatmap(
            lambda file: st.tuples(st.just(file), strategies.mutated(files[file]))
        )
        return st.tuples(st.just(family), one, strategies.texts).map(lambda found: (found[0], *found[1], found[2]))

    return st.sampled_from(["bert", "gpt2", "t5"]).flatmap(of)


PAGE = """import streamlit as st
from dashboard.pages import PAGES

with st.sidebar:
    chosen = PAGES[{number}].sidebar()
PAGES[{number}].show(chosen)
"""


def open_page(place: Workplace, case) -> None:
    """The page as a link opens it: drawn, with a note where a value means nothing."""
    from streamlit.testing.v1 import AppTest

    page, query = case
    app = AppTest.from_string(PAGE.format(number=page), default_timeout=30)
    for key, value in query.items():
        app.query_params[key] = value
    app.run()
    if app.exception:
        raise Failure(f"{app.exception[0].message[:200]} for {query!r:.300}")


def links():
    return st.tuples(st.sampled_from([0, 1]), strategies.queries)


@dataclass(frozen=True)
class Kind:
    """strategy : makes the cases. check : raises Failure. share : of a long run."""

    strategy: Callable[[], st.SearchStrategy]
    check: Callable[[Workplace, object], None]
    share: int


KINDS = {
    "texts": Kind(texts, read_text, 40),
    "arguments": Kind(arguments, run_command, 5),
    "configs": Kind(configs, use_config, 8),
    "cards": Kind(cards, use_card, 10),
    "traces": Kind(traces, use_trace, 25),
    "tokenizers": Kind(tokenizers, use_tokenizer, 8),
    "foreign": Kind(foreign, use_foreign, 2),
    "links": Kind(links, open_page, 2),
}


# a case of each kind that nothing is wrong with
WARM = {
    "texts": ("en-fr/bahdanau", "the dog runs", {}),
    "arguments": ["trace", "the dog runs", "--model", "en-fr/bahdanau", "--root", "checkpoints", "--html", "x.html"],
    "configs": ("en-fr/bahdanau", {}),
    "cards": ("en-fr/bahdanau", {}),
    "traces": b"{}",
    "tokenizers": {},
    "foreign": ("bert", "generation_config.json", {}, "the dog"),
    "links": (0, {}),
}


def run(kind: str, seed: int, count: int, folder: Path, say: Callable[..., None]) -> None:
    """`count` cases of a kind; say(case=…) before each, say(failed=…) after one that did not hold."""
    place, done = prepare(folder, kind), 0
    with contextlib.suppress(Failure):
        KINDS[kind].check(place, WARM[kind])  # what is imported on the way is no case's own time

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(KINDS[kind].strategy())
    def check(case) -> None:
        nonlocal done
        done += 1
        say(case=f"{case!r:.1200}")
        try:
            KINDS[kind].check(place, case)
        except hypothesis.errors.HypothesisException:
            raise
        except BaseException as error:  # whatever comes through is a failure of the product
            where = traceback.extract_tb(error.__traceback__)[-1]
            say(failed=f"{type(error).__name__}: {str(error)[:400]} ({Path(where.filename).name}:{where.lineno})")

    check()
