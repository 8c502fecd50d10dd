"""The numbers that the noise model rests on, each with its meaning, unit and source."""

from dataclasses import dataclass

COVERAGE = "python -m benchmarks.coverage"
SCENARIOS = "python -m benchmarks.worlds"
MANY_CLASSES = "python -m benchmarks.multiclass_worlds"
PROBABILITIES = "python -m benchmarks.probability_worlds"
TIMES = "python -m benchmarks.times"


@dataclass(frozen=True)
class ChannelSettings:
    """Meaning, unit and source of every number.

    A number is derived, or taken from a paper, or needed by the arithmetic, or it bounds the time
    of a fit. For all others, the comment names the command that measures their effect: `COVERAGE`
    (how often intervals and tests are right), `SCENARIOS` and `MANY_CLASSES` (how often an estimate
    is wrong without a warning, for two classes and for more) or `TIMES` (processor time of a fit).
    """

    # --- Prior of the coefficients. t = F w are the logits of the clean posterior.
    # Median of the prior variance of t: logits of about +-3, which are probabilities from 0.05 to
    # 0.95.
    latent_variance: float = 9.0
    # Prior variance of the intercept of t. For two classes, shares of 0.12 and 0.88 are one
    # standard deviation from even shares.
    intercept_variance: float = 4.0
    # Bounds of the prior variance of a block of features. At the lower bound t varies by 0.1, which
    # is nearly nothing; at the upper bound by 20, where nearly every probability is 0 or 1.
    smallest_variance: float = 1e-2
    largest_variance: float = 400.0
    # The search for a variance s works in log(s + 0.5), because in log s a block with a tiny
    # variance would need many steps to grow again.
    variance_offset: float = 0.5
    # Minimum share of repeated rows with several labels to treat repetitions as distinct samples:
    # rows of few categories repeat by chance, and noise gives them several labels. Below it,
    # repetitions are copies (`SCENARIOS`, families of categories, duplicates and copies).
    mixed_label_share: float = 0.05

    # --- Prior of T.
    # Prior probability of no noise, for any number of classes. Given the labels, it decides whether
    # an interval reaches 0 and whether the median is 0 (`COVERAGE`).
    no_noise_probability: float = 0.1
    # Prior probability of equal rates for two classes, given noise. Equal rates need no correction
    # of the decision: few samples should not suggest a difference (`COVERAGE`).
    equal_rates_probability: float = 0.25
    # Maximum rate of two classes if nothing is known about either rate: above 1/2, most labels of a
    # class would be wrong, and the classes could be swapped.
    largest_unknown_rate: float = 0.5
    # Parameters of the Beta prior of a rate for more classes, Beta(flips, stays): a fifth of the
    # labels is flipped on average, and the density is largest at no noise (`COVERAGE`).
    prior_flips: float = 1.0
    prior_stays: float = 4.0

    # --- Exploration of T: search for a maximum of the evidence.
    # Rate at which a search starts, and minimum rate at which the likeliest targets are computed
    # for the first time. Numerical necessity: at rate 0, the likelihood does not depend on the
    # targets.
    starting_rate: float = 0.1
    # Tolerance of a search, in nats of the log-evidence: 0.1 changes the odds of two structures by
    # about a tenth. 1.0 is enough where no structures are compared.
    tolerance: float = 0.1
    rough_tolerance: float = 1.0
    # Number of coefficients from which on the tolerance grows in proportion: the block-diagonal
    # approximation of the determinant makes the evidence less smooth.
    smooth_coefficients: float = 300.0
    # Maximum number of steps of a search, which bounds the time of a fit. Maximum change of a
    # parameter (a logit or a log-ratio) in one step, within which the slope of the determinant is
    # taken as constant.
    max_steps: int = 15
    longest_step: float = 2.0
    # The variances have converged if their logarithms change by less than this: near the maximum,
    # the evidence hardly depends on a tenth of a variance. Bounds the time of a fit.
    settled_log_variance: float = 0.1
    # Number of samples that stand for all in the information about T, and in the mean information
    # about t. Bounds the time of a fit.
    information_samples: int = 2000

    # --- Exploration of T: quadrature for two classes.
    # Number of values of each rate on the coarse grid, and on the fine one; its square if one rate
    # is known. tests/channel/test_two_classes.py compares the result with a dense grid.
    grid_values: int = 6
    # If the region with evidence covers at least this share of the range of each rate, a finer grid
    # would hardly be finer. Bounds the time of a fit.
    wide_region: float = 0.7
    # Neighbours of a pair of rates are fitted if its log-evidence is within this many nats of the
    # maximum: e^-6 = 0.0025 of the maximum density. Pairs that are twice as far below it (6e-6) are
    # outside the fine grid. RBF features are tried if they lack no more than this at the lowest
    # rates.
    explored_drop: float = 6.0
    # Number of cells per rate over which the interpolated evidence is integrated. A cell is at most
    # 0.006 wide, which bounds the error of the ends of an interval.
    grid_cells: int = 160

    # --- Exploration of T: structures for more classes.
    # Maximum number of classes for which targets are free: T has as many as there are pairs of
    # classes. Bounds the time of a fit.
    most_target_classes: int = 50
    # Minimum number of samples per free target for structures in which every class has targets and
    # a rate of its own (`MANY_CLASSES`).
    samples_per_target: int = 5
    # A structure is not fitted, or not fitted to all samples, if by a cheaper fit its log-evidence
    # is below that of another structure by more than this, in nats: by the expected counts, which
    # ignore x, by the pilot sample, or with one rate where it has several. The margin is wide, as
    # e^-7 would be negligible.
    structure_gap: float = 30.0
    # Maximum number of times that the targets are chosen anew. Bounds the time of a fit.
    target_rounds: int = 4
    # Structures with a smaller probability are left out of the distribution of T, which they would
    # change by a thousandth at most.
    negligible_structure: float = 1e-3
    # Number of draws from the distribution of T, of which a 95 % interval leaves out 100.
    n_draws: int = 2000

    # --- Choice of features.
    # Width of the RBF features in median distances between two samples, which is the usual choice.
    rbf_width: float = 1.0
    # Number of samples whose distances give the median. Bounds the time of a fit.
    distance_samples: int = 300
    # Minimum eigenvalue of the kernel matrix, relative to the largest one. Smaller ones are
    # dropped: a division by their root would amplify rounding errors.
    smallest_eigenvalue: float = 1e-6
    # Maximum number of multiplications of one evaluation of the evidence while features are
    # compared. Bounds the time of a fit (`TIMES`).
    pilot_work: float = 2.5e8
    # Maximum number of samples while features are compared, and in the goodness of fit, which
    # bounds the time of a fit (`TIMES`). With more samples, the coefficients are so certain that
    # the clean posterior is not averaged over them.
    pilot_samples: int = 3000
    # Maximum p-value of the goodness of fit, or of the score test of a forest's scores, to grow a
    # forest: the usual level of a test. Whether the scores are used is for the evidence to decide.
    # With 0.16, the rates of curved classes are not better, and a fit takes 16 % more time
    # (`SCENARIOS`).
    forest_p_value: float = 0.05
    # Minimum gain of the log-evidence, in nats, to use the scores of a forest. Such a gain is
    # strong evidence, e^3 = 20 to 1 (Kass and Raftery, JASA 1995). It is required because the
    # forest has learnt from the labels too, which the evidence of its scores does not count.
    forest_evidence: float = 3.0
    # Number of folds by which samples get held-out scores of trees, number of trees per fold and
    # their maximum depth, and maximum number of samples that they are grown on. Bounds the time of
    # a fit (`TIMES`).
    n_folds: int = 3
    forest_trees: int = 30
    tree_depth: int = 20
    # Minimum number of samples in a leaf. With 1, T of many classes is off by .078, with 3 by .073
    # (`python -m benchmarks.multiclass`); with 3, clean labels of curved classes look noisy
    # (`SCENARIOS`).
    tree_leaf: int = 2
    forest_samples: int = 5000
    # The shares of the observed classes count as this many additional trees, so that no
    # probability is 0 (`SCENARIOS`, `MANY_CLASSES`).
    prior_trees: float = 5.0

    # --- Goodness of fit.
    # Minimum number of samples for a check: with fewer samples, trees hardly learn anything.
    fewest_checked: int = 100
    # Number of trees that predict labels and residuals, and minimum number of samples in a leaf.
    # With 15 trees, the statistic of curved classes is larger by a tenth (`SCENARIOS`). With 2
    # samples in a leaf, it is the same, and trees take more time.
    residual_trees: int = 10
    residual_leaf: int = 5
    # Number of random combinations of the labels that trees are grown on (Joly, Geurts and
    # Wehenkel, ECML 2014). Bounds the time of a fit.
    residual_combinations: int = 3
    # Statistics, in standard errors, from which on the model is suspect (the verdict "suspect") or
    # rejected ("rejected"). By chance this happens in one fit of 700, or of 10^9 (normal
    # distribution, one-sided).
    suspect_statistic: float = 3.0
    rejected_statistic: float = 6.0
    # Labels may follow a rule if the model disagrees with less than the first share of them, a
    # small decision tree with less than the second share, and the tree explains them better than a
    # linear model by as many standard errors as make a model suspect. The tree has 12 leaves, or 3
    # per class if that is more (`SCENARIOS`, labels by a rule).
    largest_rule_disagreement: float = 0.2
    explained_disagreement: float = 0.02
    rule_leaves: int = 12
    # Classes are separated if less than this share of the held-out labels differs from the
    # prediction of the model without noise. Laplace's method then finds noise in clean labels, so
    # that the evidence of noise is limited to the gain of the held-out log-likelihood plus this
    # many standard errors (`MANY_CLASSES`).
    separated_disagreement: float = 0.05
    held_out_standard_errors: float = 2.0
    # Labels contradict known rates if the p-value of the likelihood-ratio test is that of a suspect
    # model, and the rate of a class differs by more than this (`SCENARIOS` counts smaller errors of
    # a rate as right).
    contradiction_difference: float = 0.05

    # --- Temperature scaling: the factor a of the logits in softmax(a t) T.
    # Maximum factor (`MANY_CLASSES`), and minimum gain of the held-out log-likelihood, in nats, to
    # apply one: about the 5 % level of the likelihood-ratio test of one parameter (1.92).
    largest_factor: float = 4.0
    factor_gain: float = 2.0
    # Numerical necessity: difference of log a by which its curvature is computed, and maximum
    # standard deviation of log a where there is hardly any curvature.
    log_factor_step: float = 0.1
    largest_log_factor_deviation: float = 0.5
    # Maximum leverage of a sample that is left out: one Newton step divides by 1 - leverage.
    largest_leverage: float = 0.9

    # --- Held-out probabilities.
    # Probabilities below are taken as this: single and half precision have zeros.
    smallest_held_out: float = 1e-9
    # Prior standard deviation of log a in a log p: a factor of 1.6 either way. The likeliest factor
    # is sought again until it changes by less than a tenth. Bounds the time of a fit.
    log_factor_deviation: float = 0.5
    settled_log_factor: float = 0.1
    factor_rounds: int = 4
    # EM steps by which T is removed from p, and the smallest probability they start from.
    inversion_steps: int = 3
    inversion_start: float = 1e-3
    # A model is sure of a class from this probability on, and a class has anchor points if it is
    # sure of this share of the samples that it takes for the class. Rates below 1 - `sure` cannot
    # be told from a model that is a little underconfident (`PROBABILITIES`).
    sure: float = 0.95
    anchor_share: float = 0.01
    # Nats of prior odds against T under which no class has anchor points: nearly all datasets have
    # some (`PROBABILITIES`).
    no_anchors: float = 4.0
    # Quantile of flatness up to which samples belong to some class: at most a quarter of a dataset
    # is out of distribution. Maximum of e, which tells how unusually flat a sample is.
    usual_quantile: float = 0.75
    largest_excess: float = 0.99
    # Nats per sample by which out-of-distribution samples may be found in data that have none,
    # because no model is quite calibrated: one in 45 such datasets of `PROBABILITIES` has more.
    miscalibration: float = 0.0065
    # Number of probabilities that the model is fitted to (if there are more, a random subset of the
    # samples is used), and minimum number of samples. Bounds the time of a fit.
    probability_values: int = 80_000
    fewest_probability_samples: int = 2000

    # --- Groups of samples.
    # Prior standard deviation of the shift of the log odds of the classes in a group, beyond what
    # the clean posterior says: a factor of e either way. The shift stays finite if a group has one
    # class.
    group_shift_deviation: float = 1.0
    # Minimum of the clean posterior, so that no single label rules out all T.
    smallest_clean_probability: float = 1e-4
    # Maximum number of bins of the clean posterior of two classes in which samples are counted.
    # Samples of a bin differ so little that the evidence hardly changes. Bounds the time.
    group_bins: int = 64
    # Number of values of one free parameter of T, and of each of two, on grids that are narrowed to
    # the maximum of the evidence, and maximum number of grids. tests/channel/test_groups.py
    # compares the result with an integral; with 6 values instead of 8, the maximum is off by .05.
    group_values: tuple[int, int] = (16, 8)
    group_grids: int = 6
    # Tolerance of the maximum over the shift, in nats: far below the difference of 1.92 that ends
    # an interval.
    group_tolerance: float = 1e-3

    # --- Wide data.
    # Dense data with more columns than the first number are reduced to scores and `n_components`
    # principal components, sparse data with more columns than the last number to as many components
    # of a truncated SVD as dense data may have columns. Bounds the time of a fit, which grows with
    # the square of the number of features (`TIMES`).
    most_columns: int = 100
    n_components: int = 30
    most_sparse_columns: int = 500
    # Maximum number of samples from which the components are computed. Bounds the time of a fit.
    reducer_samples: int = 10_000
    # Number of folds for the held-out scores. Bounds the time of a fit.
    score_folds: int = 5
    # The penalties of the ridge regression that are compared are 10^k times the mean eigenvalue,
    # for k in range(*penalty_exponents): from almost no penalty to one that leaves little.
    penalty_exponents: tuple[int, int] = (-6, 3)

    # --- Numerical limits and time.
    # Minimum probability of which a logarithm is taken: the softmax underflows to 0.
    smallest_probability: float = 1e-300
    # Minimum probability that is divided by: its square can be divided by in single precision.
    smallest_divisor: float = 1e-12
    # Bound of the parameters of T (logits and log-ratios), so that no entry of T underflows:
    # e^-15 = 3e-7.
    largest_logit: float = 15.0
    # Maximum number of conjugate gradient steps, and the share of the first decrement at which they
    # end. Bounds the time of a fit: the slope of the determinant is a small part of the gradient.
    conjugate_steps: int = 6
    conjugate_tolerance: float = 1e-3
    # Number of values that are computed at a time, and of entries of all drawn matrices, which take
    # 4 MB in single precision and 8 MB in double precision.
    block_values: int = 1 << 20
    # Maximum number of multiplications of one evaluation of the evidence on all samples. Bounds the
    # time of a fit (`TIMES`).
    final_work: float = 6e9


SETTINGS = ChannelSettings()
