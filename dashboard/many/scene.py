"""The contents of the page of many sentences, computed before drawing. No Streamlit here."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from attnviz import across
from dashboard.choices import pairs
from dashboard.choices.options import KINDS, facts, kind_title, title
from dashboard.many.given import Given
from dashboard.many.running import Run
from dashboard.session.memory import Held
from dashboard.shell.problems import SceneError, Waiting

SHOWN_PROBLEMS = 3


@dataclass(frozen=True)
class ManyChoices:
    """What a person chose for the whole page. forced : the models write the given targets. guest : a model of a
    person's own among the mechanisms, as it was typed."""

    pair: str
    mechanisms: tuple[str, ...]
    kind: str = "cross"
    forced: bool = False
    tables: bool = False
    guest: str = ""


@dataclass(frozen=True, eq=False)
class Corpus:
    """The given sentences and their measurements. frame : from `Run.frame`."""

    given: Given
    run: Run
    frame: pd.DataFrame
    done: int  # sentences of all models that are shown

    @property
    def total(self) -> int:
        return self.run.total

    def frame_of(self, mechanism: str) -> pd.DataFrame:
        """The sentences of a mechanism (its title) that could be measured, by their number. Positions count from 1."""
        mine = self.frame[(self.frame["mechanism"] == mechanism) & self.frame["error"].isna()]
        return from_one(mine).set_index("number", drop=False).rename_axis(None)


@dataclass(frozen=True, eq=False)
class ManyScene:
    """corpus : the sentences. other : the sentences for comparison, or None."""

    choices: ManyChoices
    corpus: Corpus
    other: Corpus | None = None

    name = "the result"

    @property
    def text(self) -> str:
        return self.corpus.given.name

    @property
    def heading(self) -> list[str]:
        models = ", ".join(self.titles)
        parts = [corpus.given.name for corpus in (self.corpus, self.other) if corpus]
        return [f"{pairs.task(self.choices.pair).title}: {models}", " and ".join(parts), kind_title(self.choices.kind)]

    @property
    def held(self) -> list[Held]:
        """The parts that take memory."""
        return [(corpus.run, corpus.run.bytes) for corpus in (self.corpus, self.other) if corpus]

    @property
    def titles(self) -> list[str]:
        """The mechanisms with attention of the kind that was chosen."""
        return [title(name) for name in self.choices.mechanisms if self.choices.kind in facts(name).kinds]

    @property
    def warnings(self) -> list[str]:
        return [
            *(words for corpus in (self.corpus, self.other) if corpus for words in _warnings(corpus)),
            *(
                f"{title(name)} is not shown: it has no {KINDS[self.choices.kind].split(' (')[0].lower()}."
                for name in self.choices.mechanisms
                if self.choices.kind not in facts(name).kinds
            ),
        ]

    def lines(self) -> dict[str, pd.DataFrame]:
        """The name of each line of a chart -> its sentences: a mechanism, or a mechanism on the other sentences."""
        mine = {name: self.corpus.frame_of(name) for name in self.titles}
        others = {f"{name}, other sentences": self.other.frame_of(name) for name in self.titles} if self.other else {}
        return {name: frame for name, frame in (mine | others).items() if len(frame)}

    def saved(self) -> pd.DataFrame:
        """All rows of all sentences, as the CSV has them. Positions count from 1, as on the page."""
        frames = [
            from_one(corpus.frame).assign(sentences=name, kind=self.choices.kind)
            for name, corpus in (("first", self.corpus), ("other", self.other))
            if corpus
        ]
        return pd.concat(frames, ignore_index=True)


def compose(choices: ManyChoices, given: Sequence[tuple[Given, Run, int]]) -> ManyScene:
    """given : the sentences with their run and the number shown; likewise for the other sentences, if any. Raises
    SceneError."""
    if not choices.mechanisms:
        raise Waiting("Choose at least one mechanism on the left.")
    corpora = [Corpus(sentences, run, run.frame(choices.kind, done), done) for sentences, run, done in given]
    scene = ManyScene(choices, *corpora)
    if not scene.titles:
        raise SceneError(f"None of these mechanisms has {kind_title(choices.kind).lower()}.")
    if not scene.lines():
        reasons = corpora[0].frame["error"].dropna()
        why = f" {reasons.iloc[0][:200]}." if len(reasons) else ""
        raise SceneError(f"No sentence has been measured.{why}")
    return scene


