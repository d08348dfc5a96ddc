"""Attention as textbooks and tutorials print it, for the tests of how a module is called."""

import math

import torch
import torch.nn.functional as F
from torch import nn


class BahdanauAttention(nn.Module):
    def __init__(self, hidden_size):
        super().__init__()
        self.Wa = nn.Linear(hidden_size, hidden_size)
        self.Ua = nn.Linear(hidden_size, hidden_size)
        self.Va = nn.Linear(hidden_size, 1)

    def forward(self, query, keys):
        scores = self.Va(torch.tanh(self.Wa(query) + self.Ua(keys)))
        scores = scores.squeeze(2).unsqueeze(1)
        weights = F.softmax(scores, dim=-1)
        context = torch.bmm(weights, keys)
        return context, weights


class Attn(nn.Module):
    def __init__(self, method, hidden_size):
        super().__init__()
        self.method = method
        if self.method not in ["dot", "general", "concat"]:
            raise ValueError(self.method, "is not an appropriate attention method.")
        self.hidden_size = hidden_size
        if self.method == "general":
            self.attn = nn.Linear(self.hidden_size, hidden_size)
        elif self.method == "concat":
            self.attn = nn.Linear(self.hidden_size * 2, hidden_size)
            self.v = nn.Parameter(torch.rand(hidden_size))

    def dot_score(self, hidden, encoder_output):
        return torch.sum(hidden * encoder_output, dim=2)

    def general_score(self, hidden, encoder_output):
        energy = self.attn(encoder_output)
        return torch.sum(hidden * energy, dim=2)

    def concat_score(self, hidden, encoder_output):
        energy = self.attn(torch.cat((hidden.expand(encoder_output.size(0), -1, -1), encoder_output), 2)).tanh()
        return torch.sum(self.v * energy, dim=2)

    def forward(self, hidden, encoder_outputs):
        if self.method == "general":
            attn_energies = self.general_score(hidden, encoder_outputs)
        elif self.method == "concat":
            attn_energies = self.concat_score(hidden, encoder_outputs)
        elif self.method == "dot":
            attn_energies = self.dot_score(hidden, encoder_outputs)
        attn_energies = attn_energies.t()
        return F.softmax(attn_energies, dim=1).unsqueeze(1)


class Attention(nn.Module):  # of a tutorial on translation: (hidden, encoder_outputs, mask) -> weights
    def __init__(self, enc_hid_dim, dec_hid_dim):
        super().__init__()
        self.attn = nn.Linear((enc_hid_dim * 2) + dec_hid_dim, dec_hid_dim)
        self.v = nn.Linear(dec_hid_dim, 1, bias=False)

    def forward(self, hidden, encoder_outputs, mask):
        src_len = encoder_outputs.shape[0]
        hidden = hidden.unsqueeze(1).repeat(1, src_len, 1)
        encoder_outputs = encoder_outputs.permute(1, 0, 2)
        energy = torch.tanh(self.attn(torch.cat((hidden, encoder_outputs), dim=2)))
        attention = self.v(energy).squeeze(2)
        attention = attention.masked_fill(mask == 0, -1e10)
        return F.softmax(attention, dim=1)


def masked_softmax(X, valid_lens):
    def _sequence_mask(X, valid_len, value=0):
        maxlen = X.size(1)
        mask = torch.arange((maxlen), dtype=torch.float32, device=X.device)[None, :] < valid_len[:, None]
        X[~mask] = value
        return X

    if valid_lens is None:
        return nn.functional.softmax(X, dim=-1)
    else:
        shape = X.shape
        if valid_lens.dim() == 1:
            valid_lens = torch.repeat_interleave(valid_lens, shape[1])
        else:
            valid_lens = valid_lens.reshape(-1)
        X = _sequence_mask(X.reshape(-1, shape[-1]), valid_lens, value=-1e6)
        return nn.functional.softmax(X.reshape(shape), dim=-1)


