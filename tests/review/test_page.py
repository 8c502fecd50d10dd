"""The page in a browser: keys, tabs, a killed server, many rows, and who can read it."""

import csv
import itertools
import re
from collections import Counter
from urllib.parse import urlsplit

import polars as pl
import pytest

from tests.review.conftest import KEYS
from tests.review.made import KINDS as NAMES
from tests.review.made import made_table, served
from unflip.review import Decisions, ReviewTable

KINDS = NAMES.tolist()


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """The address of a page for tests that do not mind what others have decided."""
    with served(tmp_path_factory.mktemp("shared") / "d.sqlite") as (_, address):
        yield address


def stored(path, n=300):
    with Decisions(path, ReviewTable(made_table(n), "kind").fingerprint) as store:
        return {row: said.verdict for row, said in store.all().items() if said.verdict}


def test_twenty_rows_by_keyboard_undo_reload_and_export(tab, tmp_path):
    path = tmp_path / "d.sqlite"
    with served(path) as (_, address):
        page = tab(address)
        said = {}
        for k in range(20):
            verdict = ("keep", "change", "unsure", "change")[k % 4]
            said[page.decide(verdict)] = verdict
        assert len(said) == 20
        counts = Counter(said.values())
        assert {name: int(page.text(f"#n-{name}")) for name in KEYS} == counts
        assert page.text("#progress-text").startswith("20 of ")
        assert stored(path) == said

        last = list(said)[-1]
        page.press("z")
        assert page.row == last
        assert page.text("#saved").endswith(f"Saved: row {last} is open again.")
        del said[last]
        assert stored(path) == said

        page.page.reload()
        page.settle()
        assert page.row == last  # the queue goes on where it was
        assert int(page.text("#n-change")) == counts["change"] - 1
        page.press("z")  # what this tab did can still be undone
        del said[list(said)[-1]]
        assert stored(path) == said

        page.page.click("#export")
        page.settle()
        assert "corrected.csv, reviewed.csv, log.csv" in page.text("#exported")
    changed = {row for row, verdict in said.items() if verdict == "change"}
    with (tmp_path / "d-export" / "corrected.csv").open() as file:
        corrected = [line["kind"] for line in csv.DictReader(file)]
    given = made_table()["kind"].to_list()
    assert {k for k in range(300) if corrected[k] != given[k]} == changed
    with (tmp_path / "d-export" / "reviewed.csv").open() as file:
        reviewed = {int(line["row"]) for line in csv.DictReader(file)}
    assert reviewed == {row for row, verdict in said.items() if verdict != "unsure"}
    assert page.complaints == []


@pytest.mark.slow
def test_two_tabs_cannot_overwrite_each_other(tab, tmp_path):
    path = tmp_path / "d.sqlite"
    with served(path) as (_, address):
        one, other = tab(address), tab(address)
        assert one.row == other.row
        row = one.decide("keep")
        other.press("u")
        assert f"Not saved: row {row} was decided elsewhere since" in other.text("#alarm")
        assert other.row == row
        assert other.text("#decided").startswith("Decided: kept")
        assert other.text("#saved") == ""
        assert stored(path) == {row: "keep"}
        # having seen it, one may change one's mind; then the first tab is the stale one
        other.decide("unsure")
        assert stored(path) == {row: "unsure"}
        one.press("z")
        assert "Not undone" in one.text("#alarm")
        assert stored(path) == {row: "unsure"}


@pytest.mark.slow
def test_a_tab_undoes_its_own_decisions(tab, tmp_path):
    path = tmp_path / "d.sqlite"
    with served(path) as (_, address):
        one, other = tab(address), tab(address)
        other.press("n")
        mine, theirs = one.decide("keep"), other.decide("unsure")
        assert mine != theirs
        one.press("z")
        assert stored(path) == {theirs: "unsure"}


