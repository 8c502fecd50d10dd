"""The server as a process: where it listens, and that being killed loses nothing."""

import http.client
import json
import os
import random
import socket
import subprocess
import sys
import threading
import time
from urllib.parse import urlsplit

import numpy as np
import pytest

from tests.review.made import made_audit, made_table, served
from unflip.review import Decisions, ReviewTable, serve


def connected(address: str) -> tuple[http.client.HTTPConnection, str, dict[str, str]]:
    parts = urlsplit(address)
    headers = {"origin": f"http://{parts.netloc}", "content-type": "application/json"}
    return http.client.HTTPConnection(parts.netloc, timeout=30), parts.path, headers


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with served(tmp_path_factory.mktemp("served") / "d.sqlite") as (_, address):
        yield address


def test_only_this_machine_is_listened_to(address):
    port = urlsplit(address).port
    with socket.create_connection(("127.0.0.1", port), timeout=10):
        pass
    # another address of the same machine: a server on every interface would answer
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.2", port), timeout=10)


def test_the_token_is_new_and_long(address, tmp_path):
    token = urlsplit(address).path.strip("/")
    assert len(token) >= 32
    with served(tmp_path / "d.sqlite") as (_, other):
        assert urlsplit(other).path.strip("/") != token


@pytest.mark.parametrize(
    "path", ["/../../etc/passwd", "{}../page.html", "{}%2e%2e/_app.py", "{}//", "*", "{}page.css/x"]
)
def test_tricks_with_paths_find_nothing(address, path):
    parts = urlsplit(address)
    with socket.create_connection((parts.hostname, parts.port), timeout=10) as raw:
        target = path.format(parts.path)
        raw.sendall(f"GET {target} HTTP/1.1\r\nHost: {parts.netloc}\r\n\r\n".encode())
        status = raw.recv(65536).split()[1]
    assert status in (b"400", b"404")


def test_ten_megabytes_are_refused_and_the_server_goes_on(address):
    connection, path, headers = connected(address)
    try:
        connection.request("POST", f"{path}api/decide", b" " * 10_000_000, headers)
        assert connection.getresponse().status == 413
    except (BrokenPipeError, ConnectionResetError):  # it hung up before all was sent
        connection.close()
    connection.close()
    connection, path, headers = connected(address)
    connection.request("GET", f"{path}api/about")
    assert connection.getresponse().status == 200
    connection.close()


@pytest.mark.parametrize("seed", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in (1, 2))])
def test_killed_at_any_moment_it_loses_no_decision_that_was_answered(tmp_path, seed):
    path = tmp_path / "d.sqlite"
    answered = []

    def decide_all(address: str) -> None:
        connection, base, headers = connected(address)
        for row in range(300):
            body = {"row": row, "version": 0, "verdict": "unsure", "queue": "sample"}
            try:
                connection.request("POST", f"{base}api/decide", json.dumps(body), headers)
                response = connection.getresponse()
                response.read()
            except (http.client.HTTPException, OSError):
                break
            assert response.status == 200
            answered.append(row)
        connection.close()

    with served(path) as (process, address):
        writer = threading.Thread(target=decide_all, args=(address,))
        writer.start()
        while not answered:
            time.sleep(0.001)
        time.sleep(random.Random(seed).uniform(0, 0.3))  # noqa: S311
        process.kill()  # SIGKILL
        writer.join()
    with Decisions(path, ReviewTable(made_table(), "kind").fingerprint) as store:
        found = store.all()
    # one more may have been written than was answered
    assert set(answered) <= set(found)
    assert len(found) <= len(answered) + 1


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be forked here")
def test_killed_between_any_two_steps_it_loses_nothing_that_was_acknowledged(tmp_path):
    """Draws, decisions and undoings: a kill before each of their SQL statements."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.review.killed", tmp_path, "1000"],
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout)
    assert found["trials"] >= 200
    assert found["lost"] == []


def test_a_file_of_another_table_is_refused_before_anything_is_served(tmp_path):
    table = made_table()
    Decisions(tmp_path / "d.sqlite", ReviewTable(table, "kind").fingerprint).close()
    shorter = table.head(200)
    with pytest.raises(ValueError, match="it had 300 rows, this one has 200"):
        serve(shorter, "kind", made_audit(shorter), tmp_path / "d.sqlite", started=pytest.fail)


def test_an_audit_of_another_table_leaves_no_file_behind(tmp_path):
    table = made_table()
    with pytest.raises(ValueError, match="fitted to 200 rows, but the table has 300"):
        serve(table, "kind", made_audit(table.head(200)), tmp_path / "d.sqlite")
    with pytest.raises(ValueError, match="classes"):
        serve(table, np.arange(300) % 3, made_audit(table), tmp_path / "d.sqlite")
    with pytest.raises(ValueError, match="sample_size"):
        serve(table, "kind", made_audit(table), tmp_path / "d.sqlite", sample_size=0)
    assert list(tmp_path.iterdir()) == []