class DotProductAttention(nn.Module):
    def __init__(self, dropout):
        super().__init__()
        self.dropout = nn.Dropout(dropout)

    def forward(self, queries, keys, values, valid_lens=None):
        d = queries.shape[-1]
        scores = torch.bmm(queries, keys.transpose(1, 2)) / math.sqrt(d)
        self.attention_weights = masked_softmax(scores, valid_lens)
        return torch.bmm(self.dropout(self.attention_weights), values)


class AdditiveAttention(nn.Module):
    def __init__(self, num_hiddens, dropout, **kwargs):
        super().__init__(**kwargs)
        self.W_k = nn.LazyLinear(num_hiddens, bias=False)
        self.W_q = nn.LazyLinear(num_hiddens, bias=False)
        self.w_v = nn.LazyLinear(1, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, queries, keys, values, valid_lens):
        queries, keys = self.W_q(queries), self.W_k(keys)
        features = queries.unsqueeze(2) + keys.unsqueeze(1)
        features = torch.tanh(features)
        scores = self.w_v(features).squeeze(-1)
        self.attention_weights = masked_softmax(scores, valid_lens)
        return torch.bmm(self.dropout(self.attention_weights), values)


class MultiHead(nn.Module):
    def __init__(self, num_hiddens, num_heads, dropout, bias=False):
        super().__init__()
        self.num_heads = num_heads
        self.attention = DotProductAttention(dropout)
        self.W_q = nn.LazyLinear(num_hiddens, bias=bias)
        self.W_k = nn.LazyLinear(num_hiddens, bias=bias)
        self.W_v = nn.LazyLinear(num_hiddens, bias=bias)
        self.W_o = nn.LazyLinear(num_hiddens, bias=bias)

    def tq(self, X):
        X = X.reshape(X.shape[0], X.shape[1], self.num_heads, -1)
        X = X.permute(0, 2, 1, 3)
        return X.reshape(-1, X.shape[2], X.shape[3])

    def to(self, X):
        X = X.reshape(-1, self.num_heads, X.shape[1], X.shape[2])
        X = X.permute(0, 2, 1, 3)
        return X.reshape(X.shape[0], X.shape[1], -1)

    def forward(self, queries, keys, values, valid_lens):
        queries, keys, values = self.tq(self.W_q(queries)), self.tq(self.W_k(keys)), self.tq(self.W_v(values))
        if valid_lens is not None:
            valid_lens = torch.repeat_interleave(valid_lens, repeats=self.num_heads, dim=0)
        output = self.attention(queries, keys, values, valid_lens)
        return self.W_o(self.to(output))


class CausalSelfAttention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.c_attn = nn.Linear(config.n_embd, 3 * config.n_embd, bias=config.bias)
        self.c_proj = nn.Linear(config.n_embd, config.n_embd, bias=config.bias)
        self.attn_dropout = nn.Dropout(config.dropout)
        self.resid_dropout = nn.Dropout(config.dropout)
        self.n_head = config.n_head
        self.n_embd = config.n_embd
        self.dropout = config.dropout

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.c_attn(x).split(self.n_embd, dim=2)
        k = k.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        q = q.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        v = v.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        p = self.dropout if self.training else 0
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=None, dropout_p=p, is_causal=True)
        y = y.transpose(1, 2).contiguous().view(B, T, C)
        return self.resid_dropout(self.c_proj(y))


def attention(query, key, value, mask=None, dropout=None):
    d_k = query.size(-1)
    scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(d_k)
    if mask is not None:
        scores = scores.masked_fill(mask == 0, -1e9)
    p_attn = scores.softmax(dim=-1)
    if dropout is not None:
        p_attn = dropout(p_attn)
    return torch.matmul(p_attn, value), p_attn


class SelfAttentionV1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x):
        keys, queries, values = x @ self.W_key, x @ self.W_query, x @ self.W_value
        attn_scores = queries @ keys.T
        attn_weights = torch.softmax(attn_scores / keys.shape[-1] ** 0.5, dim=-1)
        return attn_weights @ values


