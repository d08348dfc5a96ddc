"""A long text reduced while it is computed: `python tests/bench/long.py [--layers L --heads H --tokens T]`.

A Llama with random weights reads T tokens. What it takes beside the model is the peak of the resident memory of this
process minus what was resident before the pass. A layer is let go before the next, so 2 layers show what 32 take, but
for the pooled maps. Seconds are of the wall clock, and of the processor.
"""

import argparse
import resource
import sys
import tempfile
import time
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "tests/helpers/models"))
import families  # noqa: E402

import attnviz  # noqa: E402

BAR = 1.5  # GB


def peak() -> float:
    """The most resident memory so far, GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def main() -> None:
    import transformers

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, number in (("layers", 2), ("heads", 32), ("tokens", 2048)):
        parser.add_argument(f"--{name}", type=int, default=number)
    args = parser.parse_args()
    torch.set_num_threads(1)
    made = families.FAMILIES["gpt2"][0]()
    size = dict(hidden_size=16 * args.heads, intermediate_size=64, num_hidden_layers=args.layers)
    config = transformers.LlamaConfig(
        vocab_size=made[0].get_vocab_size(),
        num_attention_heads=args.heads,
        max_position_embeddings=args.tokens,
        bos_token_id=0,
        eos_token_id=2,
        **size,
    )
    with tempfile.TemporaryDirectory() as folder:
        model = attnviz.load(f"hf:{families.save(Path(folder), transformers.LlamaForCausalLM(config), made)}")
    text = "the " * (args.tokens - 1)
    model.reduced("the black dog is run")  # imports and warm-up
    before, start, busy = peak(), time.time(), time.process_time()
    reduced = model.reduced(text.strip())
    took, processor = time.time() - start, time.process_time() - busy
    beside = peak() - before
    full = args.layers * args.heads * len(reduced.trace.source) ** 2 * 4 / 1e9
    print(
        f"{args.layers} layers, {args.heads} heads, {len(reduced.trace.source)} tokens: {beside:.2f} GB beside "
        f"the model (bar {BAR}), {took:.0f} s, {processor:.0f} s of the processor; all maps would take {full:.2f} GB"
    )
    sys.exit(beside > BAR)


if __name__ == "__main__":
    main()
