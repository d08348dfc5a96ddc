"""How a module is called is read off its parameters and a trial; a file, a class or a form that does not serve is
refused in a sentence."""

from pathlib import Path

import listings
import pytest
import torch
from torch import nn

from attnviz import own
from attnviz.own.recognise import recognise

LISTINGS = Path(__file__).parents[1] / "helpers" / "listings.py"
KEPT = "weights (B,T,S) kept as self.attention_weights"
FORMS = {
    "BahdanauAttention": "attention, batch-first: (query (B,1,D), keys (B,S,D)) -> context (B,1,D), weights (B,1,S)",
    "Attn": "attention, sequence-first: (hidden (1,B,D), encoder_outputs (S,B,D)) -> weights (B,1,S)",
    "Attention": "attention, sequence-first: (hidden (B,D), encoder_outputs (S,B,D), mask (B,S) bool, 1 keeps a "
    "key) -> weights (B,S)",
    "DotProductAttention": "attention, batch-first: (queries (B,T,D), keys (B,S,D), values (B,S,D), valid_lens (B) "
    f"numbers of visible keys) -> context (B,T,D), {KEPT}",
    "AdditiveAttention": "attention, batch-first: (queries (B,T,D), keys (B,S,D), values (B,S,D), valid_lens (B) "
    f"numbers of visible keys) -> context (B,T,D), {KEPT}",
    "MultiHead": "attention, batch-first: (queries (B,T,D), keys (B,S,D), values (B,S,D), valid_lens (B) numbers of "
    "visible keys) -> context (B,T,D), weights (B*H,T,S) kept as self.attention.attention_weights",
    "CausalSelfAttention": "self-attention, batch-first: (x (B,S,D)) -> context (B,T,D), weights (B,H,T,S) seen at "
    "its softmax, causal: a token sees none after it",
    "attention": "attention, batch-first: (query (B,T,D), key (B,S,D), value (B,S,D), mask (B,1,S) bool, 1 keeps a "
    "key) -> context (B,T,D), weights (B,T,S)",
    "GlobalAttention": "attention, batch-first: (source (B,D), memory_bank (B,S,D), memory_lengths (B) numbers of "
    "visible keys) -> context (B,D), weights (B,S)",
    "PaddedAttention": "attention, sequence-first: (input (B,D), source_hids (S,B,D), encoder_padding_mask (S,B) "
    "bool, 1 hides a key) -> context (B,D), weights (S,B)",
    "ProjectedKeys": "attention, batch-first: (query (B,1,D), proj_key (B,S,D), value (B,S,D), mask (B,1,S) bool, 1 "
    "keeps a key) -> context (B,1,D), weights (B,1,S)",
    "ListOfTwo": "attention, batch-first: (inputs [(B,T,D), (B,S,D)], mask (B,S) bool, 1 keeps a key) -> context "
    "(B,T,D), weights (B,T,S)",
    "ListOfThree": "attention, batch-first: (inputs [(B,T,D), (B,S,D), (B,S,D)]) -> context (B,T,D), weights (B,T,S)",
    "LSTMStates": "attention, batch-first: (state ((L,B,D), (L,B,D)), encoder_outputs (B,S,D)) -> context (B,D), "
    "weights (B,S)",
    "Residual": "self-attention, batch-first: (x (B,S,D), key_padding_mask (B,S) bool, 1 hides a key) -> context "
    "(B,T,D), weights (B,H,T,S) seen at its softmax",
    "GroupedQueries": "self-attention, batch-first: (x (B,S,D)) -> context (B,T,D), weights (B,H,T,S) seen at its "
    "softmax, causal: a token sees none after it",
    "OnADevice": "attention, batch-first: (query (B,T,D), key (B,S,D), mask (B,S) bool, 1 keeps a key) -> weights "
    "(B,T,S)",
    "KerasMask": "attention, batch-first: (v (B,S,D), k (B,S,D), q (B,T,D), mask (B,1,S) bool, 1 hides a key) -> "
    "context (B,T,D), weights (B,T,S)",
    "PointerAttention": "attention, batch-first: (s_t_hat (B,D), encoder_outputs (B,S,D), enc_padding_mask (B,S) bool, "
    "1 keeps a key) -> weights (B,S)",
    "CachedAttention": "attention, batch-first: (hidden_states (B,T,D), key_value_states (B,S,D)) -> context (B,T,D), "
    "weights (B,H,T,S)",
    "ListOfHeads": "self-attention, batch-first: (x (B,S,D)) -> context (B,T,D), weights (B,H,T,S) seen at the softmax "
    "of each head",
    "SelfAttentionV1": "self-attention, one sentence at a time: (x (S,D)) -> context (T,D), weights (T,S) seen at its "
    "softmax",
    "MultiheadAttention": "attention, sequence-first: (query (T,B,D), key (S,B,D), value (S,B,D), key_padding_mask "
    "(B,S) bool, 1 hides a key) -> context (T,B,D), weights (B,H,T,S)",
}


