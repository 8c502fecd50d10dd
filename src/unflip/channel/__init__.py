"""The noise model P(observed | x) = softmax(t(x)) T, for any number of classes.

t = F(x) w is integrated out (Laplace), so that the evidence of the noisy labels is a function of T
alone; T has one of several structures, which their evidence weighs against each other.
"""

from unflip.channel._check import DOUBTED as DOUBTED
from unflip.channel._check import LEAST_CHECKED as LEAST_CHECKED
from unflip.channel._check import LEAST_SURPRISE as LEAST_SURPRISE
from unflip.channel._check import MOST_LEAVES as MOST_LEAVES
from unflip.channel._check import REFUTED as REFUTED
from unflip.channel._check import score_of_folds as score_of_folds
from unflip.channel._choose import FEATURES as FEATURES
from unflip.channel._choose import SoftmaxSample as SoftmaxSample
from unflip.channel._copies import distinct_rows as distinct_rows
from unflip.channel._copies import starts_of_equal as starts_of_equal
from unflip.channel._design import LATENT_VARIANCE as LATENT_VARIANCE
from unflip.channel._design import MAX_VARIANCE as MAX_VARIANCE
from unflip.channel._design import MIN_VARIANCE as MIN_VARIANCE
from unflip.channel._design import TINY as TINY
from unflip.channel._design import VARIANCE_OFFSET as VARIANCE_OFFSET
from unflip.channel._design import singles as singles
from unflip.channel._distribution import shortest_ranges as shortest_ranges
from unflip.channel._features import ChannelFeatures as ChannelFeatures
from unflip.channel._fit import FittedRows as FittedRows
from unflip.channel._fit import SoftmaxChannel as SoftmaxChannel
from unflip.channel._fit import fit_softmax_channel as fit_softmax_channel
from unflip.channel._outcomes import EvidenceTest as EvidenceTest
from unflip.channel._outcomes import ModelCheck as ModelCheck
from unflip.channel._rates import EXPLORED as EXPLORED
from unflip.channel._rates import NEGLIGIBLE as NEGLIGIBLE
from unflip.channel._rates import Box as Box
from unflip.channel._rates import CertainRates as CertainRates
from unflip.channel._rates import GridSurface as GridSurface
from unflip.channel._rates import RatePosterior as RatePosterior
from unflip.channel._rates import box_of as box_of
from unflip.channel._rates import narrow as narrow
from unflip.channel._sharpness import LEAST_GAIN as LEAST_GAIN
from unflip.channel._sharpness import SHARPEST as SHARPEST
from unflip.channel._structure import NO_NOISE as NO_NOISE
from unflip.channel._wide_rows import RidgeScores as RidgeScores
from unflip.channel._wide_rows import fit_reducer as fit_reducer
from unflip.channel._wide_rows import reducer as reducer
