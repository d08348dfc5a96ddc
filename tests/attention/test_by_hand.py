"""attention.py on one small case, worked by hand from each paper's equation: two queries, three keys."""

import ast
import math
import re

import forked
import numpy as np
import torch

from attnviz.attention import Additive, Concat, Dot, General, Local, MultiHead, ScaledDot

# The hand-worked case: two queries, three keys, width 2; values are one column, so a context is one number.
Q = torch.tensor([[[1.0, 0.0], [0.0, 2.0]]])
K = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]])
V = torch.tensor([[[10.0], [20.0], [30.0]]])
E, E2, R2, E_R2 = math.e, math.e**2, math.e ** math.sqrt(2), math.e ** (1 / math.sqrt(2))
T1, T2, T3 = math.tanh(1), math.tanh(2), math.tanh(3)


def softmax(row):
    powers = np.exp(np.array(row))
    return powers / powers.sum()


def with_weights(module, **weights):
    """The module with its matrices set; lists become tensors."""
    with torch.no_grad():
        for name, value in weights.items():
            getattr(module, name).weight.copy_(torch.as_tensor(value))
    return module


def check_by_hand(module, rows):
    """rows : the weights worked by hand; the context is then sum_j a_tj v_j."""
    context, weights = module(Q, K, V)
    np.testing.assert_allclose(weights[0].detach(), rows, atol=1e-6)
    np.testing.assert_allclose(context[0, :, 0].detach(), np.array(rows) @ [10, 20, 30], atol=1e-4)


def test_dot_by_hand():
    # scores q . k: (1,0) meets (1,0) (0,1) (1,1) -> 1 0 1; (0,2) -> 0 2 2
    # softmax: e, 1, e over 2e + 1 = .4223 .1554 .4223; 1, e^2, e^2 over 1 + 2e^2 = .0634 .4683 .4683
    first, second = (
        [E / (2 * E + 1), 1 / (2 * E + 1), E / (2 * E + 1)],
        [1 / (1 + 2 * E2), E2 / (1 + 2 * E2), E2 / (1 + 2 * E2)],
    )
    assert [round(x, 4) for x in first + second] == [0.4223, 0.1554, 0.4223, 0.0634, 0.4683, 0.4683]
    check_by_hand(Dot(), [first, second])


def test_scaled_dot_by_hand():
    # the same over sqrt(2): .7071 0 .7071 and 0 1.4142 1.4142
    # softmax: 2.0281, 1, 2.0281 over 5.0562 = .4011 .1978 .4011; 1, 4.1133, 4.1133 over 9.2265 = .1084 .4458 .4458
    first = [E_R2 / (2 * E_R2 + 1), 1 / (2 * E_R2 + 1), E_R2 / (2 * E_R2 + 1)]
    second = [1 / (1 + 2 * R2), R2 / (1 + 2 * R2), R2 / (1 + 2 * R2)]
    assert [round(x, 4) for x in first + second] == [0.4011, 0.1978, 0.4011, 0.1084, 0.4458, 0.4458]
    check_by_hand(ScaledDot(), [first, second])


def test_general_by_hand():
    # W = [[0 2], [1 0]], not its own transpose: W k = (2 k2, k1) = (0,1) (2,0) (2,1)
    # q . W k: (1,0) -> 0 2 2; (0,2) -> 2 0 2
    least, most = 1 / (1 + 2 * E2), E2 / (1 + 2 * E2)
    check_by_hand(with_weights(General(2, 2), key=[[0.0, 2.0], [1.0, 0.0]]), [[least, most, most], [most, least, most]])


def test_additive_by_hand():
    # W = U = identity, v = (1, -1): score = tanh(q1 + k1) - tanh(q2 + k2)
    # (1,0): tanh 2 - tanh 0 = .9640, tanh 1 - tanh 1 = 0, tanh 2 - tanh 1 = .2024
    # (0,2): tanh 1 - tanh 2 = -.2024, tanh 0 - tanh 3 = -.9951, tanh 1 - tanh 3 = -.2335
    module = with_weights(Additive(2, 2, 2), query=torch.eye(2), key=torch.eye(2), energy=[[1.0, -1.0]])
    scores = module.score(Q, module.prepare(K))[0].detach()
    np.testing.assert_allclose(scores, [[0.9640, 0, 0.2024], [-0.2024, -0.9951, -0.2335]], atol=1e-4)
    check_by_hand(module, [softmax([T2, 0, T2 - T1]), softmax([T1 - T2, -T3, T1 - T3])])


def test_concat_by_hand():
    # W = [1 0 | 0 1] laid over [q; k]: q1 + k2; v = 2: score = 2 tanh(q1 + k2)
    # (1,0): 2 tanh of 1 2 2; (0,2): 2 tanh of 0 1 1
    module = with_weights(Concat(2, 2, 1), joint=[[1.0, 0.0, 0.0, 1.0]], energy=[[2.0]])
    check_by_hand(module, [softmax([2 * T1, 2 * T2, 2 * T2]), softmax([0, 2 * T1, 2 * T1])])


def test_local_window_by_hand():
    # keys 0 1 2 3 from 1.5, D = 1.5: all but none further than 1.5; away^2 = 2.25 .25 .25 2.25
    # sigma = .75, 2 sigma^2 = 1.125: logarithms -2 -.2222 -.2222 -2; from 3: the last two keys, -9/1.125 = -8 the
    # first's
    gaussian, window = Local(2, 2, reach=1.5).around(torch.tensor([1.5, 3.0]), 4)
    np.testing.assert_allclose(gaussian, [[-2, -2 / 9, -2 / 9, -2], [-8, -32 / 9, -8 / 9, 0]], atol=1e-6)
    assert window.tolist() == [[True] * 4, [False, False, True, True]]


