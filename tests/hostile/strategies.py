"""Hypothesis strategies for hostile and broken input: texts, JSON, and known files with parts exchanged."""

import ast
import copy
import functools
import json
from pathlib import Path

from hypothesis import strategies as st

ROOT = Path(__file__).resolve().parents[2]

NASTY = (
    "",
    " ",
    "\x00",
    "\ud800",
    "\udfff\ud800",
    "▁",
    "▁▁ ▁",
    "<eos>",
    "<pad> <bos> <unk>",
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "**bold** `code` $x$ :red[x] [a](javascript:alert(1))",
    "=cmd|' /C calc'!A0",
    "../../../etc/passwd",
    "file:///etc/passwd",
    "%00%0a",
    "\u202e\u2066abc",
    "e" + "\u0301" * 300,
    "\ufdfa" * 40,
    "🏳️‍🌈👨‍👩‍👧‍👦",
    "ا" * 100,
    "漢字かな交じり文。",
    "a" * 3_000,
    "a " * 1_500,
    "word " * 90,
    "A dog runs.",
    "NaN",
    "null",
    "1e999",
    "-0",
    "9" * 400,
    "true",
    "\r\n\t\x0b\x0c\x1b[31m",
)
texts = st.one_of(
    st.sampled_from(NASTY),
    st.text(max_size=60),
    st.text(st.characters(exclude_categories=()), max_size=30),
    st.lists(st.sampled_from(NASTY), min_size=2, max_size=4).map(" ".join),
    st.lists(st.sampled_from(["The", "dog", "runs", "black", ".", "!", "▁", "a"]), max_size=40).map(" ".join),
)
NUMBERS = (
    0,
    1,
    -1,
    2,
    3,
    64,
    255,
    2**31,
    2**63,
    10**8,
    10**12,
    10**30,
    10**400,
    -(10**400),
    0.5,
    1.5,
    2.0,
    1e308,
    -0.0,
)
numbers = st.one_of(
    st.sampled_from(NUMBERS), st.sampled_from([float("nan"), float("inf"), float("-inf")]), st.integers(), st.floats()
)
plain = st.one_of(st.none(), st.booleans(), numbers, texts)
json_values = st.recursive(
    plain,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(texts, inner, max_size=4)),
    max_leaves=12,
)


def as_json(value) -> str:
    """JSON text; what has none, such as half a surrogate pair, is an escape or a text."""
    return json.dumps(value, default=str)


def paths(value, here: tuple = (), depth: int = 6) -> list[tuple]:
    """Where something stands in JSON; of long lists and objects the first and the last entries."""
    places = [here] if here else []
    if depth and isinstance(value, dict | list):
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        for key in keys[:24] + keys[-1:]:
            places += paths(value[key], (*here, key), depth - 1)
    return places


def change(value, path: tuple, new):
    """A copy of JSON with another value at a place; Ellipsis takes it out."""
    changed = copy.deepcopy(value)
    try:
        inside = functools.reduce(lambda inner, key: inner[key], path[:-1], changed)
        if new is ...:
            del inside[path[-1]]
        else:
            inside[path[-1]] = new
    except (KeyError, IndexError, TypeError):  # an earlier change took the place away
        return value
    return changed


def mutated(value):
    """JSON like `value` with one to three places changed, something added, or something else altogether."""
    places = paths(value)
    alone = st.tuples(st.sampled_from(places), st.one_of(json_values, st.just(...), st.sampled_from(NUMBERS)))
    several = st.lists(alone, min_size=1, max_size=3).map(
        lambda changes: functools.reduce(lambda changed, made: change(changed, *made), changes, value)
    )
    added = st.tuples(texts, json_values).map(lambda pair: {**value, pair[0]: pair[1]})
    return st.one_of(several, several, several, added, json_values)


