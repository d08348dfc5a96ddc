"""The recurrent mechanisms once more, from the papers' equations: NumPy, one sentence, one step, loops. No code of
theirs.

`EQUATIONS[name](model, source, target)` takes the numbers of a model, the ids of a sentence and what the decoder reads,
and gives logits (T, V) and weights (T, S), or None for the weights. Gated units: Cho et al. 2014 and Hochreiter &
Schmidhuber 1997 with Gers et al. 2000, in torch's order of rows (r, z, n and i, f, g, o), with r * (U h) where the
papers have U (r * h).
"""

from functools import partial

import numpy as np


def array(tensor):
    return tensor.detach().double().numpy()


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(scores):
    return np.exp(scores) / np.exp(scores).sum()


def gru(x, h, w_x, w_h, b_x, b_h):
    """r, z gates; n = tanh(W x + r * (U h)); h' = z h + (1 - z) n."""
    (r_x, z_x, n_x), (r_h, z_h, n_h) = np.split(w_x @ x + b_x, 3), np.split(w_h @ h + b_h, 3)
    z = sigmoid(z_x + z_h)
    return (z * h + (1 - z) * np.tanh(n_x + sigmoid(r_x + r_h) * n_h),)


def lstm(x, h, c, w_x, w_h, b_x, b_h):
    """i, f, o gates; c' = f c + i tanh(g); h' = o tanh(c')."""
    i, f, g, o = np.split(w_x @ x + b_x + w_h @ h + b_h, 4)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def stepped(cell, x, state, suffix=""):
    """The state after x. suffix : which of a layer's parameters."""
    numbers = (array(getattr(cell, f"{kind}{suffix}")) for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
    return (gru if len(state) == 1 else lstm)(x, *state, *numbers)


def states(model):
    """How many vectors a state has: h, or h and c."""
    return 2 if model.cell.weight_hh.shape[0] == 4 * model.cell.weight_hh.shape[1] else 1


def embedded(model, token):
    return array(model.embedding.weight)[token] * np.sqrt(model.embedding.weight.shape[1])


def encoded(model, source):
    """h_j = [forward; backward] of each word. Bahdanau et al. 2015, A.2.1."""
    rnn, width, halves = model.encoder.rnn, model.encoder.rnn.weight_hh_l0.shape[1], []
    for suffix, order in (("_l0", range(len(source))), ("_l0_reverse", reversed(range(len(source))))):
        state, by_word = (np.zeros(width),) * states(model), {}
        for j in order:
            state = stepped(rnn, embedded(model, source[j]), state, suffix)
            by_word[j] = state[0]
        halves.append([by_word[j] for j in range(len(source))])
    return [np.concatenate(pair) for pair in zip(*halves)]


def first(model, summary):
    """tanh(V summary): s_0, and of an LSTM c_0 too."""
    return tuple(np.split(np.tanh(array(model.start.weight) @ summary + array(model.start.bias)), states(model)))


def logits_of(model, readout):
    return array(model.embedding.weight) @ readout + array(model.output_bias)


def deep(model, target, state, look):
    """c_t from look(s_{t-1}); s_t = f([y; c_t], s_{t-1}); maxout of U_o s_t + C_o c_t + V_o y."""
    logits, weights = [], []
    for token in target:
        y = embedded(model, token)
        c, a = look(state[0])
        state = stepped(model.cell, np.concatenate([y, c]), state)
        t = array(model.deep.weight) @ np.concatenate([state[0], c, y]) + array(model.deep.bias)
        logits.append(logits_of(model, np.array([max(t[2 * i], t[2 * i + 1]) for i in range(len(y))])))
        weights.append(a)
    return np.array(logits), weights


def fixed_context(model, source, target):
    """c = tanh(V [forward_S; backward_1]), s_0 = tanh(V' c). Cho et al. 2014, A.1."""
    memory = encoded(model, source)
    width = len(memory[0]) // 2
    ends = np.concatenate([memory[-1][:width], memory[0][width:]])
    c = np.tanh(array(model.summary.weight) @ ends + array(model.summary.bias))
    return deep(model, target, first(model, c), lambda s: (c, None))[0], None


def bahdanau(model, source, target):
    """e_tj = v tanh(W s_{t-1} + U h_j), s_0 = tanh(W_s backward_1). A.1.2 and A.2.2."""
    memory, look = encoded(model, source), model.attention
    v, w, u = array(look.energy.weight)[0], array(look.query.weight), array(look.key.weight)

    def context(s):
        a = softmax(np.array([v @ np.tanh(w @ s + u @ h) for h in memory]))
        return sum(share * h for share, h in zip(a, memory)), a

    logits, weights = deep(model, target, first(model, memory[0][len(memory[0]) // 2 :]), context)
    return logits, np.array(weights)


def luong(model, source, target, weigh, summed=False):
    """s_t = f([y; h~_{t-1}], s_{t-1}); a_t = weigh(s_t, h_1 .. h_S); h~_t = tanh(W_c [c_t; s_t]); logits from h~_t.

    summed : h_j is forward + backward, not [forward; backward].
    """
    memory = encoded(model, source)
    state, fed = first(model, memory[0][len(memory[0]) // 2 :]), np.zeros(model.embedding.weight.shape[1])
    if summed:
        memory = [sum(np.split(h, 2)) for h in memory]
    logits, weights = [], []
    for token in target:
        state = stepped(model.cell, np.concatenate([embedded(model, token), fed]), state)
        a = weigh(model.attention, state[0], memory)
        c = sum(share * h for share, h in zip(a, memory))
        fed = np.tanh(array(model.attentional.weight) @ np.concatenate([c, state[0]]))
        logits.append(logits_of(model, fed))
        weights.append(a)
    return np.array(logits), np.array(weights)


def content(score):
    """Weights from a score (attention, s, h) alone, eq. 7."""
    return lambda attention, s, memory: softmax(np.array([score(attention, s, h) for h in memory]))


def general(attention, s, h):
    return s @ array(attention.key.weight) @ h


def local(attention, s, memory):
    """align over the window, eq. 7; times the Gaussian, eq. 10; over their sum, which is this project's own."""
    p = len(memory) * sigmoid(array(attention.place.weight)[0] @ np.tanh(array(attention.hidden.weight) @ s))  # eq. 9
    inside = [j for j in range(len(memory)) if p - attention.reach <= j <= p + attention.reach]
    align = softmax(np.array([general(attention, s, memory[j]) for j in inside]))
    sigma, a = attention.reach / 2, np.zeros(len(memory))
    for j, share in zip(inside, align):
        a[j] = share * np.exp(-((j - p) ** 2) / (2 * sigma**2))
    return a / a.sum()


EQUATIONS = {
    "fixed-context": fixed_context,
    "bahdanau": bahdanau,
    "luong-dot": partial(luong, weigh=content(lambda _, s, h: s @ h), summed=True),
    "luong-general": partial(luong, weigh=content(general)),
    "luong-concat": partial(
        luong,
        weigh=content(
            lambda look, s, h: array(look.energy.weight)[0] @ np.tanh(array(look.joint.weight) @ np.concatenate([s, h]))
        ),
    ),
    "luong-local": partial(luong, weigh=local),
    "scaled-dot": partial(luong, weigh=content(lambda _, s, h: s @ h / np.sqrt(len(s))), summed=True),
}