@pytest.mark.parametrize("name", FORMS)
def test_a_textbook_listing_is_recognised_and_right(name):
    """Where its mask is a number beyond half precision, that is a limit."""
    built = own.load(f"{LISTINGS}:{name}")
    report = own.check(built.target, built.title)
    assert report.form == FORMS[name]
    assert report.ok, report.faults


def test_an_instance_of_the_size_that_it_has_is_recognised():
    module = nn.MultiheadAttention(24, 3, kdim=10, vdim=14, batch_first=True)
    form = recognise(module).form
    assert (form.query, form.keys, form.widths) == ("BTD", "BSD", (24, 10, 14))


def additive_mask(query, keys, values, mask=None):
    scores = query @ keys.transpose(1, 2)
    weights = torch.softmax(scores if mask is None else scores + mask, dim=-1)
    return {"context": weights @ values, "attention": weights}


def keys_first(encoder_outputs, decoder_hidden):
    scores = torch.einsum("bsd,bd->bs", encoder_outputs, decoder_hidden)
    return torch.softmax(scores, dim=-1).unsqueeze(2)


def layers(decoder_hidden, encoder_outputs):
    layer_count, batch, width = decoder_hidden.shape
    scores = (decoder_hidden[-1].unsqueeze(1) * encoder_outputs).sum(-1)
    return torch.softmax(scores, dim=-1)


def with_state_unused(query, value, padding_mask=None, state=None):
    """As in fairseq, whose decoders pass a state that this attention does not read."""
    scores = (query.unsqueeze(0) * value).sum(-1)
    weights = torch.softmax(scores if padding_mask is None else scores.masked_fill(padding_mask, float("-inf")), dim=0)
    return (weights.unsqueeze(2) * value).sum(0), weights


@pytest.mark.parametrize(
    "function, words",
    [
        (
            with_state_unused,
            "value (S,B,D), padding_mask (S,B) bool, 1 hides a key) -> context (B,D), weights (S,B)",
        ),
        (additive_mask, "mask (B,1,S) added to the scores, -inf hides) -> context (B,T,D), weights (B,T,S)"),
        (keys_first, "(encoder_outputs (B,S,D), decoder_hidden (B,D)) -> weights (B,S,1)"),
        (layers, "(decoder_hidden (L,B,D), encoder_outputs (B,S,D)) -> weights (B,S)"),
    ],
)
def test_functions_of_other_forms(function, words):
    report = own.check(function)
    assert report.form.endswith(words)
    assert report.ok, report.faults


def test_what_is_no_attention_is_refused_with_the_forms_and_what_came_back():
    with pytest.raises(own.forms.NotRecognised) as error:
        own.check(nn.Linear(16, 16))
    assert "it returned (3, 5, 16), and none of it has an axis for the keys" in str(error.value)
    assert "forward(query, keys, values, mask=None)" in str(error.value)
    with pytest.raises(ValueError, match="module must be an nn.Module or a function; got int"):
        own.check(3)


