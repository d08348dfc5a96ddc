"""data/records: the same records from every kind of file, and lines that are none in their places."""

import gzip
import json

import pyarrow as pa
import pytest
from pyarrow import parquet

from attnviz import gold
from attnviz.data import readers
from attnviz.data.records import LINE, Record, Unreadable, count, read, unpack

RECORDS = [
    Record(1, "a", "A dog.", "Un chien."),
    Record(2, "b", "Two  cats", "Deux chats"),
    Record(3, "7", "Été 🎈", "x"),
]
PLAIN = [record._replace(id=str(record.number), target=None) for record in RECORDS]


def tsv(path):
    path.write_text("".join(f"{r.id}\t{r.source}\t{r.target}\n" for r in RECORDS), encoding="utf-8")


def jsonl(path):
    rows = ({"id": r.id, "source": r.source, "target": r.target, "more": [1]} for r in RECORDS)
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")


def table(path):
    rows = [{"target": r.target, "id": r.id, "source": r.source, "more": 1.5} for r in RECORDS]
    parquet.write_table(pa.Table.from_pylist(rows), path)


def lines(path):
    path.write_bytes("\r\n".join(r.source for r in RECORDS).encode("utf-8-sig"))


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    "name, write, wanted",
    [("in.tsv", tsv, RECORDS), ("in.JSONL", jsonl, RECORDS), ("in.parquet", table, RECORDS), ("in.en", lines, PLAIN)],
)
def test_kinds_of_files(tmp_path, name, write, wanted, packed):
    path = tmp_path / name
    write(path)
    if packed:
        path = tmp_path / f"{name}.gz"
        path.write_bytes(gzip.compress((tmp_path / name).read_bytes()))
    assert list(read(path)) == wanted
    assert count(path) == len(wanted)


