"""Findings about an estimate: codes, severities, thresholds and sentences."""

from unflip.diagnostics._catalogue import MIN_SHOWN as MIN_SHOWN
from unflip.diagnostics._catalogue import Diagnostic
from unflip.diagnostics._catalogue import LabelNoiseWarning as LabelNoiseWarning
from unflip.diagnostics._catalogue import named as named
from unflip.diagnostics._catalogue import percent as percent
from unflip.diagnostics._catalogue import raise_or_warn as raise_or_warn
from unflip.diagnostics._catalogue import sentences as sentences
from unflip.diagnostics._error_range import channel_range as channel_range
from unflip.diagnostics._error_range import error_rate_bounds as error_rate_bounds
from unflip.diagnostics._error_range import error_rate_range as error_rate_range
from unflip.diagnostics._error_range import errors_by_label as errors_by_label
from unflip.diagnostics._error_range import range_by_a_rule as range_by_a_rule
from unflip.diagnostics._error_range import range_of as range_of
from unflip.diagnostics._error_range import true_shares as true_shares
from unflip.diagnostics._findings import LEVEL as LEVEL
from unflip.diagnostics._findings import assumed as assumed
from unflip.diagnostics._findings import diagnose_columns as diagnose_columns
from unflip.diagnostics._findings import diagnose_model as diagnose_model
from unflip.diagnostics._findings import diagnose_rates as diagnose_rates
from unflip.diagnostics._findings import diagnose_readings as diagnose_readings
from unflip.diagnostics._findings import diagnose_usefulness as diagnose_usefulness
from unflip.diagnostics._findings import diagnose_weight_summary as diagnose_weight_summary
from unflip.diagnostics._findings import diagnose_weights as diagnose_weights
from unflip.diagnostics._labels import diagnose_classes as diagnose_classes
from unflip.diagnostics._labels import look_alike as look_alike
from unflip.diagnostics._table import MEANINGLESS as MEANINGLESS
from unflip.diagnostics._table import diagnose_features as diagnose_features
from unflip.diagnostics._verdict import labels_to_verify as labels_to_verify
from unflip.diagnostics._verdict import verdict_of as verdict_of

__all__ = ["Diagnostic"]
