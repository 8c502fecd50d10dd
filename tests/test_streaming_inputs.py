"""Files that do not match, data that change, and outputs that are inputs: refused by name."""

import os

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from sklearn.linear_model import SGDClassifier

from unflip import NoiseRates, flip_labels
from unflip.posterior import ChannelPosterior
from unflip.streaming import (
    ArrayBatches,
    ArrowBatches,
    Batches,
    ParquetBatches,
    StreamingAudit,
    StreamingReweighting,
)

SMALL = ChannelPosterior("linear", max_rows=3000)
RATES = NoiseRates(0.3, 0.1)


def columns(seed=0, n=1000):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    names = np.where(X[:, 0] > 0, "yes", "no")
    return {"a": X[:, 0], "b": X[:, 1], "y": flip_labels(names, RATES, random_state=seed)}


def arrays(n=4000):
    data = columns(n=n)
    return np.c_[data["a"], data["b"]], data["y"]


def write(path, data, **options):
    pq.write_table(pa.table(data), path, **options)
    return path


def without(data, name):
    return {key: values for key, values in data.items() if key != name}


MISMATCHES = {
    "times": (
        {"b": pa.array(range(1000), pa.timestamp("us"))},
        r"'b' holds timestamp\[us\], but f",
    ),
    "days": ({"b": pa.array([0] * 1000, pa.date32())}, r"'b' holds date32\[day\], but features"),
    "text": ({"b": ["1.5"] * 1000}, "'b' holds string, but features must be numbers"),
    "lists": ({"b": [[1.5]] * 1000}, "'b' holds list<"),
    "other labels": ({"y": [0, 1] * 500}, "'y' holds labels of kind numbers, but .* are text"),
}


@pytest.mark.parametrize("kind", MISMATCHES)
def test_a_column_of_another_kind_is_refused_by_file_and_name(tmp_path, kind):
    changed, words = MISMATCHES[kind]
    write(tmp_path / "1.parquet", columns())
    write(tmp_path / "2.parquet", columns() | changed)
    for batches in (ParquetBatches, ArrowBatches):
        source = tmp_path if batches is ParquetBatches else ds.dataset(tmp_path)
        with pytest.raises(ValueError, match=rf"2\.parquet: column {words}"):
            batches(source, label="y")


@pytest.mark.parametrize("name", ["b", "y", "count"])
def test_a_missing_column_is_refused_by_file_and_name(tmp_path, name):
    data = columns() | {"count": [1] * 1000}
    write(tmp_path / "1.parquet", data)
    write(tmp_path / "2.parquet", without(data, name))
    for source, batches in ((tmp_path, ParquetBatches), (ds.dataset(tmp_path), ArrowBatches)):
        with pytest.raises(ValueError, match=rf"2\.parquet: there is no column '{name}' among"):
            batches(source, label="y", weight="count")


def test_weights_that_are_no_numbers_are_refused(tmp_path):
    write(tmp_path / "1.parquet", columns() | {"count": ["1"] * 1000})
    with pytest.raises(ValueError, match="'count' holds string, but weights must be numbers"):
        ParquetBatches(tmp_path, label="y", weight="count")


def test_two_columns_of_one_name_are_refused(tmp_path):
    table = pa.table([[1.0], [2.0], ["no"]], names=["a", "a", "y"])
    pq.write_table(table, tmp_path / "1.parquet")
    with pytest.raises(ValueError, match="two columns 'a'"):
        ParquetBatches(tmp_path, label="y")


def test_a_further_column_is_refused_unless_the_features_are_named(tmp_path):
    write(tmp_path / "1.parquet", columns())
    write(tmp_path / "2.parquet", columns() | {"c": [0.0] * 1000})
    with pytest.raises(ValueError, match=r"2\.parquet: there is a column 'c' that .*1\.parquet"):
        ParquetBatches(tmp_path, label="y")
    assert len(list(ParquetBatches(tmp_path, label="y", columns=["a", "b"]))) == 2


def test_other_orders_and_types_of_numbers_are_the_same_rows(tmp_path):
    data = columns()
    rounded = data | {"a": np.round(data["a"] * 10)}
    write(tmp_path / "1.parquet", rounded)
    other = {"y": pa.array(data["y"]).dictionary_encode(), "b": data["b"].astype(np.float32)}
    write(tmp_path / "2.parquet", other | {"a": rounded["a"].astype(np.int16)})
    (X, y, _), (X_other, y_other, _) = ParquetBatches(tmp_path, label="y")
    np.testing.assert_allclose(X_other, X, rtol=1e-6)
    np.testing.assert_array_equal(y_other, y)


def test_columns_that_a_folders_name_tells_are_not_missing_in_its_files(tmp_path):
    for day in (1, 2):
        (tmp_path / f"day={day}").mkdir()
        write(tmp_path / f"day={day}" / "x.parquet", columns(day))
    source = ds.dataset(tmp_path, partitioning="hive")
    batches = list(ArrowBatches(source, label="y"))
    assert [set(X[:, 2]) for X, _, _ in batches] == [{1.0}, {2.0}]