class GlobalAttention(nn.Module):
    """The attentional vector comes back in place of the context, as in OpenNMT."""

    def __init__(self, dim):
        super().__init__()
        self.linear_in = nn.Linear(dim, dim, bias=False)
        self.linear_out = nn.Linear(dim * 2, dim, bias=False)

    def forward(self, source, memory_bank, memory_lengths=None):
        align = torch.bmm(self.linear_in(source).unsqueeze(1), memory_bank.transpose(1, 2))
        if memory_lengths is not None:
            mask = torch.arange(memory_bank.size(1))[None] < memory_lengths[:, None]
            align = align.masked_fill(~mask.unsqueeze(1), -float("inf"))
        align = F.softmax(align, -1)
        context = torch.bmm(align, memory_bank).squeeze(1)
        return torch.tanh(self.linear_out(torch.cat([context, source], 1))), align.squeeze(1)


class PaddedAttention(nn.Module):
    """Sequence-first, with a mask of padding that lies likewise, as in fairseq."""

    def __init__(self, input_embed_dim, source_embed_dim):
        super().__init__()
        self.input_proj = nn.Linear(input_embed_dim, source_embed_dim, bias=False)

    def forward(self, input, source_hids, encoder_padding_mask):
        scores = (source_hids * self.input_proj(input).unsqueeze(0)).sum(dim=2)
        if encoder_padding_mask is not None:
            scores = scores.masked_fill(encoder_padding_mask, float("-inf"))
        scores = F.softmax(scores, dim=0)
        return (scores.unsqueeze(2) * source_hids).sum(dim=0), scores


class ProjectedKeys(nn.Module):
    """Keys come projected, and a mask is needed although it has a default, as in Joey NMT."""

    def __init__(self, hidden_size):
        super().__init__()
        self.key_layer = nn.Linear(2 * hidden_size, hidden_size, bias=False)
        self.query_layer = nn.Linear(hidden_size, hidden_size, bias=False)
        self.energy_layer = nn.Linear(hidden_size, 1, bias=False)

    def forward(self, query=None, proj_key=None, value=None, mask=None):
        assert mask is not None, "mask is required"
        scores = self.energy_layer(torch.tanh(self.query_layer(query) + proj_key)).squeeze(2).unsqueeze(1)
        alphas = F.softmax(scores.masked_fill(mask == 0, -float("inf")), dim=-1)
        return torch.bmm(alphas, value), alphas


class ListOfTwo(nn.Module):
    """[query, value] in one argument, as a layer of Keras has it."""

    def forward(self, inputs, mask=None):
        query, value = inputs
        scores = torch.matmul(query, value.transpose(-1, -2))
        if mask is not None:
            scores = scores - 1e9 * (1 - mask.float().unsqueeze(1))
        weights = torch.softmax(scores, dim=-1)
        return torch.matmul(weights, value), weights


class ListOfThree(nn.Module):
    """[query, value, key], and no matrices: the additive layer of Keras."""

    def __init__(self, units):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(units))

    def forward(self, inputs):
        query, value, key = inputs
        weights = torch.softmax((self.scale * torch.tanh(query.unsqueeze(2) + key.unsqueeze(1))).sum(-1), -1)
        return weights @ value, weights


class LSTMStates(nn.Module):
    def __init__(self, hidden_size):
        super().__init__()
        self.W = nn.Linear(hidden_size, hidden_size, bias=False)

    def forward(self, state, encoder_outputs):
        hidden, cell = state
        weights = torch.softmax(torch.bmm(self.W(encoder_outputs), hidden[-1].unsqueeze(2)).squeeze(2), dim=1)
        return torch.bmm(weights.unsqueeze(1), encoder_outputs).squeeze(1), weights


class Residual(nn.Module):
    """A block: PyTorch's attention, whose weights are the mean of the heads, and what it read added to it."""

    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.attention = nn.MultiheadAttention(embed_dim, num_heads, batch_first=True)

    def forward(self, x, key_padding_mask=None):
        y, weights = self.attention(x, x, x, key_padding_mask=key_padding_mask)
        return x + y, weights