def test_local_by_hand():
    # W swaps a key's parts, as above: scores 0 1 1 and 2 0 2. W_p = identity, v_p = (ln 2 / tanh 1, 0), S = 3:
    # (1,0): p = 3 sigmoid(ln 2) = 3 * 2/3 = 2; (0,2): p = 3 sigmoid(0) = 1.5. D = 1.5, sigma = .75, 2 sigma^2 = 1.125
    # p = 2 sees keys 1, 2: exp(1 - 1/1.125) = e^(1/9), e^1 -> 0 .2913 .7087
    # p = 1.5 sees all, both ends being just within reach: exp(2 - 2) = 1, exp(-.25/1.125) = e^(-2/9), e^(2 - 2/9)
    #   -> 1 .8007 5.9167 over 7.7174 = .1296 .1038 .7667
    module = with_weights(
        Local(2, 2, reach=1.5), key=[[0.0, 1.0], [1.0, 0.0]], hidden=torch.eye(2), place=[[math.log(2) / T1, 0.0]]
    )
    np.testing.assert_allclose(module.centre(Q, torch.tensor([[3.0]])).detach(), [[2, 1.5]], atol=1e-6)
    rows = [[0, math.exp(1 / 9) / (math.exp(1 / 9) + E), E / (math.exp(1 / 9) + E)]]
    powers = [1, math.exp(-2 / 9), math.exp(16 / 9)]
    rows.append([power / sum(powers) for power in powers])
    assert [round(x, 4) for row in rows for x in row] == [0, 0.2913, 0.7087, 0.1296, 0.1038, 0.7667]
    check_by_hand(module, rows)
    assert module(Q, K, V)[1][0, 0, 0] == 0


def test_local_by_hand_counts_the_visible_keys():
    # The last key hidden: S = 2, p = 2 * 2/3 = 4/3 and 1. D = 1.5 reaches both keys from either
    # from 4/3: exp(0 - (16/9)/1.125), exp(1 - (1/9)/1.125); from 1: exp(2 - 1/1.125), exp(0)
    module = with_weights(
        Local(2, 2, reach=1.5), key=[[0.0, 1.0], [1.0, 0.0]], hidden=torch.eye(2), place=[[math.log(2) / T1, 0.0]]
    )
    weights = module(Q, K, V, torch.tensor([[[True, True, False]]]))[1][0].detach()
    rows = [softmax([-16 / 9 / 1.125, 1 - 1 / 9 / 1.125]), softmax([2 - 1 / 1.125, 0])]
    np.testing.assert_allclose(weights, [[*row, 0] for row in rows], atol=1e-6)
    assert weights[:, 2].tolist() == [0, 0]


def test_multi_head_by_hand():
    # Two heads of width 1, all projections the identity: head h sees part h alone, d = 1, so nothing is scaled.
    # Head 0: queries 1 0, keys 1 0 1. Head 1: queries 0 2, keys 0 1 1. Values are the keys.
    module = with_weights(MultiHead(2, 2), query=torch.eye(2), memory=torch.eye(2).repeat(2, 1), output=torch.eye(2))
    for part in (module.query, module.memory, module.output):
        torch.nn.init.zeros_(part.bias)
    third = [1 / 3] * 3
    rows = [[softmax([1, 0, 1]), third], [third, softmax([0, 2, 2])]]  # [head][query]
    context, weights = module(Q, K)
    np.testing.assert_allclose(weights[0].detach(), rows, atol=1e-6)
    # head 0's context is the mass on keys 0 and 2, head 1's on keys 1 and 2; laid side by side
    wanted = [[rows[0][t][0] + rows[0][t][2], rows[1][t][1] + rows[1][t][2]] for t in (0, 1)]
    np.testing.assert_allclose(context[0].detach(), wanted, atol=1e-6)


def test_masked_by_hand():
    # dot scores 1 0 1 and 0 2 2 without the last key: e, 1 over e + 1; 1, e^2 over 1 + e^2; the hidden key gets 0
    context, weights = Dot()(Q, K, V, torch.tensor([[[True, True, False]]]))
    np.testing.assert_allclose(weights[0], [[E / (E + 1), 1 / (E + 1), 0], [1 / (1 + E2), E2 / (1 + E2), 0]], atol=1e-6)
    assert weights[0, :, 2].tolist() == [0.0, 0.0]
    np.testing.assert_allclose(context[0, :, 0], [10 + 10 / (E + 1), 10 + 10 * E2 / (1 + E2)], atol=1e-4)


def test_the_last_lines_of_the_textbook_run():
    """Four printed tables are what the scores printed first make of them."""
    ran = forked.run("attnviz.attention")
    tables = re.findall(r"tensor\((.*?)\)", ran.stdout, re.DOTALL)
    scores, weights, context, causal, cross, _ = (np.array(ast.literal_eval(table)) for table in tables)
    np.testing.assert_allclose(weights, [softmax(row) for row in scores], atol=0.02)
    np.testing.assert_allclose(
        causal, [[*softmax(row[: t + 1]), *[0] * (4 - t)] for t, row in enumerate(scores)], atol=0.02
    )
    assert context.shape == (5, 4) and cross.shape == (1, 5) and abs(cross.sum() - 1) < 0.03
