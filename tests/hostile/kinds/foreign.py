"""A folder of a model for the transformers library: refused, or it reads a text."""

import contextlib
import json
import shutil
from collections.abc import Iterator

from hypothesis import strategies as st

from tests.hostile import strategies
from tests.hostile.workplace import Failure, Workplace, sentence

WARM = ("bert", "generation_config.json", {}, "the dog", "")
LANGUAGES = ("", "", "#", "#:", "#en:fr", "#:fra_Latn", "#a#b:c")  # behind the name
FAMILIES = ("bert", "gpt2", "t5")


@contextlib.contextmanager
def around(place: Workplace) -> Iterator[None]:
    """A whole folder of each family."""
    import families

    for family in FAMILIES:
        families.write(place.folder / "whole" / family, family)
    yield


def strategy():
    import families

    def of(family: str):
        made, name, settings = families.FAMILIES[family]
        tokenizer, special = made()
        import transformers

        config = getattr(transformers, name).config_class(vocab_size=tokenizer.get_vocab_size(), **settings).to_dict()
        config |= {"architectures": [name]}
        files = {
            "config.json": config,
            "tokenizer.json": json.loads(tokenizer.to_str()),
            "tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 40, **special},
            "generation_config.json": {
                "num_beams": 1,
                "max_length": 20,
                "eos_token_id": 1,
                "decoder_start_token_id": 0,
            },
        }
        changed = st.sampled_from(list(files)).flatmap(
            lambda file: st.tuples(st.just(file), strategies.mutated(files[file]))
        )
        numbered = strategies.numbered(files["tokenizer.json"]).map(lambda content: ("tokenizer.json", content))
        names = st.dictionaries(strategies.texts, strategies.piece_numbers, min_size=1, max_size=2)
        changed = st.one_of(changed, numbered, names.map(lambda pieces: ("added_tokens.json", pieces)))
        pairs = st.tuples(strategies.texts, strategies.texts).map("|||".join)
        requests = st.tuples(st.one_of(strategies.texts, pairs), st.sampled_from(LANGUAGES))
        return st.tuples(st.just(family), changed, requests).map(lambda parts: (parts[0], *parts[1], *parts[2]))

    return st.sampled_from(FAMILIES).flatmap(of)


def check(place: Workplace, case) -> None:
    import attnviz
    from attnviz import faithfulness, inside, intervene

    family, file, content, text, languages = case
    place.put_back(family)
    (place.folder / family / file).write_text(json.dumps(content), encoding="utf-8")
    with sentence():
        model = attnviz.load(f"hf:{place.folder / family}{languages}")
        trace = model.trace(text)
        if trace.target:  # its steps are opened, changed and tested
            intervene.run(model, text, intervene.Uniform())
            inside.step(model, trace, len(trace.target) - 1)
            faithfulness.leave_one_out(faithfulness.subject(model, text))
            _put_into_a_corpus(place, model.name, text)


def _put_into_a_corpus(place: Workplace, name: str, text: str) -> None:
    """The text, as one line, through the model: a row with its numbers, or with the reason why there are none."""
    from attnviz import corpus

    out = place.folder / "out"
    shutil.rmtree(out, ignore_errors=True)
    lines = place.folder / "in.jsonl"
    lines.write_text(json.dumps({"source": text}), encoding="utf-8")
    list(corpus.run(corpus.CorpusConfig((name,), str(lines), keep=("statistics", "weights")), out))
    if corpus.skipped(out) + len(list(corpus.read(out))) != 1:
        raise Failure(f"a line is neither measured nor skipped: {text!r:.200}")
