"""Two texts at once, and models of many languages: against the tokenizer and the model of the library."""

import json

import any_family
import families
import numpy as np
import pytest
import sentencepiece
import torch
import transformers
from tokenizers import processors
from transformers.models.m2m_100 import tokenization_m2m_100 as m2m

import attnviz
from attnviz import select
from attnviz.__main__ import main
from attnviz.models.huggingface.tokenization import language_codes

pytestmark = pytest.mark.xdist_group("hf")  # one process imports the library
FIRST, SECOND = "The black dog", "a ball is white."


def wordpiece():
    """As BERT's, which puts a separator between two texts and numbers them."""
    tokenizer, special = families.wordpiece()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    return tokenizer, special


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bert")
    return attnviz.load(f"hf:{any_family.write(folder, 'BertForMaskedLM', wordpiece())}")


@torch.inference_mode()
def test_a_pair_is_read_as_the_library_reads_it(bert):
    given = bert.tokenizer(FIRST, SECOND, return_tensors="pt", return_token_type_ids=True)
    assert set(given["token_type_ids"][0].tolist()) == {0, 1}
    trace = bert.trace(f"{FIRST} ||| {SECOND}")
    own = bert.model(**given, output_attentions=True).attentions
    assert all(np.array_equal(m.weights, layer[0].numpy()) for m, layer in zip(trace.maps, own, strict=True))
    assert [token.text for token in trace.source if token.special] == ["[CLS]", "[SEP]", "[SEP]"]
    assert all(trace.text[token.start : token.end] == token.text for token in trace.source if not token.special)
    words = [token.text for token in select.words(trace).source if not token.special]
    assert words == ["The", "black", "dog", "a", "ball", "is", "white", "."]
    assert trace.notes == ("Read as two texts, divided at |||, 5 and 6 tokens.",)


def test_a_family_without_segments_counts_the_tokens_of_each_text(tmp_path):
    tokenizer, special = families.byte_pairs("<s> $A </s>")
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    model = attnviz.load(f"hf:{any_family.write(tmp_path, 'RobertaForMaskedLM', (tokenizer, special))}")
    trace = model.trace("The dog|||white ball run")
    assert trace.notes == ("Read as two texts, divided at |||, 2 and 3 tokens, in one segment.",)
    assert sum(token.special for token in trace.source) == 4
    for text in ("The dog|||", "||| The dog", "|||"):
        with pytest.raises(ValueError, match=r"^one of the two texts around \|\|\| is empty; type both, or one text"):
            model.trace(text)


@torch.inference_mode()
def test_the_masked_tokens_of_a_pair_are_predicted_with_its_segments(bert):
    prediction = bert.predictions(f"{FIRST}|||{SECOND}")[-1]
    given = bert.tokenizer(FIRST, SECOND, return_tensors="pt", return_token_type_ids=True)
    number = given["input_ids"][0, prediction.position].item()
    given["input_ids"][0, prediction.position] = bert.tokenizer.mask_token_id
    chances = bert.model(**given).logits[0, prediction.position].log_softmax(-1)
    assert prediction.log_prob == pytest.approx(chances[number].item(), abs=1e-5)


def test_a_separator_that_is_typed_is_told(bert):
    trace = bert.trace(f"{FIRST} [SEP] {SECOND}")
    assert trace.notes == (
        "[SEP] was typed, and all is read as one text, in one segment. For two texts, type ||| between them.",
    )
    assert bert.trace(FIRST).notes == ()


def test_a_model_that_writes_reads_no_pair(tmp_path, capsys):
    model = attnviz.load(f"hf:{families.write(tmp_path, 'gpt2')}")
    assert not model.reads_pairs and "||" in model.trace("a ||| b").text and model.trace("a ||| b").notes == ()
    assert main(["trace", "a", "--second", "b", "--model", model.name]) == 2
    assert "reads one text; --second is for Hugging Face models like BERT" in capsys.readouterr().err


def test_a_second_text_on_the_command_line(bert, tmp_path):
    assert main(["trace", FIRST, "--second", SECOND, "--model", bert.name, "--save", str(tmp_path / "a.json")]) == 0
    assert attnviz.load_trace(tmp_path / "a.json") == bert.trace(f"{FIRST} ||| {SECOND}")


CODES = {"nllb": ("eng_Latn", "fra_Latn"), "mbart": ("en_XX", "fr_XX"), "m2m_100": ("en", "fr")}


def tokenizer_of(family: str, folder):
    """The library's tokenizer of the family, with a few pieces, as save_pretrained() writes it."""
    pieces = [f"▁{word}" for word in families.WORDS.split()] + list(families.LETTERS)
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    if family == "nllb":
        vocabulary = {piece: number for number, piece in enumerate([*special, *pieces, "▁"])}
        made = transformers.NllbTokenizer(vocab=vocabulary, merges=[], extra_special_tokens=list(CODES[family]))
    elif family == "m2m_100":  # it has no fast tokenizer: the library reads a model of sentencepiece
        file, listing = folder / "sentencepiece.bpe.model", folder / "vocab.json"
        with file.open("wb") as writer:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(families.WORDS.split() * 9 + [*families.LETTERS]),
                model_writer=writer,
                vocab_size=80,
                hard_vocab_limit=False,
                minloglevel=2,
            )
        reader = sentencepiece.SentencePieceProcessor(model_file=str(file))
        learnt = [reader.id_to_piece(number) for number in range(reader.vocab_size())]
        vocabulary = {piece: number for number, piece in enumerate(dict.fromkeys([*special, *learnt]))}
        listing.write_text(json.dumps(vocabulary), encoding="utf-8")
        languages = [f"__{code}__" for code in m2m.FAIRSEQ_LANGUAGE_CODES["m2m100"]]  # as its authors' files have them
        made = transformers.M2M100Tokenizer(str(listing), str(file), additional_special_tokens=languages)
    else:
        made = transformers.MBartTokenizer(vocab=[(piece, -1.0) for piece in [*special, *pieces, "▁"]])
    made.save_pretrained(folder / family)
    return made


