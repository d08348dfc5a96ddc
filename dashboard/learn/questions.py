"""Learners' questions, their answers, and a search by words. No Streamlit here."""

import re
import unicodedata
from dataclasses import dataclass
from urllib.parse import urlencode

from dashboard.choices.options import chapter_title
from dashboard.learn.chapters import CHAPTERS
from dashboard.markup.terms import cited, says
from dashboard.markup.text import escape

_SHOWN = 4  # that are found at once
_IN_QUESTION, _IN_ANSWER = 3, 1  # what a word counts there
_NO_HELP = set(
    "a an and are at be can do does for from how i in is it its me must my of on or should that the there this to what "
    "when where which why with you your".split()
)


@dataclass(frozen=True)
class Question:
    """answer : HTML. chapter : with more on it. beside : additional search words."""

    question: str
    answer: str
    chapter: str
    beside: str = ""

    def html(self, is_open: bool = False) -> str:
        return (
            f'<details class="answer"{" open" if is_open else ""}><summary>{escape(self.question)}</summary>'
            f"<p>{self.answer} {_chapter_link(self.chapter)}</p></details>"
        )


def chapter_address(key: str) -> str:
    """Of a chapter, below the address of the page."""
    return f"learn?{urlencode({'chapter': chapter_title(key)})}"


def _chapter_link(key: str) -> str:
    return f'<a href="./{escape(chapter_address(key))}" target="_self">{escape(chapter_title(key))} ›</a>'


QUESTIONS = (
    Question(
        "What are query, key and value in Bahdanau attention?",
        "The query is the decoder’s state before the step, s<sub>t−1</sub>. Keys and values are the same vectors: the "
        "encoder’s states h<sub>j</sub>, which the paper calls annotations.",
        "roles",
        "q k v qkv additive annotation",
    ),
    Question(
        "Luong or Bahdanau: what is the difference, and which one should I use?",
        "Bahdanau asks before the decoder’s step with a small network as its score; Luong asks after it, mostly with a "
        "product, which is cheaper. Quality is close: compare both on your sentences on the first page.",
        "who-asks",
        "additive multiplicative general concat better",
    ),
    Question(
        "How do I plot the attention weights of my own model?",
        "In Python: <code>figures.heatmap(select.select(attnviz.from_arrays(weights, tokens))).show()</code>, with "
        "weights a list of one array (heads, queries, keys) for each layer. A Hugging Face model, or a file of arrays, "
        "opens on the page Heads and layers. Take the weights after the softmax and before dropout, with the model in "
        "eval mode.",
        "weights",
        "plot draw visualize visualise heatmap keras pytorch tensorflow huggingface output_attentions extract "
        "matplotlib",
    ),
    Question(
        "Is the attention matrix of BERT symmetric, and why not?",
        "No. Query and key of a token come from different matrices, and each row is divided by its own sum. So what "
        "‘dog’ gives ‘black’ is not what ‘black’ gives ‘dog’.",
        "rows-columns",
        "symmetry asymmetric transpose self-attention",
    ),
    Question(
        "Are attention weights a reliable explanation?",
        f"They say what was mixed, not what the model would do without it. {says('jain')} changed weights and often "
        f"changed nothing; {says('wiegreffe')} disagree on what follows. Test it: change the weights on the page "
        "Inside a step and see what the model writes.",
        "limits",
        "trust interpret interpretable faithful faithfulness importance meaning",
    ),
    Question(
        "Is a score of input plus hidden state Bahdanau’s attention?",
        "Not by itself. Bahdanau’s score is v · tanh(W s<sub>t−1</sub> + U h<sub>j</sub>), for each encoder state "
        "h<sub>j</sub>. A layer that joins the decoder’s input and its hidden state and gives one score for each place "
        "up to a largest length, as in a well-known tutorial, never looks at the encoder’s states to score them.",
        "scores",
        "add concat tutorial pytorch seq2seq attn embedded hidden sum",
    ),
    Question(
        "Why is there a largest length?",
        "Attention itself needs none: the softmax takes as many scores as there are tokens. A largest length comes "
        "from tables of positions, from a layer with one output for each place, or from memory, which grows with the "
        "square of the length in self-attention.",
        "bottleneck",
        "max_length maximum limit longest max",
    ),
    Question(
        "Must padding be masked?",
        "Yes, in a batch. A pad with a score of 0 still gets exp(0) = 1 before the sum, so it takes weight, and a "
        "sentence’s output depends on what else is in its batch. Set the score to −∞.",
        "masks",
        "pad padded mask batch zeros",
    ),
    Question(
        "Do I need masks when I use the model?",
        "The causal mask: always, unless the model writes token by token and has only the past. The padding mask: for "
        "a batch of sentences of several lengths, not for one sentence alone.",
        "masks",
        "inference test time generate predict evaluation eval causal",
    ),
    Question(
        "Why is all the weight on <eos> or [SEP]?",
        "A row must sum to 1, so a head with nothing to look for must look somewhere. A token that is always there "
        f"and changes little is a good place ({cited('clark')}). The page can hide special tokens; it then says how "
        "much weight was removed.",
        "patterns",
        "eos sep cls special end token no-op sink",
    ),
    Question(
        "Why does every step look at the same word?",
        "Early in training, because nothing is learnt yet and rows are flat or fixed. Later, the model may ignore "
        "attention because its decoder can guess the text, the states may all be alike, or the softmax may be "
        "saturated by scores that are too large. Watch it learn shows such failures.",
        "appears",
        "same always identical constant column uniform stuck not learning collapse",
    ),
    Question(
        "Encoder, decoder or cross-attention: which map is it, and what is a row or a column?",
        "Rows are queries and columns are keys, everywhere. Cross: rows are target tokens, columns source tokens. "
        "Encoder: source by source. Decoder: the target so far by itself, with the future masked.",
        "rows-columns",
        "self-attention axis axes x y direction read layer kind",
    ),
    Question(
        "Why divide by √d?",
        "The dot product of two random vectors of width d spreads as √d. Without the division a wide head begins with "
        "a softmax that is nearly 0 or 1, whose gradient is almost 0.",
        "scaling",
        "sqrt root square scale scaled dk d_k dimension",
    ),
    Question(
        "Why do heads look at the first token?",
        "For the same reason as at &lt;eos&gt;: it is always there, and in a causal model it is the only token that "
        "every row can see. Weight that is put there does little. It is called an attention sink.",
        "looks-at-itself",
        "bos sink beginning start first gpt llama vertical stripe",
    ),
    Question(
        "Is a library’s “Bahdanau attention” the one of the paper?",
        "Often only its score is. The paper asks with the state before the step and feeds the context into the step; "
        "many libraries put the additive score into Luong’s order. <code>python -m attnviz check FILE.py:Class</code> "
        "says which formula your module computes. The models of this project follow the paper.",
        "who-asks",
        "keras additiveattention tensorflow addons implementation correct paper real",
    ),
)


