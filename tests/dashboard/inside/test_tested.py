"""The panel of tests of attention, run by Streamlit's own test driver."""

import pytest
from inside_app import described, figures, page, run

pytestmark = pytest.mark.usefixtures("here")


def test_the_tests_are_run_when_asked_for():
    assert not figures(run(), "tests")
    app = run(tests="true", show=["Bahdanau", "Transformer"], tables="true")
    words = described(app, "tests")
    assert len(words) == 10
    assert words[0].startswith("Total variation of the next-token distribution")
    assert words[2].startswith("Source tokens erased in the order of ")
    maps = figures(app, "tests")
    assert maps[4]["layout"]["xaxis"]["ticktext"] == maps[6]["layout"]["xaxis"]["ticktext"]
    assert words[8].startswith("Kendall’s τ-b of attention and attributions for ")
    assert "Kendall’s τ-b with attention, by target token" in page(app) and "What these tests cannot show." in page(app)
    papers = ("N19-1357", "D19-1002", "D19-5624", "2020.acl-main.408")
    assert all(page(app).split("verdict")[1].count(f"aclanthology.org/{paper}/") >= 1 for paper in papers)
    assert "Permuting attention at a step moves" in page(app) and "Kendall’s τ-b" in page(app)
    assert "the study has not been run on these weights" in page(app)


def test_integrated_gradients_of_all_tokens_say_how_complete_they_are():
    app = run(tests="true", method="integrated gradients")
    *_, attention, integrated, agreement = figures(app, "tests")
    assert integrated["layout"]["yaxis"]["ticktext"] == attention["layout"]["yaxis"]["ticktext"]
    assert "Attributions by integrated gradients" in integrated["layout"]["meta"]["description"]
    assert "Completeness error: at most " in page(app) and "Attention and integrated gradients order" in page(app)
    assert '<th scope="row" lang="en">integrated gradients</th>' in page(app)  # beside the other methods
    assert len(agreement["data"][0]["y"]) == len(attention["layout"]["yaxis"]["ticktext"])


def test_the_debate_is_on_the_page():
    words = page(run())
    assert "Attention is not by itself an explanation." in words and words.count("aclanthology.org") == 3
