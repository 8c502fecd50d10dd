"""What other packages of the library use of checked labels."""

from unflip.checked._correction import Features as Features
from unflip.checked._correction import correct as correct
from unflip.checked._correction import diagnose_checked as diagnose_checked
from unflip.checked._correction import fit_checked as fit_checked
from unflip.checked._correction import has_checked as has_checked
from unflip.checked._correction import joint_counts as joint_counts
from unflip.checked._correction import rates_of as rates_of
from unflip.checked._correction import recalibrate as recalibrate
from unflip.checked._counting import estimate_predicted as estimate_predicted
from unflip.checked._error_model import MIN_CHECKED as MIN_CHECKED
from unflip.checked._error_model import Evidence as Evidence
from unflip.checked._error_model import HypothesisMixture as HypothesisMixture
from unflip.checked._exact import check_counts as check_counts
from unflip.checked._exact import clopper_pearson as clopper_pearson
from unflip.checked._input import NONE as NONE
from unflip.checked._input import UNSURE as UNSURE
from unflip.checked._labels import label_proba_of as label_proba_of
from unflip.checked._next_rows import GOALS as GOALS
from unflip.checked._next_rows import choose_rows as choose_rows
from unflip.checked._next_rows import rows_needed as rows_needed
from unflip.checked._ratios import Predicted as Predicted
from unflip.checked._ratios import label_error_rate as label_error_rate
