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

from tests.report.tags import Tags, bars, drawing, scale
from unflip import (
    ImportanceReweightingClassifier,
    LabelNoiseWarning,
    NoiseRates,
    TransitionMatrix,
    flip_labels,
    noise_by_slice,
)
from unflip.audit import LabelAudit
from unflip.metrics import clean_accuracy_score
from unflip.report import Report, make_report

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
    tags = Tags(page).found
    assert not {tag for tag, _ in tags} & {"link", "img", "iframe", "object"}
    # the only script stands in the page, and its policy names it
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    assert [attributes for tag, attributes in tags if tag == "script"] == [{}]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in page
    assert not re.search(r"@import|url\((?!#)", page)
    assert set(re.findall(r"https?://[^/\"]+", page)) <= {"http://www.w3.org"}
    assert page.count("<figure") == 4
    assert ("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}) in tags
    assert ("meta", {"charset": "utf-8"}) in tags
    assert ("html", {"lang": "en"}) in tags
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
    assert re.search(r"^\| .*\[l\\\]\(u\) .*\\\| ", markdown, re.MULTILINE) is None
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
    told = json.loads(report.to_json())
    assert told["accuracy"]["gain"]["score"] == pytest.approx(
        report.content["accuracy"]["gain"]["score"], rel=5e-4
    )
    without_values = re.sub(r'"values": \{[^}]*\}', "", report.to_json())
    assert not re.search(r"\d\.\d{8}", without_values)
    assert told["suspects"] != []
    for one, known in zip(told["suspects"], report.content["suspects"], strict=True):
        assert one["values"] == known["values"]
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
    again = make_report(clf, X, noisy, settled=first[:20]).content["suspects"]
    told = [one["row"] for one in again]
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
    assert "At the given rates, next to none of the 600 labels is wrong." in report.to_html()
    assert "No row is suspicious" in report.to_html()
    assert "Train as usual" in report.to_html()


def test_many_classes_are_reported_without_the_picture_of_two(data):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 5, 800)
    X = np.eye(5)[y] * 4 + rng.normal(size=(800, 5))
    noise = TransitionMatrix.uniform(5, 0.2)
    noisy = flip_labels(y, noise, random_state=0)
    clf = ImportanceReweightingClassifier(posterior=LogisticRegression(), noise_rates=noise)
    page = make_report(clf.fit(X, noisy), X, noisy).to_html()
    assert page.count("<figure") == 4
    assert "are mislabelled." in page
    # the picture of every class, and of all labels, comes before the first sentence
    first = page.partition("are mislabelled.")[0]
    assert first.count('class="whisker"') == 6
    assert first.count("<figure") == 2
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
    with warnings.catch_warnings():  # 200 rows of a class leave its rate uncertain
        warnings.simplefilter("ignore", LabelNoiseWarning)
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


def test_the_page_has_a_table_of_contents_that_leads_to_its_parts(animals):
    page = animals.to_html()
    names = re.findall(r'<a href="#([^"]+)">', page)
    assert "training-weights" in names
    assert all(f'<span id="{name}"></span>\n<h2>' in page for name in names)


def test_every_column_of_a_suspicious_row_can_be_opened(animals):
    page = animals.to_html()
    assert page.count("<details>") == 50
    assert "<dt>column 8</dt>" in page
    assert f"<dd>{LONG}</dd>" in page
    few = [{**one, "values": {"column 0": 1.5}} for one in animals.content["suspects"]]
    assert "<details>" not in Report({**animals.content, "suspects": few}).to_html()


def test_a_notebook_shows_it_in_short(report):
    shown = report._repr_html_()
    assert "of the labels are wrong" in shown
    assert "accuracy on clean labels" in shown
    assert "<style" not in shown
    assert "<script" not in shown
    assert shown.count("</tr>") < 20
    assert len(shown) < len(report.to_html()) / 3


def with_histogram(report, name, edges, counts, **more):
    """Return the page of a report, if a histogram were another one."""
    changed = report.content["histograms"] | {name: {"edges": edges, "counts": counts, **more}}
    return Report(report.content | {"histograms": changed}).to_html()


def test_bars_are_as_high_as_their_bins_and_stand_on_one_another(report):
    shares = {"label_share": [0.5, 0.5], "weight_share": [0.5, 0.5]}
    page = with_histogram(report, "weights", [0, 0.5, 1], [[10, 0], [30, 20]], **shares)
    picture = drawing(page, "Rows by training weight")
    (low, legend), (left, right, _) = bars(picture, 0), bars(picture, 1)
    assert legend["width"] == legend["height"]
    heights = [float(bar["height"]) for bar in (low, left, right)]
    assert np.divide(heights, heights[0]) == pytest.approx([1, 3, 2], rel=0.01)
    assert float(left["y"]) + heights[1] == pytest.approx(float(low["y"]))


@pytest.mark.parametrize("rows", [0, 1, 7, 1234, 10**7])
def test_the_scale_of_a_picture_holds_the_tallest_bar(report, rows):
    page = with_histogram(report, "mislabelled", [0, 1], [rows])
    ticks = scale(drawing(page, "Rows by the probability that"))
    assert ticks[0] == 0
    assert ticks[-1] >= rows
    assert 2 <= len(ticks) <= 6


