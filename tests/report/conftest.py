"""The browser in which pages are looked at."""

from tests.review.conftest import browser as browser
