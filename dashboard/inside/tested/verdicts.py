"""What the tests of attention say of one text, in plain sentences with their baselines, and what they cannot say."""

import html

from attnviz.faithfulness import spread_of_tau
from attnviz.figures.wording import signed
from attnviz.function_words import CONTENT, FUNCTION
from dashboard.inside.faithfulness import FaithfulnessTests
from dashboard.inside.tested.attributed import Attributed
from dashboard.inside.scene import Column
from dashboard.markup.papers import cited

LIMITS = (
    "<b>What these tests cannot show.</b> A changed row of attention and a sentence with deleted tokens are unlike the "
    "training data, so a word may be lost for that reason alone. A word that stays could be written without that "
    "attention; this does not show that the model did not use it. Gradients are about small changes and are no ground "
    "truth. No test here explains by itself why the model wrote a word."
)


def verdict(column: Column, tests: FaithfulnessTests, attributed: Attributed) -> str:
    """A sentence for each test of a model; HTML."""
    lines = (_permuted(tests), _preserved(tests), _erased(tests), _agrees(tests, attributed))
    items = "".join(f"<li>{line}</li>" for line in lines)
    return f'<div class="verdict" role="status"><b>{html.escape(column.title)}</b><ul>{items}</ul></div>'


def _permuted(tests: FaithfulnessTests) -> str:
    moved, uniform = (tests.tested.variation[name].mean() for name in ("median", "uniform"))
    return (
        f"Permuting attention at a step moves its next-token distribution by {moved:.2f} on average (the median of 100 "
        f"permutations). Uniform attention moves it by {uniform:.2f}. This is total variation: 0 is no change, 1 is "
        f"the largest possible ({cited('jain')}, {cited('wiegreffe')})."
    )


def _preserved(tests: FaithfulnessTests) -> str:
    """By kinds of words, where the language has a list of function words; else of all tokens."""
    frame = tests.tested.preserved
    frame = frame[frame["change"] == "uniform"]
    counts = {kind: rows["preserved"] for kind, rows in frame.groupby("kind") if kind in (FUNCTION, CONTENT)}
    counts = counts or {"": frame["preserved"]}
    shares = " and ".join(
        f"{int(kept.sum())} of {len(kept)} {f'{kind} words' if kind else 'tokens'}"
        for kind, kept in sorted(counts.items(), reverse=True)
    )
    return f"Under uniform attention at their step, {shares} stay the model’s first choice ({cited('moradi')})."


def _erased(tests: FaithfulnessTests) -> str:
    own, chance = (tests.tested.erased[name]["comprehensiveness"].mean() for name in ("attention", "random"))
    return (
        "Deleting the source tokens with the largest weights lowers the probability of a token by "
        f"{own:.2f} on average. Deleting random tokens lowers it by {chance:.2f} (comprehensiveness, "
        f"{cited('deyoung')})."
    )


def _agrees(tests: FaithfulnessTests, attributed: Attributed) -> str:
    random = tests.tested.agreement.groupby("method")["tau_b"].mean()["random"]
    spread = spread_of_tau(len(tests.subject.source))
    return (
        f"Attention and {attributed.title} order the source tokens with Kendall’s τ-b "
        f"{signed(attributed.agreement['tau_b'].mean(), 2)} on average (1: the same order, −1: the reverse order). "
        f"Random numbers give {signed(random, 2)} here; they are expected to give 0, with a standard deviation of "
        f"{spread:.2f} for one token ({cited('jain')})."
    )
