"""Python runs this first in every process that has this folder on its PYTHONPATH: work can be held.

While the file that the environment variable HELD_WHILE names is there, they are as slow as with a very large model:
decoding with changed attention, tests of faithfulness and integrated gradients stand still and go on asking whether
they are to end; each head that is measured takes a second; the process of the models stands still at a text and at the
files of a model in whose text or name a word of that file is. The models may be silent for ten minutes at any time.
"""

import importlib.abc
import importlib.util
import os
import sys
import time
from functools import partial
from pathlib import Path


def _is_held() -> bool:
    return os.path.exists(os.environ["HELD_WHILE"])


def _hold_steps(module) -> None:
    step = module.Changed.step

    def held(self, *arguments):
        while _is_held():
            self.on_step()
            time.sleep(0.05)
        return step(self, *arguments)

    module.Changed.step = held


def _hold_tests(module) -> None:
    effects = module.Subject.effects

    def held(self, *arguments):
        while _is_held():
            self.on_step()
            time.sleep(0.05)
        yield from effects(self, *arguments)

    module.Subject.effects = held


def _hold_gradients(module) -> None:
    integrated = module.integrated

    def held(model, subject, on_step):
        while _is_held():
            on_step()
            time.sleep(0.05)
        return integrated(model, subject, on_step)

    module.integrated = held


def _slow_heads(module) -> None:
    importance = module.importance

    def slow(*arguments):
        for head in importance(*arguments):
            time.sleep(_is_held())
            yield head

    module.importance = slow


def _hold_batches(module) -> None:
    group, load = module._group, module.loading.load_checkpoint

    def wait_for(words: str) -> None:
        while _is_held() and any(word in words for word in Path(os.environ["HELD_WHILE"]).read_text().split()):
            time.sleep(0.05)

    def held_group(models, requests, *more):
        wait_for(" ".join(request.text for request in requests))
        return group(models, requests, *more)

    def held_load(name, *arguments):
        wait_for(name)
        return load(name, *arguments)

    module._group, module.loading.load_checkpoint = held_group, held_load


def _patient(module) -> None:
    """Models that a test stops for a while are waited for."""
    module.Limits = partial(module.Limits, silence=600)


HELD = {
    "attnviz.service.embedded": _patient,
    "attnviz.service.batch": _hold_batches,
    "attnviz.intervene.changed": _hold_steps,
    "attnviz.faithfulness.subject": _hold_tests,
    "attnviz.faithfulness.sentence": _hold_gradients,
    "attnviz.ablation": _slow_heads,
}


class _Held(importlib.abc.Loader):
    """Loads the module as its own loader does, then changes it."""

    def __init__(self, loader, change):
        self._loader, self._change = loader, change

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        self._loader.exec_module(module)
        self._change(module)


class _Finder(importlib.abc.MetaPathFinder):
    """Each search finds the changed module: `attnviz.ablation` is looked for once more before it is imported."""

    def find_spec(self, name, path, target=None):
        if name not in HELD:
            return None
        change = HELD.pop(name)  # the search below finds the module's own loader
        spec = importlib.util.find_spec(name)
        HELD[name] = change
        spec.loader = _Held(spec.loader, change)
        return spec


if "HELD_WHILE" in os.environ:
    sys.meta_path.insert(0, _Finder())
