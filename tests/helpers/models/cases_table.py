"""What people hold, and what comes of it: cases that were reported of other tools, each of them run. Run it to write
docs/cases.md: `python tests/helpers/models/cases_table.py`.

Models are tiny and random, made here. A case returns a trace, or raises a ValueError whose message is the result.
"""

import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import any_family
import families
import family_table
import numpy as np
import torch

TOKENS, TARGET = ["[CLS]", "the", "black", "dog", "[SEP]"], ["le", "chien", "noir"]
TEXT = "The black dog runs."
MOST = 200  # letters of a result
_HEAD = """# What people hold, and what comes of it

{count} cases that were reported of attention tools, and others of their kinds. A test runs them again;
`python tests/helpers/models/cases_table.py` writes this list. Arrays are drawn at random, models are tiny and random.
“Shown” gives the maps (kind, layers × heads, queries × keys) and what the trace notes; “refused” gives the message.

Tried by hand, once, because no test installs these libraries: arrays of JAX 0.10.2 and TensorFlow 2.21.0 (float32,
float16, bfloat16, and in JAX float8), the scores that attention layers of Keras 3.15.1 return on both, and caches of
TransformerLens 3.9.0 and 4.3.0. All were shown. What has no numbers (symbolic, deleted, traced by `jit`, `grad` or
`tf.function`) and a sparse tensor of TensorFlow were refused.

"""


class Case(NamedTuple):
    """held : what a person has. call : what they write. run : returns the trace."""

    held: str
    call: str
    run: Callable


def rows(*shape: int, seed: int = 0) -> np.ndarray:
    """Weights whose rows sum to 1."""
    return np.random.default_rng(seed).dirichlet(np.ones(shape[-1]), shape[:-1])


def shapes() -> list[Case]:
    """Arrays of other shapes."""
    from attnviz import from_arrays as made

    two, batch = [rows(4, 5, 5, seed=layer) for layer in (0, 1)], rows(2, 4, 5, 5)
    steps, gap = [rows(5, seed=step) for step in range(3)], [two[0], None, two[1]]
    same = "the same"
    return [
        Case("a list of layers, (heads, queries, keys)", "from_arrays(weights, tokens)", lambda: made(two, TOKENS)),
        Case("one layer, (1, queries, keys): PyTorch's mean", same, lambda: made(rows(1, 5, 5), TOKENS)),
        Case("one map, (queries, keys)", same, lambda: made(rows(5, 5), TOKENS)),
        Case("(target, source) without heads", "…, target", lambda: made(rows(3, 5), TOKENS, TARGET)),
        Case("one row a step, of a decoder's loop", same, lambda: made(steps, TOKENS, TARGET)),
        Case("a batch (2, 4, 5, 5) in a list", "from_arrays(weights, tokens)", lambda: made([batch], TOKENS)),
        Case(same, "…, batch=0", lambda: made([batch], TOKENS, batch=0)),
        Case("(2, 4, 5, 5) alone: layers or a batch", "from_arrays(weights, tokens)", lambda: made(batch, TOKENS)),
        Case("a batch of means, [(2, 5, 5)]", same, lambda: made([rows(2, 5, 5)], TOKENS)),
        Case("layers that are None", same, lambda: made(gap, TOKENS)),
        Case(same, '…, missing="skip"', lambda: made(gap, TOKENS, missing="skip")),
        Case("fewer tokens than rows", "from_arrays(weights, tokens)", lambda: made(two, TOKENS[:4])),
        Case("plain lists of three axes: heads or layers", same, lambda: made(two[0].tolist(), TOKENS)),
        Case("means of two texts, in plain lists", "…, batch=1", lambda: made(rows(2, 5, 5).tolist(), TOKENS, batch=1)),
        Case("(source, target): rows and columns exchanged", "…, target", lambda: made(rows(5, 3), TOKENS, TARGET)),
        Case("(target, 1, source): the batch second", "…, target", lambda: made([rows(3, 1, 5)], TOKENS, TARGET)),
    ]


