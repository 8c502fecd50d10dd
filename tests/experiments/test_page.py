"""The page says what the numbers say, and says the contrary when they change."""

import re
from pathlib import Path

import pytest

from tests.experiments.made import made_results, papers
from unflip._app.report import Cell, Heading, Picture, Table, to_html, to_markdown
from unflip.paper.experiments import (
    EXPERIMENTS,
    METHOD_NAMES,
    read_results,
    reproduction_page,
)

COMMITTED = Path(__file__).parents[2] / "docs" / "reproduction"


@pytest.fixture(autouse=True)
def undrawn(request, monkeypatch):
    """Draw no pictures, which take a second each, but where a test is about them."""
    if "drawn" not in request.node.name:
        for name in ("figure_1", "noise_levels"):
            monkeypatch.setattr(
                f"unflip.paper.experiments._document.{name}", lambda results: "<svg/>"
            )


def page(results, repeats: int = 2) -> str:
    return to_markdown(reproduction_page(results, repeats))


def by_method(**accuracies: float):
    return lambda run: accuracies.get(run.method, 70.0)


def tables_below(results, title: str) -> list[Table]:
    """Return the tables between a heading that starts with `title` and the next one."""
    blocks = reproduction_page(results, 2)
    starts = [
        k for k, b in enumerate(blocks) if isinstance(b, Heading) and b.text.startswith(title)
    ]
    found = []
    for block in blocks[starts[0] + 1 :]:
        if isinstance(block, Heading):
            break
        if isinstance(block, Table):
            found.append(block)
    return found


def cells_of(table: Table, dataset: str, pair: str) -> dict[str, Cell]:
    (row,) = (row for row in table.rows if (row[0].text, row[1].text) == (dataset, pair))
    return dict(zip(table.head[2:], row[2:], strict=True))


@pytest.mark.parametrize("name", ["table3", "table4", "table5", "table6"])
def test_the_ordering_holds_where_both_are_above_all_others(name):
    text = page(made_results([name], by_method(eiw=80.0, iw=79.0)))
    assert f"- {EXPERIMENTS[name].title.split(':')[0]}: The paper's ordering holds." in text
    assert "does not hold" not in text
    assert "eIW (80.00) is above plain (70.00), LD (70.00)" in text


@pytest.mark.parametrize(
    "accuracies", [{"eiw": 80.0, "iw": 69.0}, {"eiw": 70.0, "iw": 90.0}, {"ld": 81.0, "eiw": 80.0}]
)
def test_the_ordering_does_not_hold_where_one_is_not_above_one(accuracies):
    text = page(made_results(["table6"], by_method(**accuracies)))
    assert "- Table 6: The paper's ordering does not hold." in text
    assert "ordering holds" not in text


def test_what_is_not_beaten_is_named():
    text = page(made_results(["table6"], by_method(eiw=80.0, iw=75.0, ub=77.0)))
    assert "IW (75.00) is above plain (70.00), LD (70.00), and not above UB (77.00)." in text
    text = page(made_results(["table6"], by_method(eiw=60.0, iw=75.0)))
    assert "eIW (60.00) is not above plain (70.00)" in text


def test_a_peer_has_no_part_in_the_papers_ordering():
    results = made_results(["table6"], by_method(eiw=80.0, iw=79.0, cleanlab=99.0), peers=True)
    assert "The paper's ordering holds." in page(results)
    assert "cleanlab" in tables_below(results, "Table 6")[0].head


def test_the_two_highest_of_a_row_are_bold_and_ties_with_them():
    table, _ = tables_below(
        made_results(["table3"], by_method(plain=70, ld=75, stpmkl=75.001, eiw=80, iw=60)),
        "Table 3",
    )
    for cells in (cells_of(table, "heart", "(0.2, 0.2)"), cells_of(table, "average", "")):
        assert {name for name, cell in cells.items() if cell.bold} == {"LD", "StPMKL", "eIW"}


def test_the_papers_two_highest_are_bold_below():
    results = made_results(["table4"])
    table, _ = tables_below(results, "Table 4")
    for (dataset, pair), row in results.accuracy_rows("table4").items():
        second = sorted((figure.paper.mean for figure in row.values()), reverse=True)[1]
        expected = {METHOD_NAMES[m] for m, figure in row.items() if figure.paper.mean >= second}
        cells = cells_of(table, dataset, f"({pair[0]:g}, {pair[1]:g})")
        assert {name for name, cell in cells.items() if cell.below_bold} == expected


