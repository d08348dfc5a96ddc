"""The page in a real Chromium: themes, widths, and nothing that jumps."""

import pytest
import serving
from playwright.sync_api import expect

pytestmark = pytest.mark.xdist_group("browser-compare")  # one process opens its pages and servers
FITS = """() => {
  const main = document.querySelector('[data-testid=stMain]');
  return main.scrollWidth <= main.clientWidth;
}"""
LONG = (
    "A man in a red shirt is standing on a ladder and painting the wall of a white house while a woman in a green "
    "dress is sitting on a bench under a tree and reading a book."
)
# All charts are within the window, and nothing scrolls.
ON_STAGE = """([width, height]) => {
  const main = document.querySelector('[data-testid=stMain]');
  const charts = [...document.querySelectorAll('.plot')].map((chart) => chart.getBoundingClientRect());
  return main.scrollHeight <= height && charts.every(({ right, bottom }) => right <= width && bottom <= height);
}"""
# The words that a button to enlarge a chart lies over.
COVERED = """() => [...document.querySelectorAll('.save button')].flatMap((button) => {
  if (!button.offsetParent) return [];
  const over = button.getBoundingClientRect(), words = '.plot text, .said, .what, .others, .step b';
  return [...document.querySelectorAll(words)].filter((word) => {
    const range = document.createRange();
    range.selectNodeContents(word);
    return [...range.getClientRects()].some((box) => box.width && box.left < over.right - 1 && box.right > over.left + 1
      && box.top < over.bottom - 1 && box.bottom > over.top + 1);
  }).map((word) => word.textContent);
})"""
# A key is pressed as soon as the presentation is there, before the server has said which steps there are.
FIRST_KEY = """() => document.querySelector('.st-key-leave')
  && [document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowDown', bubbles: true }))]"""
FOUR = "".join(f"&show={name}" for name in ("Bahdanau", "Luong+local", "Luong+general", "Transformer"))
LINE = 30  # pixels: texts change one after the other, and one of them may have a line more before


def test_charts_say_in_words_what_they_show(view):
    dashboard = view()
    spoken = dashboard.page.locator("[role=figure][aria-label]").evaluate_all("all => all.map((one) => one.ariaLabel)")
    assert len(spoken) == 7
    assert "‘noir’ looks at ‘black’" in " ".join(spoken) or "‘chien’ looks at ‘dog’" in " ".join(spoken)


def test_below_each_map_stands_what_can_be_read_from_it(view):
    dashboard = view()
    edges = dashboard.page.locator(".st-key-chart-heatmaps .cell").evaluate_all("""all => all.map((cell) => {
      const [plot, read] = [".plot", ".below .reading"].map((part) => cell.querySelector(part).getBoundingClientRect());
      return [plot.bottom, read.top, read.height];
    })""")
    assert len(edges) == 3 and all(bottom <= top < bottom + 40 and high > 0 for bottom, top, high in edges), edges


def test_a_long_title_stays_in_its_column(view):
    """As of a module of one's own, `Yours · ScaledDotProductAttention(hidden_size=64)`: one word that is too long."""
    title = view().page.locator(".part h3").first
    fits = title.evaluate("""(title) => {
      const words = title.textContent;
      title.textContent = 'Yours · ScaledDotProductAttention(hidden_size=64)';
      const fits = title.scrollWidth <= title.clientWidth;
      title.textContent = words;
      return fits;
    }""")
    assert fits


def test_no_row_of_the_page_is_empty(view):
    """What shows nothing takes no room: between two rows there is one gap of 16 px."""
    dashboard = view()
    edges = dashboard.page.evaluate("""() => ["step", "chart-step"].map((key) => {
      const { top, bottom } = document.querySelector(`.st-key-${key}`).getBoundingClientRect();
      return [top, bottom];
    })""")
    assert edges[1][0] - edges[0][1] == pytest.approx(16, abs=1)


def test_dark_page_dark_figures(dashboard):
    dashboard.page.emulate_media(color_scheme="dark")
    dashboard.open("/?show=Bahdanau", charts=3)
    colours = dashboard.page.evaluate("[...document.querySelectorAll('.plot')].map((c) => c._fullLayout.font.color)")
    assert set(colours) == {"#fafafa"}
    dashboard.page.emulate_media(color_scheme="light")
    dashboard.page.wait_for_function(
        "[...document.querySelectorAll('.plot')].every((c) => c._fullLayout?.font.color === '#262730')"
    )


def test_nothing_runs_off_the_side(view):
    dashboard = view()
    for width in (1920, 800, 1366):  # the last is that of the other tests
        dashboard.page.set_viewport_size({"width": width, "height": 900})
        dashboard.drawn()
        dashboard.page.wait_for_function(FITS)  # the charts come to their new width one after the other


def test_any_presentation_is_on_one_screen(dashboard):
    """Tables, a tour's question and several sentences of forty words are more than the usual words; so are four models.
    No label of the bars is cut off, and no map is so low that its rows cannot be told apart."""
    dashboard.page.set_viewport_size({"width": 1280, "height": 720})
    sentences = "+".join([LONG] * 2).replace(" ", "+")
    dashboard.open(f"/?present=true{FOUR}&tables=true&tour=1&text={sentences}", charts=8)
    for more in (".st-key-tour .question", ".st-key-sentence"):
        expect(dashboard.page.locator(more)).to_be_visible()
    for width, height in ((1366, 768), (1280, 720), (1920, 1080)):
        dashboard.page.set_viewport_size({"width": width, "height": height})
        dashboard.page.wait_for_function(ON_STAGE, arg=[width, height])
        assert dashboard.page.evaluate(COVERED) == []
    rows = dashboard.page.evaluate("""() => [...document.querySelectorAll('.plot')].slice(0, 4)
      .map(({ _fullLayout: { yaxis } }) => yaxis._length / yaxis.ticktext.length)""")
    assert len(rows) == 4 and min(rows) > 4  # px
    assert dashboard.page.locator(".save button:visible").count() == 8  # each can be enlarged to see all labels