def test_a_table_in_markdown_has_its_caption_its_rule_and_figures_at_the_right(report):
    lines = report.to_markdown().splitlines()
    start = lines.index("*The 50 rows most likely to be mislabelled, counted from 0.*")
    assert lines[start + 1] == ""
    assert lines[start + 2].startswith("| row | label | suggested | P(wrong) | x |")
    assert lines[start + 3].startswith("| --- | --- | --- | ---: | ---: |")


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
    pictures = page.split("<figure")
    (slices,) = (each for each in pictures if "corner &lt;b&gt;" in each.partition("</svg>")[0])
    assert slices.partition("</svg>")[0].count('class="whisker"') == 2
    (told,) = report.content["slices"]
    assert told["p_value"] >= 1e-4
    assert told["sentence"] == str(found)
    for part, share, ends in zip(
        told["slices"], found.label_error_rate, found.label_error_rate_interval, strict=True
    ):
        assert part["label_error_rate"] == share
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


def written(report, **changes):
    """Return the page in Markdown, as if the summary were another one in some respects."""
    found = report.content["summary"] | changes
    return Report(report.content | {"summary": found}).to_markdown()


def flipped(animals, matrix):
    """Return the sentences on how often each class is flipped, if this were the matrix."""
    per_class = [
        row | {"flip_rate": 1 - matrix[k][k]}
        for k, row in enumerate(animals.content["summary"]["per_class"])
    ]
    page = written(animals, transition_matrix=matrix, transition_interval=None, per_class=per_class)
    return [line for line in page.splitlines() if "labelled" in line and line.startswith("- 2")]


def test_only_a_class_that_takes_most_flips_is_called_that(animals):
    first, second = flipped(animals, [[0.8, 0.11, 0.09], [0.15, 0.8, 0.05], [0, 0, 1]])
    assert "mostly" not in first
    assert "mostly as **cat**" in second


def test_of_many_classes_the_three_that_are_flipped_most_have_a_sentence(data):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 6, 900)
    X = np.eye(6)[y] * 6 + rng.normal(size=(900, 6))
    matrix = np.eye(6)
    for k, rate in ((1, 0.3), (2, 0.1), (4, 0.2), (5, 0.05)):
        matrix[k, [k, 0]] = 1 - rate, rate
    noise = TransitionMatrix(matrix)
    noisy = flip_labels(y, noise, random_state=0)
    model = LogisticRegression(max_iter=1000)
    clf = ImportanceReweightingClassifier(model, posterior=model, noise_rates=noise)
    page = make_report(clf.fit(X, noisy), X, noisy).to_markdown()
    assert re.findall(r"(\d+)% of truly \*\*(\d)\*\*", page) == [
        ("30", "1"),
        ("20", "4"),
        ("10", "2"),
    ]
    assert "At most 5.0% of the rows of any other class" in page


@pytest.fixture(scope="module")
def estimated(data):
    """Return the report on rates that were estimated."""
    X, _, noisy = data
    clf = ImportanceReweightingClassifier(random_state=0).fit(X, noisy)
    return make_report(clf, X, noisy)


def test_rates_are_shown_with_their_intervals(estimated):
    found, page = estimated.content["summary"], written(estimated)
    assert f"**About {found['expected_error_share']:.0%} of the labels" in page
    shown = re.findall(r"([\d.]+)% \(between ([\d.]+)% and ([\d.]+)%\)", page)
    for name, numbers in zip(("negative", "positive"), shown[:2], strict=True):
        exact = [found["noise_rates"][name], *found["interval"][name]]
        assert np.divide([float(one) for one in numbers], 100) == pytest.approx(exact, abs=0.0051)
    assert "between" not in written(estimated, transition_interval=None).partition("## ")[0]


def test_the_verdict_leads_and_a_warning_stands_in_a_box(estimated):
    found = estimated.content["summary"]
    assert found["verdict"]["code"] == "known_amount"
    assert f"**{found['verdict']['sentence']}**" in written(estimated)
    page = Report(
        estimated.content | {"summary": found | {"warnings": ["The model is off."]}}
    ).to_html()
    assert '<p class="warning"><strong>Warning:</strong> The model is off.</p>' in page
    assert 'class="warning"' not in estimated.to_html()


def test_the_assumption_is_stated_once_and_notes_stand_behind(estimated):
    found = estimated.content["summary"]
    page = written(estimated, notes=["Trees were used."])
    assert page.count(found["range"]) == 1
    before, _, after = page.partition("## Notes")
    assert "Trees were used." in after
    assert "Trees were used." not in before
    assert "## Notes" not in written(estimated, notes=[])


def test_no_interval_is_shown_without_a_width(estimated):
    def page(low, high):
        ends = {end: [[1 - p, p], [p, 1 - p]] for end, p in (("low", low), ("high", high))}
        ends["low"][0][0], ends["high"][0][0] = ends["high"][0][0], ends["low"][0][0]
        ends["low"][1][1], ends["high"][1][1] = ends["high"][1][1], ends["low"][1][1]
        return written(estimated, transition_interval=ends | {"level": 0.95})

    assert "(less than 0.1%)" in page(0.0, 0.0001)
    assert "(about 30%)" in page(0.3, 0.3)
    assert "(between 8.2% and 11%)" in page(0.082, 0.11)


@pytest.mark.parametrize("code", ["leak", "rule", "classes_look_alike"])
def test_beside_a_copy_of_the_label_nothing_else_is_shown(report, code):
    verdict = {"code": code, "sentence": "'paid' is the label."}
    found = {**report.content["summary"], "leaks": ["paid"], "verdict": verdict}
    found["warnings"] = [verdict["sentence"]]
    page = Report({**report.content, "summary": found})
    for written in (page.to_html(), page.to_markdown(), page._repr_html_()):
        assert "paid" in written
        assert "accuracy on clean labels" not in written
        assert "of the labels are wrong" not in written
