"""The terms of the pages, each explained in two lines with its formula, and links to the papers that the pages name.
An explanation opens at its term. Longer texts are in Markdown files, which `sections` reads."""

import re
from dataclasses import dataclass
from pathlib import Path

from dashboard.markup.text import escape

_PAPERS = {
    "cho": ("Cho et al.", 2014, "https://aclanthology.org/D14-1179/"),
    "bahdanau": ("Bahdanau et al.", 2015, "https://arxiv.org/abs/1409.0473"),
    "luong": ("Luong et al.", 2015, "https://aclanthology.org/D15-1166/"),
    "vaswani": ("Vaswani et al.", 2017, "https://arxiv.org/abs/1706.03762"),
    "clark": ("Clark et al.", 2019, "https://aclanthology.org/W19-4828/"),
    "voita": ("Voita et al.", 2019, "https://aclanthology.org/P19-1580/"),
    "jain": ("Jain and Wallace", 2019, "https://aclanthology.org/N19-1357/"),
    "wiegreffe": ("Wiegreffe and Pinter", 2019, "https://aclanthology.org/D19-1002/"),
    "vashishth": ("Vashishth et al.", 2019, "https://arxiv.org/abs/1909.11218"),
    "moradi": ("Moradi et al.", 2019, "https://aclanthology.org/D19-5624/"),
    "olsson": ("Olsson et al.", 2022, "https://arxiv.org/abs/2209.11895"),
    "deyoung": ("DeYoung et al.", 2020, "https://aclanthology.org/2020.acl-main.408/"),
}


@dataclass(frozen=True)
class Term:
    """The meaning of a term, in plain words. formula : as text; "" for none."""

    words: str
    formula: str = ""


TERMS = {
    "entropy": Term(
        "How spread a row is. 0: all weight on one token. The largest value, ln n, is uniform attention over n tokens.",
        "H = −Σⱼ αⱼ ln αⱼ (nats)",
    ),
    "effective positions": Term(
        "Over how many tokens a row is spread: uniform attention over this many tokens has the same entropy.",
        "exp(H), or 1 / Σⱼ αⱼ²",
    ),
    "Gini coefficient": Term(
        "How unequal the weights of a row are. 0: all equal. Near 1: all weight on one of many tokens.",
        "G = Σᵢⱼ |αᵢ − αⱼ| / (2 n Σⱼ αⱼ)",
    ),
    "expected position": Term(
        "The mean position of the tokens, weighted by the row. Positions count from 1.",
        "Σⱼ αⱼ j",
    ),
    "log-probability": Term(
        "How sure the model is of a text: the sum over its pieces, in nats. 0 is certain, and −0.69 is a probability "
        "of a half.",
        "ln p(y|x) = Σₜ ln p(yₜ | y₁ … yₜ₋₁, x)",
    ),
    "<eos>": Term(
        "End of sequence: a token after the last word. In the source, rows that look at no word in particular often "
        "put their weight on it. In the target, it is the step at which the model stops.",
    ),
    "piece": Term(
        "Models read and write parts of words from a fixed vocabulary. A frequent word is one piece; a rare one is "
        "several. Each piece after the first begins with · here.",
    ),
    "head": Term(
        "A Transformer layer attends several times at once, each time with its own matrices. Each of these is a head, "
        "with a map of its own.",
        "headᵢ = softmax(Qᵢ Kᵢᵀ / √d) Vᵢ",
    ),
    "rollout": Term(
        "Follows attention down through the layers: how much of each source token reaches a place. Half of each layer "
        "is the residual connection.",
        "R = Ã_L … Ã₁, with Ã = (A + I) / 2",
    ),
    "Jensen–Shannon distance": Term(
        "How different two rows of weights p and q are. 0: equal. 1: they share no token. m is their mean.",
        "√(½ KL(p‖m) + ½ KL(q‖m)), m = (p + q) / 2, log₂",
    ),
}
REFERENCES = (
    ("Jain & Wallace 2019", "https://aclanthology.org/N19-1357/"),
    ("Wiegreffe & Pinter 2019", "https://aclanthology.org/D19-1002/"),
    ("Serrano & Smith 2019", "https://aclanthology.org/P19-1282/"),
    ("Bastings & Filippova 2020", "https://aclanthology.org/2020.blackboxnlp-1.14/"),
)


