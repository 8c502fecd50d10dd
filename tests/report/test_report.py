"""The page on noisy labels: one dictionary, three ways to write it, text from data as it is."""

import base64
import hashlib
import json
import re
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression

from tests.report.test_document import Tags
from unflip import (
    ImportanceReweightingClassifier,
    LabelNoiseWarning,
    NoiseRates,
    TransitionMatrix,
    flip_labels,
    noise_by_slice,
)
from unflip._app.markup import rounded
from unflip._app.report import Report, findings, make_report
from unflip._app.words import (
    between,
    certainty,
    doubts,
    headline,
    next_steps,
    rate_sentences,
    verdict,
)
from unflip._diagnostics.findings import range_sentence
from unflip.audit import LabelAudit
from unflip.metrics import clean_accuracy_score

RATES = NoiseRates(positive=0.3, negative=0.1)
EVIL = '<script>alert("x")</script> **b** `c` | [l](u) & \\* \x1b[31m'


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 600)
    X = rng.normal(2.4 * y[:, None], 1.0, (600, 2))
    return X, y, flip_labels(y, RATES, random_state=0)


@pytest.fixture(scope="module")
def report(data):
    X, _, noisy = data
    clf = ImportanceReweightingClassifier(noise_rates=RATES, cv=5, random_state=0).fit(X, noisy)
    rows = pl.DataFrame({"x": X[:, 0], "text": [EVIL] * 600})
    made = {"table": EVIL, "label": "y", "command": "unflip report", "seed": 0, "versions": {}}
    return make_report(clf, X, noisy, rows=rows, made=made)


def test_the_page_needs_nothing_else_and_is_well_formed(report):
    page = report.to_html()
    tags = Tags(re.sub(r"<(rect|path)([^>]*)/>", r"<path\2/>", page)).found
    assert not {tag for tag, _ in tags} & {"link", "img", "iframe", "object"}
    # the only script stands in the page, and its policy names it
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    assert [attributes for tag, attributes in tags if tag == "script"] == [{}]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in page
    assert not re.search(r"@import|url\((?!#)", page)
    assert set(re.findall(r"https?://[^/\"]+", page)) <= {"http://www.w3.org"}
    assert page.count("<figure") == 3
    assert "prefers-color-scheme: dark" in page
    assert "@media print" in page


def test_text_from_the_data_is_shown_as_it_is(report):
    page = report.to_html()
    assert page.count("<script") == 1  # the page's own
    assert "<script>alert" not in page
    assert "\x1b" not in page
    # the cell and the title, cut to a length
    assert "&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt; **b** `c` |…" in page
    assert "**b** `c` | [l](u) &amp; \\* \ufffd[31m" in page
    markdown = report.to_markdown()
    assert "<script" not in markdown.replace("\\<script", "")
    assert "\x1b" not in markdown


def test_classes_that_look_like_markup_are_shown_as_they_are(data):
    X, _, noisy = data
    # "**x**" sorts first, so that "<i>" is the positive class
    names = np.array(["<i>", "**x**"])[noisy]
    clf = ImportanceReweightingClassifier(noise_rates=RATES.swapped()).fit(X, names)
    page = make_report(clf, X, names).to_html()
    assert "<i>" not in page
    assert "truly <strong>**x**</strong>" in page
    assert "labelled &lt;i&gt;" in page


def test_json_is_the_dictionary_in_four_digits_and_markdown_has_no_pictures(report):
    assert json.loads(report.to_json()) == rounded(report.content)
    without_values = re.sub(r'"values": \{[^}]*\}', "", report.to_json())
    assert not re.search(r"\d\.\d{8}", without_values)
    assert json.loads(report.to_json())["suspects"] != []
    for told, known in zip(
        json.loads(report.to_json())["suspects"], report.content["suspects"], strict=True
    ):
        assert told["values"] == known["values"]
    assert ".svg" not in report.to_markdown()
    for heading in re.findall(r"^## (.*)$", report.to_markdown(), re.MULTILINE):
        assert f"<h2>{heading}</h2>" in report.to_html()


def test_suspects_are_the_audits_fifty_first(report, data):
    X, truth, noisy = data
    audit = LabelAudit("auto", RATES, random_state=0).fit(X, noisy)
    told = report.content["suspects"]
    assert [one["row"] for one in told] == audit.issues(n=50).tolist()
    assert [one["p_wrong"] for one in told] == pytest.approx(
        audit.mislabel_proba_[audit.issues(n=50)]
    )
    assert np.mean([truth[one["row"]] != one["label"] for one in told]) > 0.9


