"""Links to the papers that the pages name, HTML."""

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
    "deyoung": ("DeYoung et al.", 2020, "https://aclanthology.org/2020.acl-main.408/"),
}


def says(paper: str) -> str:
    """`Jain and Wallace (2019)`, the subject of a sentence. KeyError for a paper that is not in the list."""
    names, year, address = _PAPERS[paper]
    return f'<a href="{address}">{names} ({year})</a>'


def cited(paper: str) -> str:
    """`Jain and Wallace 2019`, for brackets."""
    names, year, address = _PAPERS[paper]
    return f'<a href="{address}">{names} {year}</a>'