@pytest.mark.slow
def test_a_server_that_is_killed_after_a_click_has_kept_it(tab, tmp_path):
    path = tmp_path / "d.sqlite"
    with served(path) as (process, address):
        page = tab(address)
        row = page.row
        page.page.click("#change")
        page.page.wait_for_function("() => document.getElementById('saved').textContent")
        process.kill()  # SIGKILL
        process.wait()
        page.settle()
        page.press("k")
        assert "Not saved: the server does not answer" in page.text("#alarm")
        assert page.text("#saved") == ""
    with served(path) as (_, address):
        page = tab(address)
        assert page.row != row
        assert page.text("#n-change") == "1"
        page.press("z")  # a new tab undoes what was decided last
        assert page.row == row
    assert stored(path) == {}


def test_a_decision_that_cannot_be_stored_is_not_said_to_be(tab, tmp_path):
    path = tmp_path / "d.sqlite"
    with served(path) as (_, address):
        page = tab(address)
        row = page.row
        path.rename(tmp_path / "away.sqlite")
        page.press("k")
        assert "Not saved: " in page.text("#alarm")
        assert "was moved, replaced or deleted" in page.text("#alarm")
        assert page.text("#saved") == ""
        assert page.row == row
        (tmp_path / "away.sqlite").rename(path)
        assert page.decide("keep") == row
        (tmp_path / "d-export").write_text("in the way")
        page.page.click("#export")
        page.settle()
        assert "d-export" in page.text("#alarm")
        assert page.text("#exported") == ""
    assert stored(path) == {row: "keep"}


@pytest.mark.slow
def test_the_page_says_what_has_become_of_earlier_decisions(tab, tmp_path):
    path = tmp_path / "d.sqlite"
    table = made_table()
    before = table.reverse().with_columns(
        weight=pl.when(pl.col("name") == "fruit 17").then(-1.0).otherwise("weight")
    )
    with Decisions(path, ReviewTable(before, "kind", id_column="name").fingerprint) as store:
        store.decide(299 - 17, 0, "unsure", None)
        store.decide(299 - 20, 0, "unsure", None)
    with served(path) as (_, address):
        page = tab(address, viewport={"width": 375, "height": 800})
        notes = page.text("#notes")
        assert "1 decision moved along" in notes
        assert "row 282 (id fruit 17, cells have changed)" in notes
        assert page.text("#n-unsure") == "1"
        assert page.page.evaluate("document.documentElement.scrollWidth") <= 375
        page.page.click("#notes-read")
        assert not page.page.is_visible("#notes")
        assert page.complaints == []
    assert stored(path) == {20: "unsure"}


def test_nothing_is_asked_of_another_host_and_markup_stays_text(tab, shared):
    page = tab(shared)
    for key in "kcunp":
        page.press(key)
    page.page.fill("#words", "banana")
    page.page.wait_for_timeout(400)
    page.settle()
    assert {urlsplit(url).netloc for url in page.requests} == {urlsplit(shared).netloc}
    assert page.page.evaluate("document.querySelectorAll('b').length") == 0
    assert "<b>banana</b>" in page.text("#card")
    assert page.complaints == []


@pytest.mark.slow
def test_filters_search_and_orders_change_the_queue(tab, shared):
    page = tab(shared)
    page.page.select_option("#queue", "suspicious")
    page.settle()
    first = float(page.text("#chance").rstrip(" %"))
    page.page.keyboard.press("Escape")
    page.press("n")
    assert float(page.text("#chance").rstrip(" %")) <= first
    n_kept = page.text("#n-keep")
    page.page.keyboard.press("/")
    page.page.keyboard.type("fruit 123")  # letters in a field decide nothing
    page.page.wait_for_timeout(400)
    page.settle()
    for name, value in {"least": "0", "status": "all"}.items():
        page.page.select_option(f"#{name}", value)
        page.settle()
    assert page.row == 123
    assert page.text("#n-keep") == n_kept
    page.page.fill("#words", "no such fruit")
    page.page.wait_for_timeout(400)
    page.settle()
    assert page.page.is_visible("#empty")
    page.page.select_option("#queue", "sample")
    page.settle()
    assert page.text("#chance") == "hidden"
    assert page.page.is_disabled("#words")


