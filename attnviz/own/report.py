"""The report of a check: a line for each test, as text, as a table of a notebook, and as JSON."""

import html
from dataclasses import asdict, dataclass

# `fault` makes the report fail. `limit`: right in ordinary use, and not in the case that the line names.
OK, FAULT, LIMIT, UNTESTED = "ok", "fault", "limit", "not tested"
_COLORS = {OK: "#1a7f37", FAULT: "#b42318", LIMIT: "#9a6700", UNTESTED: "#6e7781"}


@dataclass(frozen=True)
class Line:
    """One test: its name, its verdict, the reason in plain words, and the smallest example that fails.

    >>> own.check(lambda query, keys: (query @ keys.mT).softmax(-2)).faults[0].reason
    'weights sum to 1 over the queries and not over the keys: softmax has the wrong dim'
    """

    test: str
    verdict: str
    reason: str
    example: str = ""


@dataclass(frozen=True)
class Report:
    """Every test of one module. name : how it was made. form : how it is called. formula : the formula that it
    computes. trained : its result in the trained model of this formula.

    >>> own.check(lambda query, keys: (query @ keys.mT).softmax(-1)).form
    'attention, batch-first: (query (B,T,D), keys (B,S,D)) -> weights (B,T,S)'
    """

    name: str
    form: str
    lines: tuple[Line, ...]
    formula: str = ""
    trained: str = ""

    @property
    def ok(self) -> bool:
        """No test found a fault."""
        return all(line.verdict != FAULT for line in self.lines)

    @property
    def faults(self) -> tuple[Line, ...]:
        """The lines with a fault."""
        return tuple(line for line in self.lines if line.verdict == FAULT)

    def summary(self) -> str:
        """The counts of the verdicts."""
        counts = {verdict: sum(line.verdict == verdict for line in self.lines) for verdict in _COLORS}
        return ", ".join(f"{count} {_plural(verdict, count)}" for verdict, count in counts.items() if count)

    def _facts(self) -> list[str]:
        """Lines on how the module is called, what it computes, and its result in a trained model."""
        facts = {"recognised as": self.form, "formula:": self.formula, "in a trained model:": self.trained}
        return [f"{name} {words}" for name, words in facts.items() if words]

    def to_dict(self) -> dict:
        """For JSON."""
        lines = [asdict(line) for line in self.lines]
        return {"name": self.name, "ok": self.ok, "summary": self.summary(), "form": self.form} | {
            "formula": self.formula,
            "trained": self.trained,
            "tests": lines,
        }

    def __str__(self) -> str:
        head = [self.name, *self._facts(), ""]
        wide = max((len(line.test) for line in self.lines), default=0)
        body = []
        for line in self.lines:
            body.append(f"{line.verdict:10}  {line.test:{wide}}  {line.reason}")
            if line.example:
                body.append(f"{'':10}  {'':{wide}}  smallest example: {line.example}")
        return "\n".join([*head, *body, "", self.summary()])

    def _repr_html_(self) -> str:
        rows = "".join(
            f'<tr><td style="color:{_COLORS[line.verdict]}"><b>{line.verdict}</b></td>'
            f'<td style="text-align:left">{html.escape(line.test)}</td>'
            f'<td style="text-align:left">{html.escape(line.reason)}</td>'
            f'<td style="text-align:left">{html.escape(line.example)}</td></tr>'
            for line in self.lines
        )
        head = "<tr><th>verdict</th><th>test</th><th>reason</th><th>smallest example</th></tr>"
        facts = "".join(f"<div>{html.escape(line)}</div>" for line in self._facts())
        return f"<div><b>{html.escape(self.name)}</b>{facts}<table>{head}{rows}</table></div>"


def _plural(verdict: str, count: int) -> str:
    """`4 faults`, but `4 ok` and `4 not tested`."""
    return f"{verdict}s" if verdict in (FAULT, LIMIT) and count > 1 else verdict
