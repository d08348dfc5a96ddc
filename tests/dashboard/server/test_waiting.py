"""What a person sees who waits, in a real browser: the place in the queue, progress, and Stop."""

import os
import re
import signal

import pytest
import tiny
from playwright.sync_api import expect
from processes import models

WAIT = 120_000  # ms, never waited in full
# No sentence of test_people.py, which the same server may have answered.
OWN = [english for english, _ in tiny.sentences(700, 3) if not english.endswith(" runs.")]
LINES = "\n".join(OWN[:200])
GAP = """px => {
  const [above, below] = ["examples", "maps"].map(
    (key) => document.querySelector(`.st-key-${key}`)?.parentElement.getBoundingClientRect());
  return above && below && Math.abs(below.top - above.bottom - px) < 1;
}"""
pytestmark = pytest.mark.xdist_group("people")


@pytest.fixture
def held(server):
    """A function after which the models stand still, until `go`."""
    _, pid = server
    yield lambda: os.kill(models(pid), signal.SIGSTOP), lambda: os.kill(models(pid), signal.SIGCONT)
    os.kill(models(pid), signal.SIGCONT)


@pytest.fixture
def page(server, tab):
    with tab(server[0]) as page:
        yield page


@pytest.fixture
def second_page(server, tab):
    """A second person's."""
    with tab(server[0]) as page:
        yield page


def write(page, text: str) -> None:
    page.locator(".st-key-text input").fill(text)
    page.locator(".st-key-text input").press("Enter")


def test_the_place_in_the_queue_is_seen_and_goes_when_the_answer_is_there(server, held, page, second_page):
    (stop, go), first, second = held, page, second_page
    for arriving in (first, second):
        arriving.goto(f"{server[0]}/?show=Bahdanau", timeout=WAIT)
        expect(arriving.locator(".said").first).to_be_visible(timeout=WAIT)
    stop()
    write(first, "The black dog sleeps.")
    expect(first.locator(".st-key-notice")).to_contain_text("You are next.", timeout=WAIT)
    write(second, "The white cat jumps.")
    place = "Place 2 in the queue: 1 person is ahead of you."
    expect(second.locator(".st-key-notice")).to_contain_text(place, timeout=WAIT)
    write(second, "The white dog sleeps.")  # who types again waits for the new sentence alone
    expect(second.locator(".st-key-notice")).to_contain_text(place, timeout=WAIT)
    go()
    for page, text in ((first, "The black dog sleeps."), (second, "The white dog sleeps.")):
        expect(page.get_by_text("in the queue")).to_have_count(0, timeout=WAIT)
        expect(page.get_by_text("You are next.")).to_have_count(0, timeout=WAIT)
        page.wait_for_function(
            "(words) => words.every((word) => document.querySelector('.st-key-chart-heatmaps .plot')"
            "?.textContent.includes(word))",
            arg=text.rstrip(".").split()[1:],
            timeout=WAIT,
        )
        page.wait_for_function(GAP, arg=16, timeout=WAIT)  # no empty row is left where the line stood


def paste(page, address, stop, text):
    """Paste sentences on the page Many sentences while the models are held up by `stop`: none is measured yet."""
    page.goto(f"{address}/many?show=Bahdanau&from=Pasted", timeout=WAIT)
    lines = page.locator(".st-key-lines textarea")
    expect(lines).to_be_visible(timeout=WAIT)
    stop()
    lines.fill(text)
    lines.press("Control+Enter")
    count = len(text.splitlines())
    expect(page.get_by_text(f"0 of {count} translations are measured.")).to_be_visible(timeout=WAIT)


def test_many_sentences_can_be_stopped_and_continued(server, held, page):
    stop, go = held
    paste(page, server[0], stop, LINES)
    expect(page.get_by_test_id("stStatusWidgetRunningIcon")).to_be_visible(timeout=WAIT)
    expect(page.get_by_role("button", name="Stop", exact=True)).to_have_count(1)  # Streamlit's left half a page
    page.get_by_test_id("stButton").get_by_role("button", name="Stop", exact=True).click()
    go()
    stopped = page.get_by_text(re.compile(r"Stopped: \d+ of 200 translations are measured."))
    expect(stopped).to_be_visible(timeout=WAIT)
    done = int(re.search(r"\d+", stopped.inner_text())[0])
    assert 0 < done < 200
    expect(page.get_by_text(f"Bahdanau: 25 of {done} sentences")).to_be_visible(timeout=WAIT)
    page.get_by_role("button", name=f"Continue: {200 - done} of 200 are left").click()
    expect(page.get_by_text("Bahdanau: 25 of 200 sentences")).to_be_visible(timeout=WAIT)
    expect(stopped).to_have_count(0)


def test_models_that_stop_in_the_middle_of_many_sentences_are_started_again(server, held, page):
    """The page says so, and measures all sentences."""
    stop, _ = held
    paste(page, server[0], stop, "\n".join(OWN[59::-1]))
    os.kill(models(server[1]), signal.SIGKILL)
    progress = "0 of 60 translations are measured. The process of the models has stopped. It is being started again"
    expect(page.get_by_text(progress)).to_be_visible(timeout=WAIT)
    expect(page.get_by_text("Bahdanau: 25 of 60 sentences")).to_be_visible(timeout=WAIT)
    expect(page.get_by_text("has stopped")).to_have_count(0)