def test_rows_that_were_looked_at_are_not_listed_again(report, data):
    X, _, noisy = data
    clf = ImportanceReweightingClassifier(noise_rates=RATES, cv=5, random_state=0).fit(X, noisy)
    first = [one["row"] for one in report.content["suspects"]]
    told = [one["row"] for one in findings(clf, X, noisy, settled=first[:20])["suspects"]]
    assert told[:30] == first[20:]
    assert not set(told) & set(first[:20])


def test_the_gain_is_the_difference_of_two_clean_accuracies(report, data):
    accuracy = report.content["accuracy"]
    before, after, gain = (
        accuracy[name]["score"] for name in ("labels_as_they_are", "reweighted", "gain")
    )
    assert gain == pytest.approx(after - before)
    assert after == pytest.approx(0.955, abs=0.05)  # of the best classifier
    error = accuracy["reweighted"]["standard_error"]
    assert 0 < error < 0.1
    # errors of the same rows cancel
    assert accuracy["gain"]["standard_error"] < error
    _, truth, noisy = data
    score = clean_accuracy_score(noisy, truth, RATES)
    assert error == pytest.approx(score.standard_error, rel=0.5)


def test_a_class_too_rare_for_folds_leaves_the_accuracy_out():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [200, 8])
    X = rng.normal(4.0 * y[:, None], 1.0, (208, 2))
    clf = ImportanceReweightingClassifier(noise_rates=NoiseRates(0.01, 0.01)).fit(X, y)
    report = make_report(clf, X, y)
    assert report.content["accuracy"] is None
    assert "a class has too few rows for cross-validation" in report.to_html()


def test_clean_labels_are_called_clean(data):
    X, y, _ = data
    clf = ImportanceReweightingClassifier(noise_rates=NoiseRates(0.0, 0.0)).fit(X, y)
    report = make_report(clf, X, y)
    assert "At the rates given, next to none of the 600 labels is wrong." in report.to_html()
    assert "No row is suspicious at these rates." in report.to_html()
    assert "Train as usual" in report.to_html()


def test_many_classes_are_reported_without_the_picture_of_two(data):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 5, 800)
    X = np.eye(5)[y] * 4 + rng.normal(size=(800, 5))
    noise = TransitionMatrix.uniform(5, 0.2)
    noisy = flip_labels(y, noise, random_state=0)
    clf = ImportanceReweightingClassifier(posterior=LogisticRegression(), noise_rates=noise)
    page = make_report(clf.fit(X, noisy), X, noisy).to_html()
    assert page.count("<figure") == 3
    assert "are labelled otherwise." in page
    assert "mostly" not in page


LONG = " ".join(["word"] * 100)


@pytest.fixture(scope="module")
def animals():
    """Return the report on a table of three classes, with many columns and long texts."""
    rng = np.random.default_rng(1)
    names = np.array(["cat", "dog", "fish"])
    true = rng.integers(0, 3, 600)
    X = np.eye(3)[true] * 4 + rng.normal(size=(600, 3))
    noise = TransitionMatrix([[0.7, 0.3, 0], [0, 1, 0], [0.1, 0, 0.9]])
    y = flip_labels(names[true], noise, random_state=0)
    clf = ImportanceReweightingClassifier(random_state=0).fit(X, y)
    table = pl.DataFrame({f"column {k}": X[:, k % 3] for k in range(9)})
    return make_report(clf, X, y, rows=table.with_columns(note=pl.lit(LONG)))


def test_many_classes_show_what_is_taken_for_what(animals):
    report = animals
    found = report.content["summary"]
    low, high = (found["transition_interval"][end] for end in ("low", "high"))
    assert low[0][1] <= 0.3 <= high[0][1]
    page = report.to_html()
    assert "<title>truly cat, labelled dog:" in page
    assert page.count('class="wrong"') == 6
    shown = float(re.search(r"\| cat \| dog \| (\d+)%", report.to_markdown())[1])
    assert abs(shown - 30) < 8
    assert re.search(r"ome classes are (probably )?mislabelled more often than others", page)


def test_the_page_has_a_table_of_contents_that_leads_to_its_parts(animals):
    page = animals.to_html()
    names = re.findall(r'<a href="#([^"]+)">', page)
    assert "what-is-taken-for-what" in names
    assert all(f'<span id="{name}"></span>\n<h2>' in page for name in names)


def test_every_column_of_a_suspicious_row_can_be_opened(animals):
    page = animals.to_html()
    assert page.count("<details>") == 50
    assert "<dt>column 8</dt>" in page
    assert f"<dd>{LONG}</dd>" in page
    few = [{**one, "values": {"column 0": 1.5}} for one in animals.content["suspects"]]
    assert "<details>" not in Report({**animals.content, "suspects": few}).to_html()