@pytest.fixture(scope="module", params=CODES)
def many(request, tmp_path_factory):
    """A model of many languages, and the codes of two of them."""
    folder = tmp_path_factory.mktemp("many")
    tokenizer = tokenizer_of(request.param, folder)
    kind = transformers.MBartForConditionalGeneration if request.param == "mbart" else None
    kind = kind or transformers.M2M100ForConditionalGeneration
    settings = any_family.config(kind.config_class, vocab_size=len(tokenizer) + 8, decoder_start_token_id=2)
    torch.manual_seed(1)
    model = kind(settings)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    model.save_pretrained(folder / request.param)
    return attnviz.load(f"hf:{folder / request.param}"), CODES[request.param]


@torch.inference_mode()
def test_the_languages_are_those_that_are_named(many, monkeypatch):
    plain, (source, target) = many
    name = plain.name
    model = attnviz.load(f"{name}#{source}:{target}")
    assert {source, target} <= set(plain.languages) and model.name == f"{name}#{source}:{target}"
    own = getattr(plain.tokenizer, "untried", plain.tokenizer)
    code = own.convert_tokens_to_ids(f"__{target}__" if name.endswith("m2m_100") else target)
    monkeypatch.setattr(own, "src_lang", source)  # of a model that other tests read
    given = own("the dog is white", return_tensors="pt")
    start = {"decoder_start_token_id" if name.endswith("mbart") else "forced_bos_token_id": code}
    ids = plain.model.generate(input_ids=given["input_ids"], do_sample=False, num_beams=1, max_new_tokens=60, **start)
    trace = model.trace("the dog is white")
    assert model.read("the dog is white").ids == tuple(given["input_ids"][0].tolist())
    assert model._generate(model.read("the dog is white").ids, 1)[:5] == ids[0, 1:].tolist()[:5]
    first = trace.start if name.endswith("mbart") else trace.target[0]
    assert target in first.text and first.special and not trace.notes
    forced = model.trace("the dog", "Le chien")
    assert forced.forced and len(forced.log_probs) == len(forced.target)
    assert model.log_prob("the dog", "Le chien") == pytest.approx(forced.log_prob, abs=1e-4)


def test_without_languages_the_trace_says_that_there_are_some(many):
    model, (source, target) = many
    assert (
        model.trace("the dog", "a").notes[0].startswith(f"No target language was chosen; the text was read as {source}")
    )
    with pytest.raises(ValueError, match="its tokenizer has no language 'xx'"):
        attnviz.load(f"{model.name}#xx:{target}")


def test_a_model_of_one_language_takes_none(tmp_path):
    name = f"hf:{families.write(tmp_path, 'bert')}"
    assert language_codes(attnviz.load(name).tokenizer) == ()
    with pytest.raises(ValueError, match="it does not translate, so it takes no languages"):
        attnviz.load(f"{name}#en:fr")


def test_a_prefix_is_read_before_the_text_and_has_no_part_in_it(tmp_path, capsys):
    """The weights are those of the whole text; the tokens of the prefix are special ones."""
    place = f"hf:{any_family.write(tmp_path, 'T5ForConditionalGeneration', families.sentencepiece())}"
    model, plain = attnviz.load(f"{place}#prefix=translate English to German: "), attnviz.load(place)
    trace, whole = (
        read.trace(f"{before}The dog runs.", "Der Hund")
        for read, before in ((model, ""), (plain, "translate English to German: "))
    )
    assert trace.model == model.name == f"{place}#prefix=translate English to German:"
    assert "read “translate English to German:” before the text" in trace.notes[0]
    assert all(np.array_equal(m.weights, other.weights) for m, other in zip(trace.maps, whole.maps, strict=True))
    assert [(t.text, t.start, t.word) for t in trace.source if not t.special] == [
        ("The", 0, 0),
        ("dog", 4, 1),
        ("run", 8, 2),
        ("s", 11, 2),
        (".", 12, 2),
    ]
    assert [token.text for token in select.words(trace).source if not token.special] == ["The", "dog", "runs."]
    assert model.log_prob("The dog runs.", "Der Hund") == pytest.approx(trace.log_prob, abs=1e-4)
    with pytest.raises(ValueError, match="the text is empty"):
        model.trace(" ")
    assert main(["evaluate", "--model", "en-fr/bahdanau", "--source", "a", "--prefix", "x:"]) == 2
    assert "--prefix is for hf: models that want one, such as T5; en-fr/bahdanau takes none" in capsys.readouterr().err


def test_a_model_that_translates_nothing_takes_no_prefix(bert):
    with pytest.raises(ValueError, match="it does not translate, so it takes no prefix; type it before the text"):
        attnviz.load(f"{bert.name}#prefix=x:")
