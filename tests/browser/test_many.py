"""The page of many sentences in a real browser on the real server."""

import csv
import io
import zipfile

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.xdist_group("browser-others")  # one process opens its pages and servers
WAIT = 60_000  # ms, on a busy machine
ONE = "show=Bahdanau"  # one model: quicker
LINES = "A dog runs.\nTwo dogs run in the snow.\tDeux chiens courent dans la neige.\nA man sits on a bench."


def test_pasted_sentences_are_measured_saved_in_the_address_and_one_click_away_from_the_first_page(dashboard, tmp_path):
    page = dashboard.page
    page.goto(f"{dashboard.address}/many?{ONE}&from=Pasted")
    expect(page.get_by_text("There are no sentences yet. Paste some, one per line.")).to_be_visible(timeout=WAIT)
    page.locator(".st-key-lines textarea").fill(LINES)
    page.locator(".st-key-lines textarea").press("Control+Enter")
    expect(page.get_by_text("Bahdanau: 3 of 3 sentences")).to_be_visible(timeout=WAIT)
    page.wait_for_function("location.search.includes('lines=A+dog')", timeout=WAIT)
    expect(page.locator(".st-key-chart-points .main-svg").first).to_be_visible(timeout=WAIT)
    page.wait_for_function("!document.querySelector('[data-stale=true]')")
    with page.expect_download(timeout=WAIT) as download:
        page.get_by_role("button", name="Everything as a zip").click()
    download.value.save_as(tmp_path / "sentences.zip")
    with zipfile.ZipFile(tmp_path / "sentences.zip") as archive:
        rows = list(csv.DictReader(io.StringIO(archive.read("all-numbers.csv").decode("utf-8-sig"))))
    assert [row["source"] for row in rows] == [line.split("\t")[0] for line in LINES.splitlines()]
    page.reload()
    expect(page.get_by_text("Bahdanau: 3 of 3 sentences")).to_be_visible(timeout=WAIT)
    page.get_by_role("link", name="A man sits on a bench.").first.click()
    expect(page.locator(".st-key-text input")).to_have_value("A man sits on a bench.", timeout=WAIT)
    dashboard.drawn(3)


def test_a_run_that_a_link_has_begun_stops_and_goes_on(dashboard, tmp_path):
    page, file = dashboard.page, tmp_path / "many.txt"
    file.write_text("\n".join(f"{number} dogs run in the snow." for number in range(1_500)))
    page.goto(f"{dashboard.address}/many?{ONE}&from=A+file+on+this+machine&path={file}")
    stop, go_on = page.locator(".st-key-stop button"), page.get_by_role("button", name="Continue")
    stop.first.click(timeout=WAIT)
    expect(go_on).to_be_visible(timeout=WAIT)
    expect(page.get_by_text("Everything below uses only these.")).to_be_visible(timeout=WAIT)
    left = go_on.inner_text()
    page.wait_for_function("location.search.includes('measured=')", timeout=WAIT)
    page.reload()
    expect(go_on).to_have_text(left, timeout=WAIT)
    go_on.click()
    stop.first.click(timeout=WAIT)
    expect(go_on).to_be_visible(timeout=WAIT)
    expect(go_on).not_to_have_text(left)  # it went on from where it was


def test_an_uploaded_file_is_read_and_a_bad_one_leaves_what_was_there(dashboard):
    page = dashboard.page
    page.goto(f"{dashboard.address}/many?{ONE}&from=An+uploaded+file")
    upload = page.locator(".st-key-upload input[type=file]")
    upload.set_input_files({"name": "two.txt", "mimeType": "text/plain", "buffer": b"A dog runs.\nTwo cats sleep.\n"})
    expect(page.get_by_text("Bahdanau: 2 of 2 sentences")).to_be_visible(timeout=WAIT)
    page.wait_for_function("!document.querySelector('[data-stale=true]')")
    upload.set_input_files({"name": "bad.txt.gz", "mimeType": "application/gzip", "buffer": b"no gzip"})
    expect(page.get_by_text("This file cannot be read: bad.txt.gz is a damaged gzip file")).to_be_visible(timeout=WAIT)
    expect(page.get_by_text("The page still shows the result of this text:")).to_be_visible()
    expect(page.get_by_text("Bahdanau: 2 of 2 sentences")).to_be_visible(timeout=WAIT)
