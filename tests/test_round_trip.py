"""Written tables hold the cells that were read; only labels and added columns are new."""

import csv
import io
import os
import random
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import partial

import polars as pl
import pytest
from openpyxl import Workbook
from openpyxl.chart import BarChart
from openpyxl.worksheet.table import Table
from polars.testing import assert_frame_equal as frames_equal
from polars.testing import assert_series_equal as series_equal
from typer.testing import CliRunner

from tests.cli.through import through_flip
from unflip._app.table_files import TableError, for_format, read_file, write_table
from unflip._app.tables import split_label
from unflip.cli import app
from unflip.review import Decisions, ReviewTable

# polars compares floats with a tolerance unless it is told otherwise
assert_frame_equal = partial(frames_equal, check_exact=True)
assert_series_equal = partial(series_equal, check_exact=True)

CELLS = (
    ["00501", "501", "004915112345", "1E5", "0.60", "-0", "+1", "1e-400", " 7"],
    ["NA", "N/A", "nan", "null", "NULL", "", "", "x"],
    ["true", "false", "True", "FALSE", "yes"],
    ["12345678901234567890", "-99999999999999999999", "9" * 45, "9223372036854775808"],
    ["2020-01-31", "2020-02-30", "-1-01-01", "9999-12-31T23:59:59", "31.12.1999", "10:30"],
    [" padded ", "\t", "a,b", "c;d", 'say "x"', '"', "'", "two\nlines", "cr\rcell", "#", "=1+1"],
    ["käse", "Ωmega", "日本", "\u00a0", "🙂"],
)
LATIN = (*CELLS[:6], ["käse", "über", "\u00a0"])
NAMES = ["", "*", "^x$", "x", "2019", "name with blank", "a,b", 'q"', "^.*$", "x_duplicated_0"]


def made(seed):
    """Return a table of text, its label, how it is written to a file, and the file's bytes."""
    rng = random.Random(seed)  # noqa: S311
    encoding = rng.choice(["utf-8", "utf-8-sig", "utf-16", "latin-1"])
    groups = LATIN if encoding == "latin-1" else CELLS
    label, *names = rng.sample(NAMES, rng.randint(2, 5))
    n_rows = rng.randint(2, 12)

    def column():
        # of one kind, so that a type is inferred, or of any
        pool = rng.choice([*groups, [cell for group in groups for cell in group]])
        return [rng.choice(pool) for _ in range(n_rows)]

    columns = {name: column() for name in names}
    columns[label] = [rng.choice(["01", "1", "2"]) for _ in range(n_rows - 2)] + ["1", "2"]
    separator = rng.choice([",", ";", "\t", "|"])
    text = io.StringIO()
    quoting = rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC])
    ends = rng.choice(["\n", "\r\n"])
    writer = csv.writer(text, delimiter=separator, quoting=quoting, lineterminator=ends)
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return columns, label, separator, encoding, text.getvalue().encode(encoding)


def text_of(path, separator=","):
    """Return the columns of a written text file, by a reader that infers nothing."""
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file, delimiter=separator)
    return {name: list(cells) for name, cells in zip(header, zip(*rows, strict=True), strict=True)}


def as_text(table):
    """Return the cells of a typed table as text, empty where they are missing."""
    return {
        column.name: ["" if cell is None else cell for cell in column.cast(pl.String).to_list()]
        for column in table
    }


def check_files(seed, folder):
    columns, _, separator, encoding, content = made(seed)
    source = folder / "table.csv"
    source.write_bytes(content)
    table = read_file(source, separator=separator, encoding=encoding)
    for ending, mark in ((".csv", ","), (".tsv", "\t")):
        out = folder / f"out{ending}"
        write_table(for_format(table, out), out)
        assert text_of(out, mark) == columns, seed
        assert as_text(read_file(out).cells) == columns, seed
    for ending in (".parquet", ".arrow", ".jsonl"):
        out = folder / f"out{ending}"
        write_table(for_format(table, out), out)
        assert as_text(read_file(out).cells) == columns, (seed, ending)


