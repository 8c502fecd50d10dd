"""Identifiers and copies are noticed; measurements, messages and categories are left in peace."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from unflip import ImportanceReweightingClassifier, LabelAudit
from unflip._app.table_files import read_file
from unflip._app.tables import split_label
from unflip.diagnostics import diagnose_features
from unflip.streaming import ArrayBatches, StreamingAudit

N = 60
RNG = np.random.default_rng(0)
IDENTIFIERS = {
    "numbers": np.arange(N),
    "from 1000 on": RNG.permutation(N) + 1000,
    "with gaps between": np.cumsum(RNG.integers(1, 3, N)),
    "codes": [f"C{k:04d}" for k in range(N)],
    "hashes": [f"{k * 2654435761 % 2**32:08x}" for k in range(N)],
}
OTHERS = {
    "measurements": RNG.normal(size=N),
    "large numbers": RNG.choice(10**9, N, replace=False),
    "few numbers": np.arange(N) % 7,
    "messages": [f"order {k} has not come" for k in range(N)],
    "long words": ["x" * 80 + str(k) for k in range(N)],
    "names with a gap": [None, *(f"C{k}" for k in range(N - 1))],
    "a few rows, which differ by chance": range(10),
    "names twice": [f"C{k // 2}" for k in range(N)],
}


def found(X, codes):
    return {one.code: one for one in diagnose_features(X, np.asarray(codes), np.array(["a", "b"]))}


@pytest.mark.parametrize("pack", [pl.DataFrame, pd.DataFrame])
@pytest.mark.parametrize("kind", IDENTIFIERS | OTHERS)
def test_what_names_the_samples_is_an_identifier_and_nothing_else(kind, pack):
    column = list((IDENTIFIERS | OTHERS)[kind])
    codes = RNG.permutation(len(column)) % 2
    noticed = found(pack({"the key": column}), codes)
    assert ("identifiers" in noticed) == (kind in IDENTIFIERS)


LABELS = np.arange(N) % 2
NUMBERS = pl.DataFrame({"u": RNG.normal(size=N), "v": RNG.integers(0, 3, N)})


def test_identifiers_are_named_with_the_options_that_leave_them_out():
    table = NUMBERS.with_columns(**{"the key": pl.Series(IDENTIFIERS["codes"])})
    noticed = found(table, LABELS)
    assert list(noticed) == ["identifiers"]
    assert noticed["identifiers"].severity == "note"
    assert "--id 'the key'" in str(noticed["identifiers"])
    both = found(table.with_columns(row=pl.Series(IDENTIFIERS["numbers"])), LABELS)
    assert "--id 'the key' --drop row" in str(both["identifiers"])
    assert "'the key' and 'row'" in str(both["identifiers"])


@pytest.mark.parametrize("pack", [lambda table: table, lambda table: table.to_numpy()])
def test_copies_are_counted_whatever_their_identifier(pack):
    thrice = pl.concat([NUMBERS, NUMBERS[:10], NUMBERS[:10]])
    codes = np.r_[LABELS, LABELS[:10], LABELS[:10]]
    copies = found(pack(thrice), codes)["copies"]
    assert copies.numbers == {"n_copies": 20, "n_rows": 80}
    key = pl.Series([f"K{k}" for k in range(80)])
    assert found(thrice.with_columns(key=key), codes)["copies"] == copies
    assert found(pack(NUMBERS), LABELS) == {}


def test_equal_samples_with_different_labels_are_told_apart_and_named():
    table = pl.concat([NUMBERS, NUMBERS[3:5]])
    noticed = found(table, np.r_[LABELS, 1 - LABELS[3:5]])
    assert list(noticed) == ["contradicting_copies"]
    assert noticed["contradicting_copies"].numbers == {"n_cases": 2, "first": "3 and 60"}


def test_integers_of_20_digits_that_differ_in_the_last_ones_are_no_copies(tmp_path):
    rows = [f"{10**19 + k},{'ab'[k % 2]}" for k in range(N)]
    (tmp_path / "t.csv").write_text("\n".join(["n,y", *rows]))
    data = split_label(read_file(tmp_path / "t.csv"), "y")
    assert found(data.features, LABELS) == {}


def test_samples_of_a_few_categories_are_alike_and_no_copies():
    kinds = pl.DataFrame({"v": RNG.integers(0, 3, N), "w": RNG.integers(0, 4, N)})
    assert found(kinds, LABELS) == {}


def test_missing_values_are_equal():
    table = pl.DataFrame({"y" * 3: [None, *np.arange(N - 1.0) / 7], "kk": [None] * N})
    table = pl.concat([table, table[:1]])
    assert found(table, np.r_[LABELS, LABELS[:1]])["copies"].numbers["n_copies"] == 1


@pytest.mark.parametrize("estimator", [LabelAudit, ImportanceReweightingClassifier])
@pytest.mark.parametrize("pack", [pd.DataFrame, pl.DataFrame, lambda X: pd.DataFrame(X).to_numpy()])
def test_a_fit_finds_a_rule_and_notes_identifiers_in_frames_and_arrays(estimator, pack):
    rng = np.random.default_rng(0)
    columns = {name: rng.normal(size=500) for name in ("amount", "age", "months")}
    X = pack({**columns, "key": np.arange(500)})
    with pytest.warns(UserWarning, match="rule:"):
        fitted = estimator(random_state=0).fit(X, columns["amount"] > 0.31)
    severity = {one.code: one.severity for one in fitted.noise_.findings}
    assert severity["rule"] == "warning"
    assert severity["identifiers"] == "note"
    assert fitted.noise_.verdict.code == "rule"
    # the rule may have made any of the labels wrong
    assert fitted.label_error_range_ == (0.0, 0.5)


@pytest.mark.parametrize("estimator", [LabelAudit, ImportanceReweightingClassifier])
@pytest.mark.parametrize("pack", [pd.DataFrame, pl.DataFrame])
def test_the_label_left_among_the_features_is_a_leak(estimator, pack):
    rng = np.random.default_rng(0)
    age = rng.normal(size=400)
    status = np.where(age + rng.normal(size=400) > 0, "left", "stayed")
    X = pack({"age": age, "status": status})
    with pytest.warns(UserWarning, match="'status' is the label"):
        fitted = estimator(random_state=0).fit(X, status)
    assert fitted.noise_.verdict.code == "leak"
    assert fitted.label_error_range_ == (0.0, 0.5)


def test_rows_in_blocks_are_searched_for_rules_too():
    X = np.random.default_rng(0).normal(size=(1000, 3))
    with pytest.warns(UserWarning, match="rule:"):
        audit = StreamingAudit(random_state=0).fit(ArrayBatches(X, X[:, 1] > 0.3, batch_rows=200))
    assert any("X[:, 1]" in sentence for sentence in audit.diagnostics_)
