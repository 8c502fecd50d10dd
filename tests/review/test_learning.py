"""What the page's model learns from the answers, while the page goes on."""

import threading
from contextlib import closing

import numpy as np
import pytest
from sklearn.datasets import make_classification

from tests.review.made import client_of, made_audit, made_table, served
from unflip import CheckedLabels, LabelAudit, NoiseRates, flip_labels
from unflip._app.review import Opinion, ReviewSession
from unflip.checked.internals import recalibrate
from unflip.review import Decisions, ReviewTable

RECALIBRATE = "unflip._app.review._learning.recalibrate"
TABLE = made_table()
AUDIT = made_audit(TABLE)
REVIEW = ReviewTable(TABLE, "kind", id_column="name")
GIVEN, ROWS = REVIEW.codes, np.arange(REVIEW.n_rows)
FEATURES = TABLE.select("weight", "length").to_numpy()
# a person goes by the length as well, which the labels do not show
TRUTH = (FEATURES @ [1.0, 3.0] > 1.5).astype(int)
WRONG = TRUTH != GIVEN


OPTIONS = {"title": "fruit", "sample_size": 20, "random_state": 0}
FEWEST, EVERY = 10, 5
"""Answers before which nothing is learnt, and new ones after which it is learnt again."""


class Review:
    """A review by its page, and a person who knows the truth."""

    def __init__(self, store, features=FEATURES):
        folder = store.path.parent / "out"
        self._page = client_of(REVIEW, AUDIT, store, folder, features=features, **OPTIONS)
        self.get, self.close = self._page.get, self._page.close

    def decide(self, row, queue="suspicious"):
        version = self.get(f"api/row?row={row}&queue={queue}").json()["version"]
        right = TRUTH[row] == GIVEN[row]
        body = {"row": int(row), "version": version, "verdict": "keep", "queue": queue}
        body |= {} if right else {"verdict": "change", "label": int(TRUTH[row])}
        assert self._page.post("api/decide", body).status_code == 200

    def undo(self, row):
        version = self.get(f"api/row?row={row}&queue=suspicious").json()["version"]
        assert self._page.post("api/undo", {"row": row, "version": version}).status_code == 200

    def tally(self):
        return self.get("api/tally").json()

    def model(self):
        """Return what the page says of its model, once it is not learning any more."""
        for _ in range(6000):
            model = self.tally()["model"]
            if not model["is_learning"]:
                return model
            threading.Event().wait(0.01)
        raise AssertionError("it does not end to learn")

    def wrong(self):
        """Return P(wrong) of every row, as the page shows it."""
        found, more, after = np.full(ROWS.size, np.nan), True, -1
        while more:
            page = self.get(f"api/queue?queue=suspicious&status=all&after={after}").json()
            more, after = page["more"], page["rows"][-1]["row"]
            for entry in page["rows"]:
                found[entry["row"]] = entry["probability"]
        return found


def answer(store, rows):
    """Write what a person who knows the truth says of some rows, before the page is opened."""
    for row in rows:
        verdict = "keep" if TRUTH[row] == GIVEN[row] else "change"
        store.decide(row, 0, verdict, int(TRUTH[row]))


@pytest.fixture
def store(tmp_path):
    with Decisions(tmp_path / "d.sqlite", REVIEW.fingerprint) as store:
        yield store


@pytest.fixture
def review(store):
    with closing(Review(store)) as review:
        yield review


def test_what_is_learnt_is_true_of_rows_that_nobody_has_looked_at(store):
    answer(store, range(100))
    with closing(Review(store)) as review:
        assert review.model()["n_answers"] == 100
        before, after, wrong = AUDIT.mislabel_proba_[100:], review.wrong()[100:], WRONG[100:]
    assert after[wrong].mean() > before[wrong].mean() + 0.3
    assert after[~wrong].mean() < 0.1


def test_the_most_suspicious_rows_tell_of_others_like_them(tmp_path):
    found = {}
    for name, features in (("learning", FEATURES), ("not", None)):
        with Decisions(tmp_path / f"{name}.sqlite", REVIEW.fingerprint) as store:
            for _ in range(4):
                with closing(Review(store, features)) as review:
                    review.model()
                    rows = review.get("api/queue?queue=suspicious").json()["rows"]
                answer(store, [row["row"] for row in rows[:10]])
            found[name] = sum(said.verdict == "change" for said in store.all().values())
    assert found["learning"] > 1.5 * found["not"]


@pytest.mark.parametrize("queue", ["suspicious", "informative"])
def test_the_number_of_errors_stays_near_the_truth_while_it_learns(tmp_path, queue):
    """Rows that are picked because they look wrong do not say how many others are wrong."""
    X, true = make_classification(
        3000, 10, n_informative=8, class_sep=1.5, weights=[0.7], flip_y=0, random_state=1
    )
    given = np.asarray(flip_labels(true, NoiseRates(0.08, 0.02), random_state=0))
    table = ReviewTable(X, given)
    opinion = Opinion(LabelAudit(random_state=0).fit(X, given), table)
    in_queue, n_wrong = (opinion.wrong >= 0.1).sum(), (true != given).sum()
    low, high = (bound / opinion.error_rate.value for bound in opinion.error_rate.range)
    with Decisions(tmp_path / "d.sqlite", table.fingerprint) as store:
        options = {"title": "", "sample_size": 20, "features": X}
        n_answers = 0
        for n in (20, 40, 60, 100, 200, 300):
            order = {"suspicious": opinion.by_suspicion, "informative": opinion.by_information}
            open_rows = [row for row in order[queue].tolist() if row not in store.all()]
            for row in open_rows[: n - n_answers]:
                verdict = "keep" if true[row] == given[row] else "change"
                store.decide(row, 0, verdict, int(true[row]))
            n_answers = n
            session = ReviewSession(table, opinion, store, tmp_path / "out", **options)
            session.learning.wait()
            opinion = session.learning.now.opinion
            answered = np.array(list(store.all()))
            found = (true != given)[answered].sum()
            reported = found + np.delete(opinion.wrong, answered).sum()
            assert 0.7 * n_wrong < reported < 1.3 * n_wrong
            assert low * in_queue <= (opinion.wrong >= 0.1).sum() <= high * in_queue


