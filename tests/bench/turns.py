"""One person at two servers by turns: `python tests/bench/turns.py --beside FOLDER`. FOLDER is another checkout.

A machine's speed changes within minutes, so two runs of `people.py --load one` compare hours as much as commits. Here
both servers run at once, and each new sentence goes to one, then to the other; who comes first changes every time.
Prints milliseconds from Enter to the answer (see people.py) at each, and the bar: no slower than the other checkout.
"""

import argparse
import asyncio
import random
import statistics
import sys
import time
from pathlib import Path

from client import Client
from people import TIMEOUT, percentile, sentence, serving  # people.py has put the helpers on the path

PAUSE = 0.25  # s before each sentence
BEFORE = 5  # sentences before the clock starts
NOISE = 1.05  # the ratio of two medians on the same commit is within


async def by_turns(addresses: dict[str, str], count: int) -> dict[str, list[float]]:
    """The milliseconds of each answer, by the name of the server."""
    chance, taken = random.Random(7), {name: [] for name in addresses}
    async with Client(addresses["this"]) as this, Client(addresses["other"]) as other:
        clients = {"this": this, "other": other}
        for client in clients.values():
            await client.open()
        for number in range(-BEFORE, count):
            text = sentence(chance)
            for name in sorted(clients, reverse=number % 2 == 0):
                await asyncio.sleep(PAUSE)
                started = time.perf_counter()
                answer = await asyncio.wait_for(clients[name].type(text), TIMEOUT)
                if answer.problems:
                    raise RuntimeError(f"{name}: {answer.problems[0]:.200}")
                if number >= 0:
                    taken[name].append(1e3 * (time.perf_counter() - started))
    return taken


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--beside", type=Path, required=True, help="another checkout")
    parser.add_argument("--sentences", type=int, default=120, help="at least 1")
    options = parser.parse_args()
    if options.sentences < 1:
        parser.error(f"--sentences must be at least 1; got {options.sentences}")
    other_root = options.beside.resolve()
    with serving.server() as this, serving.server(other_root / "dashboard" / "app.py", other_root) as other:
        taken = asyncio.run(by_turns({"this": this, "other": other}, options.sentences))
    for name, ms in taken.items():
        print(f"{name:6} p50 {statistics.median(ms):.0f}  p95 {percentile(ms, 0.95):.0f}  answers {len(ms)}")
    ratio = statistics.median(taken["this"]) / statistics.median(taken["other"])
    print(f"ratio of the medians {ratio:.3f}   bar <= {NOISE}   {'met' if ratio <= NOISE else 'MISSED'}")
    return int(ratio > NOISE)


if __name__ == "__main__":
    sys.exit(main())
