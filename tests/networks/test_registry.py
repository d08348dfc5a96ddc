"""The table of mechanisms and the networks agree."""

from attnviz.attention import MultiHead
from attnviz.mechanisms import ALL, Config
from attnviz.networks.registry import build

HEADS = {"width": 8, "heads": 2}
SMALL = {"transformer": {**HEADS, "layers": 1, "hidden": 8}, "self-attention": HEADS, "writer": HEADS}


def test_a_mechanism_says_whether_its_layers_have_several_heads():
    for name, mechanism in ALL.items():
        network = build(Config(name, 20, SMALL.get(name, {"width": 8, "embedding_width": 8})))
        assert mechanism.multi_head == any(isinstance(module, MultiHead) for module in network.modules()), name
