"""In which order rows come up, and which of them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import entropy
from sklearn.utils.validation import check_is_fitted

from unflip._app.review._source import Source
from unflip._app.review._store import Decision

Array = NDArray[Any]
Floats = NDArray[np.float64]
Rows = NDArray[np.intp]

QUEUES = ("informative", "suspicious", "sample")
"""Most informative first, most suspicious first, and the random sample."""

STATUSES = ("open", "all", "keep", "change", "unsure")
"""Which rows of a queue, by what is said of them; open: nothing yet."""


class Opinion:
    """What the model says of every row, from a fitted audit.

    Parameters
    ----------
    audit : LabelAudit
        Fitted to the rows of `source`.
    source : Source
        The table.

    Attributes
    ----------
    wrong : ndarray of shape (n_rows,)
        P(the label is wrong | x, the label).
    suggested : ndarray of shape (n_rows,)
        The likeliest true label, as a position among the classes.
    truth : ndarray of shape (n_rows, n_classes)
        P(true y | x, the label).
    rates : ndarray of shape (n_classes,)
        P(noisy != i | true=i).
    """

    def __init__(self, audit: Any, source: Source) -> None:
        check_is_fitted(audit, "mislabel_proba_")
        self.wrong: Floats = np.asarray(audit.mislabel_proba_, dtype=float)
        if self.wrong.shape != (source.n_rows,):
            raise ValueError(
                f"the audit was fitted to {self.wrong.size} rows and the table has "
                f"{source.n_rows}. Fit it to the table that is reviewed."
            )
        # as text: a reader of tables may have made labels of dates, or of whole floats
        names = [str(value) for value in np.asarray(audit.classes_).tolist()]
        if not (names == source.names or np.array_equal(audit.classes_, source.classes)):
            raise ValueError(
                f"the audit knows the classes {audit.classes_.tolist()} and the table has "
                f"{source.classes.tolist()}. Fit it to the labels that are reviewed."
            )
        self.rates: Floats = 1 - np.diagonal(audit.transition_matrix_)
        self.suggested: Rows = np.searchsorted(audit.classes_, audit.suggested_label_)
        self.truth: Floats = np.asarray(audit.label_proba_)

    def information(self) -> Floats:
        """Return H(true y | x, the label), in bits: what a look at the row is expected to tell."""
        return np.asarray(entropy(self.truth, base=2, axis=1))

    def other_label(self, row: int, given: int) -> int:
        """Return the likeliest label that the row has not."""
        truth = self.truth[row].copy()
        truth[given] = -1
        return int(np.argmax(truth))


@dataclass(frozen=True)
class Wanted:
    """Which rows of which queue.

    Parameters
    ----------
    queue : str
        One of QUEUES.
    status : str, default="open"
        One of STATUSES.
    given : int, default=None
        Only rows with this label.
    least : float, default=0.0
        Only rows whose P(mislabelled) is at least so much.
    words : str, default=""
        Only rows that hold these words.
    """

    queue: str
    status: str = "open"
    given: int | None = None
    least: float = 0.0
    words: str = ""


class Queues:
    """The orders of one table's rows.

    Parameters
    ----------
    source : Source
        The table.
    opinion : Opinion
        What the model says.
    sample : list of int
        The random sample, in its order.
    """

    def __init__(self, source: Source, opinion: Opinion, sample: list[int]) -> None:
        self._source, self._opinion = source, opinion
        self._orders: dict[str, Rows] = {
            "informative": np.argsort(-opinion.information(), kind="stable"),
            "suspicious": np.argsort(-opinion.wrong, kind="stable"),
            "sample": np.asarray(sample, dtype=np.intp),
        }

    def members(self, wanted: Wanted) -> Rows:
        """Return the rows of a queue, whatever is said of them.

        The random sample is never cut: a part that was chosen by what its rows hold is no random
        sample.
        """
        order = self._orders[wanted.queue]
        if wanted.queue == "sample":
            return order
        kept = self._opinion.wrong >= wanted.least
        if wanted.given is not None:
            kept &= self._source.codes == wanted.given
        if wanted.words.strip():
            kept &= self._source.matches(wanted.words)
        return order[kept[order]]

    def page(
        self, wanted: Wanted, decisions: dict[int, Decision], *, after: int, limit: int
    ) -> tuple[Rows, int, int, bool]:
        """Return rows that follow row `after`, and how many are decided, how many there are, and
        whether there are more.

        Parameters
        ----------
        wanted : Wanted
            Which rows.
        decisions : dict
            What is said of them.
        after : int
            The last row that the caller has; -1: none.
        limit : int
            How many rows at most.
        """  # noqa: D205
        members = self.members(wanted)
        verdicts = np.full(self._source.n_rows, "open", dtype=object)
        for row, decision in decisions.items():
            verdicts[row] = decision.verdict or "open"
        said = verdicts[members]
        start = 0
        if after >= 0:
            # the place in the full order, where the row itself may have left this queue
            place = np.empty(self._source.n_rows, dtype=np.intp)
            place.fill(-1)
            order = self._orders[wanted.queue]
            place[order] = np.arange(order.size)
            start = int(np.searchsorted(place[members], place[after], side="right"))
        hits = np.arange(members.size) >= start
        if wanted.status != "all":
            hits &= said == wanted.status
        rows = members[hits]
        return rows[:limit], int(np.sum(said != "open")), members.size, rows.size > limit
