"""Python runs this first in every process that has this folder on its PYTHONPATH: changed attention can be held.

While the file that the environment variable HELD_WHILE names is there, decoding with changed attention stands still,
as a very slow model would: it goes on asking whether it is to end.
"""

import importlib.abc
import importlib.util
import os
import sys
import time

_MODULE = "attnviz.intervene.changed"


class _Held(importlib.abc.Loader):
    """Loads the module as its own loader does, then lets its steps wait."""

    def __init__(self, loader):
        self._loader = loader

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        self._loader.exec_module(module)
        step = module.Changed.step

        def held(self, *arguments):
            while os.path.exists(os.environ["HELD_WHILE"]):
                self.on_step()
                time.sleep(0.05)
            return step(self, *arguments)

        module.Changed.step = held


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name != _MODULE:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        spec.loader = _Held(spec.loader)
        return spec


if "HELD_WHILE" in os.environ:
    sys.meta_path.insert(0, _Finder())
