"""P(observed | x) of the samples that a noise model was fitted to, each without its own label.

In memory these come with the fit. Blocks are read again after it, and a model agrees too much with
the labels it was fitted to: these samples are recognised by their values.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from unflip._utils.row_keys import sample_keys
from unflip._utils.typing import Codes, Floats, Rows


@dataclass(frozen=True)
class HeldOut:
    """Held-out probabilities of known samples, found by their features and label."""

    # ascending, one per distinct sample
    keys: NDArray[np.uint64]
    proba: Floats

    @classmethod
    def of(cls, X: Rows, codes: Codes, proba: Floats) -> Self:
        """Return the probabilities of the samples that a model was fitted to."""
        # equal samples of equal label have equal probabilities: the first stands for all
        keys, first = np.unique(sample_keys(X, codes), return_index=True)
        return cls(keys, proba[first])

    def replace(self, proba: Floats, X: Rows, codes: Codes) -> Floats:
        """Return predicted probabilities with those of known samples held out."""
        wanted = sample_keys(X, codes)
        place = np.minimum(np.searchsorted(self.keys, wanted), self.keys.size - 1)
        known = self.keys[place] == wanted
        return np.where(known[:, None], self.proba[place], proba)
