"""What the card of a model says about its unusual translations: how well the sign works. Any field may be missing."""

from attnviz.confidence.calibration import BEST, FLAGGED


def how_well(card: dict) -> str:
    """card : `confidence` of a card. The shares of poor and of good translations that are flagged; what is missed."""
    worst, best, count = card.get("worst_tenth"), card.get("best_half"), card.get("sentences")
    if not _is_share(worst) or not _is_share(best):
        return ""
    where = f"{count:,} validation sentences" if type(count) is int else "the validation sentences"
    words = f"of {where}, by chrF: {worst:.0%} of the worst tenth, {best:.1%} of the best half"
    aims = [f"at least {FLAGGED:.0%} of the worst tenth"] * (worst < FLAGGED)
    aims += [f"at most {BEST:.0%} of the best half"] * (best > BEST)
    return f"{words}. This misses the aim: {' and '.join(aims)}" if aims else words


def reliability(card: dict) -> str:
    """The reliability diagram as a table with bars: a tenth of the validation sentences in each row, by risk."""
    rows = "".join(map(_row, filter(_is_bin, _list(card.get("bins")))))
    if not rows:
        return ""
    caption = "Estimated risk of a poor translation, and share that is poor: validation sentences in order of the risk"
    head = "".join(f'<th scope="col">{name}</th>' for name in ("risk", "actually poor", "sentences"))
    return (
        f'<div class="scroll" tabindex="0"><table class="numbers shares"><caption>{caption}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _row(row: list) -> str:
    risk, poor, count = row
    shares = "".join(f'<td style="--share:{share:.1%}">{share:.0%}</td>' for share in (risk, poor))
    return f"<tr>{shares}<td>{count:,}</td></tr>"


def _list(value: object) -> list:
    return value if isinstance(value, list) else []


def _is_bin(row: object) -> bool:
    return isinstance(row, list) and len(row) == 3 and all(map(_is_share, row[:2])) and type(row[2]) is int


def _is_share(value: object) -> bool:
    return isinstance(value, int | float) and 0 <= value <= 1
