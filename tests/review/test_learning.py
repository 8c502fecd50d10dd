"""What the page's model learns from the answers, while the page goes on."""

import threading

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tests.review.made import client_of, made_audit, made_table, served
from unflip import CheckedLabels
from unflip._app.review import Opinion, QueueFilter, ReviewSession
from unflip._app.review import _learning as learning_module
from unflip._app.review._learning import EVERY, FEWEST, Learning
from unflip._utils.simplex import scaled_rows
from unflip._utils.validation import Labels
from unflip.checked import recalibrate
from unflip.review import Decisions, ReviewTable

TABLE = made_table()
AUDIT = made_audit(TABLE)
REVIEW = ReviewTable(TABLE, "kind", id_column="name")
GIVEN, ROWS = REVIEW.codes, np.arange(REVIEW.n_rows)
FEATURES = TABLE.select("weight", "length").to_numpy()
# a person goes by the length as well, which the labels do not show
TRUTH = (FEATURES @ [1.0, 3.0] > 1.5).astype(int)
WRONG = TRUTH != GIVEN


def told(n: int) -> dict[int, int]:
    return {row: int(TRUTH[row]) for row in range(n)}


@pytest.fixture
def learning():
    return Learning(Opinion(AUDIT, REVIEW), GIVEN, FEATURES)


@pytest.fixture
def session(tmp_path):
    with Decisions(tmp_path / "d.sqlite", REVIEW.fingerprint) as store:
        yield ReviewSession(
            REVIEW,
            Opinion(AUDIT, REVIEW),
            store,
            tmp_path / "out",
            title="fruit",
            sample_size=20,
            random_state=0,
            features=FEATURES,
        )


def decide(session, row, queue="suspicious"):
    version = session.row(row, queue)["version"]
    if TRUTH[row] == GIVEN[row]:
        session.decide(row, version, "keep", None, queue)
    else:
        session.decide(row, version, "change", int(TRUTH[row]), queue)


def test_the_opinion_is_that_of_all_answers(learning):
    learning.tell(told(100))
    learning.wait()
    now = learning.now
    assert (now.version, now.answers) == (1, told(100))
    labels = Labels(np.arange(2), GIVEN)
    checked = CheckedLabels(ROWS[:100], TRUTH[:100])
    truth = recalibrate(
        checked, FEATURES, labels, AUDIT.label_proba_, scaled_rows(AUDIT.noisy_proba_)
    )
    assert_allclose(now.opinion.truth, truth)
    assert_allclose(now.opinion.wrong, 1 - truth[ROWS, GIVEN])
    assert_array_equal(now.opinion.suggested, truth.argmax(axis=1))
    # rows that nobody has looked at: what was learnt is true of them
    before, after = AUDIT.mislabel_proba_[100:], now.opinion.wrong[100:]
    wrong = WRONG[100:]
    assert after[wrong].mean() > before[wrong].mean() + 0.3
    assert after[~wrong].mean() < 0.1


def test_the_most_suspicious_rows_tell_of_others_like_them():
    found = {}
    for name, features in (("learning", FEATURES), ("not", None)):
        each = Learning(Opinion(AUDIT, REVIEW), GIVEN, features)
        answers: dict[int, int] = {}
        for _ in range(8):
            order = (
                each.now.opinion.by_suspicion
                if features is not None
                else np.argsort(-AUDIT.mislabel_proba_)
            )
            rows = [row for row in order.tolist() if row not in answers][:5]
            answers = answers | {row: int(TRUTH[row]) for row in rows}
            each.tell(answers)
            each.wait()
        found[name] = sum(WRONG[row] for row in answers)
    assert found["learning"] > 1.5 * found["not"]


def test_few_answers_and_the_same_ones_teach_nothing_new(learning):
    learning.tell(told(FEWEST - 1))
    assert learning.about()["is_learning"] is False
    learning.tell(told(20))
    learning.wait()
    learning.tell(told(20) | {21: 0})
    assert learning.about() == {
        "version": 1,
        "n_answers": 20,
        "is_learning": False,
        "trouble": None,
    }
    changed = {row: 1 - label for row, label in told(EVERY).items()}
    learning.tell(told(20) | changed)  # other answers to the same rows
    learning.wait()
    assert learning.now.version == 2


def test_nobody_waits_and_what_comes_meanwhile_is_learnt_next(monkeypatch, session):
    begun, go_on, learnt_from = threading.Event(), threading.Event(), []

    def slow(checked, *others):
        begun.set()
        assert go_on.wait(60)
        learnt_from.append(len(checked))
        return recalibrate(checked, *others)

    monkeypatch.setattr(learning_module, "recalibrate", slow)
    try:
        for row in range(30):
            decide(session, row)  # answered while the model is learning
            assert session.queue(QueueFilter("suspicious"), -1)["model"] == 0
            assert row + 1 != FEWEST or begun.wait(60)
        assert session.tally()["model"]["is_learning"]
        assert session.tally()["keep"] + session.tally()["change"] == 30
    finally:
        go_on.set()
    session.learning.wait()
    assert learnt_from == [FEWEST, 30]
    assert session.tally()["model"] == {
        "version": 2,
        "n_answers": 30,
        "is_learning": False,
        "trouble": None,
    }