def html(query: str) -> str:
    """The search results, or all questions behind a click."""
    if not query.strip():
        every = "".join(question.html() for question in QUESTIONS)
        words = f"{len(QUESTIONS)} questions that learners ask"
        return f'<details class="questions"><summary>{words}</summary>{every}</details>'
    answers, chapters = search(query)
    if not answers and not chapters:
        return (
            f'<p class="what" role="status">No question or chapter has these words: {escape(query)}. Try others, such '
            "as padding, symmetric or first token.</p>"
        )
    links = "".join(f"<li>{_chapter_link(key)}</li>" for key in chapters)
    listed = "".join(question.html(place == 0) for place, question in enumerate(answers))
    named = f"<p>Chapters:</p><ul>{links}</ul>" if links else ""
    return f'<div class="questions" role="status">{listed}{named}</div>'


def search(query: str) -> tuple[list[Question], list[str]]:
    """The questions with most of the words, best first, and the keys of chapters."""
    words = _words(query) - _NO_HELP or _words(query)
    scored = [(_score(words, question), -place) for place, question in enumerate(QUESTIONS)]
    best = max(score for score, _ in scored)
    order = sorted((entry for entry in scored if entry[0] > max(best / 3, 0)), reverse=True)[:_SHOWN]
    stories = {chapter.key: f"{chapter.title} {' '.join(chapter.story)}" for chapter in CHAPTERS}
    counts = {key: len(words & _words(_without_tags(story))) for key, story in stories.items()}
    most = max(counts.values())
    named = [key for key, count in counts.items() if most and count == most][:_SHOWN]
    return [QUESTIONS[-place] for _, place in order], named


def _score(words: set[str], question: Question) -> int:
    first = _words(f"{question.question} {question.beside}")
    answer = _words(_without_tags(question.answer))
    return sum(_IN_QUESTION * (word in first) + _IN_ANSWER * (word in answer) for word in words)


def _without_tags(markup: str) -> str:
    return re.sub("<[^>]*>", " ", markup)


def _words(text: str) -> set[str]:
    """Words in lower case without accents, plurals as singulars; √ is a word."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    words = set(re.findall(r"[a-z_]+", plain)) | ({"sqrt"} if "√" in text else set())
    return {word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word for word in words}
