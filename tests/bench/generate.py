"""Writing with all attention weights beside `generate` of the transformers library without them:
`python tests/bench/generate.py`. Models with random weights, greedy, one thread; the same tokens are written.

Model and library take turns, so that both meet the same neighbours. Seconds are medians of this thread's processor
time. The bar is `BAR` times `generate`.
"""

import statistics
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
from attnviz.models.huggingface.writing import WritingModel  # noqa: E402

BAR = 1.3
STEPS, TURNS, POSITIONS = 128, 5, 512
SIZES = dict(hidden_size=512, num_hidden_layers=8, num_attention_heads=8, intermediate_size=2048)
PROMPT = "The black dog is run the green ball white " * 4


def models(folder: Path):
    """Name -> a GPT-2 and a Llama of about 40 million parameters, with the vocabulary of GPT-2."""
    import transformers

    gpt2 = dict(n_embd=512, n_layer=8, n_head=8, n_positions=POSITIONS)
    llama = dict(**SIZES, num_key_value_heads=4, max_position_embeddings=POSITIONS)
    for name, settings in (("GPT2", gpt2), ("Llama", llama)):
        torch.manual_seed(1)
        config = getattr(transformers, f"{name}Config")(vocab_size=50257, **settings, bos_token_id=0, eos_token_id=2)
        network = getattr(transformers, f"{name}{'LMHeadModel' if name == 'GPT2' else 'ForCausalLM'}")(config)
        path = families.save(folder / name, network, families.FAMILIES["gpt2"][0]())
        plain = type(network).from_pretrained(path, attn_implementation="sdpa").eval()
        yield name, attnviz.load(f"hf:{path}"), plain


def measured(model: WritingModel, plain, ids: torch.Tensor) -> tuple[float, float]:
    """Seconds of ours and of `generate`."""
    ours, library = [], []
    for turn in range(TURNS + 1):
        start = time.thread_time()
        trace = model.write(PROMPT, STEPS, 0)
        middle = time.thread_time()
        written = plain.generate(ids, max_new_tokens=STEPS, do_sample=False, use_cache=True)
        end = time.thread_time()
        if model.ids(trace) != written[0].tolist():
            raise ValueError("generate writes other tokens")
        if turn:  # the first is to warm up
            ours.append(middle - start)
            library.append(end - middle)
    return statistics.median(ours), statistics.median(library)


def main() -> None:
    torch.set_num_threads(1)
    slow = []
    with tempfile.TemporaryDirectory() as folder:
        for name, model, plain in models(Path(folder)):
            ids = torch.tensor([model.read(PROMPT).ids])
            ours, library = measured(model, plain, ids)
            print(f"{name}: {ours:.2f} s with weights, {library:.2f} s generate, {ours / library:.2f} (bar {BAR})")
            slow.append(ours > BAR * library)
    sys.exit(any(slow))


if __name__ == "__main__":
    main()