def from_one(frame: pd.DataFrame) -> pd.DataFrame:
    """The sentences with positions that count from 1; those of the library count from 0."""
    return frame.assign(expected_position=frame["expected_position"] + 1)


def chosen(frame: pd.DataFrame, statistic: str, order: str, find: str) -> pd.DataFrame:
    """The sentences with these words in the sentence or its translation, in one of `SENTENCE_ORDERS`."""
    if find.strip():
        both = frame["source"].astype(str) + "\n" + frame["translation"].astype(str)
        frame = frame[both.str.contains(find.strip(), case=False, regex=False)]
    if order == "number":
        return frame.sort_values("number", kind="stable")
    return frame.sort_values(statistic, ascending=order == "smallest", kind="stable", na_position="last")


def minus(frame: pd.DataFrame, other: pd.DataFrame, statistic: str) -> pd.DataFrame:
    """The sentences of one mechanism with `difference`: its number minus that of another mechanism, sentence by
    sentence; NaN if the other has no number."""
    return frame.assign(difference=frame[statistic] - other[statistic].reindex(frame.index))


def unusual(frame: pd.DataFrame, statistic: str) -> pd.DataFrame:
    """The outliers of a statistic, the farthest first, with their robust z-score as `z`."""
    scores = across.outliers(frame[statistic])
    return frame.loc[scores.index].assign(z=scores)


def uniform(lines: dict[str, pd.DataFrame], statistic: str, kind: str) -> float | None:
    """The mean of uniform attention over the same sentences; None if it depends on more than the length, as in a
    decoder or for local attention."""
    if kind == "decoder" or statistic not in across.VALUES:
        return None
    tokens = np.concatenate([frame["source_tokens"].to_numpy() for frame in lines.values()])
    values = across.uniform(statistic, tokens) + (statistic == "expected_position")  # from 1
    return float(np.nanmean(values)) if np.isfinite(values).any() else None


def references(
    lines: dict[str, pd.DataFrame], statistic: str, kind: str, by_model: dict
) -> dict[str, dict[str, float]]:
    """For each line whose model has a reference: the untrained model and shuffled words, at the lengths of its
    sentences. by_model : model -> `across.reference.Reference`."""
    marks: dict[str, dict[str, float]] = {}
    for name, frame in lines.items():
        reference = by_model.get(frame["model"].iloc[0])
        if reference is None:
            continue
        tokens = frame["source_tokens"].to_numpy()
        levels = {
            baseline: reference.level(baseline, statistic, tokens, kind) for baseline in ("untrained", "shuffled")
        }
        if all(values is not None for values in levels.values()):
            marks[name] = {baseline: float(values.mean()) for baseline, values in levels.items()}
    return marks


def _warnings(corpus: Corpus) -> list[str]:
    words = []
    if corpus.done < corpus.total:
        words.append(
            f"Stopped: {corpus.done:,} of {corpus.total:,} translations are measured. Everything below uses only these."
        )
    given = corpus.given
    if given.cut:
        words.append(f"Only the first {len(given.records) + len(given.problems):,} lines of {given.name} are read.")
    unread = [(problem.number, problem.reason) for problem in given.problems]
    failed = corpus.frame[corpus.frame["error"].notna()].drop_duplicates("number")
    unread += list(zip(failed["number"].tolist(), failed["error"].tolist()))
    if unread:
        some = "; ".join(f"line {number}, {reason[:120]}" for number, reason in sorted(unread)[:SHOWN_PROBLEMS])
        end = "; …" if len(unread) > SHOWN_PROBLEMS else "."
        count = "One line" if len(unread) == 1 else f"{len(unread):,} lines"
        words.append(f"{count} of {given.name} cannot be read: {some}{end}")
    return words
