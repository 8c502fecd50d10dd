"""The goals of the page by keyboard, and the row itself, in a browser, started by the command."""

import itertools
import json
import subprocess
import sys
from contextlib import contextmanager

import numpy as np
import polars as pl
import pytest

from tests.review.made import made_table, served
from tests.review.test_content import png, reviews
from unflip import CheckedLabels
from unflip.review import Decisions, ReviewTable


@contextmanager
def reviewed(table, *options):
    """Serve a table by `unflip review`, and give the page's address."""
    command = [sys.executable, "-m", "unflip", "review", str(table), "--label", "label"]
    with subprocess.Popen(
        [*command, "--json", "--no-open", *map(str, options)], stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            yield json.loads(server.stdout.readline())["address"]
        finally:
            server.kill()


def test_three_goals_by_keyboard_and_the_estimate_moves_after_each_key(tab, tmp_path):
    path = tmp_path / "d.sqlite"
    with served(path) as (_, address):
        page = tab(address)
        assert page.page.input_value("#queue") == "suspicious"
        assert page.text("#goal-text").startswith("Find errors: the most suspicious rows first")
        page.decide("change")
        assert page.text("#counted-value") == "Not estimated yet"  # chosen for its suspicion

        page.press("g")
        assert page.page.input_value("#queue") == "count"
        assert "± 2 points" in page.text("#goal-text")
        assert page.text("#chance") == page.text("#suggested-label") == "hidden"
        assert page.page.is_disabled("#words")
        seen = [page.text("#counted")]
        for k in range(14):  # more than were drawn at first
            page.decide("change" if k % 4 == 0 else "keep")
            seen.append(page.text("#counted"))
            assert f"{k + 1} drawn row" in page.text("#counted-more")
        assert all(before != after for before, after in itertools.pairwise(seen))

        page.press("g")
        assert page.page.input_value("#queue") == "train"
        assert page.text("#goal-text").startswith("Train the model")
        page.decide("keep")
        assert "15 drawn rows" in page.text("#counted-more")
        page.press("z")
        assert "14 drawn rows" in page.text("#counted-more")
        assert page.text("#counted") == seen[-1]

        page.page.reload()
        page.settle()
        assert page.page.input_value("#queue") == "train"
        page.page.click("#export")
        page.settle()
        page.press("g")
        assert page.page.input_value("#queue") == "suspicious"
        assert page.complaints == []
    table = made_table()
    checked = CheckedLabels.from_file(tmp_path / "d-export" / "reviewed.csv", table["kind"])
    assert checked.is_drawn.sum() == 14
    assert len(checked) == 15
    with Decisions(path, ReviewTable(table, "kind", id_column="name").fingerprint) as store:
        assert [draw.row for draw in store.drawn.counted()] == checked.rows[:14].tolist()


LOOKS = [(1280, "light"), (1280, "dark"), (400, "light"), (400, "dark")]


def legible(page, selector, width):
    """Return whether an element is inside the window, and not under the buttons."""
    box = page.page.locator(selector).first.bounding_box()
    actions = page.page.locator(".actions").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width
    assert box["y"] + box["height"] <= actions["y"]
    assert page.page.evaluate("document.documentElement.scrollWidth") <= width
    return box


@pytest.mark.slow
def test_a_text_row_shows_its_sentence_in_full_with_marked_words(tab, tmp_path):
    table = reviews()
    table.write_csv(tmp_path / "t.csv")
    with reviewed(tmp_path / "t.csv", "--goal", "count") as address:
        for width, scheme in LOOKS:
            page = tab(address, viewport={"width": width, "height": 850}, color_scheme=scheme)
            assert page.page.input_value("#queue") == "count"
            assert page.text(".sentence") == table["sentence"][page.row]
            marked = page.page.locator(".sentence mark").all_inner_texts()
            assert 1 <= len(marked) <= 2
            legible(page, ".sentence", width)
            size = page.page.evaluate(
                "parseFloat(getComputedStyle(document.querySelector('.sentence')).fontSize)"
            )
            assert size >= 18
            assert page.page.locator("#card i").count() == 0  # markup stays text
            assert not page.page.is_visible("#features-part")
            assert not page.page.is_visible("#similar-part")
            assert page.complaints == []


@pytest.mark.slow
def test_a_row_with_a_picture_shows_it(tab, tmp_path):
    rng = np.random.default_rng(0)
    (tmp_path / "pictures").mkdir()
    for k in range(60):
        (tmp_path / "pictures" / f"{k}.png").write_bytes(png(200))
    (tmp_path / "pictures" / "0.png").write_text("no picture")
    kind = rng.integers(0, 2, 60)
    names = [f"{k}.png" for k in range(60)]
    label = np.where(kind, "apple", "pear")
    pl.DataFrame({"x": kind + rng.normal(size=60), "file": names, "label": label}).write_csv(
        tmp_path / "t.csv"
    )
    with reviewed(tmp_path / "t.csv", "--images", tmp_path / "pictures") as address:
        for width, scheme in LOOKS:
            page = tab(address, viewport={"width": width, "height": 850}, color_scheme=scheme)
            page.page.select_option("#least", "0", force=True)
            page.settle()
            page.page.wait_for_function("document.querySelector('#pictures img')?.naturalWidth")
            assert legible(page, "#pictures img", width)["height"] >= 128
            assert page.complaints == []
        page.page.evaluate("document.getElementById('more-filters').open = true")
        page.page.fill("#words", "row 0")
        page.page.wait_for_timeout(400)
        page.settle()
        assert page.row == 0
        page.page.wait_for_selector("#pictures p")
        assert (
            page.text("#pictures") == "file 0.png is not shown: it is not PNG, JPEG, GIF or WebP."
        )


def test_an_unknown_goal_is_refused(tmp_path):
    reviews(20).write_csv(tmp_path / "t.csv")
    command = [sys.executable, "-m", "unflip", "review", tmp_path / "t.csv", "--label", "label"]
    done = subprocess.run([*command, "--goal", "FIND"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--goal='FIND' is not one of ['find', 'count', 'train']" in done.stderr


@pytest.mark.slow
def test_two_checkers_at_once_see_where_they_differ(tab, tmp_path):
    reviews(60).write_csv(tmp_path / "t.csv")
    with (
        reviewed(tmp_path / "t.csv", "--checker", "ann") as first,
        reviewed(tmp_path / "t.csv", "--checker", "bob") as second,
    ):
        ann, bob = tab(first), tab(second)
        for page in (ann, bob):
            page.page.select_option("#least", "0")
            page.settle()
            page.page.keyboard.press("Escape")
        assert "Checked by bob." in bob.text("#about")
        rows = [ann.decide("keep") for _ in range(3)]
        assert [bob.decide(said) for said in ("keep", "change", "keep")] == rows
        assert "ann, bob: 3 rows labelled by two or more, 1 differently" in bob.text("#agreement")
        assert f"Row {rows[1]}: ann:" in bob.text("#disputed")
        assert (bob.text("#n-keep"), bob.text("#n-change")) == ("2", "1")
        bob.page.click("#disputed button")
        bob.settle()
        assert bob.row == rows[1]
        assert bob.page.evaluate("document.documentElement.scrollWidth") <= 1280
        assert ann.complaints == bob.complaints == []
