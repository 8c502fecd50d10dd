"""Slow and half-open connections keep nobody waiting."""

import http.client
import itertools
import json
import socket
import sqlite3
import time
from contextlib import ExitStack
from urllib.parse import urlsplit

import pytest

from tests.review.made import served

PATIENT = 20.0
"""Seconds after which a test gives up."""

HALVES = {
    "nothing": "",
    "half a line": "GET /",
    "half a head": "GET {path}api/about HTTP/1.1\r\nHost: {host}\r\n",
    "half a body": (
        "POST {path}api/decide HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\n"
        "Content-Type: application/json\r\nContent-Length: 50\r\n\r\n{{"
    ),
}


class Server:
    """An address, and what is asked of it."""

    def __init__(self, address):
        parts = urlsplit(address)
        self.host, self.path, self.place = parts.netloc, parts.path, (parts.hostname, parts.port)
        self._rows = itertools.count()

    def half(self, kind):
        """Return a connection on which a request was begun."""
        opened = socket.create_connection(self.place, timeout=PATIENT)
        opened.sendall(HALVES[kind].format(path=self.path, host=self.host).encode())
        return opened

    def ask(self, method, path, body=None, timeout=PATIENT):
        connection = http.client.HTTPConnection(self.host, timeout=timeout)
        headers = {"origin": f"http://{self.host}", "content-type": "application/json"}
        try:
            connection.request(method, f"{self.path}{path}", body and json.dumps(body), headers)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def decide(self):
        """Decide a row that was not decided before."""
        body = {"row": next(self._rows), "version": 0, "verdict": "unsure", "queue": "sample"}
        return self.ask("POST", "api/decide", body)


def is_closed(connection):
    """Return whether the server hangs up, after whatever it says."""
    try:
        while connection.recv(65536):
            pass
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False
    return True


@pytest.fixture(scope="module")
def patient(tmp_path_factory):
    """A server that waits longer for a request than a test does."""
    path = tmp_path_factory.mktemp("patient") / "d.sqlite"
    with served(path, slowest=600) as (_, address):
        yield Server(address)


@pytest.fixture(scope="module")
def hasty(tmp_path_factory):
    """A server that waits half a second for a request, and two for its file."""
    path = tmp_path_factory.mktemp("hasty") / "d.sqlite"
    with served(path, slowest=0.5, patience=2) as (_, address):
        yield Server(address), path


@pytest.mark.parametrize("kind", HALVES)
def test_many_half_open_connections_block_nobody(patient, kind):
    with ExitStack() as stack:
        for _ in range(120):
            stack.enter_context(patient.half(kind))
        for _ in range(3):
            assert patient.ask("GET", "api/about")[0] == 200
            assert patient.decide()[0] == 200
            for _ in range(30):  # and more of them come in between
                stack.enter_context(patient.half(kind))


def test_a_connection_in_use_is_not_the_one_that_makes_room(patient):
    connection = http.client.HTTPConnection(patient.host, timeout=PATIENT)
    with ExitStack() as stack:
        for _ in range(4):
            connection.request("GET", f"{patient.path}api/about")
            response = connection.getresponse()
            assert response.status == 200
            response.read()
            for _ in range(10):
                stack.enter_context(patient.half("nothing"))
        connection.close()


@pytest.mark.parametrize("kind", HALVES)
def test_a_request_that_does_not_arrive_is_given_up(hasty, kind):
    server, _ = hasty
    with server.half(kind) as connection:
        assert is_closed(connection)
    assert server.ask("GET", "api/about")[0] == 200


def test_a_request_that_comes_byte_by_byte_is_given_up(hasty):
    server, _ = hasty
    gone = False
    with server.half("half a head") as connection:
        for _ in range(100):
            try:
                connection.sendall(b"x")
            except OSError:
                gone = True
                break
            time.sleep(0.05)
    assert gone


def test_an_answer_that_takes_its_time_is_waited_for(hasty):
    server, path = hasty
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    status, answer = server.decide()  # waits two seconds for the lock
    assert status == 503
    assert "another process has locked it" in json.loads(answer)["error"]
    other.execute("ROLLBACK")
    other.close()
    assert server.decide()[0] == 200
