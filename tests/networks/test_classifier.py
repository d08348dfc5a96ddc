"""The sentence classifier: by hand in NumPy, padding, what it refuses; and the text that it is asked about."""

import numpy as np
import pytest
import tiny
import torch

from attnviz.data import batching
from attnviz.data.tokenizer import PAD, UNK, train_vocabulary
from attnviz.mechanisms import Config
from attnviz.networks.registry import build


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(4)
    built = build(Config("self-attention", 40, tiny.CLASSIFIER)).eval()
    with torch.no_grad():
        for parameter in built.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))  # no bias 0, no norm 1
    return built.requires_grad_(False)


def softmax(scores):
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    return shares / shares.sum(-1, keepdims=True)


def by_hand(model, tokens):
    """One sentence, head by head -> logits, pooling and the maps of each layer, from the parameters alone."""
    p = {name: value.double().numpy() for name, value in model.state_dict().items()}

    def linear(x, name):
        return x @ p[f"{name}.weight"].T + p[f"{name}.bias"]

    def norm(x, name):
        centred = x - x.mean(-1, keepdims=True)
        return centred / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * p[f"{name}.weight"] + p[f"{name}.bias"]

    width, heads = model.embedding.embedding_dim, tiny.CLASSIFIER["heads"]
    place, rate = np.arange(len(tokens))[:, None], 10_000.0 ** (-np.arange(0, width, 2) / width)
    sinusoids = np.stack([np.sin(place * rate), np.cos(place * rate)], -1).reshape(len(tokens), width)
    x, maps, d = p["embedding.weight"][tokens] * np.sqrt(width) + 0.1 * sinusoids, [], width // heads
    for layer in range(tiny.CLASSIFIER["layers"]):
        name, normed = f"encoder.{layer}", norm(x, f"norms.{layer}")
        query, memory = linear(normed, f"{name}.query"), linear(normed, f"{name}.memory")
        weights, mixed = [], []
        for head in range(heads):
            own = slice(head * d, (head + 1) * d)
            key, value = memory[:, :width][:, own], memory[:, width:][:, own]
            weights.append(softmax(query[:, own] @ key.T / np.sqrt(d)))
            mixed.append(weights[-1] @ value)
        x, maps = x + linear(np.concatenate(mixed, -1), f"{name}.output"), [*maps, np.stack(weights)]
    pooling = softmax(
        np.tanh(x @ p["pooling.key.weight"].T + p["pooling.query.weight"][:, 0]) @ p["pooling.energy.weight"][0]
    )
    return linear(pooling @ x, "output"), pooling, maps


def test_forward_by_hand(model):
    tokens = [7, 30, 4, 7, 12, 2]
    logits, pooling, maps = by_hand(model, tokens)
    verdict = model(torch.tensor([tokens]))
    np.testing.assert_allclose(verdict.logits[0], logits, atol=1e-4)
    np.testing.assert_allclose(verdict.pooling[0, 0], pooling, atol=1e-5)
    for ours, hand in zip(verdict.maps, maps, strict=True):
        np.testing.assert_allclose(ours[0], hand, atol=1e-5)


def test_padding_changes_nothing(model):
    rows = [[7, 30, 4, 2], [9, 2], [5, 6, 7, 8, 9, 10, 11, 2]]
    padded = batching.pad(rows)
    together = model(padded, padded != PAD)
    for i, row in enumerate(rows):
        alone, size = model(torch.tensor([row])), len(row)
        torch.testing.assert_close(together.logits[i], alone.logits[0], atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(together.pooling[i, :, :size], alone.pooling[0], atol=1e-5, rtol=1e-4)
        assert not together.pooling[i, :, size:].any()
        for ours, single in zip(together.maps, alone.maps):
            torch.testing.assert_close(ours[i, :, :size, :size], single[0], atol=1e-5, rtol=1e-4)
            assert not ours[i, :, :, size:].any()


def test_the_order_of_the_words_counts(model):
    first, other = model(torch.tensor([[7, 30, 4, 2]])), model(torch.tensor([[30, 7, 4, 2]]))
    assert not torch.allclose(first.logits, other.logits, atol=1e-3)


def test_a_sentence_beyond_the_places_is_refused(model):
    with pytest.raises(ValueError) as caught:
        model(torch.ones(1, 513, dtype=torch.long))
    assert str(caught.value) == "the model takes at most 512 tokens; got 513"


@pytest.mark.parametrize(
    "typed, corpus",
    [
        ("It's a must-see!", "it 's a must see !"),
        ("I don't care.", "i do n't care"),
        ("I DON’T care…", "i do n't care"),
        ("A naïve, “lovely” film; really.", "a naive , `` lovely '' film really"),
        ("Who cares?", "who cares ?"),
    ],
)
def test_what_is_typed_is_read_as_in_the_corpus(typed, corpus):
    text = train_vocabulary([corpus, "a b c d e f g h i j k l m n o p q r s t u v w x y z"] * 2, 300, "plain")
    encoded = text.encode(typed)
    assert list(encoded.ids) == text.ids(corpus) and UNK not in encoded.ids
    assert all(token.text == typed[token.start : token.end] for token in encoded.tokens[:-1])