def test_few_answers_and_few_new_ones_teach_nothing_new(store):
    answer(store, range(FEWEST - 1))
    with closing(Review(store)) as review:
        assert review.model()["version"] == 0
        review.decide(FEWEST)
        assert review.model()["version"] == 1
        for row in range(EVERY - 1):  # other answers to the same rows
            review.undo(row)
        assert review.model()["version"] == 1
        review.undo(EVERY)
        assert review.model()["version"] == 2


def test_nobody_waits_and_what_comes_meanwhile_is_learnt_next(monkeypatch, review):
    begun, go_on, learnt_from = threading.Event(), threading.Event(), []

    def slow(checked, *others):
        begun.set()
        assert go_on.wait(60)
        learnt_from.append(len(checked))
        return recalibrate(checked, *others)

    monkeypatch.setattr(RECALIBRATE, slow)
    try:
        for row in range(30):
            review.decide(row)  # answered while the model is learning
            assert review.get("api/queue?queue=suspicious").json()["model"] == 0
            assert row + 1 != FEWEST or begun.wait(60)
        tally = review.tally()
        assert tally["model"]["is_learning"]
        assert tally["keep"] + tally["change"] == 30
    finally:
        go_on.set()
    assert review.model() == {"version": 2, "n_answers": 30, "is_learning": False, "trouble": None}
    assert learnt_from == [FEWEST, 30]


def test_the_queue_follows_the_model_and_decided_rows_stay_in_it(review):
    for row in range(30):
        review.decide(row)
    assert review.model()["version"] >= 1
    wrong = review.wrong()
    page = review.get("api/queue?queue=suspicious&status=all&least=10").json()
    in_first = (AUDIT.mislabel_proba_ >= 0.1) & (ROWS < 30)
    open_now = (wrong >= 0.1) & (ROWS >= 30)
    assert page["decided"] == in_first.sum()
    assert page["total"] == in_first.sum() + open_now.sum()
    expected = [row for row in np.argsort(-wrong, kind="stable") if (in_first | open_now)[row]]
    assert [entry["row"] for entry in page["rows"]] == expected[:50]
    assert review.get(f"api/row?row={expected[0]}&queue=count").json()["probability"] is None


def test_what_is_counted_does_not_depend_on_what_was_learnt(review, store):
    while review.tally()["counted"]["n_rows"] < 30:
        for entry in review.get("api/queue?queue=count").json()["rows"][:5]:
            review.decide(entry["row"], "count")
    assert review.model()["version"] >= 1
    counted = review.tally()["counted"]
    draws = store.drawn.counted()
    rows = [draw.row for draw in draws]
    checked = CheckedLabels(rows, TRUTH[rows], [draw.probability for draw in draws])
    # the model that was not told the answers
    found = checked.label_error_rate(GIVEN, AUDIT.mislabel_proba_)
    assert [counted["low"], counted["high"]] == pytest.approx(list(found.anytime))
    model = review.tally()["estimate"]["wrong"]["model"]
    assert model == pytest.approx(AUDIT.label_error_rate_)


def test_undone_decisions_are_unlearnt(store):
    answer(store, range(20))
    with closing(Review(store)) as review:
        assert review.model()["n_answers"] == 20
        for row in range(10):
            review.undo(row)
        assert review.model()["n_answers"] in range(10, 10 + EVERY)


def test_a_model_that_cannot_be_learnt_is_said_and_the_review_goes_on(monkeypatch, review):
    def fails(*_):
        raise ValueError("no such thing")

    monkeypatch.setattr(RECALIBRATE, fails)
    for row in range(10):
        review.decide(row)
    review.model()
    review.decide(10)
    model = review.model()
    assert (model["version"], model["trouble"]) == (0, "ValueError: no such thing")
    assert len(review.get("api/queue?queue=suspicious").json()["rows"]) > 0


def test_a_review_that_is_opened_again_learns_from_what_was_decided(store):
    for row in range(20):
        store.decide(row, 0, "keep", int(GIVEN[row]))
    with closing(Review(store)) as review:
        model = review.model()
        assert (model["version"], model["n_answers"]) == (1, 20)


@pytest.mark.slow
def test_the_page_says_what_was_learnt_and_takes_the_new_order(tab, tmp_path):
    with served(tmp_path / "d.sqlite") as (_, address):
        page = tab(address)
        assert "learnt" not in page.text("#goal-text")
        seen = []
        for _ in range(200):
            seen.append(page.decide("keep"))
            if "P(wrong) updated with" in page.text("#goal-text"):
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
