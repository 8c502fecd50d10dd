"""Findings about an estimate: codes, severities, thresholds and sentences."""

from unflip.diagnostics._catalogue import LEAST_SHOWN as LEAST_SHOWN
from unflip.diagnostics._catalogue import Diagnostic
from unflip.diagnostics._catalogue import LabelNoiseWarning as LabelNoiseWarning
from unflip.diagnostics._catalogue import named as named
from unflip.diagnostics._catalogue import percent as percent
from unflip.diagnostics._catalogue import raise_or_warn as raise_or_warn
from unflip.diagnostics._catalogue import sentences as sentences
from unflip.diagnostics._error_range import channel_range as channel_range
from unflip.diagnostics._error_range import errors_by_label as errors_by_label
from unflip.diagnostics._error_range import label_error_rate_bounds as label_error_rate_bounds
from unflip.diagnostics._error_range import label_error_rate_range as label_error_rate_range
from unflip.diagnostics._error_range import range_by_a_rule as range_by_a_rule
from unflip.diagnostics._error_range import range_of as range_of
from unflip.diagnostics._error_range import true_shares as true_shares
from unflip.diagnostics._findings import LEVEL as LEVEL
from unflip.diagnostics._findings import assumed as assumed
from unflip.diagnostics._findings import judge_columns as judge_columns
from unflip.diagnostics._findings import judge_model as judge_model
from unflip.diagnostics._findings import judge_rates as judge_rates
from unflip.diagnostics._findings import judge_readings as judge_readings
from unflip.diagnostics._findings import judge_usefulness as judge_usefulness
from unflip.diagnostics._findings import judge_weight_summary as judge_weight_summary
from unflip.diagnostics._findings import judge_weights as judge_weights
from unflip.diagnostics._labels import judge_classes as judge_classes
from unflip.diagnostics._labels import look_alike as look_alike
from unflip.diagnostics._table import MEANINGLESS as MEANINGLESS
from unflip.diagnostics._table import judge_features as judge_features
from unflip.diagnostics._table import judge_table as judge_table
from unflip.diagnostics._verdict import labels_to_verify as labels_to_verify
from unflip.diagnostics._verdict import verdict_of as verdict_of

__all__ = ["Diagnostic"]