def test_files_keep_every_cell(tmp_path):
    for seed in range(150):
        check_files(seed, tmp_path)


@pytest.mark.slow
def test_files_keep_every_cell_of_2000_tables(tmp_path):
    for seed in range(2000):
        check_files(seed, tmp_path)


@pytest.fixture(autouse=True)
def nothing_waits_for_the_disk(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: None)  # thousands of files, each read at once


@pytest.fixture(scope="module")
def call():
    def check(*arguments):
        result = CliRunner().invoke(app, [str(one) for one in arguments])
        assert result.exit_code == 0, result.output

    return check


def check_flip(seed, folder, call):
    columns, label, separator, encoding, content = made(seed)
    (folder / "table.csv").write_bytes(content)
    call(
        "flip", folder / "table.csv", "--label", label, "--rates", "0.3,0.3", "--truth", "true",
        "--out", folder / "out.csv", "--separator", separator, "--encoding", encoding, "--force",
    )  # fmt: skip
    found = text_of(folder / "out.csv")
    assert found.pop("true") == columns[label]
    for now, then in zip(found.pop(label), columns[label], strict=True):
        assert now == then or int(now) != int(then), seed
    assert found == {name: cells for name, cells in columns.items() if name != label}, seed


def check_review(seed, folder, call):
    columns, label, separator, encoding, content = made(seed)
    source = folder / f"{seed}.csv"
    source.write_bytes(content)
    values = read_file(source, separator=separator, encoding=encoding).values
    table = ReviewTable(values, label)
    with Decisions(folder / f"{seed}.review.sqlite", table.fingerprint) as decisions:
        decisions.decide(row=0, version=0, verdict="change", label=1 - int(table.codes[0]))
    call(
        "review", source, "--label", label, "--export", "--out", folder / "export",
        "--separator", separator, "--encoding", encoding,
    )  # fmt: skip
    found = text_of(folder / "export" / "corrected.csv")
    changed, *others = found.pop(label)
    assert int(changed) != int(columns[label][0]), seed
    assert others == columns[label][1:], seed
    assert found == {name: cells for name, cells in columns.items() if name != label}, seed


@pytest.mark.parametrize("check", [check_flip, check_review])
def test_flip_and_review_keep_every_cell(tmp_path, call, check):
    for seed in range(12):
        check(seed, tmp_path, call)


@pytest.mark.slow
@pytest.mark.parametrize("check", [check_flip, check_review])
def test_flip_and_review_keep_every_cell_of_2000_tables(tmp_path, call, check):
    for seed in range(2000):
        check(seed, tmp_path, call)


def learnable(seed):
    """Return a table as `made` makes it, of rows and a column from which labels can be learnt."""
    columns, label, separator, encoding, _ = made(seed)
    rng = random.Random(seed)  # noqa: S311
    n_rows = 60
    whole = {name: [rng.choice(cells) for _ in range(n_rows)] for name, cells in columns.items()}
    whole[label] = [f"{k % 2}" for k in range(n_rows)]
    whole["number"] = [f"{rng.gauss(3 * (k % 2), 1):.2f}0" for k in range(n_rows)]
    whole["zip"] = [f"{k:05}" for k in range(n_rows)]
    text = io.StringIO()
    writer = csv.writer(text, delimiter=separator)
    writer.writerow(whole)
    writer.writerows(zip(*whole.values(), strict=True))
    return whole, label, separator, encoding, text.getvalue().encode(encoding)