def test_the_queue_follows_the_model_and_decided_rows_stay_in_it(session):
    for row in range(60):
        decide(session, row)
    session.learning.wait()
    opinion = session.learning.now.opinion
    page = session.queue(QueueFilter("suspicious", status="all", least=0.1), -1)
    in_first = (AUDIT.mislabel_proba_ >= 0.1) & (ROWS < 60)
    open_now = (opinion.wrong >= 0.1) & (ROWS >= 60)
    assert page["model"] >= 1
    assert page["decided"] == in_first.sum()
    assert page["total"] == in_first.sum() + open_now.sum()
    expected = [row for row in opinion.by_suspicion.tolist() if (in_first | open_now)[row]]
    assert [entry["row"] for entry in page["rows"]] == expected[:50]
    shown = session.row(expected[0], "suspicious")
    assert shown["probability"] == pytest.approx(opinion.wrong[expected[0]])
    assert session.row(expected[0], "count")["probability"] is None


def test_what_is_counted_does_not_depend_on_what_was_learnt(session):
    while session.tally()["counted"]["n_rows"] < 30:
        for entry in session.queue(QueueFilter("count"), -1)["rows"][:5]:
            decide(session, entry["row"], "count")
    session.learning.wait()
    counted = session.tally()["counted"]
    draws = session._store.counted()
    rows = [draw.row for draw in draws]
    checked = CheckedLabels(rows, TRUTH[rows], [draw.probability for draw in draws])
    # the model that was not told the answers
    found = checked.wrong_share(GIVEN, AUDIT.mislabel_proba_)
    assert [counted["low"], counted["high"]] == pytest.approx(list(found.anytime))
    assert session.tally()["estimate"]["wrong"]["model"] == pytest.approx(AUDIT.label_error_rate_)


def test_an_undone_decision_is_unlearnt(session):
    for row in range(20):  # it learns from every few, here without being overtaken
        decide(session, row)
        session.learning.wait()
    assert len(session.learning.now.answers) == 20
    for row in range(10):
        session.undo(row, session.row(row, "suspicious")["version"])
        session.learning.wait()
    assert sorted(session.learning.now.answers) == list(range(10, 20))


def test_a_model_that_cannot_be_learnt_is_said_and_the_review_goes_on(monkeypatch, session):
    def fails(*_):
        raise ValueError("no such thing")

    monkeypatch.setattr(learning_module, "recalibrate", fails)
    for row in range(10):
        decide(session, row)
    session.learning.wait()
    decide(session, 10)
    assert session.tally()["model"]["trouble"] == "ValueError: no such thing"
    assert session.tally()["model"]["version"] == 0
    assert len(session.queue(QueueFilter("suspicious"), -1)["rows"]) > 0


def test_a_review_that_is_opened_again_learns_from_what_was_decided(tmp_path):
    with Decisions(tmp_path / "d.sqlite", REVIEW.fingerprint) as store:
        for row in range(20):
            store.decide(row, 0, "keep", int(GIVEN[row]))
        options = {"title": "t", "sample_size": 5, "features": FEATURES}
        client = client_of(REVIEW, AUDIT, store, tmp_path / "out", **options)
        try:
            for _ in range(1000):
                model = client.get("api/tally").json()["model"]
                if model["version"]:
                    break
                threading.Event().wait(0.01)
        finally:
            client.close()
    assert model["n_answers"] == 20


@pytest.mark.slow
def test_the_page_says_what_was_learnt_and_takes_the_new_order(tab, tmp_path):
    with served(tmp_path / "d.sqlite") as (_, address):
        page = tab(address)
        assert "learnt" not in page.text("#goal-text")
        seen = []
        for _ in range(200):
            seen.append(page.decide("keep"))
            if "P(wrong) learnt from" in page.text("#goal-text"):
                break
            page.page.wait_for_timeout(50)
        first = np.argsort(-AUDIT.mislabel_proba_, kind="stable").tolist()
        assert seen[:FEWEST] == first[:FEWEST]
        assert len(seen) < 40
        # all that were suspicious were right, so that the others are less so than they were
        row = page.row
        shown = float(page.text("#chance").rstrip(" %")) / 100
        assert shown < AUDIT.mislabel_proba_[row] - 0.05
        assert row not in seen
        listed = page.page.locator("#rows button span:first-child").all_inner_texts()
        after = [int(text) for text in listed][listed.index(str(row)) :]
        assert not set(after) & set(seen)
        assert len(after) == len(set(after))
        assert page.complaints == []
