"""The browser in which pages are looked at."""

from tests.review.test_page import browser as browser
