"""Which bars the loads of bench/people.py reach. A row is what one load measured, as people.py prints it."""

SETTLED = 300  # s after which memory is to be steady


def memory_of(memory: list[tuple[float, int]]) -> dict:
    """MB at the beginning and the end; of a load that goes on long enough, after five minutes and the most since."""
    row = {"MB before": memory[0][1], "MB after": memory[-1][1]}
    settled = [taken for seconds, taken in memory if seconds >= SETTLED]
    return row | ({"MB settled": settled[0], "MB least": min(settled), "MB most": max(settled)} if settled else {})


def reached(row: dict, alone: dict | None) -> bool | None:
    """Is the bar of a load reached? one : the row of one person before it. None where there is nothing to compare."""
    if row.get("errors") or not row["answers"]:
        return False
    if row["load"] == "hurried":
        return row["p95"] <= 1000 and not row["late"] and not row["timeouts"]
    if row["load"] == "lecture":
        return row["p95"] <= 2000 and not row["timeouts"]
    if row["load"] == "long":
        steady = (
            "MB settled" in row
            and 0.95 * row["MB settled"] <= row["MB least"]
            and row["MB most"] <= 1.05 * row["MB settled"]
        )
        return steady and not row["timeouts"]
    if row["load"] == "overload":
        return row["queued"] > 0
    if alone is None:
        return None
    return row["p95"] <= {"class": 3, "one": 1.5}[row["load"]] * alone["p95"]


def verdict(rows: list[dict]) -> str:
    """Which bars are reached, in one line."""
    words = {True: "reached", False: "MISSED", None: "nothing to compare with"}
    parts = []
    for row in rows:
        steady = ""
        if "MB settled" in row:
            least, most = (100 * (row[name] / row["MB settled"] - 1) for name in ("MB least", "MB most"))
            steady = f", memory {least:+.1f} % to {most:+.1f} % of {row['MB settled']} MB after five minutes"
        counts = f"{row['answers']} answers, {row['timeouts']} time-outs, {row['errors']} errors"
        parts.append(f"{row['load']} {words[row['reached']]} ({counts}{steady})")
    return "BARS  " + "; ".join(parts)