# Native code makes a table of as many rows as the largest number of a piece, or ends the process.
piece_numbers = st.one_of(
    st.sampled_from([400_000_000, 2**24, 2**31 - 1, 2**31, 2**32 - 6, 2**32 - 1, 2**32, 2**63 - 1, 2**64 - 1, -1]),
    st.integers(0, 2**33),
)


def numbered(tokenizer: dict):
    """A tokenizer.json in which a piece, or a step that adds pieces, has another number."""

    def is_number(path: tuple) -> bool:
        value = functools.reduce(lambda inner, key: inner[key], path, tokenizer)
        return isinstance(value, int) and not isinstance(value, bool)

    places = [path for path in paths(tokenizer, depth=9) if is_number(path)]
    added = piece_numbers.map(lambda number: {"id": number, "content": "new", "special": True} | FLAGS)
    return st.one_of(
        st.tuples(st.sampled_from(places), piece_numbers).map(lambda made: change(tokenizer, *made)),
        added.map(lambda token: tokenizer | {"added_tokens": [*(tokenizer.get("added_tokens") or []), token]}),
        added.map(lambda token: tokenizer | {"post_processor": _template(token["id"])}),
    )


FLAGS = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}


def _template(number: int) -> dict:
    """A step that puts the piece of this number before every text."""
    single = [{"SpecialToken": {"id": "new", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    tokens = {"new": {"id": "new", "ids": [number], "tokens": ["new"]}}
    return {"type": "TemplateProcessing", "single": single, "pair": single, "special_tokens": tokens}


def damaged(content: bytes):
    """A file with bytes exchanged, cut, or put in."""
    place = st.integers(0, max(len(content) - 1, 0))
    return st.one_of(
        st.tuples(place, st.binary(max_size=9)).map(
            lambda at: content[: at[0]] + at[1] + content[at[0] + len(at[1]) :]
        ),
        place.map(lambda at: content[:at]),
        st.tuples(place, st.binary(max_size=9)).map(lambda at: content[: at[0]] + at[1] + content[at[0] :]),
        st.binary(max_size=64),
    )


@functools.cache
def parameters() -> list[str]:
    """The parameters of the address bar: the keys of the controls that are bound to it, as the code of the page names
    them."""
    keys = set()
    for path in (ROOT / "dashboard").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            given = {word.arg: word.value for word in getattr(node, "keywords", ())}
            if {"bind", None} & given.keys() and isinstance(given.get("key"), ast.Constant):  # None: `**`, with it
                keys.add(given["key"].value)
    others = {f"{prefix}{name}" for prefix in ("", "other_") for name in ("from", "lines", "path")}  # many/sources.py
    return sorted(keys | others | {"own", "guest"})  # shell/widgets.py


@functools.cache
def meant_values() -> list[str]:
    """Values that mean something to some parameter."""
    return [
        *(
            "bahdanau",
            "transformer",
            "en-fr/transformer",
            "A Hugging Face model",
            "A saved trace",
            "own model",
            "reverse",
        ),
        *(
            "cross",
            "encoder",
            "decoder",
            "pieces",
            "words",
            "true",
            "false",
            "0",
            "1",
            "5",
            "-1",
            "mean",
            "typed",
            "own",
        ),
        *(
            "entropy_nats",
            "encoder layer 1, head 1",
            "cross layer 9, head 9",
            "Bahdanau minus Luong (dot)",
            "English → German",
        ),
        *("Pasted", "A file on this machine", "An uploaded file", "Normalised entropy", "largest first", "/etc/passwd"),
        *("Greedy", "Beam of 5", "1e9", "1_000", "٣", "2.0"),
    ]


sent = texts.map(lambda text: text.encode("utf-8", "replace").decode())  # what a browser can have in an address
queries = st.dictionaries(
    st.one_of(*[st.deferred(lambda: st.sampled_from(parameters()))] * 2, sent.filter(bool)),  # read when it is needed
    st.one_of(sent, st.sampled_from(meant_values()), numbers.map(str)),
    max_size=5,
)