def test_the_question_of_the_tour_stays_above_the_maps(dashboard):
    dashboard.open("/?tour=1")
    question, chart = (dashboard.page.locator(name).first for name in (".st-key-tour", ".plot:visible"))
    chart.evaluate("chart => chart.scrollIntoView()")  # below what stays
    tops = [box.bounding_box()["y"] for box in (question, chart)]
    height = question.bounding_box()["height"]
    assert 0 < tops[0] < 60 and tops[0] + height <= tops[1] < serving.SCREEN["height"] / 2


def test_in_a_presentation_the_arrow_keys_move_the_step_at_once(dashboard):
    dashboard.page.goto(f"{dashboard.address}/?present=true&show=Bahdanau", wait_until="commit")
    dashboard.page.wait_for_function(FIRST_KEY, polling="raf")
    dashboard.drawn(2)
    expect(dashboard.slider).to_have_value("2")
    dashboard.page.keyboard.press("ArrowUp")
    for key in ("ArrowRight", "ArrowDown", "ArrowLeft", "ArrowRight"):
        dashboard.page.keyboard.press(key)
    assert dashboard.page.evaluate("window.__attnviz.row") == 2  # before the server has answered
    dashboard.page.wait_for_function("new URLSearchParams(location.search).get('step') === '3'")
    dashboard.sentence.focus()
    dashboard.page.keyboard.press("ArrowRight")
    assert dashboard.page.evaluate("window.__attnviz.row") == 2  # this key is one of the field, and the next is not
    dashboard.page.keyboard.press("ArrowDown")
    dashboard.page.wait_for_function("new URLSearchParams(location.search).get('step') === '4'")


def test_no_row_of_the_statistics_and_no_sign_is_cut_off_on_a_phone(view):
    dashboard = view()
    dashboard.page.set_viewport_size({"width": 390, "height": 844})
    dashboard.drawn()
    tables = dashboard.page.evaluate("""() => [...document.querySelectorAll('.scroll')]
      .filter((table) => !table.closest('.card'))
      .map((table) => [table.querySelectorAll('tbody tr').length, table.scrollHeight - table.clientHeight])""")
    signs = dashboard.page.locator(".sign summary").evaluate_all("""(signs) => signs.map((sign) => {
      sign.append(', but “carpère” is in no training text');
      return sign.getBoundingClientRect().right;
    })""")
    dashboard.page.set_viewport_size(serving.SCREEN)
    assert [rows for rows, _ in tables] == [10, 1] and all(hidden <= 1 for _, hidden in tables), tables
    assert signs and max(signs) <= 390


LINES = """(cells) => cells.filter((cell) => cell.innerText).map((cell) => {
  const range = document.createRange();
  range.selectNodeContents(cell);
  return range.getClientRects().length;
})"""


def test_in_the_statistics_of_four_mechanisms_a_mean_and_its_deviation_share_a_line(dashboard):
    """Beside the picture of a difference, where there is little room, and on a phone, where the table fits all the
    same."""
    dashboard.open(f"/?pair=en-fr{FOUR}", charts=9)
    for width in (1280, 1100, 390):
        dashboard.page.set_viewport_size({"width": width, "height": 844})
        dashboard.drawn(9)
        assert dashboard.page.locator(".means td").evaluate_all(LINES) == [1] * 40, width
        assert dashboard.page.locator(".means .scroll").evaluate("(box) => box.scrollWidth <= box.clientWidth"), width


def test_nothing_jumps_while_it_recomputes(view):
    dashboard = view()
    dashboard.type("A black dog is running.")
    dashboard.page.wait_for_function("location.search.includes('running')")
    dashboard.drawn()
    dashboard.page.evaluate("""() => {
      const main = document.querySelector('[data-testid=stMain]');
      window.__heights = [];
      const look = () => { __heights.push(main.scrollHeight); requestAnimationFrame(look); };
      look();
    }""")
    dashboard.type("A black cat is running on the grass with a small ball.")
    dashboard.page.wait_for_function("document.querySelector('.said')?.innerText.includes('chat')")
    dashboard.drawn()
    heights = dashboard.page.evaluate("__heights")
    assert len(heights) > 10 and heights[-1] - heights[0] > 50
    assert heights[0] - min(heights) <= LINE  # nothing collapses
    assert max(heights) - heights[-1] <= LINE  # nothing grows only to shrink again, but for a sentence that wraps


def test_charts_fit_their_columns_when_mechanisms_come_and_go(view):
    fits = """(charts) => {
      const plots = [...document.querySelectorAll('.plot')].filter((plot) => plot._fullLayout && !plot.hidden);
      return plots.length === charts && plots.every((plot) => Math.abs(plot._fullLayout.width - plot.clientWidth) < 2);
    }"""
    dashboard = view(as_left=True)
    for name, charts in (("Luong general", 5), ("Transformer", 3), ("Luong general", 5), ("Transformer", 7)):
        dashboard.press("show", name)
        dashboard.drawn(charts)
        dashboard.page.wait_for_function(fits, arg=charts)
        assert dashboard.page.locator(".part h3").count() == len(dashboard.translations) == (charts - 1) // 2
