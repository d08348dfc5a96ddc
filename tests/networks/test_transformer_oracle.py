"""transformer.py against torch's own layers with copied weights."""

import torch
from torch import nn
from transformers_by_hand import FIRST, HIDDEN, LENGTHS, D, H, close, hidden, ids, random_transformer

from attnviz.networks.transformer import DecoderLayer, EncoderLayer


def copy_attention(theirs, ours):
    theirs.in_proj_weight.copy_(torch.cat([ours.query.weight, ours.memory.weight]))
    theirs.in_proj_bias.copy_(torch.cat([ours.query.bias, ours.memory.bias]))
    theirs.out_proj.load_state_dict(ours.output.state_dict())


def torch_layer(ours):
    build = nn.TransformerDecoderLayer if isinstance(ours, DecoderLayer) else nn.TransformerEncoderLayer
    theirs = build(D, H, HIDDEN, dropout=0, batch_first=True, norm_first=ours.norm_first).eval().requires_grad_(False)
    copy_attention(theirs.self_attn, ours.attention)
    if isinstance(ours, DecoderLayer):
        copy_attention(theirs.multihead_attn, ours.cross)
    theirs.linear1.load_state_dict(ours.feed.enter.state_dict())
    theirs.linear2.load_state_dict(ours.feed.leave.state_dict())
    for number, norm in enumerate(ours.norms, start=1):
        getattr(theirs, f"norm{number}").load_state_dict(norm.state_dict())
    return theirs


@FIRST
@torch.no_grad()
def test_encoder_layer_agrees_with_torch(norm_first):
    ours = random_transformer(norm_first=norm_first).encoder[1]
    assert isinstance(ours, EncoderLayer)
    x = hidden(3, 6, D)
    out, weights = ours(x, LENGTHS[:, None, None, :])
    theirs = torch_layer(ours)
    close(out[LENGTHS], theirs(x, src_key_padding_mask=~LENGTHS)[LENGTHS])
    seen = theirs.norm1(x) if norm_first else x
    close(weights, theirs.self_attn(seen, seen, seen, key_padding_mask=~LENGTHS, average_attn_weights=False)[1])


@FIRST
@torch.no_grad()
def test_decoder_layer_agrees_with_torch(norm_first):
    ours = random_transformer(norm_first=norm_first).decoder[1]
    x, memory = hidden(3, 5, D), hidden(3, 6, D, seed=1)
    causal = torch.ones(5, 5, dtype=torch.bool).tril()
    out, _, own, cross = ours(x, (), causal, ours.cross.remember(memory), LENGTHS[:, None, None, :])
    theirs = torch_layer(ours)
    close(out, theirs(x, memory, tgt_mask=~causal, memory_key_padding_mask=~LENGTHS))
    seen = theirs.norm1(x) if norm_first else x
    context, wanted = theirs.self_attn(seen, seen, seen, attn_mask=~causal, average_attn_weights=False)
    close(own, wanted)
    query = theirs.norm2(x + context) if norm_first else theirs.norm1(x + context)
    close(cross, theirs.multihead_attn(query, memory, memory, key_padding_mask=~LENGTHS, average_attn_weights=False)[1])


@FIRST
@torch.no_grad()
def test_the_whole_model_agrees_with_torch(norm_first):
    model, source, target = random_transformer(norm_first=norm_first), ids(3, 6), ids(3, 5, seed=1)
    width = torch.arange(0, D, 2)

    def embed(tokens):  # Vaswani et al. 2017, sec. 3.4 and 3.5, position by position
        place = torch.stack(
            [
                torch.stack([f(p / 10_000 ** (width / D)) for f in (torch.sin, torch.cos)], 1).flatten()
                for p in range(tokens.shape[1])
            ]
        )
        return model.embedding.weight[tokens] * D**0.5 + place

    def end(x, norm):  # of a stack; the layers of a post-norm one end with a norm
        return nn.functional.layer_norm(x, (D,), norm.weight, norm.bias) if norm_first else x

    x = embed(source)
    for layer in model.encoder:
        x = torch_layer(layer)(x, src_key_padding_mask=~LENGTHS)
    memory, y = end(x, model.encoder_norm), embed(target)
    for layer in model.decoder:
        y = torch_layer(layer)(y, memory, tgt_mask=~torch.ones(5, 5).tril().bool(), memory_key_padding_mask=~LENGTHS)
    y = end(y, model.decoder_norm)
    close(model(source, target, LENGTHS)[0], y @ model.embedding.weight.T, atol=1e-4)