def check_learning(seed, folder, call):
    columns, label, separator, encoding, content = learnable(seed)
    source, model, weights = folder / "table.csv", folder / "model", folder / "weights.csv"
    source.write_bytes(content)
    reading = ("--separator", separator, "--encoding", encoding, "--force")
    common = ("--label", label, "--id", "zip", "--rates", "0.1,0.1", *reading)
    call("audit", source, *common, "--top", 60, "--out", folder / "audit.csv")
    found = text_of(folder / "audit.csv")
    rows = [int(row) for row in found["row"]]
    assert {name: found[name] for name in columns} == {
        name: [cells[row] for row in rows] for name, cells in columns.items()
    }, seed
    call("fit", source, *common, "--out", model, "--weights", weights)
    assert text_of(weights)["zip"] == columns["zip"], seed
    call("predict", model, source, *reading, "--out", folder / "predicted.csv")
    found = text_of(folder / "predicted.csv")
    assert {name: found[name] for name in columns} == columns, seed


def test_audit_predict_and_weights_keep_every_cell(tmp_path, call):
    for seed in range(4):
        check_learning(seed, tmp_path, call)


@pytest.mark.slow
def test_audit_predict_and_weights_keep_every_cell_of_2000_tables(tmp_path, call):
    for seed in range(2000):
        check_learning(seed, tmp_path, call)


def test_integers_of_20_digits_are_learnt_from_and_kept(tmp_path, call):
    source, model, out = tmp_path / "t.csv", tmp_path / "model", tmp_path / "out.csv"
    cells = [f"{10**19 * (1 + k % 2) + k * 10**16}" for k in range(60)]
    source.write_text("n,y\n" + "".join(f"{n},{'ab'[k % 2]}\n" for k, n in enumerate(cells)))
    call("fit", source, "--label", "y", "--rates", "0.1,0.1", "--out", model)
    call("predict", model, source, "--out", out)
    found = text_of(out)
    assert found["n"] == cells
    assert found["predicted"] == found["y"]


def a_time(rng):
    return datetime(1700, 1, 1) + timedelta(microseconds=rng.randrange(10**16))


TYPED = {
    pl.Int8: lambda rng: rng.randint(-(2**7), 2**7 - 1),
    pl.UInt64: lambda rng: rng.choice([0, 2**53 + 1, 2**64 - 1]),
    pl.Int128: lambda rng: rng.choice([0, -(2**127), 2**127 - 1]),
    pl.Float32: lambda rng: rng.choice([0.1, -0.0, float("nan"), rng.random()]),
    pl.Float64: lambda rng: rng.choice([0.1 + 0.2, 1e-300, 1e15, float("nan"), rng.random()]),
    pl.Decimal(10, 2): lambda rng: Decimal(rng.randint(-(10**9), 10**9)) / 100,
    pl.Boolean: lambda rng: rng.random() < 0.5,
    pl.String: lambda rng: rng.choice(rng.choice(CELLS)),
    pl.Categorical: lambda rng: rng.choice(CELLS[1]),
    pl.Enum(["low", "high"]): lambda rng: rng.choice(["low", "high"]),
    pl.Date: lambda rng: date.fromordinal(rng.randint(1, date.max.toordinal())),
    pl.Datetime("ms"): lambda rng: a_time(rng).replace(microsecond=0),
    pl.Datetime("ns"): a_time,
    pl.Datetime("us", "Europe/Berlin"): a_time,
    pl.Time: lambda rng: a_time(rng).time(),
}
LABELS = {
    pl.Int8: [0, 1],
    pl.Float64: [0.0, 1.0],
    pl.Boolean: [True, False],
    pl.String: ["01", "1"],
    pl.Categorical: ["NA", "N/A"],
    pl.Enum(["low", "high"]): ["low", "high"],
    pl.Date: [date(2020, 1, 1), date(2021, 1, 1)],
}


