"""scikit-learn's contract, whole: every public estimator, no expected failure."""

import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from unflip import ImportanceReweightingClassifier, NoiseRates
from unflip.audit import LabelAudit
from unflip.baselines import LabelDependentCostClassifier, StPMKL, UnbiasedLossClassifier
from unflip.density_ratio import KLIEP, KMM, ULSIF, BregmanRatio, RuLSIF
from unflip.learners import KernelClassifier, LinearClassifier
from unflip.noise_rates import (
    BestBinRates,
    ChannelRates,
    ConfidentJointRates,
    CrossValidatedRates,
    DualTRates,
    MinimumRates,
    ScottRates,
    SelectiveRates,
)
from unflip.posterior import (
    ChannelPosterior,
    DensityRatioPosterior,
    KernelDensityPosterior,
    ProbabilisticPosterior,
    SelectedPosterior,
)

RATES = NoiseRates(positive=0.1, negative=0.1)

INSTANCES = [
    ProbabilisticPosterior(),
    ProbabilisticPosterior(LogisticRegression()),
    ChannelPosterior(),
    SelectedPosterior(),
    KernelDensityPosterior(),
    KernelDensityPosterior("cv", random_state=0),
    # density ratios have two samples for (X, y): they meet these checks inside a posterior
    DensityRatioPosterior(KLIEP(bandwidth=1.0)),
    DensityRatioPosterior(RuLSIF(bandwidth=1.0, regularization=0.1), normalize=True),
    DensityRatioPosterior(ULSIF(bandwidth=1.0, regularization=0.1)),
    DensityRatioPosterior(KMM(bandwidth=1.0, tol=0.0)),
    DensityRatioPosterior(BregmanRatio(bandwidth=1.0)),
    MinimumRates(),
    MinimumRates("kde", quantile=0.1),
    ScottRates(),
    ChannelRates(ChannelPosterior("linear")),
    LabelAudit(cv=2),
    SelectiveRates(),
    BestBinRates(),
    DualTRates(),
    DualTRates(hardened=False),
    ConfidentJointRates(),
    CrossValidatedRates(ImportanceReweightingClassifier(), grid=[(0, 0), (0.1, 0.2)]),
    LinearClassifier(),
    LinearClassifier("squared"),
    LinearClassifier("hinge"),
    LinearClassifier("modified_huber", alpha=0.1, tol=1e-9),
    LinearClassifier("logistic", alpha=0.1, penalty="elasticnet", tol=1e-10),
    KernelClassifier(alpha=0.01, tol=1e-10),
    KernelClassifier("squared", alpha=0.01),
    UnbiasedLossClassifier(noise_rates=RATES, learner=LinearClassifier(alpha=0.1, tol=1e-9)),
    LabelDependentCostClassifier(noise_rates=RATES),
    StPMKL(noise_rates=RATES),
    ImportanceReweightingClassifier(),
    ImportanceReweightingClassifier(noise_rates=RATES),
    ImportanceReweightingClassifier(posterior="kde", noise_rates="minimum"),
    ImportanceReweightingClassifier(
        SVC(gamma=1.0, tol=1e-12), noise_rates="quantile", cv=2, random_state=0
    ),
    ImportanceReweightingClassifier(
        SVC(gamma=1.0, tol=1e-12), posterior="probabilistic", noise_rates=RATES
    ),
    ImportanceReweightingClassifier(
        DecisionTreeClassifier(max_depth=2),
        posterior=DecisionTreeClassifier(max_depth=2),
        noise_rates=RATES,
    ),
]


@pytest.mark.filterwarnings("ignore::UserWarning")
@parametrize_with_checks(INSTANCES)
def test_scikit_learn_contract(estimator: BaseEstimator, check) -> None:
    check(estimator)