@pytest.mark.parametrize(
    ("deviations", "shade"), [(0.9, 0), (-0.9, 0), (1.5, 1), (-1.5, -1), (2.5, 2), (-2.5, -2)]
)
def test_an_accuracy_is_shaded_by_the_papers_standard_deviations(deviations, shade):
    results = made_results(["table5"], papers)
    figure = results.of("table5", dataset="heart", method="plain", rho_pos=0.3)[0]
    spread = deviations * figure.paper.sd
    results = made_results(["table5"], lambda run: papers(run) + spread)
    table, _ = tables_below(results, "Table 5")
    assert cells_of(table, "heart", "(0.3, 0.1)")["plain"].shade == shade


def test_ours_stands_above_the_papers():
    table, _ = tables_below(made_results(["table6"], papers), "Table 6")
    cell = cells_of(table, "breast-cancer", "(0.2, 0.2)")["plain"]
    assert (cell.text, cell.below) == ("70.00 ± 0.00", "70.00 ± 5.88")


def test_plain_agreement_is_counted_over_all_tables():
    def accuracy(run):
        far = run.dataset == "image" and run.experiment == "table4"
        return papers(run) - (60 if far else 0)

    text = page(made_results(["table3", "table4"], accuracy))
    assert "22 of 24 means lie within two" in text
    assert "(12 of 12 in table 3, 10 of 12 in table 4)" in text


def test_the_gap_in_the_last_rows_is_measured():
    def accuracy(run):
        gap = {"table5": -5, "table6": -7}[run.experiment]
        return papers(run) + (gap if run.rho_pos == 0.4 else 0)

    text = page(made_results(["table5", "table6"], accuracy))
    assert "by -6.0 points (-5.0 in table 5, -7.0 in table 6)" in text


def test_ranks_tests_and_seconds_stand_below_an_accuracy_table():
    _, summary = tables_below(made_results(["table6"], by_method(eiw=80.0, iw=60.0)), "Table 6")
    columns = ("method", "average rank", "above plain", "Wilcoxon p", "seconds per fit")
    where = [summary.head.index(column) for column in columns]
    assert [[row[k].text for k in where] for row in summary.rows] == [
        ["plain", "3.00", "", "", "0.50"],
        ["LD", "3.00", "0 of 18", "1.000", "0.50"],
        ["UB", "3.00", "0 of 18", "1.000", "0.50"],
        ["eIW", "1.00", "18 of 18", "< 0.001", "0.50"],
        ["IW", "5.00", "0 of 18", "< 0.001", "0.50"],
    ]


def test_averages_are_also_given_without_the_last_rows():
    def accuracy(run):
        return 0.0 if run.rho_pos == 0.4 else 75.0 + (run.method == "iw")

    results = made_results(["table6"], accuracy)
    _, summary = tables_below(results, "Table 6")
    column = summary.head.index("average without (0.4, 0.4)")
    assert [row[column].text for row in summary.rows] == ["75.00"] * 4 + ["76.00"]
    printed = [
        figure.paper.mean
        for figure in results.of("table6", method="iw")
        if (figure.rho_pos, figure.rho_neg) != (0.4, 0.4)
    ]
    assert summary.rows[-1][column].below == f"{sum(printed) / 12:.2f}"


def papers_rates(run, shift: float = 0.0) -> tuple[float, float]:
    return papers(run, "rho_pos") + shift, papers(run, "rho_neg") + shift


def test_the_agreement_of_the_minimum_is_measured():
    def rates(run):
        far = (run.dataset, run.rho_pos) == ("heart", 0.2)
        return papers_rates(run, 0.07 if far else 0.01)

    text = page(made_results(["table2"], rates=rates))
    assert "- Table 2: the minimum's means lie within 0.070 of the paper's" in text
    assert "10 of 12 within 0.06" in text


@pytest.mark.parametrize(("wide", "word"), [("cross-validation", "more"), ("liu-tao", "less")])
def test_the_page_says_which_method_spreads_more(wide, word):
    def rates(run):
        return papers_rates(run, 0.1 * run.repeat if run.method == wide else 0.0)

    assert f"Cross-validation spreads {word}" in page(made_results(["table1"], rates=rates))


def test_rates_are_bold_where_both_errors_are_below_a_tenth():
    shift = {"cross-validation": 0.0, "scott": 0.099, "liu-tao": 0.101}
    results = made_results(
        ["table1"], rates=lambda run: (run.rho_pos, run.rho_neg + shift[run.method])
    )
    table, _ = tables_below(results, "Table 1")
    cells = cells_of(table, "synthetic-20d", "(0.1, 0.3)")
    assert [cell.bold for cell in cells.values()] == [True, True, False]