BAD = {
    "raise RuntimeError('no data')": "cannot be imported: line 1, RuntimeError: no data",
    "import nothing_here": "cannot be imported: line 1, ModuleNotFoundError: No module named 'nothing_here'",
    "def f(:": "cannot be imported: line 1, SyntaxError",
    "import sys; sys.exit(3)": "ends the program when it is imported",
    "x = 1": "it has no class and no function",
    "class A:\n    def __init__(self, flavour): pass\n    def __call__(self, q): pass": "A needs flavour, and the "
    "name tells no size: give --set flavour=VALUE",
    "class A:\n    def __init__(self, hidden_size): raise ValueError('odd')\n    def __call__(self): pass": "cannot be "
    "built: ValueError: odd",
    "A = 3": "A must be a class, a module or a function; it is 3",
}


@pytest.mark.parametrize("text", BAD)
def test_a_file_that_does_not_serve_is_refused_in_a_sentence(tmp_path, text):
    file = tmp_path / "mine.py"
    file.write_text(text)
    with pytest.raises(ValueError) as error:
        own.load(f"{file}:A")
    assert BAD[text] in str(error.value)


CODE = """\
import torch
from torch import nn
def attend(query, keys):
    return torch.softmax(query @ keys.transpose(1, 2), -1)
"""


@pytest.mark.parametrize("line", [0, 1, 2, 3])
def test_a_file_that_is_not_utf_8_is_refused_with_the_place_and_runs_with_its_encoding(tmp_path, line):
    """Also where the letter is in a comment, with which Python itself may run the file."""
    file, lines = tmp_path / "mine.py", CODE.splitlines()
    lines[line] += "  # caf\u00e9"
    file.write_bytes("\n".join(lines).encode("latin-1"))
    with pytest.raises(ValueError) as error:
        own.load(f"{file}:attend")
    assert str(error.value) == (
        f"{file} is not in UTF-8 (line {line + 1}, byte 0xE9): save it as UTF-8, or name its encoding in the first "
        "line, such as `# coding: latin-1`"
    )
    file.write_bytes("\n".join(["# coding: latin-1", *lines]).encode("latin-1"))
    assert own.check(own.load(f"{file}:attend")).ok


class Pooling(nn.Module):
    def forward(self, x):
        weights = torch.softmax(x.sum(-1), dim=1)
        return (weights.unsqueeze(2) * x).sum(1), weights


class Decoder(nn.Module):
    """A whole decoder, which holds an attention."""

    def __init__(self):
        super().__init__()
        self.attention, self.cell = listings.BahdanauAttention(6), nn.GRUCell(6, 6)

    def forward(self, token, hidden, encoder_outputs):
        return self.cell(self.attention(hidden, encoder_outputs), hidden[token])


def test_what_holds_an_attention_is_refused_with_its_name():
    with pytest.raises(own.forms.NotRecognised, match=r"It holds BahdanauAttention \(self.attention\): test that"):
        own.check(Decoder())


class LearntPooling(nn.Module):
    """Yang et al. 2016, eq. 5 to 7: sequence-first, with a learnt query."""

    def __init__(self, hidden_dim):
        super().__init__()
        self.word, self.query = nn.Linear(hidden_dim, hidden_dim), nn.Linear(hidden_dim, 1, bias=False)

    def forward(self, outputs):
        scores = self.query(torch.tanh(self.word(outputs))).squeeze(2)
        weights = torch.softmax(scores, dim=0)
        return (weights.unsqueeze(2) * outputs).sum(dim=0), weights.T


def test_pooling_is_attention_without_a_query():
    report = own.check(Pooling())
    assert report.ok and report.form == "pooling, batch-first: (x (B,S,D)) -> context (B,D), weights (B,S)"
    report = own.check(LearntPooling)
    assert report.ok and report.form == "pooling, sequence-first: (outputs (S,B,D)) -> context (B,D), weights (B,S)"
    words = "v · tanh(U k) with U = `word.weight` and its bias, v = `query.weight`; largest difference "
    assert report.formula.startswith(f"none of the known ones: pooling without a query, {words}")
    with pytest.raises(ValueError, match="Pooling pools: it has no query for the state of a decoder"):
        own.wrap(Pooling())