def test_a_file_that_is_replaced_by_another_kind_between_passes_is_refused(tmp_path):
    path = write(tmp_path / "1.parquet", columns())
    data = ParquetBatches(path, label="y")
    list(data)
    write(path, without(columns(), "b"))
    with pytest.raises(ValueError, match=r"1\.parquet: there is no column 'b'"):
        list(data)


@pytest.mark.parametrize("checksum", [True, False])
def test_a_page_with_a_wrong_checksum_is_refused_by_file(tmp_path, checksum):
    options = {"write_page_checksum": checksum, "use_dictionary": False, "compression": "none"}
    path = write(tmp_path / "1.parquet", columns(), **options)
    content = bytearray(path.read_bytes())
    place = content.index(columns()["a"][500:510].tobytes())
    content[place] ^= 1
    path.write_bytes(content)
    data = ParquetBatches(path, label="y")
    if not checksum:  # there is nothing to tell it by
        assert len(list(data)) == 1
        return
    with pytest.raises(OSError, match=r"1\.parquet is damaged: .*checksum"):
        list(data)


class Once(Batches):
    """Batches of an iterator that is used up."""

    def __init__(self):
        self.batches = iter(ArrayBatches(*arrays(), batch_rows=1000))

    def __iter__(self):
        return self.batches


def test_batches_that_can_be_read_once_are_refused_on_the_second_pass():
    for posterior in (SMALL, "ulsif"):
        with pytest.raises(
            ValueError, match="4 batches on the first pass, but none on a later one"
        ):
            StreamingReweighting(posterior=posterior).fit(Once())


def test_batches_that_are_used_up_are_refused_in_a_single_pass_too(tmp_path):
    data = Once()
    audit = StreamingAudit(SMALL, random_state=0).fit(ArrayBatches(*arrays()))
    assert len(audit.issues(data, n=5)) == 5
    with pytest.raises(ValueError, match="there are no batches"):
        audit.issues(data, n=5)
    with pytest.raises(ValueError, match="there are no batches"):
        audit.write(data, tmp_path / "audit.parquet")
    assert not list(tmp_path.iterdir())
    with pytest.raises(ValueError, match="there are no batches"):
        audit.issues(data, precision=0.9)


class Changing(Batches):
    """Batches of which one is another on one pass."""

    def __init__(self, when, change):
        self.when, self.change, self.n_passes = when, change, 0

    def __iter__(self):
        self.n_passes += 1
        batches = list(ArrayBatches(*arrays(), batch_rows=1000))
        return iter(self.change(batches) if self.n_passes == self.when else batches)


CHANGES = {
    "fewer rows": (
        lambda found: [found[0], (found[1][0][:9], found[1][1][:9], None), *found[2:]],
        "batch 2 has 9 rows, but there were 1000 rows on the first pass",
    ),
    "fewer batches": (lambda found: found[:3], "there are 3 batches, but there were 4"),
    "more batches": (
        lambda found: [*found, found[0]],
        "batch 5 has 1000 rows, but there were no such batch",
    ),
}


@pytest.mark.parametrize("when", [2, 3, 4, 5])
@pytest.mark.parametrize("change", CHANGES)
def test_other_rows_on_a_later_pass_are_an_error_on_every_pass(when, change):
    changed, words = CHANGES[change]
    model = StreamingReweighting(SGDClassifier(loss="log_loss"), posterior=SMALL, n_epochs=2)
    data = Changing(when, changed)
    with pytest.raises(ValueError, match=words):
        model.fit(data)
    assert data.n_passes == when
    assert not any(name.endswith("_") for name in vars(model))


@pytest.mark.parametrize("link", [None, os.symlink, os.link])
def test_an_audit_is_not_written_over_the_data_it_is_read_from(tmp_path, link):
    path = write(tmp_path / "data.parquet", columns(n=3000))
    np.save(tmp_path / "X.npy", arrays()[0])
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    audit = StreamingAudit(SMALL, random_state=0).fit(ParquetBatches(path, label="y"))
    sources = {
        path: (ParquetBatches(path, label="y"), ArrowBatches(ds.dataset(path), label="y")),
        tmp_path / "X.npy": (ArrayBatches(mapped, arrays()[1]),),
    }
    for source, readers in sources.items():
        target, before = source, source.read_bytes()
        if link is not None:
            target = source.with_suffix(".link")
            link(source, target)
        for data in readers:
            with pytest.raises(FileExistsError, match="is an input"):
                audit.write(data, target)
        assert source.read_bytes() == before
    beside = audit.write(ParquetBatches(path, label="y"), tmp_path / "audit.parquet")
    assert pq.read_metadata(beside).num_rows == 3000
