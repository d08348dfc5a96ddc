"""Many traces at once, beside other ways: `python tests/bench/traces.py --data DIR [--inseq PYTHON]`. One thread.

Sentences of the Flickr test set of 2016, English and French, through the shipped en-fr Transformer. Times are medians
over ROUNDS of processor time, in ms a sentence, which a busy machine disturbs less than the wall clock; the ways
take turns.

    inseq       its method `attention`, target given, on a MarianMTModel of the same architecture, sizes and pieces
                with random weights, and the same sentences, one by one: it knows no batches for such
                models. PYTHON is an interpreter that has inseq.
    whole       model.traces(texts, targets)                             bar: 3 times as fast as inseq
    statistics  the same, keep=("statistics",)                           bar: 5 times
    with p      the same, and the log-probabilities of the targets are read: inseq's `attention` makes none either
    evaluate    translations(model, texts), what `python -m attnviz evaluate` runs
    greedy      model.traces(texts, keep=("statistics",))                bar: .8 times as fast as evaluate
    forward     model.model(source, target), one sentence at a time: encoder and decoder once, with weights
    one         model.trace(text, target), one sentence at a time        bar: 1.3 times the time of forward

The bar of `one` is on both by turns, sentence by sentence, so that whatever else the machine does falls on both alike.
The same ratio when each goes through all sentences alone is printed too; it is higher (for information, without a bar).
No way keeps its results: each is dropped before the next is made, those of forward and of one alike.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from attnviz.data import readers
from attnviz.data.tokenizer import BOS
from attnviz.evaluation.translation import translations
from attnviz.models import checkpoint_files
from attnviz.models.names import ModelName
from attnviz.models.translator import Translator

MODEL = "en-fr/transformer"
ROUNDS = 3
INSEQ = """
import json, os, sys, time
os.environ["HF_HUB_OFFLINE"] = "1"
import torch; torch.set_num_threads(1)
import inseq, transformers
from importlib.metadata import version
from tokenizers import Tokenizer, processors
given = json.load(sys.stdin)
pieces = Tokenizer.from_file(given["tokenizer"])
pieces.post_processor = processors.TemplateProcessing(single="$A <eos>", special_tokens=[("<eos>", 2)])
tokenizer = transformers.PreTrainedTokenizerFast(
    tokenizer_object=pieces, pad_token="<pad>", bos_token="<bos>", eos_token="<eos>", unk_token="<unk>")
tokenizer.save_pretrained(given["folder"])
config = transformers.MarianConfig(
    vocab_size=given["vocabulary"], d_model=given["width"], max_position_embeddings=512, activation_function="relu",
    pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1, scale_embedding=True,
    **{f"{side}_{name}": given[key] for side in ("encoder", "decoder")
       for name, key in (("layers", "layers"), ("attention_heads", "heads"), ("ffn_dim", "hidden"))})
transformers.MarianMTModel(config).save_pretrained(given["folder"])
model = inseq.load_model(given["folder"], "attention")
model.attribute(given["texts"][:3], given["targets"][:3], show_progress=False)
times = []
for _ in range(given["rounds"]):
    started = time.process_time()
    model.attribute(given["texts"], given["targets"], show_progress=False)
    times.append(time.process_time() - started)
