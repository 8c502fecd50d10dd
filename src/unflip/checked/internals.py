"""What other packages of the library use of checked labels; users need none of it."""

from unflip.checked._counting import estimate_predicted as estimate_predicted
from unflip.checked._exact import check_counts as check_counts
from unflip.checked._exact import clopper_pearson as clopper_pearson
from unflip.checked._input import NONE as NONE
from unflip.checked._input import UNSURE as UNSURE
from unflip.checked._labels import label_proba_of as label_proba_of
from unflip.checked._learning import LEAST_ROWS as LEAST_ROWS
from unflip.checked._learning import Explained as Explained
from unflip.checked._learning import Seen as Seen
from unflip.checked._picking import GOALS as GOALS
from unflip.checked._picking import pick_rows as pick_rows
from unflip.checked._picking import rows_needed as rows_needed
from unflip.checked._ratios import Predicted as Predicted
from unflip.checked._ratios import label_error_rate as label_error_rate
from unflip.checked._teaching import Features as Features
from unflip.checked._teaching import correct as correct
from unflip.checked._teaching import doubts_of as doubts_of
from unflip.checked._teaching import explained_by as explained_by
from unflip.checked._teaching import has_checked as has_checked
from unflip.checked._teaching import joint_counts as joint_counts
from unflip.checked._teaching import rates_of as rates_of
from unflip.checked._teaching import recalibrate as recalibrate
