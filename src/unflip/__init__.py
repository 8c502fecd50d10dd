"""unflip trains classifiers on labels that have been flipped."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unflip.audit import LabelAudit, find_label_issues
    from unflip.checked import CheckedLabels
    from unflip.diagnostics import LabelNoiseWarning
    from unflip.inspection import noise_by_slice
    from unflip.noise import InverseRates, NoiseRates, TransitionMatrix, flip_labels
    from unflip.reweighting import ImportanceReweightingClassifier
    from unflip.weights import importance_weights

__version__ = "0.2.0.dev0"

__all__ = [
    "CheckedLabels",
    "ImportanceReweightingClassifier",
    "InverseRates",
    "LabelAudit",
    "LabelNoiseWarning",
    "NoiseRates",
    "TransitionMatrix",
    "__version__",
    "find_label_issues",
    "flip_labels",
    "importance_weights",
    "noise_by_slice",
]

_MODULES = {
    "CheckedLabels": "checked",
    "ImportanceReweightingClassifier": "reweighting",
    "InverseRates": "noise",
    "LabelAudit": "audit",
    "LabelNoiseWarning": "diagnostics",
    "NoiseRates": "noise",
    "TransitionMatrix": "noise",
    "find_label_issues": "audit",
    "flip_labels": "noise",
    "importance_weights": "weights",
    "noise_by_slice": "inspection",
}
"""Where each public name is defined. It is imported when it is first used (PEP 562), because
scikit-learn takes more than a second to import and `unflip --help` needs none of it."""


if not TYPE_CHECKING:  # type checkers would take every attribute for one that exists

    def __getattr__(name: str) -> Any:
        """Import a public name or a public module when it is first used."""
        if name in _MODULES:
            found = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
            globals()[name] = found
            return found
        if not name.startswith("_"):
            try:
                return import_module(f"{__name__}.{name}")
            except ModuleNotFoundError as error:
                if error.name != f"{__name__}.{name}":  # the module exists and lacks a library
                    raise
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