@pytest.mark.parametrize(
    "name, content",
    [
        ("in.tsv", "A dog.\t\n7\tA dog.\t \n"),
        ("in.jsonl", '{"source": "A dog.", "target": ""}\n{"source": "A dog.", "target": " ", "id": 7}\n'),
    ],
)
def test_an_empty_target_is_none(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    assert list(read(tmp_path / name)) == [Record(1, "1", "A dog."), Record(2, "7", "A dog.")]


def test_a_linked_sentence_may_begin_with_the_sign_of_a_comment(tmp_path):
    row = {"source": "#1 runs|.", "target": "Le no 1 court|.", "links": "0-1 1-3 2-4"}
    (tmp_path / "in.jsonl").write_text(json.dumps(row))
    (record,) = read(tmp_path / "in.jsonl")
    assert record.source == "#1 runs." and record.linked.sure == {(0, 1), (1, 3), (2, 4)}


def test_tsv_with_fewer_columns(tmp_path):
    path = tmp_path / "in.tsv"
    path.write_text("one\ntwo\tdeux\n")
    assert list(read(path)) == [Record(1, "1", "one"), Record(2, "2", "two", "deux")]


@pytest.mark.parametrize(
    "name, line, reason",
    [
        ("in.txt", b"caf\xe9", "it must be UTF-8 text; got byte 0xe9"),
        ("in.tsv", b"1\ta\tb\tc", "it must have 1 to 3 columns (id, source, target); got 4"),
        ("in.jsonl", b"[1]", "it must be a JSON object; got '[1]'"),
        ("in.jsonl", b'{"source": 3}', "source must be a string; got 3"),
        ("in.jsonl", b'{"source": "a", "target": 3}', "target must be a string or none; got 3"),
        ("in.jsonl", b"{}", "source must be a string; got None"),
        (
            "in.jsonl",
            b'{"source": "\\ud800 dog"}',
            "source must have whole characters; got half of one in '\\ud800 dog'",
        ),
        (
            "in.jsonl",
            b'{"source": "a", "target": "\\udfff"}',
            "target must have whole characters; got half of one in '\\udfff'",
        ),
        (
            "in.jsonl",
            b'{"source": "a", "id": "\\udfff"}',
            "id must have whole characters; got half of one in '\\udfff'",
        ),
    ],
)
def test_a_line_that_cannot_be_read_keeps_its_number(tmp_path, name, line, reason):
    good = b'{"source": "A dog."}' if name.endswith("jsonl") else b"A dog."
    (tmp_path / name).write_bytes(b"\n".join([good, line, good]))
    records_read = list(read(tmp_path / name))
    assert records_read[1] == Unreadable(2, reason)
    assert [(record.number, record.source) for record in (records_read[0], records_read[2])] == [
        (1, "A dog."),
        (3, "A dog."),
    ]


def test_bad_json_says_where(tmp_path):
    (tmp_path / "in.jsonl").write_text('{"source": }\n')
    (record,) = read(tmp_path / "in.jsonl")
    assert record.number == 1 and record.reason.startswith("it must be a JSON object; it is not JSON: Expecting value")


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("in.txt.gz", b"no gzip", "is a damaged gzip file: Not a gzipped file"),
        ("in.parquet", b"no parquet", "is no Parquet file: "),
        ("in.parquet.gz", b"no gzip", "is no Parquet file: Not a gzipped file"),
    ],
)
def test_files_that_are_not_what_they_say(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    for use in (count, lambda path: list(read(path))):
        with pytest.raises(ValueError) as error:
            use(path)
        assert str(error.value).startswith(f"{path} {message}")


def test_parquet_without_sources(tmp_path):
    parquet.write_table(pa.table({"text": ["A dog."]}), tmp_path / "in.parquet")
    with pytest.raises(ValueError) as error:
        list(read(tmp_path / "in.parquet"))
    assert str(error.value) == f"{tmp_path / 'in.parquet'} must have a column `source`; got text"


def test_parquet_rows_without_a_source(tmp_path):
    parquet.write_table(pa.table({"source": ["A dog.", None]}), tmp_path / "in.parquet")
    assert list(read(tmp_path / "in.parquet")) == [
        Record(1, "1", "A dog."),
        Unreadable(2, "source must be a string; got None"),
    ]


def test_a_line_without_an_end_is_not_read_as_a_whole(tmp_path):
    path = tmp_path / "in.txt"
    path.write_bytes(b"A dog.\n" + b"a" * (3 * LINE + 5) + b"\nA cat.\n")
    reason = "it must have at most 65,536 bytes; got more"
    assert list(read(path)) == [Record(1, "1", "A dog."), Unreadable(2, reason), Record(3, "3", "A cat.")]
    assert count(path) == 3


@pytest.mark.parametrize(
    "name, content", [("in.tsv", b"A dog.\tUn chien."), ("in.txt.gz", gzip.compress(b"A dog.", mtime=0))]
)
def test_what_somebody_sent_is_read_without_a_file(name, content):
    (record,) = unpack(content, name, 1000)
    assert record.source == "A dog."


def test_what_somebody_sent_is_bounded():
    bomb = gzip.compress(b"a" * 1_000_000)
    with pytest.raises(ValueError) as error:
        list(unpack(bomb, "in.gz", 100_000))
    assert str(error.value) == "in.gz must hold at most 100,000 bytes, unpacked; got more"
    with pytest.raises(ValueError) as error:
        list(unpack(b"PAR1", "in.parquet", 10))
    assert str(error.value).startswith("in.parquet must be lines of text, TSV or JSONL;")


def test_a_parquet_row_that_is_not_utf8_is_named_and_the_others_are_read(tmp_path):
    words = pa.array([b"caf\xe9", b"A dog."]).cast(pa.binary()).view(pa.string())
    parquet.write_table(pa.table({"source": words}), tmp_path / "in.parquet")
    assert list(read(tmp_path / "in.parquet")) == [
        Unreadable(1, "it must be UTF-8 text; got byte 0xe9"),
        Record(2, "2", "A dog."),
    ]


def test_a_parquet_file_with_a_damaged_page(tmp_path):
    path = tmp_path / "in.parquet"
    parquet.write_table(pa.table({"source": [f"Dog {n}." for n in range(99)]}), path, use_dictionary=False)
    content = bytearray(path.read_bytes())
    content[40:200] = b"\xff" * 160
    path.write_bytes(content)
    with pytest.raises(ValueError) as error:
        list(read(path))
    assert str(error.value).startswith(f"{path} is a damaged Parquet file: ")


@pytest.mark.parametrize("name", ["in.txt", "in.tsv", "in.jsonl", "in.txt.gz"])
@pytest.mark.parametrize(
    "content, reason",
    [
        ("A dog.\n".encode("utf-16"), "its first bytes say UTF-16: save it as UTF-8"),
        ("A dog.\n".encode("utf-32"), "its first bytes say UTF-32: save it as UTF-8"),
        ("A dog.\n".encode("utf-16-le"), "line 1 holds a NUL byte, as UTF-16 text and files that are no text do"),
        (b"A dog.\n" * 3 + b"x" * 2 * LINE + b"\0\n", "line 4 holds a NUL byte, as UTF-16 text and files that are no "),
    ],
)
def test_another_encoding_is_refused_by_name_by_every_reader(content, reason, name, tmp_path):
    (path := tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    for refused in (
        lambda: list(read(path)),
        lambda: count(path),
        lambda: readers.read_lines(path),
        lambda: list(unpack(path.read_bytes(), str(path), 2**20)),
    ):
        with pytest.raises(ValueError) as error:
            refused()
        assert str(error.value).startswith(f"{path} must be UTF-8 text; {reason}")
    if not name.endswith(".gz"):
        with pytest.raises(ValueError, match="must be UTF-8 text"):
            gold.read(path)


HEADERS = ("en\tnl", "eng\tfra", '"English"\t"French"', "# source_text\tTarget_Text", "en-US\tfr-FR", "input\toutput")


@pytest.mark.parametrize("line", ["No\tNon", "He\tIl", "Text me.\tSMS", "Source?\tTarget?", "English.\tfr", "text"])
def test_a_first_line_of_words_is_a_sentence(line, tmp_path):
    (path := tmp_path / "in.tsv").write_text(line)
    assert [record.source for record in read(path)] == [line.split("\t")[0]]


@pytest.mark.parametrize("header", ["source", "Source\tTarget", "id\tsentence\ttranslation", "\ufeffen\tfr", *HEADERS])
def test_a_first_line_that_names_the_columns_is_no_sentence(header, tmp_path):
    columns = {1: ["A dog."], 2: ["A dog.", "Un chien."], 3: ["7", "A dog.", "Un chien."]}
    rows = [columns[len(header.split("\t"))]] * 2
    (path := tmp_path / "in.tsv").write_text("\n".join([header, *map("\t".join, rows)]), encoding="utf-8")
    first, *others = read(path)
    assert first == Unreadable(1, "it names the columns, so it is no sentence")
    assert [record.number for record in others if isinstance(record, Record)] == [2, 3] and count(path) == 3
    if len(rows[0]) == 2:
        assert readers.read_tsv(path) == [tuple(rows[0])] * 2
    path.write_text("source\tfin\n")  # a sentence of one word
    assert isinstance(next(read(path)), Record)


def test_columns_in_another_order_are_refused(tmp_path):
    (path := tmp_path / "in.tsv").write_text("target\tsource\nUn chien.\tA dog.\n")
    for refused in (lambda: list(read(path)), lambda: readers.read_tsv(path)):
        with pytest.raises(ValueError, match="must have the columns source; .*; its first line says target, source"):
            refused()