def test_only_a_class_that_takes_most_flips_is_called_that():
    found = {
        "classes": ["a", "b", "c"],
        "per_class": [{"flip_rate": 0.2}] * 3,
        "transition_matrix": [[0.8, 0.11, 0.09], [0.15, 0.8, 0.05], [0, 0, 1]],
    }
    first, second, third = rate_sentences(found)
    assert first.endswith("are labelled otherwise.")
    assert second.endswith("are labelled otherwise, mostly **a**.")
    assert "mostly" not in third


def test_a_notebook_shows_it_in_short(report):
    shown = report._repr_html_()
    assert "of the labels are wrong" in shown
    assert "accuracy on clean labels" in shown
    assert "<style" not in shown
    assert "<script" not in shown
    assert shown.count("</tr>") < 20
    assert len(shown) < len(report.to_html()) / 3


@pytest.mark.parametrize("pack", [pd.DataFrame, pl.DataFrame])
def test_a_notebook_shows_the_first_rows_of_a_dataframe_as_a_table(data, pack):
    X, _, noisy = data
    table = pack({"width <cm>": X[:, 0], "height": X[:, 1]})
    clf = ImportanceReweightingClassifier(noise_rates=RATES).fit(table, noisy)
    report = make_report(clf, table, noisy)
    shown = report._repr_html_()
    assert '<th scope="col">width &lt;cm&gt;</th>' in shown
    for one in report.content["suspects"][:10]:
        assert f"<span>{one['row']}</span>" in shown
        assert f"<span>{X[one['row'], 0]:.4g}</span>" in shown


@pytest.fixture(scope="module")
def sliced(data):
    """Return a report with the noise of two shops, of which one errs more."""
    X, true, _ = data
    rng = np.random.default_rng(1)
    shop = rng.choice(["corner <b>", "market"], 600)
    noisy = np.where(rng.random(600) < np.where(shop == "market", 0.3, 0.02), 1 - true, true)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LabelNoiseWarning)
        found = noise_by_slice(X, noisy, by=pd.Series(shop, name="shop"), random_state=0)
        clf = ImportanceReweightingClassifier(noise_rates=NoiseRates(0.15, 0.15), random_state=0)
        clf.fit(X, noisy)
    return found, make_report(clf, X, noisy, slices=[found])


def test_slices_are_drawn_told_and_listed(sliced):
    found, report = sliced
    page = report.to_html()
    assert "Noise by &#x27;shop&#x27;" in page
    assert "corner &lt;b&gt;" in page
    assert "corner <b>" not in page
    assert page.count('class="whisker"') == 2
    (told,) = report.content["slices"]
    assert told["p_value"] >= 1e-4
    assert told["sentence"] == str(found)
    for part, share, ends in zip(
        told["slices"], found.wrong_share, found.wrong_share_interval, strict=True
    ):
        assert part["wrong_share"] == share
        assert part["interval"] == ends.tolist()
    assert "The noise differs between slices" in report._repr_html_()
    assert "| market |" in report.to_markdown()
    json.loads(report.to_json())


def test_what_is_doubtful_of_slices_is_said_with_them(sliced):
    found, _ = sliced
    doubted = replace(found, diagnostics=["The model is off."])
    assert str(doubted).endswith("at random. But that is not sure: The model is off.")
    sure = replace(found, diagnostics=[])
    assert str(sure).endswith("labels are flipped at random.")


def test_classes_that_are_flipped_alike_are_one_sentence():
    found = {
        "classes": ["a", "b", "c"],
        "per_class": [{"flip_rate": 0.2}] * 3,
        "transition_matrix": [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]],
    }
    assert rate_sentences(found) == [
        "Of the rows of each of the 3 classes, 20% are labelled otherwise."
    ]


def test_names_that_end_in_a_blank_are_told_from_those_that_do_not():
    found = {**FOUND, "classes": ["no", "no "]}
    first, second = rate_sentences(found)
    assert "truly **no**" in first
    assert "truly **'no '**" in second


