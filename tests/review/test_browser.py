"""The browser gets the secret address in a file that only the user can read."""

import json
import os
import subprocess
import sys
import time

import pytest

from tests.review.made import served
from tests.review.test_content import reviews
from unflip._app.review import leading_page

FAKE = """#!{python}
import glob, json, os, re, stat, sys, urllib.parse, urllib.request
path = urllib.parse.urlsplit(sys.argv[1]).path
found = {{"given": sys.argv[1], "path": path}}
if sys.argv[1].startswith("file:"):
    address = re.search("url=([^\\"]+)", open(path).read())[1]
    found["modes"] = [stat.S_IMODE(os.stat(p).st_mode) for p in (path, os.path.dirname(path))]
else:
    address = sys.argv[1]
token = urllib.parse.urlsplit(address).path.strip("/").encode()
shown = []
for name in glob.glob("/proc/[0-9]*/cmdline"):
    try:
        shown.append(open(name, "rb").read())
    except OSError:
        continue
found["leaks"] = sum(token in one for one in shown) + (token.decode() in str(os.environ))
with urllib.request.urlopen(address, timeout=30) as page:
    found["status"] = page.status
with open({out!r} + ".part", "w") as file:
    json.dump(found, file)
os.rename({out!r} + ".part", {out!r})
"""


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="arguments are read from /proc")
def test_no_argument_of_a_process_holds_the_token(tmp_path):
    reviews(60).write_csv(tmp_path / "t.csv")
    out, fake = tmp_path / "found.json", tmp_path / "browser"
    fake.write_text(FAKE.format(python=sys.executable, out=str(out)))
    fake.chmod(0o755)
    terminal, stdout = os.openpty()
    command = [sys.executable, "-m", "unflip", "review", tmp_path / "t.csv", "--label", "label"]
    environment = os.environ | {"BROWSER": str(fake)}
    with subprocess.Popen(command, stdout=stdout, stderr=stdout, env=environment) as server:
        os.close(stdout)
        try:
            end = time.monotonic() + 120
            while not out.exists() and time.monotonic() < end:
                time.sleep(0.1)
            found = json.loads(out.read_text())
            server.send_signal(2)  # Ctrl+C
            server.wait(30)
        finally:
            server.kill()
            os.close(terminal)
    assert found["leaks"] == 0
    assert found["modes"] == [0o600, 0o700]
    assert found["status"] == 200
    assert not os.path.exists(os.path.dirname(found["path"]))  # removed at the end


def test_the_file_leads_a_browser_to_the_page(tab, tmp_path):
    with served(tmp_path / "d.sqlite") as (_, address), leading_page(address) as page:
        opened = tab(page)
        opened.page.wait_for_url(address)
        assert opened.complaints == []
