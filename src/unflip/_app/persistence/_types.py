"""What `unflip fit` writes into a model file by itself, and `unflip predict` loads unasked.

By loader: what skops does with a name depends on it. A function is looked up by `FunctionNode`, and
would be called by others. The list is what fitting every `--estimator` to columns of every kind
gives, no more (`tests/security/test_types.py`). A name joins it after a look at what happens when
it is made from values of a stranger, and when the model predicts. Of those below:

- `ObjectNode` calls `cls.__new__(cls)`, then `__setstate__` or `__dict__.update`. No class here has
  a `__new__`, `__del__`, `__getattr__` or `__getattribute__` of its own. Two have a `__setstate__`:
  scikit-learn's `BaseEstimator`, which compares versions and fills `__dict__`, and `TreePredictor`,
  which does that and casts its array of nodes.
- `LossNode` calls the class with values of the file, and `__setstate__`. Both losses are compiled
  classes without fields: arguments are refused or ignored, and the state fills `__dict__`. Their
  module has a short name in older scikit-learn, and `_compat` imports it: no file of that name is.
- `ConstructorFromReduceNode` calls `TransitionMatrix` with values of the file: it checks a matrix.
- `RandomGeneratorNode` makes a `SeedSequence`, whose pool can be of any size: `_schema` lets the
  usual one through.
- `NdArrayNode` reads arrays without pickles, and calls the class of a scalar with one; `_archive`
  compares the header's shape with the bytes that are there.
- `FunctionNode` makes nothing. The functions are tests of a column's type or of the number of its
  values, so that an estimator that is given one as a callable can do no more than ask that.
- `TypeNode` makes nothing. `DictNode` calls types with its keys: they make text or a number.
- Compiled code does not check the indices that it finds in trees, support vectors, vocabularies and
  categories: `_model` does.
"""

from unflip._compat import COUNTS, LOSSES_MODULE

TYPES: dict[str, frozenset[str]] = {
    "ConstructorFromReduceNode": frozenset(
        {
            "unflip.noise.TransitionMatrix",
        }
    ),
    "DTypeNode": frozenset(
        {
            "numpy.dtype",
        }
    ),
    "DictNode": frozenset(
        {
            "builtins.dict",
        }
    ),
    "FunctionNode": frozenset(
        {
            "skrub._dataframe._common.is_any_date",
            "skrub._dataframe._common.is_categorical",
            "skrub._dataframe._common.is_numeric",
            "skrub._table_vectorizer._created_by_predicate",
            "skrub.selectors._selectors._cardinality_below",
        }
    ),
    "JsonNode": frozenset(
        {
            "builtins.str",
        }
    ),
    "ListNode": frozenset(
        {
            "builtins.list",
        }
    ),
    "LossNode": frozenset(
        {
            f"{LOSSES_MODULE}.CyHalfBinomialLoss",
            f"{LOSSES_MODULE}.CyHalfMultinomialLoss",
        }
    ),
    "NdArrayNode": frozenset(
        {
            "numpy.float32",
            "numpy.float64",
            "numpy.ndarray",
            "numpy.uint64",
        }
    )
    | COUNTS,
    "ObjectNode": frozenset(
        {
            "polars.datatypes.classes.Date",
            "polars.datatypes.classes.Datetime",
            "sklearn._loss.link.Interval",
            "sklearn._loss.link.LogitLink",
            "sklearn._loss.link.MultinomialLogit",
            "sklearn._loss.loss.HalfBinomialLoss",
            "sklearn._loss.loss.HalfMultinomialLoss",
            "sklearn.decomposition._truncated_svd.TruncatedSVD",
            "sklearn.ensemble._hist_gradient_boosting.binning._BinMapper",
            "sklearn.ensemble._hist_gradient_boosting.gradient_boosting.HistGradientBoostingClassifier",
            "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
            "sklearn.feature_extraction.text.TfidfTransformer",
            "sklearn.feature_extraction.text.TfidfVectorizer",
            "sklearn.impute._base.MissingIndicator",
            "sklearn.impute._base.SimpleImputer",
            "sklearn.linear_model._logistic.LogisticRegression",
            "sklearn.pipeline.Pipeline",
            "sklearn.preprocessing._data.StandardScaler",
            "sklearn.preprocessing._encoders.OneHotEncoder",
            "sklearn.preprocessing._label.LabelEncoder",
            "sklearn.svm._classes.SVC",
            "skrub._apply_to_each_col.ApplyToEachCol",
            "skrub._check_input.CheckInputDataFrame",
            "skrub._clean_categories.CleanCategories",
            "skrub._clean_null_strings.CleanNullStrings",
            "skrub._datetime_encoder.DatetimeEncoder",
            "skrub._drop_uninformative.DropUninformative",
            "skrub._duration_to_float.DurationToFloat",
            "skrub._string_encoder.StringEncoder",
            "skrub._table_vectorizer.Cleaner",
            "skrub._table_vectorizer.PassThrough",
            "skrub._table_vectorizer.ShortReprDict",
            "skrub._table_vectorizer.TableVectorizer",
            "skrub._to_datetime.ToDatetime",
            "skrub._to_float.ToFloat",
            "skrub._to_str.ToStr",
            "skrub.selectors._base.All",
            "skrub.selectors._base.And",
            "skrub.selectors._base.Cols",
            "skrub.selectors._base.Filter",
            "skrub.selectors._base.Sub",
            "unflip._columns.ColumnEncoder",
            "unflip.posterior._multiclass_channel.MulticlassChannelPosterior",
            "unflip.posterior._noisy_channel._check.ModelCheck",
            "unflip.posterior._noisy_channel._evidence.ChannelFit",
            "unflip.posterior._noisy_channel._features.ChannelFeatures",
            "unflip.posterior._noisy_channel._fit.NoisyChannel",
            "unflip.posterior._noisy_channel._fit._Part",
            "unflip.posterior._noisy_channel._surface.CertainRates",
            "unflip.posterior._noisy_channel._surface.EvidenceTest",
            "unflip.posterior._noisy_channel._surface.RatePosterior",
            "unflip.posterior._noisy_channel._check.ScoredChannel",
            "unflip.posterior._softmax_channel._fit.SoftmaxChannel",
            "unflip.posterior._softmax_channel._forest.ForestFeatures",
            "unflip.posterior._softmax_channel._forest.Trees",
            "unflip.noise.NoiseRates",
            "unflip.noise_rates._channel.ChannelRates",
            "unflip.posterior._channel.ChannelPosterior",
            "unflip.posterior._wide_rows.RidgeScores",
            "unflip.reweighting.ImportanceReweightingClassifier",
        }
    ),
    "RandomGeneratorNode": frozenset(
        {
            "numpy.random.PCG64",
            "numpy.random._generator.Generator",
        }
    ),
    "TupleNode": frozenset(
        {
            "builtins.tuple",
        }
    ),
    "TypeNode": frozenset(
        {
            "builtins.str",
            "numpy.float64",
        }
    ),
}
