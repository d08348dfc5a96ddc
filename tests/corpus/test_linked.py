"""corpus/run.py: sentences with links between their words have an alignment error rate."""

import json

import pandas as pd
import pytest
from pyarrow import parquet

from attnviz import alignment, corpus, gold
from attnviz.models.translator import Translator


def test_the_alignment_error_rate_where_links_are_given(root, tmp_path):
    """Of the mean of all heads, as `alignment.measure` has it; none without links or without attention."""
    linked = [
        {"source": "The black dog|.", "target": "Le chien noir|.", "links": "0-0 1-2 2-1 3-3?"},
        {"source": "The dog runs.", "target": "Le chien court."},
        {"source": "A cat sleeps|.", "target": "Un chat dort|.", "links": "0-0 1-1 2-2 3-"},
        {"source": "A cat sleeps.", "target": "Un chat dort.", "links": "0-9"},
    ]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(line) + "\n" for line in linked), encoding="utf-8")
    models = ("en-fr/transformer", "en-fr/bahdanau", "en-fr/fixed-context")
    config = corpus.CorpusConfig(models, str(tmp_path / "in.jsonl"), root=str(root))
    list(corpus.run(config, tmp_path / "out"))
    rows = parquet.read_table(tmp_path / "out" / "sentences.parquet").to_pandas().astype({"model": str})
    pairs = [
        gold.parse("\n".join((linked[place]["source"], linked[place]["target"], linked[place]["links"])))[0]
        for place in (0, 2)
    ]
    for name in models:
        mine, model = rows[rows["model"] == name].reset_index(drop=True), Translator.load(name, root)
        assert mine["source"].tolist()[:3] == ["The black dog.", "The dog runs.", "A cat sleeps."]
        assert mine["error"][3] == "the target has words 0 to 2; got word 9 among the links"
        assert pd.isna(mine["aer"][1]) and pd.isna(mine["aer"][3])
        for place, pair in zip((0, 2), pairs, strict=True):
            rates = alignment.measure([model.trace(pair.source, pair.target)], [pair])
            if rates.empty:
                assert pd.isna(mine["aer"][place])
                continue
            mean = rates[rates["layer"].isna()] if len(rates) > 1 else rates
            assert mine["aer"][place] == pytest.approx(mean["error_rate"].item(), abs=1e-4)  # which is rounded
