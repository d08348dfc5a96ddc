"""Traces and texts in files that are too large, or that hold what no page can show."""

import gzip
import json

import numpy as np
import pytest

import attnviz
from attnviz import figures, select
from attnviz.data import readers
from attnviz.export import html_page
from attnviz.figures import labels
from attnviz.trace import files, uploads
from attnviz.trace.visible import escaped
from dashboard.markup import text
from dashboard.session import caches


def small(layers=1, heads=1):
    weights = [np.full((heads, 2, 2), 0.5, np.float32)] * layers
    return attnviz.from_arrays(weights, ["a", "b"])


def changed(**values):
    return json.dumps(small().to_dict() | values).encode()


def layer(number):
    content = small().to_dict()
    content["maps"][0]["layer"] = number
    return json.dumps(content).encode()


MAP = b'{"kind": "encoder", "layer": 0, "weights": []}'
WRONG = {
    "2,000 heads": (files.pack(small(heads=2000)), "it has 2,000 heads, and at most 1,600 are read"),
    "10^5 layers": (
        changed(maps=[]).replace(b'"maps": []', b'"maps": [' + b", ".join([MAP] * 10**5) + b"]"),
        "it has 100,000 maps, and at most 1,000 are read",
    ),
    "layer 10^30": (layer(10**30), "layers are counted from 0 to 999; got a number of more than 12 digits"),
    "layer 5,000": (layer(5000), "layers are counted from 0 to 999; got 5,000"),
    "lone surrogate": (
        json.dumps(attnviz.from_arrays([np.full((1, 2, 2), 0.5)], ["a", "\ud800"]).to_dict()).encode(),
        "a text in it holds half a character (a lone surrogate), which no page can show",
    ),
    "surrogate in a name": (changed(model="\udfff"), "a text in it holds half a character"),
    "long text": (changed(text="a" * 10**6), "a text in it has 1,000,000 characters, and at most 200,000 are read"),
    "many tokens": (changed(log_probs=[0.0] * 5000), "log_probs has 5,000 entries, and at most 4,096 are read"),
    "10^400": (changed(log_probs=[10**400]), "a number in it has more than 15 digits"),
    "weights of 10^400": (
        changed(maps=[{"kind": "encoder", "layer": 0, "weights": [[[10**400, 0], [0, 1]]]}]),
        "weights of the encoder map of layer 0 must be numbers",
    ),
    "deep": (b'{"a": ' + b"[" * 10**5, "trace must be JSON"),
    "digits": (b'{"a": ' + b"1" * 5000 + b"}", "trace must be JSON"),
}


@pytest.mark.parametrize("name", WRONG)
def test_refused_in_a_sentence(name):
    content, message = WRONG[name]
    with pytest.raises(ValueError) as error:
        uploads.unpack(content, "mine.json")
    assert str(error.value).startswith(f"the file mine.json holds no valid trace: {message}")
    assert len(str(error.value)) < 400


class Upload:
    def __init__(self, number, content):
        self.file_id, self.name, self.content = f"{number}", "mine.json", content

    def getvalue(self):
        return self.content


@pytest.mark.parametrize("name", WRONG)
def test_what_is_refused_is_not_remembered(name):
    first = caches.uploaded(Upload(f"good for {name}", files.pack(small())))
    with pytest.raises(ValueError):
        caches.uploaded(Upload(f"bad {name}", WRONG[name][0]))
    assert caches.uploaded(Upload(f"good for {name}", b"not read again")) is first


def test_as_many_heads_as_people_have():
    assert len(files.unpack(files.pack(small(48, 25)), "xl").maps) == 48


def test_a_gzip_bomb(tmp_path):
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(b"a\n" * 10**8, 9))
    assert path.stat().st_size < 10**6
    with pytest.raises(ValueError, match="bomb.gz unpacks to more than 64 MiB, too much for a file of its size"):
        readers.read_lines(path)


OBEYED = "\x1b\x85\u061c\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067"


@pytest.mark.parametrize("character", OBEYED, ids=ascii)
def test_what_turns_a_text_round_is_visible_wherever_it_is_shown(character):
    """In names and texts of a foreign trace: on the page, in figures, notebooks and HTML files."""
    name = f"a{character}b"
    trace = attnviz.from_arrays([np.full((1, 2, 2), 0.5)], ["a", name], name=name)
    grid = select.select(trace, "encoder")
    shown = [text.source(trace, name), text.markdown(name), labels.escape(name), trace._repr_html_()]
    drawn = json.loads(figures.heatmap(grid, title=name).to_json())
    shown += [json.dumps(drawn, ensure_ascii=False), html_page.page(trace).decode()]
    assert [place for place, content in enumerate(shown) if character in content] == []
    assert character.encode("unicode_escape").decode() in shown[0]


def test_letters_of_all_scripts_joined_emoji_and_lines_stay():
    assert escaped("é日本\n\tשלום 👩\u200d🚀") == "é日本\n\tשלום 👩\u200d🚀"