def padding_and_sinks() -> list[Case]:
    """Rows that are not whole."""
    from attnviz import from_arrays as made

    blank = rows(4, 5, 5)
    blank[:, :, 4] = 0
    blank /= blank.sum(-1, keepdims=True)
    blank[:, 4] = np.nan
    left = np.tril(rows(4, 5, 5)) * (np.arange(5) >= 2)
    left = np.nan_to_num(left / np.maximum(left.sum(-1, keepdims=True), 1e-30))
    right, before = [*TOKENS[:4], "[PAD]"], ["<pad>", "<pad>", "a", "b", "c"]
    sinks, same = 0.3763 * rows(4, 3, 5), "the same"
    several = np.stack([rows(4, 5, 5), np.nan_to_num(blank)])
    masks = [[1, 1, 1, 1, 1], [1, 1, 1, 1, 0]]
    return [
        Case("a row of NaN on a padding token", "from_arrays(weights, tokens)", lambda: made([blank], right)),
        Case(same, '…, padding=["[PAD]"]', lambda: made([blank], right, padding=["[PAD]"])),
        Case("left padding", '…, kind="decoder"', lambda: made([left], before, kind="decoder")),
        Case(same, "…, padding=[0, 0, 1, 1, 1]", lambda: made([left], before, kind="decoder", padding=[0, 0, 1, 1, 1])),
        Case(
            "a batch with the attention mask of all its texts",
            "…, batch=1, padding=mask",
            lambda: made([several], right, batch=1, padding=masks),
        ),
        Case(
            "a mask that is True on what was read, as JAX and Keras have it",
            "…, padding=[True, True, True, True, False]",
            lambda: made([blank], right, padding=[True, True, True, True, False]),
        ),
        Case("a mask of another length", "…, padding=[1, 1, 1]", lambda: made([blank], right, padding=[1, 1, 1])),
        Case("rows that sum to .3763: attention sinks", "…, target", lambda: made([sinks], TOKENS, TARGET)),
        Case(same, '…, rest="sink"', lambda: made([sinks], TOKENS, TARGET, rest="sink")),
        Case("rows that sum to 1.3", '…, rest="sink"', lambda: made([1.3 * rows(4, 5, 5)], TOKENS, rest="sink")),
    ]


def numbers() -> list[Case]:
    """Arrays of other libraries and precisions."""
    from attnviz import from_arrays as made

    layer, pieces, call = rows(4, 5, 5), ["do", "##g", "runs"], "from_arrays(weights, tokens)"
    half, graph = torch.tensor(layer, dtype=torch.float16), torch.tensor(layer, requires_grad=True)
    sown = {f"layer_{number}": {"attention": {"attention_weights": (layer[None],)}} for number in (0, 1)}
    hooks = {f"blocks.{number}.attn.hook_pattern": rows(1, 4, 5, 5, seed=number) for number in (0, 1)}
    return [
        Case("float16", call, lambda: made([half], TOKENS)),
        Case("bfloat16", call, lambda: made([half.to(torch.bfloat16)], TOKENS)),
        Case("float8", call, lambda: made([half.to(torch.float8_e4m3fn)], TOKENS)),
        Case("rounded to two digits", call, lambda: made([layer.round(2)], TOKENS)),
        Case("8-bit numbers, divided by 255", call, lambda: made([(255 * layer).round() / 255], TOKENS)),
        Case("percents", call, lambda: made([100 * layer], TOKENS)),
        Case(
            "a tensor without numbers (device meta)", call, lambda: made([torch.empty(4, 5, 5, device="meta")], TOKENS)
        ),
        Case("scores before the softmax", call, lambda: made([layer - 0.5], TOKENS)),
        Case("a tensor that requires grad", call, lambda: made([graph], TOKENS)),
        Case("a list with a tensor for each head", call, lambda: made([[*half.to(torch.bfloat16)]], TOKENS)),
        Case("plain lists", call, lambda: made([layer.tolist()], TOKENS)),
        Case("a TransformerLens cache", "from_arrays(cache, tokens)", lambda: made(hooks, TOKENS)),
        Case(
            "the same without the patterns",
            "from_arrays(cache, tokens)",
            lambda: made({"blocks.0.attn.hook_q": rows(1, 5, 4, 8), "blocks.0.hook_resid_pre": rows(1, 5, 32)}, TOKENS),
        ),
        Case("(logits, cache)", call, lambda: made((layer, hooks), TOKENS)),
        Case("names in names, as Flax sows them", call, lambda: made({"intermediates": {"encoder": sown}}, TOKENS)),
        Case("pieces of words", "…, word_ids=[0, 0, 1]", lambda: made([rows(2, 3, 3)], pieces, word_ids=[0, 0, 1])),
    ]


