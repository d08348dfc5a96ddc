"""What tests of attention cost, on one core: integrated gradients, 100 permutations, an intervention.

The exit status is 1 when permutations with uniform attention cost more than DECODES decodes, or integrated gradients
more than SECONDS. Processor time, the median of five runs, so that other work on the machine does not count.
"""

import statistics
import sys
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import attnviz
from attnviz import faithfulness, inside, intervene
from attnviz.faithfulness import attributions
from attnviz.networks import decode

TEXT = "Two young girls are playing with a yellow ball in the park."  # 12 words
DECODES, SECONDS = 10, 3
MODELS = ("en-fr/bahdanau", "en-fr/luong-general", "en-fr/transformer")


def milliseconds(work, runs=5):
    taken = []
    for _ in range(runs):
        start = time.process_time()
        work()
        taken.append(1000 * (time.process_time() - start))
    return statistics.median(taken)


def main() -> int:
    missed = False
    torch.set_num_threads(1)
    for name in MODELS:
        model = attnviz.load(name)
        subject, trace = faithfulness.subject(model, TEXT), model.trace(TEXT)
        source = torch.tensor([subject.source])
        once = milliseconds(lambda: decode.greedy(model.model, source))
        permuted = milliseconds(lambda: list(faithfulness.variation(subject).itertuples()))
        print(f"{name}: {len(subject.source)} source and {len(subject.target)} target pieces")
        print(f"  one greedy decode            {once:7.0f} ms")
        print(f"  100 permutations and uniform {permuted:7.0f} ms, {permuted / once:.1f} decodes (at most {DECODES})")
        missed |= permuted > DECODES * once
        changed = milliseconds(lambda: intervene.run(model, TEXT, intervene.Uniform()))
        print(f"  one intervention             {changed:7.0f} ms")
        print(f"  one step inside              {milliseconds(lambda: inside.step(model, trace, 5)):7.0f} ms")
        integrated = milliseconds(lambda: faithfulness.integrated_gradients(subject), runs=3)
        missed |= integrated > 1000 * SECONDS
        print(f"  integrated gradients, all    {integrated:7.0f} ms, {attributions.POINTS} points")

    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