FOUND = {
    "n_samples": 1000,
    "classes": ["no", "yes"],
    "expected_errors": 180.0,
    "expected_error_share": 0.18,
    "noise_rates": {"positive": 0.3, "negative": 0.1},
    "transition_matrix": [[0.9, 0.1], [0.3, 0.7]],
    "per_class": [
        {"label": "no", "flip_rate": 0.1, "interval": [0.055, 0.14]},
        {"label": "yes", "flip_rate": 0.3, "interval": [0.25, 0.36]},
    ],
    "interval": {"level": 0.95, "positive": [0.25, 0.36], "negative": [0.055, 0.14]},
    "tests": {
        "noise": {"p_value": 0.0001, "probability_of_none": 0.0},
        "symmetry": {"p_value": 0.2, "probability_of_equal": 0.4},
    },
    "warnings": [],
    "range": range_sentence((0.14, 0.22), (0.0, 0.3)),
}


def test_rates_are_said_with_their_intervals():
    assert headline(FOUND) == "**About 18% of the labels are wrong**: some 180 of 1,000 rows."
    assert rate_sentences(FOUND)[1] == (
        "Of the rows that are truly **yes**, 30% (between 25% and 36%) are labelled **no**."
    )
    assert "(between 5.5% and 14%)" in rate_sentences(FOUND)[0]


def test_tests_are_said_in_words():
    level, noise, symmetry = certainty(FOUND)
    assert "in 95% of such samples" in level
    assert noise == (
        "Labels are noisy: if all labels were right, data like these would come up less than once "
        "in 2,000 samples."
    )
    assert symmetry.startswith(
        "Whether one class is mislabelled more often than the other is open: if both were"
    )
    assert "in 20% of samples" in symmetry


def test_a_doubt_changes_the_headline_and_puts_the_tests_under_the_assumptions():
    doubtful = {**FOUND, "warnings": [f"The model is off. {FOUND['range']}"]}
    assert headline(doubtful).startswith("**About 18% of the labels may be wrong, but that is not")
    assert all(said.startswith("If the assumptions hold") for said in certainty(doubtful)[1:])
    # the range is said once, beside the headline
    assert verdict(doubtful) == [headline(doubtful), FOUND["range"]]
    assert doubts(doubtful) == ["The model is off."]


def test_noise_that_is_not_shown_is_not_sure():
    unclear = {"p_value": 0.2, "probability_of_none": 0.4}
    found = {**FOUND, "tests": {**FOUND["tests"], "noise": unclear}}
    assert "but that is not sure" in headline(found)


def test_where_nothing_is_seen_no_more_than_that_is_said():
    clean = {**FOUND, "expected_errors": 0.0, "expected_error_share": 0.0}
    assert headline(clean) == "**No random flips are seen** in the 1,000 labels."
    assert "is open" in headline({**clean, "warnings": ["A rule gives the labels."]})


def test_a_leak_is_to_be_dropped_before_all_else():
    found = {**FOUND, "leaks": ["out_come"], "warnings": ["Column 'out_come' is the label."]}
    assert verdict(found) == [headline(found)]
    assert headline(found).startswith("**Drop the column out\\_come first**")
    assert "--drop" in next_steps(found)[0]


def test_spellings_of_one_class_are_to_be_merged_before_all_else():
    found = {**FOUND, "classes": ["left", "stayed ", "stayed"]}
    assert verdict(found) == [headline(found)]
    assert "look alike first**: 'stayed ' and stayed." in headline(found)
    assert len(next_steps(found)) == 1
    assert "`--merge-labels`" in next_steps(found)[0]


def test_a_rare_result_that_settles_nothing_is_said_to_be_as_rare_otherwise():
    tests = {**FOUND["tests"], "symmetry": {"p_value": 0.001, "probability_of_equal": 0.3}}
    said = certainty({**FOUND, "tests": tests})[-1]
    assert "is open" in said
    assert said.endswith("in 0.1% of samples, but they are hardly likelier otherwise.")


def test_no_interval_is_shown_without_a_width():
    assert between([0.0, 0.0]) == between([0.0, 0.0001]) == "less than 0.1%"
    assert between([0.3, 0.3]) == "about 30%"
    assert between([0.082, 0.11]) == "between 8.2% and 11%"


def test_without_intervals_and_tests_nothing_is_said_of_them():
    assert certainty({**FOUND, "interval": None, "tests": None}) == []


def test_warnings_are_read_first():
    assert next_steps({**FOUND, "warnings": ["doubtful"]})[0].startswith("Read the doubts first")


def test_beside_a_copy_of_the_label_nothing_else_is_shown(report):
    found = {**report.content["summary"], "leaks": ["paid"], "warnings": ["'paid' is the label."]}
    page = Report({**report.content, "summary": found})
    assert "Drop the column paid first" in page.to_html()
    for written in (page.to_html(), page.to_markdown(), page._repr_html_()):
        assert "accuracy on clean labels" not in written
        assert "of the labels are wrong" not in written
