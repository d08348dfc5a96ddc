"""Models of one's own and saved traces on the page of heads, in a real browser."""

from urllib.parse import quote_plus

import numpy as np
import pytest
from heads_panels import pick
from playwright.sync_api import expect

import attnviz

pytestmark = pytest.mark.xdist_group("browser-others")  # one process opens its pages and servers
CLOSE_UP = (
    "() => [...(document.querySelector('.st-key-chart-closeup .plot')?._fullData?.[0].z ?? [])].map((row) => [...row])"
)
CHARTS = 9  # overview, close-up (2), compared (2) and their lines, pattern, rollout, distance
TEXT = "The black dogs."


@pytest.fixture
def t5(folder):
    """3 layers of 4 heads in the encoder, 2 in the decoder."""
    return folder("t5")


@pytest.fixture
def saved(tmp_path):
    """A file of attention from elsewhere, and the trace in it."""
    weights = np.random.default_rng(0).dirichlet(np.ones(4), size=(2, 3, 4))
    trace = attnviz.from_arrays(list(weights), ["[CLS]", "a", "<b>dog</b>", "!"], special=["[CLS]"], name="mine")
    attnviz.save_trace(trace, tmp_path / "mine.safetensors")
    return tmp_path / "mine.safetensors", trace


def shows(dashboard, weights) -> bool:
    """Does the close-up come to show these weights? A model takes its time; a gap stands for 0."""
    for _ in range(300):
        shown = np.nan_to_num(np.array(dashboard.page.evaluate(CLOSE_UP), dtype=float))
        if shown.shape == weights.shape and np.allclose(shown, weights, atol=1e-4):
            return True
        dashboard.page.wait_for_timeout(100)
    return False


def test_a_model_of_ones_own_is_named_looked_at_and_loses_a_head(dashboard, t5, load):
    """tests/dashboard/heads opens links to such models, and has what cannot be read."""
    dashboard.page.goto(f"{dashboard.address}/heads?text={quote_plus(TEXT)}&model=A+Hugging+Face+model")
    dashboard.page.get_by_text("Type the folder of a model on the left").wait_for()
    expect(dashboard.sentence).to_have_value(TEXT)  # Streamlit draws a field before it fills it
    name = dashboard.page.locator(".st-key-own input")
    name.fill(str(t5))
    name.press("Enter")
    dashboard.page.wait_for_function("location.search.includes('own=')", timeout=60_000)
    dashboard.drawn(CHARTS)
    trace = load("t5").trace(TEXT)
    assert shows(dashboard, trace.map("encoder", 2).weights[0])
    dashboard.choose("kind", "Self-attention of the decoder")
    dashboard.page.get_by_role("heading", name="Every head: self-attention of the decoder").wait_for()
    dashboard.drawn(CHARTS)
    area = dashboard.page.locator(".st-key-chart-overview .nsewdrag").first
    box = area.bounding_box()
    area.click(position={"x": box["width"] * 0.375, "y": box["height"] * 0.25})  # layer 1 of 2, head 2 of 4
    dashboard.page.wait_for_function("location.search.includes('layer=1') && location.search.includes('head=2')")
    dashboard.drawn(CHARTS)
    assert shows(dashboard, trace.map("decoder", 0).weights[1])
    pick(dashboard, "off", "cross layer 2, head 1")
    dashboard.drawn(CHARTS + 2)  # heads of two kinds: the one on show and the one switched off
    expect(dashboard.page.get_by_text("Change in log-probability of the original text").first).to_be_visible()
    dashboard.type("n " * 50)
    dashboard.page.locator(".st-key-notice").get_by_text("The text is too long: 102 tokens").wait_for()
    expect(dashboard.sentence).to_have_value("n " * 50)
    assert TEXT in dashboard.notice


def test_a_saved_trace_is_shown_and_another_file_is_refused(dashboard, saved, t5, axe):
    path, trace = saved
    dashboard.page.goto(f"{dashboard.address}/heads?model=A+saved+trace")
    file = dashboard.page.locator(".st-key-file input[type=file]")
    file.set_input_files(path)
    dashboard.drawn(CHARTS)
    assert np.allclose(dashboard.page.evaluate(CLOSE_UP), trace.map("encoder", 1).weights[0], atol=1e-4)
    assert not dashboard.sentence.count() and "a <b>dog</b> !" in dashboard.translations
    expect(dashboard.page.get_by_text("A saved trace does not contain its model")).to_have_count(2)
    assert axe(dashboard.page) == []
    file.set_input_files(t5 / "model.safetensors")
    dashboard.page.locator(".st-key-notice").get_by_text("Are these the parameters of a model?").wait_for()
    dashboard.drawn(CHARTS)
    with dashboard.page.expect_download() as download:
        dashboard.page.get_by_role("button", name="Trace (safetensors)").click()
    assert attnviz.load_trace(download.value.path()) == trace