@pytest.mark.parametrize(("shift", "shade"), [(0.02, 0), (0.04, 1), (-0.04, -1), (0.07, 2)])
def test_rates_are_shaded_in_steps_of_three_hundredths(shift, shade):
    results = made_results(["table2"], rates=lambda run: papers_rates(run, shift))
    table, _ = tables_below(results, "Table 2")
    assert {cell.shade for row in table.rows for cell in row[2:]} == {shade}


def test_the_page_names_the_command_that_writes_it():
    text = page(made_results(["table1", "table5"], repeats=1), repeats=1)
    assert "`unflip reproduce table1 table5 --repeats 1`" in text
    assert [line for line in text.splitlines() if line.startswith("## Table")] == [
        "## Table 1: noise rates, synthetic data",
        "## Table 5: accuracy, linear, hinge loss",
    ]


@pytest.mark.parametrize(("iw", "count"), [(90.0, 4), (75.0, 0)])
def test_the_figure_section_counts_where_the_papers_order_holds(iw, count):
    text = page(made_results(["figure1"], by_method(iw=iw, ub=85.0, ld=80.0)))
    assert "- Figure 1: where the two rates differ" in text
    assert f"IW is above LD in {count} of 4 ({iw - 80:+.1f} points on average)" in text
    assert f"IW is above UB in {count // 2} of 2 ({iw - 85:+.1f} points on average)" in text
    assert "UB is above plain in 2 of 2 (+15.0 points on average)" in text
    assert "LD is above plain in 4 of 4 (+10.0 points on average)" in text


def test_symmetric_noise_has_no_part_in_the_order_of_the_figure():
    def accuracy(run):
        return 70.0 + (run.method == "iw") * (-20 if run.rho_pos == run.rho_neg else 20)

    text = page(made_results(["figure1"], accuracy))
    assert "IW is above LD in 4 of 4 (+20.0 points on average)" in text


def test_a_method_that_is_not_run_leaves_a_dash_in_the_figures_table():
    (table,) = tables_below(made_results(["figure1"]), "Figure 1")
    assert cells_of(table, "linear, hinge loss", "(0.1, 0.1)")["UB"].text == "-"
    assert cells_of(table, "linear, logistic loss", "(0.1, 0.1)")["UB"].text == "70.00 ± 0.00"


def test_the_levels_section_reports_the_median_and_the_ends_as_bounds():
    results = made_results(["table6", "levels"], lambda run: 100 - 90 * run.rho_pos)
    levels = sorted(point.level for point in results.explaining_levels())
    median = (levels[11] + levels[12]) / 2
    text = page(results)
    assert f"Symmetric noise of {median:.2f} (median; {levels[0]:.2f} to {levels[-1]:.2f})" in text
    below = sum(level < 0.4 for level in levels)
    assert f"below 0.40 in {below} of 24 cells; its median is {median:.2f}." in text
    high = page(made_results(["levels"], lambda run: 99.9))
    assert "≥ 0.45" in high
    low = page(made_results(["levels"], lambda run: 1.0))
    assert "≤ 0.20" in low


def test_the_html_page_of_everything_with_its_pictures_drawn_needs_no_other_file():
    pytest.importorskip("matplotlib")
    results = made_results(EXPERIMENTS, lambda run: 100 - 90 * run.rho_pos, repeats=1)
    html = to_html("title", reproduction_page(results, 1))
    assert "`unflip" not in html  # inline code has become <code>
    assert "<code>unflip reproduce all --repeats 1</code>" in html
    assert html.count("<svg") == 2
    assert 'name="viewport"' in html
    assert not re.search(r"<(script|link|img|iframe)|@import|url\((?!#)", html)
    links = re.findall(r"(?:href|src)\s*=\s*\"([^\"]*)\"", html)
    assert links
    assert all(link.startswith("#") for link in links)


def test_the_page_names_every_picture_by_its_file():
    blocks = reproduction_page(made_results(["figure1", "levels"], repeats=1), 1)
    names = [block.name for block in blocks if isinstance(block, Picture)]
    assert names == ["figure1.svg", "noise-levels.svg"]


def test_the_committed_page_is_made_from_the_committed_results():
    if not (COMMITTED / "results.json").exists():
        pytest.skip(f"{COMMITTED}/results.json is absent")
    results, repeats = read_results(COMMITTED / "results.json")
    assert page(results, repeats) == (COMMITTED / "reproduction.md").read_text(encoding="utf-8")