def test_escape_empties_the_search_and_takes_its_filter_back(tab, shared):
    page = tab(shared)
    waiting, row = page.text("#progress-text"), page.row
    page.page.keyboard.press("/")
    page.page.keyboard.type("no such fruit")
    page.page.wait_for_timeout(400)
    page.settle()
    assert page.page.is_visible("#empty")
    page.page.keyboard.press("Escape")
    page.page.wait_for_timeout(400)
    page.settle()
    assert page.page.input_value("#words") == ""
    assert (page.text("#progress-text"), page.row) == (waiting, row)


@pytest.mark.slow
def test_the_random_sample_is_estimated_live(tab, tmp_path):
    with served(tmp_path / "d.sqlite", sample_size=3) as (_, address):
        page = tab(address)
        assert "Choose “random sample”" in page.text("#estimate-text")
        page.page.select_option("#queue", "sample")
        page.settle()
        page.page.keyboard.press("Escape")
        page.decide("keep")
        assert page.text("#estimate-text") == "So far: 1 of 3 random rows."
        page.decide("change")
        page.decide("keep")
        assert page.text("#estimate-text") == "The whole sample: 3 of 3 random rows."
        line = page.page.locator("#estimate tbody tr", has_text="any label").inner_text()
        assert line.split("\t")[1:3] == ["33.3 %", "0.8–90.6 %"]
        assert page.page.is_visible("#empty")


@pytest.mark.slow
def test_of_three_classes_the_right_one_is_chosen(tab, tmp_path):
    path = tmp_path / "d.sqlite"
    with served(path, n_kinds=3) as (_, address):
        page = tab(address)
        given = KINDS.index(page.text("#given-label"))
        first, row = (given + 1) % 3, page.row
        page.press(str(first + 1))  # a digit is the label
        page.press(str(KINDS.index(page.text("#given-label")) + 1))  # the given one: keep
        page.page.select_option("#queue", "sample")
        page.settle()
        page.page.keyboard.press("Escape")
        blind = page.row
        page.press("c")  # which label, the page cannot know without quoting the model
        assert "Choose the right label" in page.text("#alarm")
        assert page.page.evaluate("document.activeElement.id") == "other"
        chosen = page.page.eval_on_selector_all("#other option", "all => all.map((o) => o.value)")
        assert chosen[0] == ""
        page.page.select_option("#other", chosen[2])
        page.press("Enter")
        assert f"Saved: row {blind} changed to {KINDS[int(chosen[2])]}" in page.text("#saved")
    with Decisions(path, ReviewTable(made_table(n_kinds=3), "kind").fingerprint) as store:
        assert store.current(row).label == first
        assert store.current(blind).label == int(chosen[2])
        assert sorted(said.verdict for said in store.all().values()) == ["change", "change", "keep"]


@pytest.mark.slow
def test_the_end_of_a_queue_says_what_is_left_and_lets_undo(tab, tmp_path):
    with served(tmp_path / "d.sqlite", sample_size=2) as (_, address):
        page = tab(address)
        page.page.select_option("#queue", "sample")
        page.settle()
        page.page.keyboard.press("Escape")
        page.decide("keep")
        page.press("n")
        assert "1 row of it is still open" in page.text("#empty")
        assert page.page.is_disabled("#keep")
        page.press("k")  # there is no row that it could mean
        assert page.text("#n-keep") == "1"
        page.press("p")
        last = page.decide("unsure")
        assert "Every row of it is decided" in page.text("#empty")
        page.page.click("#undo")
        page.settle()
        assert page.row == last
        assert page.page.is_enabled("#keep")


@pytest.mark.slow
def test_of_a_hundred_thousand_rows_a_page_at_a_time_is_sent(tab, tmp_path):
    with served(tmp_path / "d.sqlite", n=100_000) as (_, address):
        page = tab(address)
        page.decide("keep")
        assert re.search(
            r"1 of \d\d,\d\d\d rows of this queue decided", page.text("#progress-text")
        )
        assert len(page.page.query_selector_all("#rows li")) < 60
        assert page.page.evaluate("document.querySelectorAll('*').length") < 1000
        sent = page.page.evaluate(
            "performance.getEntriesByType('resource').map((e) => e.transferSize)"
        )
        assert len(sent) >= 6
        assert sum(sent) < 200_000  # bytes