class WholeStep(nn.Module):
    def __init__(self, hidden_size):
        super().__init__()
        self.embedding, self.cell = nn.Embedding(9, hidden_size), nn.GRUCell(hidden_size, hidden_size)

    def forward(self, input, hidden, encoder_outputs):
        hidden = self.cell(self.embedding(input), hidden)
        weights = torch.softmax(torch.einsum("bd,bsd->bs", hidden, encoder_outputs), dim=-1)
        return torch.einsum("bs,bsd->bd", weights, encoder_outputs), hidden, weights


def test_a_whole_step_of_a_decoder_is_refused_with_what_to_do():
    with pytest.raises(own.forms.NotRecognised, match="It seems to be a whole step of a decoder: test its"):
        own.check(WholeStep)


def test_settings_are_arguments_of_the_class():
    report = own.check(listings.Attn, settings={"method": "dot"})
    assert report.name == "Attn(method='dot', hidden_size=16)" and report.formula.startswith("dot: ")
    with pytest.raises(ValueError, match="^settings are arguments of a class; got .*, which is built already$"):
        own.check(listings.Attn("dot", 16), settings={"method": "general"})
    with pytest.raises(ValueError, match="^settings must be a dict, a name and a value for each argument; got 3$"):
        own.check(listings.Attn, settings=3)
    assert own.load(f"{LISTINGS}:Attn", {"method": "dot"}).title == "Attn(method='dot', hidden_size=16)"
    with pytest.raises(ValueError, match="Attn has no parameter size; its parameters: method, hidden_size"):
        own.load(f"{LISTINGS}:Attn", {"size": 3})
    with pytest.raises(ValueError, match="there is no Python file"):
        own.load("nowhere.py:A")


def test_the_same_class_gets_the_same_report_each_time():
    """Its first weights are random, and some faults show with some of them only."""
    place = f"{LISTINGS}:Attn"
    before, state = torch.nn.Linear(2, 2).weight, torch.get_rng_state()
    first, again = (own.load(place).target.attn.weight for _ in range(2))
    assert torch.equal(first, again) and torch.equal(torch.get_rng_state(), state)

    class Scores(torch.nn.Linear):
        def __init__(self, hidden_size):
            super().__init__(hidden_size, hidden_size)

        def forward(self, query, keys):
            return super().forward(query) @ keys.mT

    first = own.check(Scores).to_dict()
    torch.rand(1)
    assert own.check(Scores).to_dict() == first
    assert not torch.equal(torch.nn.Linear(2, 2).weight, before)


class PreNormBlock(nn.Module):
    """A norm before the attention, and what is not linear after it: the context is still made of the weighted sum."""

    def __init__(self, d_model=16, num_heads=2):
        super().__init__()
        self.first, self.second = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.attention = nn.MultiheadAttention(d_model, num_heads, batch_first=True)
        self.forward_layer = nn.Sequential(nn.Linear(d_model, 32), nn.GELU(), nn.Linear(32, d_model))

    def forward(self, x, key_padding_mask=None):
        x, weights = self.read(x, self.first(x), key_padding_mask)
        return x + self.forward_layer(self.second(x)), weights

    def read(self, x, normed, mask):
        context, weights = self.attention(normed, normed, normed, key_padding_mask=mask)
        return x + context, weights


