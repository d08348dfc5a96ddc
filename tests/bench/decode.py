"""Greedy decoding beside its floor: `python tests/bench/decode.py [--json]`. Batch 1, one thread, weights kept.

The floor does the same number of steps with the same matrix products - encoder, attention and output included - on
the model's own weights, into memory set aside before the clock starts, and nothing else: no softmax, no norm, no
gates, no choice of token, no attention weights kept. The bar is `BAR` times the floor.

Times are medians, in ms, of this thread's processor time (steady on a busy machine) and of the wall clock. Model and
floor take turns, so that both meet the same neighbours.
"""

import argparse
import json
import statistics
import sys
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from attnviz.mechanisms import MECHANISMS, Config
from attnviz.models import checkpoint_files
from attnviz.models.names import ModelName
from attnviz.models.translator import Translator
from attnviz.networks import decode
from attnviz.networks.registry import build

BAR = 3.0
SENTENCE = "A man in a blue shirt is standing on a ladder outside."  # 12 words
OPTIONS = {"transformer": {"width": 192, "hidden": 768, "layers": 3, "heads": 4}}  # for --untrained
STEPS, PIECES = 16, 14  # target and source pieces for --untrained, whose models never say <eos>


class Floor:
    """Matrix products to be done, with their inputs and outputs set aside."""

    def __init__(self):
        self.todo = []

    def times(self, rows: int, *weights, count: int = 1) -> None:
        """(rows, in) times the transpose of each weight (out, in), `count` times."""
        for weight in weights * count:
            x, out = torch.randn(rows, weight.shape[1]), torch.empty(rows, weight.shape[0])
            self.todo.append((torch.mm, x, weight.T, out))

    def attend(self, heads: int, queries: int, keys: int, width: int, score_width: int | None = None) -> None:
        """Scores of `heads` heads, queries with keys, then weights with values of `width`."""
        query, key = torch.randn(heads, queries, score_width or width), torch.randn(heads, keys, score_width or width)
        value, scores = torch.randn(heads, keys, width), torch.empty(heads, queries, keys)
        self.todo.append((torch.bmm, query, key.transpose(1, 2), scores))
        self.todo.append((torch.bmm, scores.clone().softmax(-1), value, torch.empty(heads, queries, width)))

    def __call__(self) -> None:
        for product, a, b, out in self.todo:
            product(a, b, out=out)


# The matrices of each score: met by every key, once a sentence; by every query; and by every pair of query and key.
# Without any of the last the score is the product of query and key itself.
SCORES = {
    "Additive": lambda score: ([score.key.weight], [score.query.weight], [score.energy.weight]),
    "Concat": lambda score: (
        [score.joint.weight[:, score.query_width :]],
        [score.joint.weight[:, : score.query_width]],
        [score.energy.weight],
    ),
    "Dot": lambda score: ([], [], []),
    "ScaledDot": lambda score: ([], [], []),
    "General": lambda score: ([score.key.weight], [], []),
    "Local": lambda score: ([score.key.weight], [score.hidden.weight, score.place.weight], []),
}


def looking(floor: Floor, score, pieces: int, steps: int, query: int, value: int) -> None:
    """The products of an attention module over `pieces` keys in `steps` steps. query, value : their widths."""
    keys, queries, pairs = SCORES[type(score).__name__](score)
    floor.times(pieces, *keys)
    for _ in range(steps):
        floor.times(1, *queries)
        floor.times(pieces, *pairs)
        if pairs:
            floor.todo.append((torch.mm, torch.rand(1, pieces), torch.randn(pieces, value), torch.empty(1, value)))
        else:
            floor.attend(1, 1, pieces, value, query)


def recurrent_floor(model, pieces: int, steps: int) -> Floor:
    """The products of `recurrent.Recurrent`: encoder both ways, attention if any, then cell and output each step."""
    floor, rnn = Floor(), model.encoder.rnn
    for end in ("l0", "l0_reverse"):
        floor.times(pieces, getattr(rnn, f"weight_ih_{end}"))
        floor.times(1, getattr(rnn, f"weight_hh_{end}"), count=pieces)
    floor.times(1, model.start.weight)
    if hasattr(model, "attention"):
        looking(floor, model.attention, pieces, steps, model.cell.hidden_size, 2 * rnn.hidden_size)
    else:
        floor.times(1, model.summary.weight)
    for _ in range(steps):
        floor.times(1, model.cell.weight_ih, model.cell.weight_hh)
        floor.times(1, (model.deep if hasattr(model, "deep") else model.attentional).weight)
        floor.times(1, model.embedding.weight)
    return floor


