"""No attention: the decoder gets one vector, the same at every step."""

from attnviz.mechanisms import Mechanism

FIXED_CONTEXT = Mechanism(
    name="fixed-context",
    title="Fixed context · no attention",
    formula=r"c_t = c = \tanh(V [\overrightarrow{h}_S; \overleftarrow{h}_1])",
    paper="Cho et al. 2014, section 2.2 and appendix A.1",
    words="No attention. The last states of the encoder, forwards and backwards, become one vector c. Every step of "
    "the decoder gets the same vector, however long the sentence is.",
    kinds=(),
    network="attnviz.networks.decoders:FixedContext",
    color="grey",
    dash="12px,3px",
    marker="hexagon",
    rank=0,
)
