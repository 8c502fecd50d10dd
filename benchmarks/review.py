"""How long the review page takes from a key to "Saved", in a browser, while the model is learnt.

`python -m benchmarks.review [FOLDER]` serves a table of 100 000 rows and 20 columns and drives the
page in headless Chromium by its keys, 120 decisions for each goal; every fifth one starts another
fit in the background. The file of decisions is in FOLDER, by default one of the system's for
temporary files: a decision is said to be saved when the disk has it, and `/dev/shm`, which is
memory, tells how long the page takes without that.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from unflip import LabelAudit, NoiseRates, flip_labels
from unflip._app.review import serve

N_ROWS, N_COLUMNS, N_DECISIONS = 100_000, 20, 120
PAUSE = 100
"""Milliseconds between the next row and the next key."""

WATCH = """() => {
  window.took = [];
  let pressed = null;
  const saved = document.getElementById("saved");
  document.addEventListener("keydown", () => { pressed = performance.now(); }, true);
  new MutationObserver(() => {
    if (pressed !== null && saved.textContent.startsWith("Saved")) {
      window.took.push(performance.now() - pressed);
      pressed = null;
    }
  }).observe(saved, {childList: true, characterData: true, subtree: true});
}"""
"""Notes how long after a key the page says "Saved"."""


def main() -> None:
    if sys.argv[1:2] == ["serve"]:
        serve_made(sys.argv[2], sys.argv[3])
        return
    from playwright.sync_api import sync_playwright

    place = sys.argv[1] if len(sys.argv) > 1 else None
    path = shutil.which("chromium") or shutil.which("google-chrome")
    print(
        "goal   first paint   row shown   key to Saved: median   95 %   99 %   worst   fits   load"
    )
    with sync_playwright() as started:
        # a benchmark may run as root, where the sandbox does not start
        browser = started.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for goal in ("find", "count", "train"):
            with tempfile.TemporaryDirectory(dir=place) as folder:
                measure(browser, goal, folder)
        browser.close()


def measure(browser: Any, goal: str, folder: str) -> None:
    """Print how long the page takes to open, and to say that decisions are saved."""
    command = [sys.executable, "-m", "benchmarks.review", "serve", goal, folder]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        address = server.stdout.readline().strip()
        page = browser.new_page()
        begun = time.perf_counter()
        page.goto(address)
        settle(page)
        shown = 1000 * (time.perf_counter() - begun)
        paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        if goal == "find":  # rows that are not suspicious too
            page.select_option("#least", "0", force=True)
            settle(page)
            page.keyboard.press("Escape")
        page.evaluate(WATCH)
        for k in range(N_DECISIONS):
            page.keyboard.press("c" if k % 3 == 0 else "k")
            page.wait_for_function("k => window.took.length > k", arg=k)
            settle(page)
            page.wait_for_timeout(PAUSE)
        took = np.array(page.evaluate("window.took"))
        fits = page.evaluate("fetch('api/tally').then(r => r.json()).then(r => r.model.version)")
        page.close()
    finally:
        server.kill()
        server.wait()
        server.stdout.close()
    late = "".join(f"{np.quantile(took, q):7.0f}" for q in (0.95, 0.99, 1.0))
    print(
        f"{goal:6} {paint:8.0f} ms {shown:8.0f} ms {np.median(took):22.0f}{late}"
        f" {fits:6} {os.getloadavg()[0]:6.1f}",
        flush=True,
    )


def settle(page: Any) -> None:
    page.wait_for_selector("#card[aria-busy=false]")


def serve_made(goal: str, folder: str) -> None:
    """Serve a made-up table with the model that made it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, N_COLUMNS))
    score = X @ rng.normal(size=N_COLUMNS)
    true = (rng.random(N_ROWS) < 1 / (1 + np.exp(-score))).astype(int)
    rates = NoiseRates(0.15, 0.15)
    y = flip_labels(true, rates, random_state=0)
    proba = 0.15 + 0.7 / (1 + np.exp(-score))
    audit = LabelAudit(noise_rates=rates).fit_posterior(np.column_stack([1 - proba, proba]), y)
    columns = {f"x{k}": X[:, k] for k in range(N_COLUMNS)}
    serve(
        pl.DataFrame(columns | {"label": y}),
        "label",
        audit,
        Path(folder) / "decisions.sqlite",
        random_state=0,
        goal=goal,
        features=X,
        started=lambda address: print(address, flush=True),
    )


if __name__ == "__main__":
    main()