class GroupedQueries(nn.Module):
    def __init__(self, dim, n_heads, n_kv_heads):
        super().__init__()
        self.heads, self.groups, self.width = n_heads, n_kv_heads, dim // n_heads
        self.wq, self.wo = nn.Linear(dim, dim, bias=False), nn.Linear(dim, dim, bias=False)
        self.wk, self.wv = (nn.Linear(dim, n_kv_heads * self.width, bias=False) for _ in range(2))

    def forward(self, x):
        q = self.wq(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        k, v = (w(x).unflatten(-1, (self.groups, -1)).transpose(1, 2) for w in (self.wk, self.wv))
        k, v = (y.repeat_interleave(self.heads // self.groups, 1) for y in (k, v))
        return self.wo(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))


class KerasMask(nn.Module):
    """1 hides a key, as in the guides of TensorFlow: only the code says it."""

    def __init__(self, d_model):
        super().__init__()
        self.wq, self.wk = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)

    def forward(self, v, k, q, mask):
        logits = self.wq(q) @ self.wk(k).transpose(1, 2) / math.sqrt(q.shape[-1])
        if mask is not None:
            logits = logits + mask * -1e9
        weights = F.softmax(logits, -1)
        return weights @ v, weights


class PointerAttention(nn.Module):
    """1 keeps a key in this mask of padding, which is multiplied after the softmax, before a second division."""

    def __init__(self, hidden_dim):
        super().__init__()
        self.W_h, self.W_s = nn.Linear(hidden_dim, hidden_dim, bias=False), nn.Linear(hidden_dim, hidden_dim)
        self.v = nn.Linear(hidden_dim, 1, bias=False)

    def forward(self, s_t_hat, encoder_outputs, enc_padding_mask):
        scores = self.v(torch.tanh(self.W_h(encoder_outputs) + self.W_s(s_t_hat).unsqueeze(1))).squeeze(2)
        shares = F.softmax(scores, dim=1) * enc_padding_mask
        return shares / shares.sum(1, keepdim=True)


class CachedAttention(nn.Module):
    """Cross-attention with a cache among its arguments, as in the transformers library."""

    def __init__(self, config):
        super().__init__()
        width = config.hidden_size
        self.heads = config.num_attention_heads
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (nn.Linear(width, width) for _ in range(4))

    def forward(self, hidden_states, key_value_states=None, past_key_value=None, output_attentions=False):
        others = hidden_states if key_value_states is None else key_value_states
        pairs = ((self.q_proj, hidden_states), (self.k_proj, others), (self.v_proj, others))
        q, k, v = (project(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for project, x in pairs)
        weights = (q @ k.transpose(2, 3) * q.shape[-1] ** -0.5).softmax(-1)
        return self.out_proj((weights @ v).transpose(1, 2).flatten(2)), weights, past_key_value


class OneHead(nn.Module):
    def __init__(self, head_size, n_embd):
        super().__init__()
        self.key, self.query, self.value = (nn.Linear(n_embd, head_size, bias=False) for _ in range(3))

    def forward(self, x):
        weights = F.softmax(self.query(x) @ self.key(x).transpose(-2, -1) * self.key.out_features**-0.5, dim=-1)
        return weights @ self.value(x)


class ListOfHeads(nn.Module):
    """Heads one after the other, each with a softmax of its own."""

    def __init__(self, num_heads, head_size, n_embd):
        super().__init__()
        self.heads = nn.ModuleList([OneHead(head_size, n_embd) for _ in range(num_heads)])
        self.proj = nn.Linear(num_heads * head_size, n_embd)

    def forward(self, x):
        return self.proj(torch.cat([head(x) for head in self.heads], dim=-1))


class OnADevice(nn.Module):
    """With a device among its arguments, and a root that is a tensor of its own precision."""

    def __init__(self, hid_dim, device):
        super().__init__()
        self.query, self.key = nn.Linear(hid_dim, hid_dim), nn.Linear(hid_dim, hid_dim)
        self.scale = torch.sqrt(torch.FloatTensor([hid_dim])).to(device)

    def forward(self, query, key, mask=None):
        energy = self.query(query) @ self.key(key).transpose(1, 2) / self.scale
        if mask is not None:
            energy = energy.masked_fill(mask.unsqueeze(1) == 0, -1e10)
        return torch.softmax(energy, dim=-1)


MultiheadAttention = nn.MultiheadAttention
