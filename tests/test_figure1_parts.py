"""Importance reweighting, part by part."""

import numpy as np
import pytest

parts = pytest.importorskip("benchmarks.figure1_parts", reason="benchmarks are not in this copy")


def test_with_the_true_posterior_wrong_labels_weigh_nothing_and_right_ones_alike() -> None:
    rates = parts.PAIRS[0]
    y, noisy = np.array([1, 1, -1, -1]), np.array([1, -1, -1, 1])
    proba = parts.true_posterior((None, y, noisy, rates, 0))
    np.testing.assert_allclose(proba[:, 1], [0.7, 0.7, 0.1, 0.1])
    given = proba[np.arange(4), (noisy == 1).astype(int)]
    beta = parts.importance_weights(given, noisy, rates)
    np.testing.assert_allclose(beta, [1 / 0.7, 0, 1 / 0.9, 0], atol=1e-12)


@pytest.mark.slow
def test_every_row_is_compared_with_the_unbiased_loss() -> None:
    rows = parts.table(2)
    by_name = {(row[0], row[1]): row for row in rows}
    assert by_name["UB", "true"][3:] == ["+0.00", "0.00", "-"]
    assert by_name["true", "true"][5] == "0.000"
    assert len(by_name) == 7
    for row in rows:
        difference = float(row[2]) - float(by_name["UB", "true"][2])
        assert float(row[3]) == pytest.approx(difference, abs=0.011)
