"""A model file from anywhere runs nothing, removes nothing and writes nothing."""

import json
import os
import pickle
import subprocess
import sys
import zipfile

import cloudpickle
import numpy as np
import pytest

from tests.security.hostile import (
    NOTE,
    archive,
    array,
    called,
    classes_that_do_something,
    constant,
    dict_of,
    instance,
    list_of,
    method,
    node,
    saved,
    text,
    tuple_of,
)
from unflip._app.persistence import CHILDREN, TYPES, Survey


class Payload:
    """What unpickles to a command."""

    def __init__(self, folder):
        self._folder = folder

    def __reduce__(self):
        return os.system, (f"touch '{self._folder}/ran'",)


def pickled():
    return node("BytesNode", "builtins.bytes", file="payload.bin")


def armed(name, canary):
    """Return a file in which a class is to be made, with a state that uses known holes."""
    state = dict_of(
        data_op=pickled(),
        _istmpdest=constant(True),
        _destpath=constant(str(canary)),
        fp=constant(str(canary / "file")),
        state=list_of(constant(1)),
    )
    return archive(instance(name, state), {"payload.bin": cloudpickle.dumps(Payload(canary))})


EXPLOITS = ["skrub._data_ops._estimator.SkrubLearner", "numpy.lib._datasource.DataSource"]
"""Whose `__setstate__` unpickles, and whose `__del__` removes a folder."""


@pytest.fixture(scope="module")
def classes():
    found = classes_that_do_something()
    assert set(EXPLOITS) <= set(found)
    return {name: kind for name, kind in found.items() if name not in TYPES["ObjectNode"]}


def test_no_class_that_does_something_when_it_is_made_is_made(refused, canary, classes):
    once = {kind: name for name, kind in classes.items()}
    assert len(once) > 800
    for name in {*once.values(), *EXPLOITS}:
        assert f"--trust {name}" in refused(armed(name, canary))


@pytest.mark.slow
def test_no_class_is_made_under_another_name(refused, canary, classes):
    assert len(classes) > 2000
    for name in classes:
        assert f"--trust {name}" in refused(armed(name, canary))


