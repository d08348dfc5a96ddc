"""The network of a model that writes in NumPy, from the papers' equations: one text, loops over positions and heads."""

import numpy as np
import torch

from attnviz.networks.decoder_only import DecoderOnly

V, D, H, LAYERS, HIDDEN, LONGEST = 30, 12, 3, 2, 10, 16


def random_writer(seed=0, **options):
    torch.manual_seed(seed)
    network = DecoderOnly(V, D, H, LAYERS, HIDDEN, **{"dropout": 0.0, "longest": LONGEST, **options})
    network = network.eval().requires_grad_(False)
    for parameter in network.parameters():  # small weights and norms of 1 would hide a mix-up
        parameter.add_(torch.randn_like(parameter), alpha=0.3)
    return network


def ids(*shape, seed=0):
    return torch.randint(4, V, shape, generator=torch.Generator().manual_seed(seed))


def rms_norm(x, gain):
    """Zhang and Sennrich 2019, eq. 4."""
    return x / np.sqrt((x**2).mean() + np.finfo(np.float32).eps) * gain


def rotate(x, position):
    """Su et al. 2021, eq. 15: each pair of numbers times a matrix of rotation."""
    half, turned = len(x) // 2, x.copy()
    for i in range(half):
        angle = position * 10_000 ** (-2 * i / len(x))
        matrix = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        turned[[i, i + half]] = matrix @ x[[i, i + half]]
    return turned


def attend(x, p, name):
    """x (T, D) -> what causal attention adds (T, D), weights (H, T, T). Vaswani et al. 2017, eq. 1."""

    def linear(rows, part):
        return rows @ p[f"{name}.{part}.weight"].T + p[f"{name}.{part}.bias"]

    size, width = len(x), D // H
    queries = linear(x, "query")
    keys, values = np.split(linear(x, "memory"), 2, axis=-1)
    weights, contexts = np.zeros((H, size, size)), np.zeros((size, D))
    for head in range(H):
        part = slice(head * width, (head + 1) * width)
        for t in range(size):
            query = rotate(queries[t, part], t)
            scores = np.array([query @ rotate(keys[s, part], s) / np.sqrt(width) for s in range(t + 1)])
            powers = np.exp(scores - scores.max())
            weights[head, t, : t + 1] = powers / powers.sum()
            contexts[t, part] = weights[head, t] @ values[:, part]
    return linear(contexts, "output"), weights


def feed(x, p, name):
    """Shazeer 2020, eq. 6, with Swish(x) = x sigmoid(x)."""
    gate, enter = (x @ p[f"{name}.{part}.weight"].T for part in ("gate", "enter"))
    return (gate / (1 + np.exp(-gate)) * enter) @ p[f"{name}.leave.weight"].T


def read(network, tokens):
    """tokens (T,) -> logits (T, V), weights (LAYERS, H, T, T)."""
    p = {name: value.double().numpy() for name, value in network.state_dict().items()}
    x, maps = p["embedding.weight"][tokens], []
    for layer in range(LAYERS):
        name = f"decoder.{layer}"
        first, second = (p[f"{name}.norms.{number}.weight"] for number in range(2))
        added, weights = attend(np.stack([rms_norm(row, first) for row in x]), p, f"{name}.attention")
        x = x + added
        x = x + feed(np.stack([rms_norm(row, second) for row in x]), p, f"{name}.feed")
        maps.append(weights)
    final = np.stack([rms_norm(row, p["decoder_norm.weight"]) for row in x])
    return final @ p["embedding.weight"].T, np.stack(maps)