class JoinedByView(PreNormBlock):
    def read(self, x, normed, mask):
        context, weights = super().read(x, normed, mask)
        return x + (context - x).view(len(x), 2, -1, x.shape[2] // 2).transpose(1, 2).reshape(x.shape), weights


class LatentQueries(nn.Module):
    """Learnt queries of nn.MultiheadAttention, which returns the mean of its heads."""

    def __init__(self, d_model=16, num_heads=4):
        super().__init__()
        self.latents = nn.Parameter(torch.randn(3, d_model))
        self.attention = nn.MultiheadAttention(d_model, num_heads, batch_first=True)

    def forward(self, x):
        return self.attention(self.latents.expand(len(x), -1, -1), x, x)


def test_a_whole_block_and_learnt_queries_in_heads_are_right():
    assert own.check(PreNormBlock).ok and own.check(LatentQueries).ok
    assert own.check(JoinedByView).faults[0].test == "context is weights times values"


def test_a_default_width_of_1_is_no_width():
    class Additive(nn.Module):
        """As in Joey NMT."""

        def __init__(self, hidden_size=1, key_size=1, query_size=1):
            super().__init__()
            sizes = (query_size, hidden_size), (key_size, hidden_size), (hidden_size, 1)
            self.query, self.key, self.energy = (nn.Linear(*size, bias=False) for size in sizes)

        def forward(self, query, values):
            return self.energy(torch.tanh(self.query(query) + self.key(values))).mT.softmax(dim=-1)

    assert own.check(Additive).ok and own.check(Additive).formula.startswith("additive (Bahdanau)")


class KeysSecond(nn.Module):
    """Weights (T,S,B,H) and a mask (1,S,B), as in the listings of labml.ai."""

    def __init__(self, d_model=16, heads=2):
        super().__init__()
        self.heads, self.query, self.key = heads, nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)

    def forward(self, *, query, key, value, mask=None):
        query, key, value = (x.unflatten(-1, (self.heads, -1)) for x in (self.query(query), self.key(key), value))
        scores = torch.einsum("tbhd,sbhd->tsbh", query, key) * key.shape[-1] ** -0.5
        scores = scores if mask is None else scores.masked_fill(mask[:, :, :, None] == 0, -1e4)
        self.attn = scores.softmax(dim=1)
        return torch.einsum("tsbh,sbhd->tbhd", self.attn, value).flatten(2)


def test_the_axis_of_keys_may_be_the_second():
    report = own.check(KeysSecond)
    assert report.ok and report.formula.startswith("multi-head, 2 heads")
    assert "mask (1,S,B) bool, 1 keeps a key) -> context (T,B,D), weights (T,S,B,H) kept as self.attn" in report.form


class NonLocal(nn.Module):
    """Wang et al. 2018, *embedded Gaussian*: no root, which is right there."""

    root = 0.0

    def __init__(self, channels=16):
        super().__init__()
        self.theta, self.phi = nn.Linear(channels, channels // 2), nn.Linear(channels, channels // 2)

    def forward(self, x):
        theta, phi = self.theta(x), self.phi(x)
        return (weights := torch.softmax(theta @ phi.mT * phi.shape[-1] ** -self.root, dim=-1)) @ x + x, weights


class OfTheNumber(NonLocal):
    root = 1.0


def test_no_root_is_right_in_a_non_local_block_and_another_factor_is_not():
    line = own.check(NonLocal).lines[-1]
    assert line.verdict == "limit" and line.reason.endswith("Only a non-local block (Wang et al. 2018) needs no root")
    assert own.check(OfTheNumber).faults[0].reason.endswith("divided by d, not by its root")


@pytest.mark.parametrize(
    ("scaled", "words"),
    [
        (
            lambda scores, q: scores / q.shape[-1] ** 1 / 2,
            "divided by 2d, not by √d: d ** 1/2 is half of d, write d ** 0.5",
        ),
        (lambda scores, q: scores / (q.shape[-1] ** 1 / 2), "divided by d/2, not by √d: d ** 1/2 is half of d"),
        (lambda scores, q: scores / len(q) ** 0.5, "divided by the root of the number of sentences, not by √d"),
    ],
)
def test_what_python_reads_as_another_root_is_told(scaled, words):
    def attention(query, keys, values):
        return (weights := scaled(query @ keys.mT, query).softmax(dim=-1)) @ values, weights

    assert words in own.check(attention).faults[0].reason
