"""The terms of the pages: short, escaped, and each of them on a page."""

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
        "Above\nit.\n\n\nMore.\n\n## First: “a”\n\n# of <b>1</b>\n## Last\nEnd.\n"
    )
    assert terms.sections(file) == {"": ["Above it.", "More."], "First: “a”": ["# of <b>1</b>"], "Last": ["End."]}


def test_placeholders_are_filled_once_or_refused():
    file = Path("a.md")
    filled = terms.filled("{cited cho} ({n}) {says jain}", file, n="{cited cho} \\1")
    assert filled == f"{terms.cited('cho')} ({{cited cho}} \\1) {terms.says('jain')}"
    with pytest.raises(ValueError, match="^a.md has the placeholder {cited chow}; known are cited cho, .*, n$"):
        terms.filled("{cited cho} {cited chow}", file, n="1")
