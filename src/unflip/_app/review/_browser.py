"""A file passes the secret address to the browser, since all users can read arguments."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

PAGE = """<!doctype html>
<meta charset="utf-8">
<meta http-equiv="content-security-policy" content="default-src 'none'">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={address}">
<title>unflip review</title>
<a href="{address}">Open the review</a>
"""
"""A page that redirects to another address without a script."""


@contextmanager
def leading_page(address: str) -> Iterator[str]:
    """Yield the address of a file that redirects to `address` and only this user can read."""
    # mode 700; on Windows, the temporary folder is the user's own
    with TemporaryDirectory(prefix="unflip-") as folder:
        page = Path(folder) / "review.html"
        handle = os.open(page, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(handle, "w", encoding="utf-8") as file:
            file.write(PAGE.format(address=address))
        yield page.as_uri()