def transformer_floor(model, pieces: int, steps: int) -> Floor:
    """The products of `transformer.Transformer` with its keys and values kept."""
    floor, width = Floor(), model.embedding.embedding_dim
    heads = model.encoder[0].attention.heads
    for layer in model.encoder:
        floor.times(pieces, layer.attention.query.weight, layer.attention.memory.weight)
        floor.attend(heads, pieces, pieces, width // heads)
        floor.times(pieces, layer.attention.output.weight, layer.feed.enter.weight, layer.feed.leave.weight)
    for layer in model.decoder:
        floor.times(pieces, layer.cross.memory.weight)
    for t in range(steps):
        for layer in model.decoder:
            floor.times(1, layer.attention.query.weight, layer.attention.memory.weight)
            floor.attend(heads, 1, t + 1, width // heads)
            floor.times(1, layer.attention.output.weight, layer.cross.query.weight)
            floor.attend(heads, 1, pieces, width // heads)
            floor.times(1, layer.cross.output.weight, layer.feed.enter.weight, layer.feed.leave.weight)
        floor.times(1, model.embedding.weight)
    return floor


def clocked(work) -> tuple[float, float]:
    """Processor and wall time of one call, ms."""
    processor, wall = time.thread_time(), time.perf_counter()
    work()
    return 1e3 * (time.thread_time() - processor), 1e3 * (time.perf_counter() - wall)


def compare(works: dict, rounds: int) -> dict[str, tuple[float, float]]:
    """Median processor and wall time, ms, of each piece of work; they take turns."""
    for _ in range(5):
        for work in works.values():
            work()
    times = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            times[name].append(clocked(work))
    return {name: tuple(map(statistics.median, zip(*pairs))) for name, pairs in times.items()}


@torch.inference_mode()
def measure(name: str, model, ids: torch.Tensor, steps: int | None, rounds: int, trace=None) -> dict:
    """One row of the table. steps : None lets the model end by itself. trace : the whole of text to Trace, or None."""

    def run():
        return decode.unroll(model, ids, None, decode.best, steps or decode.limit(ids.shape[1]))

    taken = run().tokens.shape[1]
    make = transformer_floor if hasattr(model, "places") else recurrent_floor
    works = {"greedy": run, "floor": make(model, ids.shape[1], taken)} | ({"trace": trace} if trace else {})
    times = compare(works, rounds)
    row = {"model": name, "source_pieces": ids.shape[1], "steps": taken}
    for work, (processor, wall) in times.items():
        row |= {f"{work}_ms": round(processor, 2), f"{work}_wall_ms": round(wall, 2)}
    return row | {
        "ratio": round(times["greedy"][0] / times["floor"][0], 2),
        "wall_ratio": round(times["greedy"][1] / times["floor"][1], 2),
    }


def rows(untrained: bool, rounds: int):
    """The shipped models of the first pair, or untrained ones of the same shapes."""
    torch.manual_seed(0)
    if untrained:
        ids = torch.randint(4, 4000, (1, PIECES))
        for name in MECHANISMS:
            model = build(Config(name, 4000, OPTIONS.get(name, {}))).eval().requires_grad_(False)
            yield measure(f"untrained {name}", model, ids, STEPS, rounds)
        return
    for name in checkpoint_files.names():
        task = ModelName.parse(name).task
        if task.classifies or task.writes:
            continue
        try:
            translator = Translator.load(name)
        except checkpoint_files.CheckpointError as error:
            print(error, file=sys.stderr)
            continue
        ids = torch.tensor([translator.tokenizer.ids(SENTENCE)])
        yield measure(name, translator.model, ids, None, rounds, lambda: translator.trace(SENTENCE))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", action="store_true", help="print a JSON list instead of the table")
    parser.add_argument("--rounds", type=int, default=60, help="times each piece of work is measured (60)")
    parser.add_argument("--untrained", action="store_true", help="random weights, a fixed number of steps")
    options = parser.parse_args()
    torch.set_num_threads(1)
    measured = list(rows(options.untrained, options.rounds))
    if options.json:
        print(json.dumps(measured, indent=1))
    else:
        print(
            f"{'model':24} pieces steps   greedy    floor   ratio  (wall: greedy, floor, ratio; text to Trace)   "
            f"bar {BAR:g}"
        )
        for row in measured:
            trace = f"{row['trace_wall_ms']:7.2f} ms" if "trace_ms" in row else "-"
            print(
                f"{row['model']:24} {row['source_pieces']:6} {row['steps']:5} "
                f"{row['greedy_ms']:5.2f} ms {row['floor_ms']:5.2f} ms "
                f"{row['ratio']:6.2f}x  ({row['greedy_wall_ms']:.2f} ms, {row['floor_wall_ms']:.2f} ms, "
                f"{row['wall_ratio']:.2f}x; {trace})"
            )
    return int(not measured or any(row["ratio"] > BAR for row in measured))


if __name__ == "__main__":
    sys.exit(main())
