"""What the process that forked.py forks has imported, in the way of the process of the models."""

from attnviz.service.process import import_torch

import_torch()

import attnviz.service.batch  # noqa: E402, F401