print(json.dumps({"times": times, "versions": {name: version(name) for name in ("inseq", "transformers", "torch")}}))
"""


def by_inseq(python: str, model: Translator, texts, targets) -> dict:
    """Seconds of each round, and the versions that ran."""
    options = json.loads((checkpoint_files.ROOT / MODEL / "config.json").read_text())["options"]
    with tempfile.TemporaryDirectory() as folder:
        given = options | {
            "tokenizer": str(checkpoint_files.ROOT / ModelName.parse(MODEL).pair / "tokenizer.json"),
            "folder": folder,
            "vocabulary": len(model.tokenizer),
            "texts": texts,
            "targets": targets,
            "rounds": ROUNDS,
        }
        done = subprocess.run(
            [python, "-c", INSEQ], input=json.dumps(given), capture_output=True, text=True, check=True
        )
    return json.loads(done.stdout.splitlines()[-1])


def seconds(work) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


@torch.inference_mode()
def one_pass(model: Translator, source: list[int], target: list[int]) -> None:
    """The network once, for ids."""
    model.model(torch.tensor([source]), torch.tensor([[BOS, *target[:-1]]]))


def by_turns(model: Translator, texts: list[str], targets: list[str]) -> float:
    """The time of forced traces as a multiple of that of passes of the network, sentence by sentence in turn."""
    traced = passed = 0.0
    for text, target in zip(texts, targets):
        source, wanted = model.tokenizer.ids(text), model.tokenizer.ids(target)
        traced += seconds(lambda: model.trace(text, target))
        passed += seconds(lambda: one_pass(model, source, wanted))
    return traced / passed


def ways(model: Translator, texts: list[str], targets: list[str]) -> dict:
    """Each way of the table above, as a function of nothing."""
    pairs = [(model.tokenizer.ids(text), model.tokenizer.ids(target)) for text, target in zip(texts, targets)]

    def forward():
        for pair in pairs:
            one_pass(model, *pair)

    def drain(iterator):
        for result in iterator:
            if isinstance(result, Exception):
                raise result

    def probable(iterator):
        return [measured.log_prob for measured in iterator]

    return {
        "whole": lambda: drain(model.traces(texts, targets)),
        "statistics": lambda: drain(model.traces(texts, targets, keep=("statistics",))),
        "with p": lambda: probable(model.traces(texts, targets, keep=("statistics",))),
        "evaluate": lambda: translations(model, texts),
        "greedy": lambda: drain(model.traces(texts, keep=("statistics",))),
        "forward": forward,
        "one": lambda: drain(model.trace(*pair) for pair in zip(texts, targets)),
    }


def show(ms: dict, bars: dict, met: dict, versions: dict, as_json: bool) -> None:
    if as_json:
        ratios = {name: round(value, 2) for name, (value, _, _) in bars.items()}
        print(json.dumps({"ms": ms, "ratios": ratios, "met": met, "versions": versions}, indent=1))
    else:
        for name, value in ms.items():
            print(f"{name:12} {value:7.2f} ms a sentence")
        for name, (value, sign, bar) in bars.items():
            verdict = "for information" if math.isinf(bar) else f"bar {sign} {bar}   {'met' if met[name] else 'MISSED'}"
            print(f"{name:32} {value:5.2f}   {verdict}")
        print(versions)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="a data folder with multi30k")
    parser.add_argument("--inseq", help="a Python interpreter that has inseq; without, its two bars are left out")
    parser.add_argument("--sentences", type=int, default=256, help="from the test set (256)")
    parser.add_argument("--json", action="store_true", help="print a JSON object")
    options = parser.parse_args()
    torch.set_num_threads(1)
    files = [readers.find_file(options.data / "multi30k", f"test_2016_flickr.{side}") for side in ("en", "fr")]
    texts, targets = (readers.read_lines(file)[: options.sentences] for file in files)
    model = Translator.load(MODEL)
    for work in (todo := ways(model, texts, targets)).values():
        work()  # once before the clock starts
    rounds = [{name: seconds(work) for name, work in todo.items()} for _ in range(ROUNDS)]
    ms = {name: 1e3 * statistics.median(times[name] for times in rounds) / len(texts) for name in todo}
    turns = statistics.median(by_turns(model, texts, targets) for _ in range(ROUNDS))
    bars = {
        "greedy: speed of evaluate": (ms["evaluate"] / ms["greedy"], ">=", 0.8),
        "one: time of forward, by turns": (turns, "<=", 1.3),
        "one: time of forward, each alone": (ms["one"] / ms["forward"], "<=", math.inf),
    }
    versions = {"torch": torch.__version__}
    if options.inseq:
        other = by_inseq(options.inseq, model, texts, targets)
        versions["with inseq"] = other["versions"]
        ms["inseq"] = 1e3 * statistics.median(other["times"]) / len(texts)
        bars["whole: speed of inseq"] = (ms["inseq"] / ms["whole"], ">=", 3)
        bars["statistics: speed of inseq"] = (ms["inseq"] / ms["statistics"], ">=", 5)
        bars["with p: speed of inseq"] = (ms["inseq"] / ms["with p"], ">=", -math.inf)
    met = {name: value >= bar if sign == ">=" else value <= bar for name, (value, sign, bar) in bars.items()}
    show(ms, bars, met, versions, options.json)
    return int(not all(met.values()))


if __name__ == "__main__":
    sys.exit(main())
