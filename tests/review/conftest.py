"""A browser, and tabs of it that wait until the page is quiet."""

import re
import shutil

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
KEYS = {"keep": "k", "change": "c", "unsure": "u"}


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip(f"no browser is installed: none of {', '.join(BROWSERS)} is on the PATH")
    with playwright.sync_playwright() as started:
        # tests may run as root, where the sandbox does not start
        opened = started.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield opened
        opened.close()


class Tab:
    """A page that waits until it is quiet, and remembers what it asked for and complained of."""

    def __init__(self, context, address):
        self.page = context.new_page()
        self.requests, self.complaints = [], []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda line: self.complaints.append(line.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.goto(address)
        self.settle()

    def settle(self):
        self.page.wait_for_selector("#card[aria-busy=false]")

    def press(self, key):
        self.page.keyboard.press(key)
        self.settle()

    def text(self, selector):
        return self.page.inner_text(selector)

    @property
    def row(self):
        return int(re.match(r"Row (\d+)", self.text("#row-title"))[1])

    def decide(self, verdict):
        """Press the key, and return the row that was decided, as soon as it is said to be saved."""
        row = self.row
        self.page.keyboard.press(KEYS[verdict])
        self.page.wait_for_function(
            "row => document.getElementById('saved').textContent.startsWith(`Saved: row ${row} `)",
            arg=row,
        )
        self.settle()
        return row


@pytest.fixture
def tab(browser):
    contexts = []

    def opened(address, **settings):
        contexts.append(browser.new_context(**settings))
        return Tab(contexts[-1], address)

    yield opened
    for context in contexts:
        context.close()
