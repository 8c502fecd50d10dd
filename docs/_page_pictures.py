"""Take the pictures of report and review page: `python docs/_page_pictures.py`.

They show a simulated table of support tickets with text, categories, numbers and missing values.
25 % of the urgent and 8 % of the other tickets are mislabelled. Needs Chromium and playwright.
"""

import contextlib
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
from playwright.sync_api import Browser, sync_playwright

from unflip import NoiseRates, flip_labels
from unflip.cli import app

STATIC = Path(__file__).parent / "_static"
RATES = NoiseRates(positive=0.25, negative=0.08)
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
URGENT = (
    "server down since this morning, nobody can log in",
    "payment failed twice and the money is gone",
    "we lost all orders of today, please call back at once",
    "the site shows an error to every customer",
    "data of another company appears in our account",
)
CALM = (
    "how do I change the colour of the logo",
    "please send the invoice again, there is no hurry",
    "a small spelling mistake on the second page",
    "could you add an export to the wish list",
    "thanks for the quick help, all is fine now",
)
EXTRA = ("Regards, the office.", "Sent from a phone.", "We are on the yearly plan.", "See above.")


def tickets(n_rows: int = 800, seed: int = 0) -> tuple[pl.DataFrame, list[str]]:
    """Return the table, its labels flipped at random, and the true ones."""
    rng = np.random.default_rng(seed)
    urgent = rng.random(n_rows) < 0.4
    text = np.where(urgent, rng.choice(URGENT, n_rows), rng.choice(CALM, n_rows))
    table = pl.DataFrame(
        {
            "ticket": [f"T-{4000 + k}" for k in range(n_rows)],
            "text": [f"{a}. {b}" for a, b in zip(text, rng.choice(EXTRA, n_rows), strict=True)],
            "plan": np.where(rng.random(n_rows) < 0.3 + 0.3 * urgent, "business", "free"),
            "minutes_online": rng.gamma(2, np.where(urgent, 30, 12)).round(1),
            "messages": rng.poisson(np.where(urgent, 6, 2)),
            "status": np.where(flip_labels(urgent, RATES, random_state=seed), "urgent", "normal"),
        }
    )
    gap = rng.random(n_rows) < 0.06
    minutes = pl.when(~pl.Series(gap)).then(pl.col("minutes_online"))
    true = np.where(urgent, "urgent", "normal").tolist()
    return table.with_columns(minutes_online=minutes), true


def main() -> None:
    with tempfile.TemporaryDirectory() as name, sync_playwright() as started:
        folder = Path(name).resolve()
        path = next(filter(None, map(shutil.which, BROWSERS)))
        browser = started.chromium.launch(executable_path=path, args=["--no-sandbox"])
        table, true = tickets()
        table.write_csv(folder / "tickets.csv")
        with contextlib.chdir(folder):  # pages show the names of files
            _report(browser, folder)
            _review(browser, table, true)
        browser.close()


def _report(browser: Browser, folder: Path) -> None:
    words = ["report", "tickets.csv", "--label", "status", "--drop", "ticket"]
    out = folder / "report.html"
    app([*words, "--seed", "0", "--quiet", "--out", str(out)], standalone_mode=False)
    _shot(browser, out.as_uri(), "report-light", 1100, 900)
    _shot(browser, out.as_uri(), "report-dark", 1100, 900, dark=True)


def _review(browser: Browser, table: pl.DataFrame, true: list[str]) -> None:
    words = ["unflip", "review", "tickets.csv", "--label", "status", "--id", "ticket"]
    command = [sys.executable, "-m", *words, "--no-open", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:  # noqa: S603
        assert server.stdout is not None
        where = json.loads(server.stdout.readline())["address"]
        _decide(browser, where, [a == b for a, b in zip(table["status"], true, strict=True)])
        _shot(browser, where, "review-light", 1280, 900)
        _shot(browser, where, "review-dark", 1280, 900, dark=True)
        _shot(browser, where, "review-phone", 400, 860)
        server.terminate()


def _decide(browser: Browser, address: str, is_right: list[bool]) -> None:
    """Check rows by keyboard until the model has learnt from the answers."""
    tab = browser.new_page()
    tab.goto(address, wait_until="networkidle")
    for _ in range(14):
        tab.wait_for_selector("#card[aria-busy=false]")
        row = int(tab.inner_text("#row-title").split()[1])
        tab.keyboard.press("k" if is_right[row] else "c")
        saved = (
            "row => document.getElementById('saved').textContent.startsWith(`Saved: row ${row} `)"
        )
        tab.wait_for_function(saved, arg=row)
    tab.wait_for_timeout(5000)  # the model learns
    tab.close()


def _shot(
    browser: Browser, address: str, name: str, width: int, height: int, *, dark: bool = False
) -> None:
    tab = browser.new_page(
        viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light"
    )
    tab.goto(address, wait_until="networkidle")
    tab.screenshot(path=STATIC / f"{name}.png")
    tab.close()


if __name__ == "__main__":
    main()