def files(folder: Path) -> list[Case]:
    """Section 1: files."""
    import json
    import pickle

    from safetensors.numpy import save_file

    import attnviz

    layer = rows(4, 5, 5)
    np.savez(folder / "a.npz", layer_0=layer, tokens=np.array(TOKENS))
    np.save(folder / "a.npy", layer)
    save_file({"layer_0": layer.astype(np.float32)}, folder / "a.safetensors")
    (folder / "a.json").write_text(json.dumps({"weights": [layer.tolist()], "tokens": TOKENS}))
    (folder / "a.pkl").write_bytes(pickle.dumps(layer))
    torch.save(layer, folder / "a.weights")
    words = {
        ".npz": "`.npz` with tokens in it",
        ".npy": "`.npy`",
        ".safetensors": "`.safetensors`",
        ".json": "JSON",
        ".pkl": "a pickle",
        ".weights": "what torch.save writes, under another name",
    }
    tokens = {".npz": None, ".json": None}
    return [
        Case(
            held,
            f"from_arrays({'path' if end in tokens else 'path, tokens'})",
            lambda end=end: attnviz.from_arrays(folder / f"a{end}", tokens.get(end, TOKENS)),
        )
        for end, held in words.items()
    ]


def generated() -> list[Case]:
    """What `generate` of the transformers library returns."""
    import transformers

    import attnviz

    torch.manual_seed(0)
    small = {"vocab_size": 40, "d_model": 16, "d_kv": 4, "d_ff": 16, "num_layers": 2, "num_heads": 4}
    gpt = transformers.GPT2Config(vocab_size=40, n_embd=16, n_layer=2, n_head=2)
    configs = gpt, transformers.T5Config(**small, decoder_start_token_id=0)
    for config in configs:
        config._attn_implementation = "eager"
    writer = transformers.GPT2LMHeadModel(configs[0]).eval()
    translator = transformers.T5ForConditionalGeneration(configs[1]).eval()
    options = {"return_dict_in_generate": True, "output_attentions": True, "do_sample": False, "pad_token_id": 0}
    ids = torch.arange(5, 10)[None]
    with torch.inference_mode():
        written = writer.generate(ids, max_new_tokens=3, eos_token_id=None, **options)
        several = writer.generate(ids.repeat(2, 1), max_new_tokens=3, eos_token_id=None, **options)
        translated = translator.generate(ids, max_new_tokens=4, **options)
        beams = translator.generate(ids, max_new_tokens=4, num_beams=3, **options)
        passed = writer(ids, output_attentions=True)
    source, prompt, made = _named(ids[0]), _named(written.sequences[0]), attnviz.from_generate
    target, beam_target = _named(translated.sequences[0, 1:]), _named(beams.sequences[0, 1:])
    call, other = "from_generate(output, tokens)", "from_arrays(output.attentions, tokens)"
    return [
        Case("of GPT-2, 5 tokens and 3", call, lambda: made(written, prompt)),
        Case("of T5, 5 tokens to 4", "…, target", lambda: made(translated, source, target)),
        Case("of T5 with 3 beams", "…, target", lambda: made(beams, source, beam_target)),
        Case("a batch of 2", call, lambda: made(several, prompt)),
        Case("the same", "…, batch=1", lambda: made(several, prompt, batch=1)),
        Case("the whole output", "from_arrays(output, tokens)", lambda: attnviz.from_arrays(written, source)),
        Case(
            "what one pass returns, whole", "from_arrays(output, tokens)", lambda: attnviz.from_arrays(passed, source)
        ),
        Case("its attentions alone", other, lambda: attnviz.from_arrays(written.attentions, source)),
    ]


def _named(ids) -> list[str]:
    return [f"t{number}" for number in ids.tolist()]


def _loaded(folder: Path, family, name, made=families.byte_pairs, text=TEXT, target=None, **changes) -> Callable:
    """What traces a text with a model of the family, in `folder`."""
    import attnviz

    def run():
        place = folder / f"{family}{len(changes) or ''}"
        if not place.is_dir():
            any_family.write(place, name, made(), **changes)
        loaded = attnviz.load(f"hf:{place}")
        return loaded.trace(text, *filter(None, [target]))

    return run