def typed(seed):
    """Return a table of typed columns, and its label."""
    rng = random.Random(seed)  # noqa: S311
    label, *names = rng.sample(NAMES, rng.randint(2, 5))
    n_rows = 20
    table = {"number": pl.Series([3 * (k % 2) + k / n_rows for k in range(n_rows)])}
    table["id"] = pl.Series(range(n_rows))
    for name in names:
        kind = rng.choice([*TYPED])
        cells = [None if rng.random() < 0.2 else TYPED[kind](rng) for _ in range(n_rows)]
        table[name] = pl.Series(cells, dtype=kind)
    kind = rng.choice([*LABELS])
    table[label] = pl.Series(LABELS[kind] * (n_rows // 2), dtype=kind)
    return pl.DataFrame(table), label


def check_commands(source, table, label, out, call):
    """Check what every command that writes a table writes of a file that holds the table."""
    others = [name for name in table.columns if name != label]
    common = ("--label", label, "--rates", "0.1,0.1", "--force")
    learning = (*common, "--id", "id")
    call("flip", source, *common, "--truth", "true", "--out", out)
    found = read_file(out).cells
    assert_frame_equal(found[others], table[others])
    assert_series_equal(found["true"], table[label], check_names=False)
    assert found[label].dtype == table[label].dtype
    call("audit", source, *learning, "--top", table.height, "--out", out)
    found = read_file(out).cells
    assert_frame_equal(found[table.columns], table[found["row"]])
    model = out.with_name("model")
    call("fit", source, *learning, "--out", model, "--weights", out)
    assert_series_equal(read_file(out).cells["id"], table["id"])
    call("predict", model, source, "--force", "--out", out)
    assert_frame_equal(read_file(out).cells[table.columns], table)
    review = ReviewTable(split_label(read_file(source), label).reviewed_as, label)
    decided = out.with_name("decided")
    decided.unlink(missing_ok=True)
    with Decisions(decided, review.fingerprint) as decisions:
        decisions.decide(row=0, version=0, verdict="change", label=1 - int(review.codes[0]))
    export = ("--export", "--decisions", decided, "--out", out.with_name("export"))
    call("review", source, "--label", label, *export)
    found = read_file(out.with_name("export") / "corrected.csv").cells
    now = parsed(found[label], table[label].dtype)
    assert now[0] == table[label][1]  # the second row's label is the other one
    assert_series_equal(now[1:], table[label][1:], check_names=False)
    for name in others:
        now, then = parsed(found[name], table[name].dtype), table[name].alias("")
        if now.dtype == pl.String and then.dtype != pl.String:
            then = then.dt.to_string("%FT%T%.6f%z")  # offsets have no seconds, as in Berlin in 1890
        assert_series_equal(now, then, check_names=False)


def parsed(text, kind):
    """Return a column of a text file as values of a type; times in a zone stay text."""
    text = text.alias("")  # polars takes names such as * for patterns
    if kind == pl.String or getattr(kind, "time_zone", None):
        return text
    if kind == pl.Boolean:
        return text.replace_strict({"true": True, "false": False, None: None}, return_dtype=kind)
    if isinstance(kind, pl.Datetime):
        return text.str.to_datetime(time_unit=kind.time_unit)
    if kind == pl.Date:
        return text.str.to_date("%Y-%m-%d")
    if kind == pl.Time:
        return text.str.to_time("%H:%M:%S%.f")
    return text.cast(kind)


def check_typed(seed, folder, call):
    table, label = typed(seed)
    ending = (".parquet", ".arrow")[seed % 2]
    source, out = folder / f"table{ending}", folder / f"out{ending}"
    write_table(table, source)
    check_commands(source, table, label, out, call)


def test_typed_files_keep_values_and_types(tmp_path, call):
    for seed in range(6):
        check_typed(seed, tmp_path, call)


@pytest.mark.slow
def test_2000_typed_files_keep_values_and_types(tmp_path, call):
    for seed in range(2000):
        check_typed(seed, tmp_path, call)


EXCEL = (  # each makes a cell; numbers have at most 15 digits there
    lambda rng: rng.randint(-(10**15), 10**15),
    lambda rng: float(f"{rng.uniform(-1e9, 1e9):.14e}"),
    lambda rng: rng.random() < 0.5,
    lambda rng: rng.choice([*CELLS[0], *CELLS[1], *CELLS[6], " padded ", "two\nlines"]),
    lambda rng: datetime(1970, 1, 1) + timedelta(seconds=rng.randrange(10**9)),
)


def check_worksheet(seed, folder, call):
    rng = random.Random(seed)  # noqa: S311
    columns = {"number": [3.5 * (k % 2) + k / 20 for k in range(20)], "label": [*"ab"] * 10}
    columns["id"] = [*range(20)]
    for k in range(rng.randint(1, 4)):
        kind = rng.choice(EXCEL)
        columns[str(k)] = [kind(rng) for _ in range(20)]
    sheet(folder / "table.xlsx", list(columns), *zip(*columns.values(), strict=True))
    wanted = {name: [None if cell == "" else cell for cell in columns[name]] for name in columns}
    table = pl.DataFrame(wanted)
    check_commands(folder / "table.xlsx", table, "label", folder / "out.parquet", call)


def test_values_of_a_worksheet_are_written_with_their_types(tmp_path, call):
    for seed in range(6):
        check_worksheet(seed, tmp_path, call)


@pytest.mark.slow
def test_values_of_2000_worksheets_are_written_with_their_types(tmp_path, call):
    for seed in range(2000):
        check_worksheet(seed, tmp_path, call)


def test_formats_with_types_get_them_where_no_text_is_lost(tmp_path):
    (tmp_path / "t.csv").write_text("n,zip,d,y\n1,00501,2020-01-31,a\n,10115,,b\n")
    table, _ = through_flip(tmp_path / "t.csv")
    assert table.dtypes == [pl.Int64, pl.String, pl.Date, pl.String]


def test_nan_of_a_typed_file_is_written_and_is_a_gap_for_the_model(tmp_path):
    pl.DataFrame({"x": [1.0, float("nan"), None]}).write_parquet(tmp_path / "t.parquet")
    table = read_file(tmp_path / "t.parquet")
    assert table.cells["x"].is_nan().to_list() == [False, True, None]
    assert table.values["x"].to_list() == [1.0, None, None]


def sheet(path, *rows, chart=False, stray=None):
    book = Workbook()
    if chart:
        book.create_chartsheet(index=0).add_chart(BarChart())
    for row in rows:
        book.worksheets[0].append(row)
    if stray is not None:
        book.worksheets[0].cell(*stray, "stray")
    book.save(path)


@pytest.mark.parametrize("chart", [True, False])
def test_excel_names_may_be_numbers_and_a_chart_may_come_first(tmp_path, chart):
    sheet(tmp_path / "t.xlsx", [2019, "y"], [1, "00501"], [0.5, "b"], chart=chart)
    table, _ = through_flip(tmp_path / "t.xlsx")
    assert table.to_dict(as_series=False) == {"2019": [1.0, 0.5], "y": ["00501", "b"]}


def test_excel_cells_of_several_kinds_become_text_and_none_is_lost(tmp_path):
    sheet(tmp_path / "t.xlsx", ["a", "y"], [1, "u"], ["x", "v"], [True, "u"], [2.5, "v"])
    table, _ = through_flip(tmp_path / "t.xlsx")
    assert table["a"].to_list() == ["1", "x", "true", "2.5"]


def test_a_stray_cell_in_the_last_corner_of_excel_is_left_out_with_a_word(tmp_path):
    sheet(tmp_path / "t.xlsx", ["a", "y"], [1, "b"], [2, "c"], stray=(1_048_576, 16_384))
    table, notes = through_flip(tmp_path / "t.xlsx")
    assert table.shape == (2, 2)
    assert "have no name" in notes


@pytest.mark.parametrize("totals", [0, 1])
def test_a_table_of_excel_is_read_without_what_is_around_it(tmp_path, totals):
    book = Workbook()
    rows = [["Sales of 2019"], [], [None, "a", "y", "note"], [None, 1, "no"], [None, 2, "yes"]]
    for row in [*rows, [None, 3, "yes"], [], ["from the archive"]]:
        book.worksheets[0].append(row)
    table = Table(displayName="Sales", ref="B3:C6", totalsRowCount=totals)
    book.worksheets[0].add_table(table)
    book.save(tmp_path / "t.xlsx")
    found, _ = through_flip(tmp_path / "t.xlsx")
    assert found.rows() == [(1, "no"), (2, "yes"), (3, "yes")][: 3 - totals]


@pytest.mark.parametrize("cell", ['"say \\"yes\\""', '"a"b', '"never closed', '"a" '])
def test_a_cell_that_goes_on_after_its_quotes_is_refused_by_its_line(tmp_path, cell):
    (tmp_path / "t.csv").write_text(f'x,y\n"a\nb",1\n{cell},2\n')
    with pytest.raises(ValueError, match="line 4"):
        through_flip(tmp_path / "t.csv")


def test_quotes_within_cells_are_kept_or_refused(tmp_path):
    (tmp_path / "t.csv").write_text('\ufeff"x",y\nsay "yes" or "no",""",""\n"""\nz,b\n')
    table, _ = through_flip(tmp_path / "t.csv")
    assert table.rows() == [('say "yes" or "no"', '","\n"'), ("z", "b")]
    (tmp_path / "t.csv").write_text('x,y\n5" pipe,a\n6" pipe,b\n')
    with pytest.raises(ValueError, match="double the quotes"):
        through_flip(tmp_path / "t.csv")


@pytest.mark.parametrize("cells", [["10:30", "10:30:00.5"], ["10:30:00", "10:30"]])
def test_times_of_the_day_in_several_formats_are_text(tmp_path, cells):
    (tmp_path / "t.csv").write_text(f"time,y\n{cells[0]},a\n{cells[1]},b\n")
    table, _ = through_flip(tmp_path / "t.csv")
    assert table["time"].to_list() == cells  # a type would have been written


def test_damaged_excel_is_refused_in_words(tmp_path):
    sheet(tmp_path / "t.xlsx", ["a", "y"], [1, "b"])
    content = (tmp_path / "t.xlsx").read_bytes()
    for cut in (10, len(content) // 2, len(content) - 30):
        (tmp_path / "cut.xlsx").write_bytes(content[:cut])
        with pytest.raises(ValueError, match="damaged"):
            through_flip(tmp_path / "cut.xlsx")


def test_too_many_columns_are_refused_before_they_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(pl, "read_csv", lambda *a, **k: pytest.fail("was read"))
    names = ",".join(map(str, range(50_001)))
    (tmp_path / "t.csv").write_text(f"{names}\n{names}\n")
    with pytest.raises(ValueError, match="50,001 columns"):
        through_flip(tmp_path / "t.csv")


@pytest.mark.parametrize("encoding", ["zlib", "rot13", "undefined"])
def test_codecs_that_are_no_text_are_refused(tmp_path, encoding):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="encoding"):
        through_flip(tmp_path / "t.csv", "--encoding", encoding)


def test_dates_out_of_range_are_text_or_refused(tmp_path):
    days = pl.Series("a", [3_000_000, 2**31 - 1], dtype=pl.Int32).cast(pl.Date)
    pl.DataFrame(days[:1]).write_parquet(tmp_path / "t.parquet")
    assert read_file(tmp_path / "t.parquet").values["a"].to_list() == ["+10183-09-21"]
    pl.DataFrame(days).write_parquet(tmp_path / "t.parquet")
    with pytest.raises(TableError, match="out of range"):
        read_file(tmp_path / "t.parquet")


def test_a_long_text_is_no_label(tmp_path):
    (tmp_path / "t.csv").write_text("x,label\n1," + "a" * 10**6 + "\n2,b\n")
    result = CliRunner().invoke(
        app, ["flip", str(tmp_path / "t.csv"), "--label", "label", "--rates", "0.1,0.1",
              "--out", str(tmp_path / "o.csv")],
    )  # fmt: skip
    assert result.exit_code == 2
    assert "characters" in result.output