# ---------------------------------------------------------------- who can read it

CONTRAST = """
() => {
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const rgb = (colour) => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) => {
    const part = (v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const ground = (element) => {
    for (; element; element = element.parentElement) {
      const colour = rgb(getComputedStyle(element).backgroundColor);
      if (colour[3] > 0) return colour;
    }
    return [255, 255, 255, 255];
  };
  const found = [];
  for (const element of document.querySelectorAll('body *')) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!own || !element.checkVisibility() || element.closest(':disabled')) continue;
    const [a, b] = [light(rgb(getComputedStyle(element).color)), light(ground(element))];
    found.push([(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), element.outerHTML.slice(0, 90)]);
  }
  return found;
}
"""

NAMELESS = """
() => [...document.querySelectorAll('button, input, select, progress, [role=region], nav, table')]
  .filter((element) => element.tagName !== 'TABLE' || !element.closest('[role=region]'))
  .filter((element) => !(element.getAttribute('aria-label')?.trim()
    || document.getElementById(element.getAttribute('aria-labelledby') ?? '')?.textContent.trim()
    || [...(element.labels ?? [])].some((label) => label.textContent.trim())
    || (element.tagName === 'BUTTON' && element.textContent.trim())))
  .map((element) => element.outerHTML.slice(0, 90))
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground(tab, shared, scheme):
    page = tab(shared, color_scheme=scheme)
    for key in "kcu":
        page.press(key)
    page.press("p")
    found = page.page.evaluate(CONTRAST)
    assert len(found) > 60
    assert [entry for entry in found if entry[0] < 4.5] == []


def test_everything_has_a_name_a_place_and_a_visible_focus(tab, shared):
    page = tab(shared)
    page.decide("keep")  # so that there is something to undo
    assert page.page.evaluate(NAMELESS) == []
    assert page.page.evaluate("document.documentElement.lang") == "en"
    levels = page.page.evaluate(
        "[...document.querySelectorAll('h1, h2, h3')]"
        ".filter((e) => e.checkVisibility()).map((e) => Number(e.tagName[1]))"
    )
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))
    out_of_turn = '[tabindex]:not([tabindex="0"], [tabindex="-1"])'
    assert page.page.query_selector_all(out_of_turn) == []
    # the tab key stops in reading order, and shows where it is
    stops = []
    for _ in range(30):
        page.page.keyboard.press("Tab")
        stops.append(
            page.page.evaluate(
                "() => { const e = document.activeElement, s = getComputedStyle(e); return"
                " [e.id, s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 2]; }"
            )
        )
    assert all(outlined for _, outlined in stops)
    named = [name for name, _ in stops if name]
    expected = ["queue", "least", "given", "status", "words", "keep", "change", "other"]
    expected += ["unsure", "undo", "previous", "next"]
    assert [name for name in named if name in expected] == expected
    for name in ("saved", "alarm"):
        assert page.page.get_attribute(f"#{name}", "role") in ("status", "alert")


@pytest.mark.slow
def test_shortcuts_can_be_switched_off_and_a_held_key_decides_once(tab, tmp_path):
    path = tmp_path / "d.sqlite"
    with served(path) as (_, address):
        page = tab(address)
        page.page.keyboard.down("k")
        page.settle()
        for _ in range(5):
            page.page.keyboard.down("k")  # repeats
            page.settle()
        page.page.keyboard.up("k")
        assert len(stored(path)) == 1
        page.page.uncheck("#keys")
        page.press("k")
        assert len(stored(path)) == 1


@pytest.mark.parametrize("width", [375, 1280])
def test_the_page_fits_its_width_and_its_buttons_a_finger(tab, shared, width):
    page = tab(shared, viewport={"width": width, "height": 800})
    assert page.page.evaluate("document.documentElement.scrollWidth") <= width
    for name in ("keep", "change", "unsure", "undo"):
        box = page.page.locator(f"#{name}").bounding_box()
        assert box["height"] >= 36
        assert box["y"] + box["height"] <= 800  # without scrolling
