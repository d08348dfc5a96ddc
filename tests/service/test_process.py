"""The model process imports torch without a part that its models do not need."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import numpy as np

import attnviz
from attnviz.service.process import UNUSED

MODELS = ("en-fr/transformer", "en-fr/luong-local", "en-ja/bahdanau")
TEXT = "The black dog runs."
SCRIPT = """
import importlib, json, sys
from attnviz.service import process
process.import_torch()
import torch, attnviz
absent = process.UNUSED not in sys.modules
traces = [attnviz.load(name).trace(sys.argv[1]) for name in sys.argv[2:]]
still = process.UNUSED not in sys.modules
importlib.import_module(process.UNUSED)
shape = list(torch.nn.functional.linear(torch.empty(2, 3, device="meta"), torch.empty(4, 3, device="meta")).shape)
maps = [trace.map("cross").weights.ravel().tolist() for trace in traces]
print(json.dumps([absent, still, shape, [trace.translation for trace in traces], maps]))
"""


def test_models_are_the_same_without_it_and_it_is_there_for_whoever_asks():
    root = str(Path(attnviz.__file__).resolve().parents[1])
    ran = subprocess.run([sys.executable, "-c", SCRIPT, TEXT, *MODELS], capture_output=True, text=True, cwd=root)
    assert ran.returncode == 0, ran.stderr
    absent, still, shape, translations, maps = json.loads(ran.stdout)
    assert absent and still and shape == [2, 4]
    for name, translation, weights in zip(MODELS, translations, maps, strict=True):
        trace = attnviz.load(name).trace(TEXT)
        assert translation == trace.translation
        assert np.array_equal(np.array(weights, dtype=np.float32), trace.map("cross").weights.ravel())


def test_torch_has_it_under_this_name():
    """Otherwise nothing is left out, and the start takes longer."""
    assert importlib.util.find_spec(UNUSED)
