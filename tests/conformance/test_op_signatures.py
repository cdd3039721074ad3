"""Every registered op type has TensorFlow's signature: arguments, attributes, defaults, types."""

import numpy as np
import pytest

pytest.importorskip("tensorflow")

from tensorflow.python.framework import op_def_registry

import runnel
from runnel.graph.signature import REQUIRED

# Op types that only runnel has.
OWN = {
    "AccumulatorNumDropped",  # TensorFlow's accumulators do not count stale gradients
    "ResourceAccumulatorNumDropped",
    *("SerializeQueue", "DeserializeQueue"),  # checkpoints of TensorFlow's have no queues
    *("SerializeReader", "DeserializeReader"),  # nor readers
    "ComputationBarrier",  # TensorFlow keeps what tf.recompute_grad computes again
    "CopyToDeviceDataset",  # TensorFlow's is a generator of calls to another device
    "GatherTree",  # TensorFlow 1.15 has it, in its contrib
    *("BipartiteMatch", "Resampler", "ResamplerGrad"),  # and these
    *("SparseFeatureCross", "SparseFeatureCrossV2"),
    "PythonGeneratorDataset",  # TensorFlow's has graph functions around Python's
    "_RecvMany",  # partitioning makes it of several _Recv
    "_SendMany",  # and this of several _Send
    "_StackPopJoined",  # a pass makes it of a loop's pops
}
# (op, attribute): allowed types of TensorFlow's that runnel leaves out, and why not.
FEWER_TYPES: dict[tuple[str, str], set[str]] = {}
# TensorFlow's "numbertype" holds these; no arithmetic kernel of TensorFlow's takes them.
QUANTIZED = {"qint8", "quint8", "qint16", "quint16", "qint32"}
# Argument and attribute differences that are meant: (op, what).
MEANT: set[tuple[str, str]] = set()

OPS = sorted(name for name in runnel.registered_ops() if name not in OWN)


def argument_of_ours(argument):
    return (
        argument.name,
        argument.dtype.name if argument.dtype is not None else None,
        argument.type_attr,
        argument.number_attr,
        argument.type_list_attr,
        argument.is_ref,
    )


def argument_of_theirs(arg):
    return (
        arg.name,
        runnel.as_dtype(arg.type).name if arg.type else None,
        arg.type_attr or None,
        arg.number_attr or None,
        arg.type_list_attr or None,
        arg.is_ref,
    )


def default_of_theirs(attr):
    """In the form in which runnel keeps it."""
    if not attr.HasField("default_value"):
        return REQUIRED
    kind = attr.type
    value = attr.default_value
    if kind.startswith("list("):
        kind = kind[5:-1]
        field = {"string": "s", "int": "i", "float": "f", "bool": "b"}.get(kind, kind)
        return [plain(item, kind) for item in getattr(value.list, field)]
    field = {"string": "s", "int": "i", "float": "f", "bool": "b"}.get(kind, kind)
    return plain(getattr(value, field), kind)


def plain(value, kind):
    if kind == "type":
        return runnel.as_dtype(value)
    if kind == "string":
        return value.decode()
    if kind == "tensor":
        return runnel.make_ndarray(value)
    if kind == "shape":
        return runnel.TensorShape(None if value.unknown_rank else [d.size for d in value.dim])
    return value


def same_default(ours, theirs):
    if ours is REQUIRED or theirs is REQUIRED:
        return ours is theirs
    if isinstance(theirs, float):  # theirs went through a float32
        return np.float32(ours) == np.float32(theirs)
    if isinstance(theirs, np.ndarray):
        return ours.dtype == theirs.dtype and ours.tolist() == theirs.tolist()
    return type(ours) is type(theirs) and ours == theirs


def known_types(numbers):
    names = set()
    for number in numbers:
        try:
            names.add(runnel.as_dtype(number).name)
        except TypeError:  # a type that runnel does not have (float8, int4)
            continue
    return names


def test_own_ops_are_not_in_tensorflow():
    assert not [name for name in OWN if op_def_registry.get(name) is not None]


@pytest.mark.parametrize("name", OPS)
def test_signature(name):
    ours = runnel.get_op_def(name)
    theirs = op_def_registry.get(name)
    assert theirs is not None, f"TensorFlow has no op {name}: a misspelt name, or add it to OWN"
    problems = []
    for what, mine, other in (
        ("inputs", ours.inputs, theirs.input_arg),
        ("outputs", ours.outputs, theirs.output_arg),
    ):
        mine, other = list(map(argument_of_ours, mine)), list(map(argument_of_theirs, other))
        if mine != other:
            problems.append(f"{what} are {mine}\n  in TensorFlow  {other}")
    my_attrs, other_attrs = list(ours.attributes), [a.name for a in theirs.attr]
    if my_attrs != other_attrs:
        problems.append(f"attributes are {my_attrs}, in TensorFlow {other_attrs}")
    for attr in theirs.attr:
        mine = ours.attributes.get(attr.name)
        if mine is not None and (name, attr.name) not in MEANT:
            problems += attribute_problems(name, mine, attr)
    assert not problems, f"{name}:\n" + "\n".join(problems)


def attribute_problems(name, mine, attr):
    kind = f"list({mine.kind})" if mine.is_list else mine.kind
    if kind != attr.type:
        return [f"{attr.name} is of kind {kind}, in TensorFlow {attr.type}"]
    problems = []
    default = default_of_theirs(attr)
    if not same_default(mine.default, default):
        problems.append(f"{attr.name} defaults to {mine.default!r}, in TensorFlow {default!r}")
    minimum = attr.minimum if attr.has_minimum else None
    if mine.minimum != minimum:
        problems.append(f"{attr.name} is at least {mine.minimum}, in TensorFlow {minimum}")
    if attr.type in ("string", "list(string)"):
        allowed = {s.decode() for s in attr.allowed_values.list.s} or None
        if (set(mine.allowed) if mine.allowed else None) != allowed:
            problems.append(f"{attr.name} allows {mine.allowed}, in TensorFlow {allowed}")
    elif attr.type in ("type", "list(type)"):
        allowed = known_types(attr.allowed_values.list.type) or None
        ours = {t.name for t in mine.allowed} if mine.allowed else None
        if allowed is None or ours is None:
            if ours != allowed:
                problems.append(f"{attr.name} allows {ours}, in TensorFlow {allowed}")
        else:
            missing = allowed - ours - FEWER_TYPES.get((name, attr.name), set())
            if not ours & QUANTIZED:
                missing -= QUANTIZED
            if missing:
                problems.append(f"{attr.name} does not allow {sorted(missing)}")
            if ours - allowed:
                problems.append(f"{attr.name} allows {sorted(ours - allowed)} beyond TensorFlow")
    return problems
