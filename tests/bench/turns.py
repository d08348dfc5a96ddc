"""One person at two servers by turns: `python tests/bench/turns.py --beside FOLDER`. FOLDER is another checkout.

A machine's speed changes within minutes, so two runs of `people.py --load one` compare hours as much as commits. Here
all servers run at once, and each new sentence goes to one after the other; who comes first changes every time. A third
server has a bare page: three heatmaps, three bar charts and a table as Streamlit draws them, nothing computed.
Prints of one edit at each: milliseconds from Enter to the answer (see people.py), milliseconds of processor time of the
page's process and of the models', and kB sent; then the ratios to the other checkout and to the bare page, and the bar:
no more than at the other checkout.
"""

import argparse
import asyncio
import random
import statistics
import sys
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

from people import TIMEOUT, Client, percentile, processes, sentence, serving

PAUSE = 0.25  # s before each sentence
BEFORE = 5  # sentences before the clock starts
NOISE = 1.05  # the ratios of two servers of the same commit are within


@dataclass
class Cost:
    """Of the edits at one server. page, models : seconds of processor time of its two processes."""

    ms: list[float] = field(default_factory=list)
    kilobytes: list[float] = field(default_factory=list)
    page: float = 0.0
    models: float = 0.0

    def figures(self) -> dict[str, float]:
        """What is compared, of one edit."""
        edits = len(self.ms)
        return {
            "p50 ms": statistics.median(self.ms),
            "page ms": 1e3 * self.page / edits,
            "models ms": 1e3 * self.models / edits,
            "kB": statistics.median(self.kilobytes),
        }


class BareClient(Client):
    """A visitor of the bare page, whose charts are not looked for."""

    async def type(self, text: str):
        await self.send(text)
        return await self.answer()


async def by_turns(servers: dict[str, tuple[str, int]], count: int) -> dict[str, Cost]:
    """The cost of the edits, by the name of the server. servers : name -> address, and the number of its process."""
    generator, costs = random.Random(7), {name: Cost() for name in servers}
    async with AsyncExitStack() as stack:
        clients = {}
        for name, (address, _) in servers.items():
            kind = BareClient if name == "bare" else Client
            clients[name] = await stack.enter_async_context(kind(address))
            await clients[name].open()
        for number in range(-BEFORE, count):
            if number == 0:
                started = {name: _seconds(name, pid) for name, (_, pid) in servers.items()}
            text = sentence(generator)
            for name in sorted(clients, reverse=number % 2 == 0):
                await asyncio.sleep(PAUSE)
                begun = time.perf_counter()
                answer = await asyncio.wait_for(clients[name].type(text), TIMEOUT)
                if answer.problems:
                    raise RuntimeError(f"{name}: {answer.problems[0]:.200}")
                if number >= 0:
                    costs[name].ms.append(1e3 * (time.perf_counter() - begun))
                    costs[name].kilobytes.append(answer.bytes / 1e3)
    for name, (_, pid) in servers.items():
        costs[name].page, costs[name].models = (
            after - before for before, after in zip(started[name], _seconds(name, pid), strict=True)
        )
    return costs


def _seconds(name: str, pid: int) -> tuple[float, float]:
    """Processor time so far, of the page's process and of the models', which the bare page has not."""
    return processes.seconds(pid), 0.0 if name == "bare" else processes.seconds(processes.models(pid))


def compared(costs: dict[str, Cost], other: str) -> dict[str, float]:
    """What an edit costs here as a ratio to another server; not what that does without."""
    figures = costs[other].figures()
    return {name: value / figures[name] for name, value in costs["this"].figures().items() if figures[name]}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--beside", type=Path, required=True, help="another checkout")
    parser.add_argument("--sentences", type=int, default=120, help="at least 1")
    options = parser.parse_args()
    if options.sentences < 1:
        parser.error(f"--sentences must be at least 1; got {options.sentences}")
    other_root = options.beside.resolve()
    with (
        serving.running() as this,
        serving.running(other_root / "dashboard" / "app.py", other_root) as other,
        serving.running(Path(__file__).with_name("apps") / "bare_app.py") as bare,
    ):
        costs = asyncio.run(by_turns({"this": this, "other": other, "bare": bare}, options.sentences))
    for name, cost in costs.items():
        figures = "  ".join(f"{figure} {value:.1f}" for figure, value in cost.figures().items())
        print(f"{name:6} {figures}  p95 {percentile(cost.ms, 0.95):.0f}  answers {len(cost.ms)}")
    for other_name in ("other", "bare"):
        ratios = compared(costs, other_name).items()
        print(f"to {other_name:6} " + "  ".join(f"{name.removesuffix(' ms')} {ratio:.2f}" for name, ratio in ratios))
    met = all(ratio <= NOISE for ratio in compared(costs, "other").values())
    print(f"bar: each <= {NOISE}   {'met' if met else 'MISSED'}")
    return int(not met)


if __name__ == "__main__":
    sys.exit(main())