@pytest.mark.parametrize("name", [EXPLOITS[0], pytest.param(EXPLOITS[1], marks=pytest.mark.slow)])
def test_the_command_itself_refuses_in_a_process_of_its_own(name, canary, tmp_path):
    model, table = tmp_path / "model.skops", tmp_path / "table.csv"
    model.write_bytes(armed(name, canary))
    table.write_text("x\n1\n")
    command = [sys.executable, "-m", "unflip", "predict", model, table, "--out", tmp_path / "o.csv"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert not done.stdout
    assert done.stderr.count("\n") == 1
    assert "asks for types that unflip does not trust" in done.stderr
    assert [path.name for path in canary.iterdir()] == ["file"]


CALLABLES = [
    "os.system",
    "posix.system",
    "os.remove",
    "os.popen",
    "subprocess.Popen",
    "subprocess.check_output",
    "builtins.eval",
    "builtins.exec",
    "builtins.open",
    "builtins.compile",
    "builtins.getattr",
    "builtins.map",
    "builtins.__import__",
    "importlib.import_module",
    "runpy.run_path",
    "shutil.rmtree",
    "pickle.loads",
    "cloudpickle.loads",
    "joblib.load",
    "marshal.loads",
    "ctypes.CDLL",
    "webbrowser.open",
    "urllib.request.urlretrieve",
    "socket.create_connection",
    "tempfile.TemporaryDirectory",
    "numpy.load",
    "numpy.save",
    "numpy.memmap",
    "numpy.fromfile",
    "numpy.ndarray",
    "numpy.lib.npyio.NpzFile",
    "numpy.lib._datasource.DataSource",
    "numpy.add",
    "numpy.frompyfunc",
    "numpy.f2py.compile",
    "numpy.ctypeslib.load_library",
    "scipy.io.loadmat",
    "scipy.io.netcdf_file",
    "scipy.special.expit",
    "scipy.LowLevelCallable",
    "sklearn.datasets.load_files",
    "sklearn.datasets.clear_data_home",
    "sklearn.datasets.fetch_file",
    "sklearn.datasets.dump_svmlight_file",
    "sklearn.externals._arff.load",
    "sklearn.utils._mask.safe_mask",
    "sklearn.linear_model._logistic.LogisticRegression",
    "sklearn.pipeline.make_pipeline",
    "skrub._data_ops._evaluation.evaluate",
    "skrub.datasets.fetch_employee_salaries",
    "skrub._dataframe._common.is_numeric",
    "skrub._table_vectorizer._created_by_predicate",
    "polars.read_csv",
    "polars.DataFrame.write_csv",
    "unflip._files.write_whole",
    "unflip._app.tables.write_table",
    "skops.io.load",
    "functools.partial",
    "operator.methodcaller",
    "operator.attrgetter",
]


def uses(name, canary):
    """Yield the ways to have a file call something, or hand it to what calls it."""
    command = constant(f"touch '{canary}/ran'")
    empty = dict_of()
    yield called(name, command)
    yield node("ListNode", name, content=[command])
    yield node("SetNode", name, content=[command])
    yield node("TupleNode", name, content=[command])
    yield node("DictNode", name, content={}, key_types=list_of())
    yield node(
        "DictNode", "builtins.dict", content={"a": command}, key_types=list_of(function(name))
    )
    yield node("NdArrayNode", name, type="numpy", file="0.npy")
    yield node("RandomStateNode", name, content=empty)
    yield node("LossNode", name, content=empty, __reduce__={"args": tuple_of(command)})
    yield node("TreeNode", name, content=empty, __reduce__={"args": tuple_of(command)})
    yield node("DefaultDictNode", name, content={"main": empty, "default_factory": function(name)})
    yield instance("skrub.selectors._base.Filter", dict_of(predicate=function(name)))
    yield instance("skrub.selectors._base.Filter", dict_of(predicate=node("TypeNode", name)))
    parts = {"func": function(name), "args": tuple_of(command), "kwds": empty, "namespace": empty}
    yield node("PartialNode", "functools.partial", content=parts)


def function(name):
    return node("FunctionNode", name)


@pytest.mark.parametrize("name", CALLABLES)
def test_no_function_or_type_is_called(refused, canary, name):
    for schema in uses(name, canary):
        if not {(schema["__loader__"], name)} & {(k, n) for k, v in TYPES.items() for n in v}:
            refused(archive(schema, {"0.npy": saved(np.zeros(2))}))


def test_names_on_the_list_are_for_their_loaders_only():
    for loader in CHILDREN:
        for name in {name for names in TYPES.values() for name in names}:
            survey = Survey(types={(loader, name)})
            assert survey.strangers() == ([] if name in TYPES.get(loader, ()) else [name])
            assert not survey.strangers([name])


METHODS = ["__init__", "__class__", "fit", "__reduce_ex__", "__globals__", "set_params", "__del__"]


@pytest.mark.parametrize("func", METHODS)
def test_no_method_is_bound(refused, func):
    name = "sklearn.pipeline.Pipeline"
    bound = method(instance(name, dict_of()), name, func)
    assert "--trust" in refused(archive(bound))
    # nor one of what a method gave
    chain = method({**bound, "__class__": "Pipeline"}, name, func)
    assert "--trust" in refused(archive(chain))


@pytest.mark.parametrize(
    "name", ["methodcaller", "attrgetter", "itemgetter", "call", "delitem", "concat", "imul"]
)
def test_no_operator_is_called(refused, name):
    attrs = tuple_of(constant("system"), constant("true"))
    said = refused(archive(node("OperatorFuncNode", f"operator.{name}", attrs=attrs)))
    assert f"--trust operator.{name}" in said
    refused(archive(node("OperatorFuncNode", f"os.{name}", attrs=attrs)))


@pytest.mark.parametrize("attribute", ["seed", "set_bit_generator", "MT19937", "__class__", "a.b"])
def test_no_other_random_generator_is_made(refused, attribute):
    state = dict_of(bit_generator=constant(attribute))
    content = {"bit_generator": state, "seed_seq": dict_of()}
    refused(
        archive(node("RandomGeneratorNode", "numpy.random._generator.Generator", content=content))
    )


@pytest.mark.parametrize("protocol", [0, 1, 3, -1, 2.5, True, "2", None, [2]])
def test_other_protocols_of_skops_are_refused(refused, protocol):
    content = {"module_path": "os", "function": "system"}
    schema = node("FunctionNode", "skrub._dataframe._common.is_numeric", content=content)
    refused(archive(schema, protocol=protocol))


def test_arrays_are_no_pickles_and_no_archives(refused, canary):
    payload = pickle.dumps(Payload(canary))
    objects = saved(np.array([Payload(canary)], dtype=object))
    npz = archive(constant(1))
    for content in (payload, objects, npz, b"", b"\x93NUMPY", bytes(1000)):
        refused(archive(list_of(array()), {"0.npy": content}))
    refused(
        archive(
            node("SparseMatrixNode", "scipy.sparse._csr.csr_matrix", type="scipy", file="0.npz"),
            {"0.npz": npz},
        )
    )


@pytest.mark.parametrize(
    "name",
    [
        "../evil.npy",
        "../../../../../../tmp/evil.npy",
        "/etc/passwd",
        "C:\\evil.npy",
        "..\\evil.npy",
        "a/b.npy",
        "a/",
        "./0.npy",
        "0.npy\n",
        "0.npy\x1b[2J",
        "evil.py",
        "schema.json.py",
        "\u202e.npy",
    ],
)
def test_names_of_members_that_lead_elsewhere_are_refused(refused, name):
    data = archive(list_of(array(name)), {name: saved(np.zeros(2))})
    assert "is not a model file of unflip" in refused(data)
    refused(archive(list_of(array(name))))  # read, and not there


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("name", ["schema.json", "unflip.json", "0.npy"])
def test_members_of_the_same_name_are_refused(refused, tmp_path, name):
    path = tmp_path / "twice.zip"
    path.write_bytes(archive(list_of(array()), {"0.npy": saved(np.zeros(2))}))
    with zipfile.ZipFile(path, "a") as file:
        file.writestr(name, json.dumps(NOTE))
    assert "two members have the same name" in refused(path.read_bytes())


@pytest.mark.parametrize(
    "words", ["a\nb", "a b", "\x1b[31mred", "a;b", "'", "‮", "", "x" * 10_000, "--trust", "ä"]
)
def test_what_a_file_calls_itself_does_not_reach_the_terminal_as_it_is(refused, words):
    refused(archive(node("ObjectNode", f"{words}.{words}")))
    refused(archive(node("ObjectNode", f"m.{words}")))
    refused(archive(node(words, "m.C")))
    refused(archive(constant(1), note={**NOTE, "format": words}))
    refused(archive(constant(1), note={**NOTE, "versions": {"numpy": f"{words} "}}))
    refused(archive(constant(1), note={**NOTE, "columns": {"x": f"{words} "}}))


def test_many_names_are_told_in_one_line_of_bounded_length(refused):
    assert "970 more" in refused(archive(list_of(*(instance(f"m.C{k}") for k in range(1000)))))


def test_trusting_one_name_trusts_no_other(refused, canary):
    name = "skrub._data_ops._estimator.SkrubLearner"
    said = refused(armed(name, canary), trust=["skrub", "*", f"{name}2", "", "."])
    assert f"--trust {name}" in said
    said = refused(armed(name, canary), trust=[name])
    assert "--trust builtins.bytes" in said


@pytest.mark.parametrize(
    "schema",
    [
        constant(1),
        list_of(),
        text(),
        instance("sklearn.linear_model._logistic.LogisticRegression", dict_of()),
        instance("sklearn.pipeline.Pipeline", dict_of()),
        instance("sklearn.pipeline.Pipeline", dict_of(steps=list_of())),
        instance("sklearn.pipeline.Pipeline", dict_of(steps=constant(3))),
        instance("sklearn.pipeline.Pipeline"),
        instance("unflip.reweighting.ImportanceReweightingClassifier"),
        instance("unflip.reweighting.ImportanceReweightingClassifier", dict_of()),
        instance("unflip.reweighting.ImportanceReweightingClassifier", list_of()),
        instance(
            "unflip.reweighting.ImportanceReweightingClassifier",
            dict_of(classes_=constant(1), estimator_=constant(1), n_features_in_=constant(1)),
        ),
    ],
)
def test_what_is_no_fitted_model_of_unflip_is_refused(refused, schema):
    refused(archive(schema))