def term(name: str) -> str:
    """A term that opens its explanation, as HTML. KeyError for a term that is not in TERMS."""
    meaning = TERMS[name]
    formula = f"<br><b>{escape(meaning.formula)}</b>" if meaning.formula else ""
    return (
        f'<details class="term"><summary>{escape(name)}</summary>'
        f"<span>{escape(meaning.words)}{formula}</span></details>"
    )


def line(*names: str, before: str = "", piece: str = "piece") -> str:
    """A line of several terms, placed beside the charts that use them. before : HTML at the beginning of the line.
    piece : the noun for a token; for letters, pieces are not explained."""
    shown = [name for name in names if name != "piece" or piece == "piece"]
    return f'<div class="terms">{before}What is it? {" ".join(map(term, shown))}</div>'


def caveat() -> str:
    """The limits of attention weights, with the papers that showed them."""
    links = ", ".join(
        f'<a href="{address}" target="_blank" rel="noopener">{escape(name)}</a>' for name, address in REFERENCES
    )
    return (
        '<p class="small caveat"><b>Attention is not by itself an explanation.</b> A weight says where a model reads, '
        f"not what its output depends on: {links}.</p>"
    )


def says(paper: str) -> str:
    """`Jain and Wallace (2019)`, the subject of a sentence. KeyError for a paper that is not in the list."""
    names, year, address = _PAPERS[paper]
    return f'<a href="{address}">{names} ({year})</a>'


def cited(paper: str) -> str:
    """`Jain and Wallace 2019`, for brackets."""
    names, year, address = _PAPERS[paper]
    return f'<a href="{address}">{names} {year}</a>'


_LINKS = {f"{form.__name__} {paper}": form(paper) for form in (cited, says) for paper in _PAPERS}
_PLACE = re.compile(r"\{([^{}]*)\}")


def sections(file: Path) -> dict[str, list[str]]:
    """A text in a Markdown file: heading of the second level -> its paragraphs; "" for those above the first. Tags are
    those of HTML, such as <b>. `filled` fills its placeholders. ValueError for a heading that stands twice."""
    bodies = re.split(r"^## (.+)\n", file.read_text(encoding="utf-8-sig"), flags=re.MULTILINE)
    headings = ["", *bodies[1::2]]
    once(headings, f"{file.name} has the heading")
    paragraphs = (re.split(r"\n\s*\n", body.strip()) for body in bodies[::2])
    return {heading: [*filter(None, below)] for heading, below in zip(headings, paragraphs, strict=True)}


def once(names: list[str], where: str) -> None:
    """ValueError for a name that stands twice. where : the beginning of the message."""
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"{where} “{twice[0]}” twice; keep one and put all of its text there")


def filled(text: str, where: str, **values: str) -> str:
    """HTML in one line with a value for each placeholder: `{cited cho}` and `{says cho}` are links to a paper.
    ValueError for a placeholder without a value, or a single brace. where : the file, at the beginning of the message.
    """
    every = _LINKS | values
    text = " ".join(text.splitlines())
    if single := re.search(r"[{}].{,20}", _PLACE.sub("", text)):
        raise ValueError(f"{where} has a single brace at “{single[0]}”; write a placeholder as {{cited cho}}")
    if unknown := [name for name in _PLACE.findall(text) if name not in every]:
        raise ValueError(f"{where} has the placeholder {{{unknown[0]}}}; known are {', '.join(every)}")
    return _PLACE.sub(lambda place: every[place[1]], text)
