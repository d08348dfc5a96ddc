"""The terms of the pages: short, escaped, and each of them on a page."""

import re
from pathlib import Path

import pytest

from dashboard.markup import terms

DASHBOARD = Path(terms.__file__).parents[1]


@pytest.mark.parametrize("name", terms.TERMS)
def test_a_term_is_two_lines(name):
    assert len(terms.TERMS[name].words) <= 190 and terms.TERMS[name].words.endswith((".", "here."))


def test_terms_are_escaped():
    assert "<summary>&lt;eos&gt;</summary>" in terms.term("<eos>")
    assert "<eos>" not in terms.line("<eos>", "entropy")


@pytest.mark.parametrize("name", terms.TERMS)
def test_every_term_stands_on_a_page(name):
    pages = [path.read_text() for folder in ("compare", "heads") for path in (DASHBOARD / folder).rglob("*.py")]
    assert any(f'"{name}"' in page or f"'{name}'" in page for page in pages)


def test_the_caveat_names_its_papers():
    caveat = terms.caveat()
    assert "Attention is not by itself an explanation." in caveat
    for name, address in terms.REFERENCES:
        assert f'href="{address}"' in caveat and name.replace("&", "&amp;") in caveat


def test_a_text_in_a_file_is_its_headings_and_paragraphs(tmp_path):
    (file := tmp_path / "text.md").write_text(
        "\ufeffAbove\nit.\n \n\nMore.\n\n## First: “a”\n\n# of <b>1</b>\n## Last\nEnd.\n", encoding="utf-8"
    )
    assert terms.sections(file) == {"": ["Above\nit.", "More."], "First: “a”": ["# of <b>1</b>"], "Last": ["End."]}


def test_placeholders_are_filled_once_or_refused():
    filled = terms.filled("{cited cho}\n({n}) {says jain}", "a.md", n="{cited cho} \\1")
    assert filled == f"{terms.cited('cho')} ({{cited cho}} \\1) {terms.says('jain')}"
    with pytest.raises(ValueError, match="^a.md has the placeholder {cited chow}; known are cited cho, .*, n$"):
        terms.filled("{cited cho} {cited chow}", "a.md", n="1")


@pytest.mark.parametrize(
    "text, at", [("See {cited cho, or\n{says jain}.", "{cited cho, or ."), ("cited cho} did.", "} did.")]
)
def test_a_placeholder_that_is_not_closed_is_refused(text, at):
    with pytest.raises(
        ValueError, match=f"^a.md has a single brace at “{re.escape(at)}”; write a placeholder as {{cited cho}}$"
    ):
        terms.filled(text, "a.md")


def test_a_heading_that_stands_twice_is_refused(tmp_path):
    (file := tmp_path / "a.md").write_text("## One\n\nA.\n\n## Two\n\n## One\n\nB.\n")
    with pytest.raises(ValueError, match="^a.md has the heading “One” twice; keep one and put all of its text there$"):
        terms.sections(file)
