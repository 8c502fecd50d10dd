"""The noise model P(observed | x) = softmax(t(x)) T, for any number of classes.

t = F(x) w is integrated out (Laplace), so that the evidence of the noisy labels is a function of T
alone; T has one of several structures, which their evidence weighs against each other.
"""

from unflip.channel._choose import ChannelSample as ChannelSample
from unflip.channel._distribution import shortest_ranges as shortest_ranges
from unflip.channel._fit import FittedChannel as FittedChannel
from unflip.channel._fit import fit_channel as fit_channel
from unflip.channel._groups import FittedGroups as FittedGroups
from unflip.channel._groups import GroupNoise as GroupNoise
from unflip.channel._groups import fit_groups as fit_groups
from unflip.channel._outcomes import EvidenceTest as EvidenceTest
from unflip.channel._outcomes import ModelCheck as ModelCheck
from unflip.channel._probabilities import FittedProbabilities as FittedProbabilities
from unflip.channel._probabilities import fit_probabilities as fit_probabilities
from unflip.channel._rates import box_of as box_of
from unflip.channel._settings import SETTINGS as SETTINGS
from unflip.channel._settings import ChannelSettings as ChannelSettings
from unflip.channel._wide_rows import fit_reducer as fit_reducer
from unflip.channel._wide_rows import reducer as reducer
