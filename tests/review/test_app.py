"""What the page's server answers, and what it refuses."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.review.caller import ORIGIN, TOKEN
from tests.review.made import client_of, made_audit, made_table
from unflip.review import Decisions, ReviewTable

TABLE = made_table()
AUDIT = made_audit(TABLE)
REVIEW_TABLE = ReviewTable(TABLE, "kind", id_column="name")
MAX_BODY = 16 * 1024
READS = ["", "page.css", "page.js", "icon.svg", "api/about", "api/tally"]
READS += ["api/queue?queue=informative", "api/row?row=0&queue=sample"]
WRITES = ["api/decide", "api/undo", "api/export"]


@pytest.fixture(scope="module")
def review(tmp_path_factory):
    folder = tmp_path_factory.mktemp("review")
    with Decisions(folder / "d.sqlite", REVIEW_TABLE.fingerprint) as store:
        options = {"title": "Fruit", "sample_size": 20, "random_state": 0}
        client = client_of(REVIEW_TABLE, AUDIT, store, folder / "out", **options)
        yield client, store
        client.close()


@pytest.fixture(scope="module")
def client(review):
    return review[0]


def decide(client, row, version=0, verdict="keep", label=None, queue="suspicious"):
    body = {"row": row, "version": version, "verdict": verdict, "label": label, "queue": queue}
    return client.post("api/decide", body)


# ---------------------------------------------------------------- answers


def test_a_row_comes_with_all_that_is_needed_to_decide_it(client):
    queue = client.get("api/queue?queue=suspicious").json()
    assert len(queue["rows"]) == 50
    assert queue["more"]
    first = queue["rows"][0]
    row = client.get(f"api/row?row={first['row']}&queue=suspicious").json()
    assert row["given"] == REVIEW_TABLE.codes[first["row"]]
    assert row["probability"] == AUDIT.mislabel_proba_.max()
    assert AUDIT.classes_[row["suggested"]] == AUDIT.suggested_label_[first["row"]]
    assert row["other"] == 1 - row["given"]
    assert {feature["name"] for feature in row["features"]} <= {"weight", "length", "colour"}
    assert len(row["similar"]) == 6
    assert row["id"] == f"fruit {first['row']}"


def test_the_model_is_not_quoted_in_the_random_sample(client):
    for entry in client.get("api/queue?queue=sample").json()["rows"]:
        assert entry["probability"] is None
        assert entry["suggested"] is None
    row = client.get("api/row?row=0&queue=sample").json()
    assert row["probability"] is row["suggested"] is row["truth"] is None
    assert all(near["suggested"] is None for near in row["similar"])


def test_a_stale_write_is_refused_with_the_newer_decision(client):
    assert decide(client, 100).json()["version"] == 1
    refused = decide(client, 100, verdict="unsure")
    assert refused.status_code == 409
    label = int(REVIEW_TABLE.codes[100])
    assert refused.json()["current"] == {
        "row": 100,
        "version": 1,
        "verdict": "keep",
        "label": label,
    }
    assert client.post("api/undo", {"row": 100, "version": 0}).status_code == 409
    assert client.post("api/undo", {"row": 100, "version": 1}).json()["verdict"] is None
    assert client.post("api/undo", {"row": 100, "version": 2}).status_code == 400


def test_the_answer_comes_after_the_decision_is_written(review):
    client, store = review
    answer = decide(client, 101, verdict="change", label=1 - int(REVIEW_TABLE.codes[101])).json()
    with Decisions(store.path, REVIEW_TABLE.fingerprint) as other:
        assert other.current(101).version == answer["version"]
        event = other.log()[-1]
    assert event["probability"] == AUDIT.mislabel_proba_[101]


def test_the_sample_grows_by_what_is_reviewed_as_sample(review):
    client, store = review
    sample = store.sample(20)
    assert client.get("api/tally").json()["estimate"]["n_rows"] == 0
    # chosen for their suspicion: they do not count as long as the sample has not come to them
    decide(client, sample[0])
    assert client.get("api/tally").json()["estimate"]["n_rows"] == 0
    other = 1 - int(REVIEW_TABLE.codes[sample[2]])
    answer = decide(client, sample[2], verdict="change", label=other, queue="sample").json()
    estimate = answer["tally"]["estimate"]
    assert estimate["n_rows"] == 3
    assert estimate["n_unsure"] == 1  # the second was passed by
    assert estimate["wrong"]["sample"] == 1 / 2
    for row in sample:
        if store.current(row).verdict is None:
            decide(client, row, store.current(row).version, queue="informative")
    estimate = client.get("api/tally").json()["estimate"]
    assert (estimate["n_rows"], estimate["n_unsure"]) == (20, 0)
    assert estimate["wrong"]["sample"] == 1 / 20
    assert estimate["wrong"]["low"] < 1 / 20 < estimate["wrong"]["high"]
    assert estimate["wrong"]["model"] == pytest.approx(AUDIT.label_error_rate_)
    counts = np.bincount(REVIEW_TABLE.codes)
    by_label = [part["model"] for part in estimate["wrong_by_label"]]
    assert np.average(by_label, weights=counts) == pytest.approx(AUDIT.label_error_rate_)


def test_the_export_goes_to_the_folder_that_was_set_at_the_start(review):
    client, store = review
    answer = client.post("api/export", {"folder": "/tmp/elsewhere", "out": "../.."})  # noqa: S108
    assert answer.json()["folder"] == str(store.path.parent / "out")
    assert (store.path.parent / "out" / "corrected.csv").exists()


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize("path", READS)
def test_every_answer_forbids_what_the_page_does_not_need(client, path):
    for answer in (
        client.get(path),
        client.request("GET", f"/wrong/{path}"),
        client.get(path + "nothing"),
    ):
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
        assert "unsafe" not in policy
        assert "http" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cache-control"] == "no-store"
    assert client.get(path).status_code == 200


@pytest.mark.parametrize("path", [*READS, *WRITES])
@pytest.mark.parametrize(
    "prefix", ["", "/", "/x/", f"/{TOKEN}x/", f"/{TOKEN[:-1]}/", "/%00/", "//"]
)
def test_without_the_token_nothing_is_answered(client, path, prefix):
    for method in ("GET", "POST"):
        answer = client.request(method, f"{prefix}{path}", headers={"origin": ORIGIN})
        assert answer.status_code == 404
        assert TOKEN not in answer.text


@pytest.mark.parametrize("path", [*READS, *WRITES])
@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8000", "localhost:8000", "127.0.0.1", "127.0.0.1:80", ""]
)
def test_a_foreign_host_is_refused(client, path, host):
    for answer in (
        client.get(path, host=host),
        client.post(path, {}, host=host),
    ):
        assert answer.status_code == 403


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://127.0.0.1:8000", "http://127.0.0.1:9", ""]
)
def test_a_foreign_origin_is_refused(client, origin):
    assert client.post("api/export", {}, origin=origin).status_code == 403
    assert client.get("api/about", origin=origin).status_code == 403


def test_a_write_without_an_origin_is_refused(client):
    headers = {"content-type": "application/json"}
    answer = client.request("POST", f"/{TOKEN}/api/export", headers=headers, body=b"{}")
    assert answer.status_code == 403


@pytest.mark.parametrize(
    "path",
    [
        "../page.html",
        "..%2fpage.html",
        "%2e%2e/%2e%2e/etc/passwd",
        "....//etc/passwd",
        "/etc/passwd",
        "page.css/../_app.py",
        "_app.py",
        "page.css%00",
        "page.css/",
        "static/..\\..\\x",
        "api",
        "api/",
        "API/about",
        "d.sqlite",
    ],
)
def test_tricks_with_paths_find_no_file(client, path):
    answer = client.request("GET", f"/{TOKEN}/{path}")
    assert answer.status_code == 404
    assert "root:" not in answer.text


@pytest.mark.parametrize("path", [*READS, *WRITES])
def test_large_bodies_are_refused(client, path):
    assert client.post(path, body=b" " * 10_000_000).status_code == 413
    pieces = (b" " * 1000 for _ in range(MAX_BODY // 1000 + 1))
    assert client.post(path, body=pieces).status_code == 413
    assert client.post("api/export", body=b"{}" + b" " * (MAX_BODY - 2)).status_code == 200


def test_a_long_address_is_refused(client):
    assert client.get("api/queue?queue=sample&words=" + "x" * 5000).status_code == 414
    assert client.get("api/queue?queue=sample&words=" + "x" * 201).status_code == 400


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_other_methods_are_refused(client, method):
    answer = client.request(method, f"/{TOKEN}/api/decide", headers={"origin": ORIGIN})
    assert answer.status_code == 405
    assert client.get("api/decide").status_code == 405
    assert client.post("api/about", {}).status_code == 405


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"1", b"\xff\xfe", b"[" * 16000, b'{"row": 1' + b"1" * 5000 + b"}"],
)
def test_what_is_not_a_json_object_is_refused(client, body):
    assert client.post("api/decide", body=body).status_code == 400


def test_a_body_of_another_type_is_refused(client):
    # what a form of another page could send without asking first
    assert client.post("api/export", {}, content_type="text/plain").status_code == 400


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
LIKELY = {
    "row": st.integers(-2, 302) | ANYTHING,
    "version": st.integers(-1, 3) | ANYTHING,
    "verdict": st.sampled_from(["keep", "change", "unsure", "KEEP", "undo"]) | ANYTHING,
    "label": st.integers(-1, 2) | ANYTHING,
    "queue": st.sampled_from(["informative", "suspicious", "sample", "x"]) | ANYTHING,
}


@given(st.sampled_from(WRITES[:2]), st.fixed_dictionaries({}, optional=LIKELY))
@example("api/decide", {"row": True, "version": False, "verdict": "keep", "queue": "sample"})
@example("api/decide", {"row": 1.0, "version": 0, "verdict": "keep", "queue": "sample"})
@example("api/undo", {"row": 2**70, "version": 0})
@settings(max_examples=150)
def test_whatever_is_sent_is_written_whole_or_refused(review, path, body):
    client, store = review
    before = len(store.log())
    answer = client.post(path, body)
    assert answer.status_code in (200, 400, 409)
    assert len(store.log()) == before + (answer.status_code == 200)
    if answer.status_code == 200:
        assert type(body["row"]) is type(body["version"]) is int
        assert answer.json()["version"] == body["version"] + 1
        assert store.current(body["row"]).version == body["version"] + 1


@given(
    st.sampled_from(["api/queue", "api/row", "api/about", "api/tally"]),
    st.dictionaries(
        st.sampled_from(["queue", "status", "given", "least", "words", "after", "row", "x"]),
        st.sampled_from(["sample", "suspicious", "all", "keep", "0", "299", "300", "-1", "nan"])
        | st.text(st.characters(exclude_categories=["Cs"]), max_size=30),
    ),
)
@settings(max_examples=150)
def test_whatever_is_asked_is_answered_or_refused(client, path, query):
    assert client.get(path, query).status_code in (200, 400)


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
def test_no_path_outside_the_list_is_answered(client, path):
    answer = client.request("GET", f"/{TOKEN}/f{path}")
    assert answer.status_code in (404, 414)