def test_changes_are_stopped_while_they_are_decoded(server, gate, page):
    """The panels below them are there then, and the same changes can be asked for again."""
    gate.touch()
    changes = "change=uniform&word=2+black&instead=white"
    page.goto(f"{server[0]}/inside?show=Bahdanau&text=The+black+dog+jumps.&{changes}", timeout=WAIT)
    for hint in ("Choose a change above.", "Choose a word of the text above."):
        page.get_by_test_id("stButton").get_by_role("button", name="Stop", exact=True).click(timeout=WAIT)
        expect(page.get_by_text(hint)).to_be_visible(timeout=WAIT)
    expect(page.get_by_role("heading", name="Download")).to_be_visible(timeout=WAIT)
    expect(page.get_by_role("progressbar")).to_have_count(0)
    page.wait_for_function("!/(change|word)=/.test(location.search)", timeout=WAIT)
    gate.unlink()
    page.goto(f"{server[0]}/inside?show=Bahdanau&text=The+black+dog+jumps.&{changes}", timeout=WAIT)
    for done in ("Under the change", "With the other word"):
        expect(page.get_by_text(done, exact=True)).to_be_visible(timeout=WAIT)
    # What goes on is not held by the next test, which would wait for it.
    expect(page.get_by_test_id("stStatusWidgetRunningIcon")).to_have_count(0, timeout=WAIT)


def test_tests_are_stopped_while_they_run(server, gate, page):
    """The page below them is there afterwards."""
    gate.touch()
    page.goto(f"{server[0]}/inside?tests=true&show=Bahdanau&text=The+black+dog+jumps.", timeout=WAIT)
    progress = page.get_by_text("Switch the tests off to stop.")
    expect(progress).to_be_visible(timeout=WAIT)
    page.locator(".st-key-tests label").click()
    expect(progress).to_have_count(0, timeout=WAIT)
    gate.unlink()
    page.wait_for_function("!location.search.includes('tests=')", timeout=WAIT)
    expect(page.get_by_role("heading", name="Download")).to_be_visible(timeout=WAIT)
    expect(page.get_by_text("Permuting attention at a step moves")).to_have_count(0)


def test_a_sentence_typed_while_tests_are_on_is_tested_and_integrated_gradients_are_stopped(server, gate, page):
    """The panel of the tests is then run as a part of the page around it."""
    page.goto(f"{server[0]}/inside?tests=true&show=Bahdanau&text=The+black+dog+jumps.", timeout=WAIT)
    result = page.get_by_text("Permuting attention at a step moves")
    expect(result).to_be_visible(timeout=WAIT)
    field = page.locator(".st-key-text").get_by_role("textbox")
    field.fill("The white dog jumps.")
    field.press("Enter")
    page.wait_for_function("location.search.includes('white')", timeout=WAIT)
    expect(page.get_by_test_id("stStatusWidgetRunningIcon")).to_have_count(0, timeout=WAIT)
    expect(page.get_by_test_id("stException")).to_have_count(0)
    expect(page.locator(".st-key-chart-tests")).to_contain_text("white", timeout=WAIT)  # not those of the text before
    expect(page.locator(".st-key-chart-tests .main-svg").nth(3)).to_be_visible(timeout=WAIT)
    expect(result).to_be_visible(timeout=WAIT)
    gate.touch()
    page.locator(".st-key-method").get_by_text("integrated gradients", exact=True).click()
    page.get_by_test_id("stButton").get_by_role("button", name="Stop", exact=True).click(timeout=WAIT)
    expect(page.locator(".st-key-chart-tests h4", has_text="Bahdanau: gradient × input")).to_be_visible(timeout=WAIT)
    gate.unlink()
    expect(page.get_by_role("progressbar")).to_have_count(0)
    expect(page.get_by_role("heading", name="Download")).to_be_visible(timeout=WAIT)


def test_measuring_heads_is_stopped_and_goes_on(gate, server, page):
    """What was measured stays, in the map and in the table."""
    gate.touch()
    page.goto(f"{server[0]}/heads?text=The+black+dog+jumps.", timeout=WAIT)
    page.get_by_role("button", name="Measure each head").click(timeout=WAIT)
    some = page.get_by_text("heads measured so far")
    expect(some).to_be_visible(timeout=WAIT)
    page.get_by_test_id("stButton").get_by_role("button", name="Stop", exact=True).click(timeout=WAIT)
    go_on = page.get_by_role("button", name="Continue")
    expect(go_on).to_be_visible(timeout=WAIT)
    expect(page.locator(".st-key-chart-importance .heatmaplayer")).to_be_visible(timeout=WAIT)
    gate.unlink()
    go_on.click()
    expect(page.get_by_role("button", name="Measure each head")).to_be_disabled(timeout=WAIT)
    expect(page.get_by_text("Heads that matter most", exact=True)).to_be_visible(timeout=WAIT)
    expect(some).to_have_count(0)