_FAMILIES = {
    "SqueezeBERT: scores, of which weights are made": "squeezebert",
    "Inkling 2: sinks that depend on the token": "inkling2_text",
    "ModernBERT: windows in both directions": "modernbert",
    "LED: windows, and a decoder": "led",
    "T5Gemma 2: one softmax over two texts": "t5gemma2",
    "CPM-Ant: prompts before the text": "cpmant",
    "RWKV: vectors in place of weights": "rwkv",
    "Pi0: reads actions too": "pi0",
}


def models(folder: Path) -> Iterator[Case]:
    """Section 2: models of the transformers library."""
    model = partial(_loaded, folder)

    def of_family(family, **more):
        return model(family, *family_table.listed()[family], **family_table.CHANGES.get(family, {}), **more)

    listed = {
        "Whisper": model("whisper", "WhisperForConditionalGeneration"),
        "ViT": model("vit", "ViTForImageClassification"),
        "SAM": model("sam", "SamModel"),
        "Pix2Struct": model("pix2struct", "Pix2StructForConditionalGeneration"),
        "CLAP": model("clap", "ClapModel"),
        "BERT": of_family("bert"),
        "BERT, two texts with \\|\\|\\| between them": of_family("bert", text="The dog|||a ball"),
        "BERT, a second text that is empty": of_family("bert", text="The dog|||"),
        "BERT, a typed [SEP]": of_family("bert", text="The dog [SEP] a ball"),
        "GPT-2": of_family("gpt2"),
        "Llama: heads that share keys": of_family("llama"),
        "Mistral: a window": of_family("mistral"),
        "GPT-OSS: learnt sinks": of_family("gpt_oss"),
        "Longformer: windows and a global token": of_family("longformer"),
        "BigBird": of_family("big_bird"),
        "Qwen3-Next: a hybrid": of_family("qwen3_next"),
        "Mamba: no attention": of_family("mamba"),
        "Funnel: pools its tokens": of_family("funnel"),
        "Gemma 3, text alone": of_family("gemma3"),
        "T5, a text forced": of_family("t5", target="Le chien noir court."),
        "Marian": of_family("marian"),
        "LongT5: blocks": of_family("longt5"),
        "Pegasus-X: blocks and global tokens": of_family("pegasus_x"),
        "ProphetNet: several streams": of_family("prophetnet"),
    }
    listed |= {held: of_family(family) for held, family in _FAMILIES.items()}
    yield from (Case(held, "load(name).trace(text)", run) for held, run in listed.items())


def result(case: Case) -> str:
    """What comes of a case, in a line."""
    from attnviz.arguments import cut

    try:
        trace = case.run()
    except ValueError as error:
        words = re.sub(r"(hf:)?/tmp/\S*?/([\w.-]+)(?=[\s:,]|$)", r"\2", " ".join(str(error).split()))
        return f"refused: {cut(words, MOST)}".replace("|", "\\|")
    shapes: dict[str, list] = {}
    for m in trace.maps:
        shapes.setdefault(m.kind, []).append(m)
    parts = [
        f"{kind}, {len(maps)} × {len(maps[0].weights)}{' (mean)' if maps[0].averaged else ''}, "
        f"{maps[0].weights.shape[1]} × {maps[0].weights.shape[2]}"
        for kind, maps in shapes.items()
    ]
    extra = ["a column *sink*"] * any(m.sink for m in trace.maps)
    extra += ["hidden keys"] * any(m.mask is not None for m in trace.maps)
    extra += ["heads that share keys"] * any(m.shared > 1 for m in trace.maps)
    notes = f" Notes: {' '.join(trace.notes)}" if trace.notes else ""
    return cut(f"shown: {'; '.join([*parts, *extra])}.{notes}", 2 * MOST).replace("|", "\\|")


def table(title: str, cases) -> str:
    lines = [f"| {case.held} | {case.call} | {result(case)} |" for case in cases]
    return f"## {title}\n\n| what it is | call | result |\n| --- | --- | --- |\n" + "".join(
        f"{line}\n" for line in lines
    )


def document(folder: Path) -> str:
    """The whole of docs/cases.md."""
    parts = {
        "Arrays: shapes": shapes(),
        "Arrays: padding and sinks": padding_and_sinks(),
        "Arrays: numbers and libraries": numbers(),
        "Files": files(folder),
        "What generate returns": generated(),
        "Models of the transformers library": list(models(folder)),
    }
    count = sum(map(len, parts.values()))
    return _HEAD.format(count=count) + "\n".join(table(title, cases) for title, cases in parts.items())


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[3]))
    import transformers

    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as place:
        print(document(Path(place)), end="")
