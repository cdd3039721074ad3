"""Segments that were compiled before are not traced: by a key of all that they depend on."""

from __future__ import annotations

import copy
import dataclasses
import json
import sys
from collections import Counter
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest

import runnel as tf
from runnel.native import cache_folder, onednn
from runnel.passes.program.program import Node, Program, ValueInfo
from runnel.passes.structure.counters import Bound, Counters
from runnel.passes.structure.structured import Conditional, Loop, Touched
from runnel.runtime.compile import compiler, entry_store, executable_cache, segment_key
from runnel.runtime.compile.repetition import Repetition
from runnel.runtime.compile.segment_program import SegmentProgram
from runnel.runtime.interpret import verification
from runnel.runtime.interpret.code import Code, Instruction, TracedCall

Build = Callable[[], tuple[Any, dict[Any, Any]]]
X = np.random.RandomState(0).rand(4, 4).astype(np.float32)


class Outcome(NamedTuple):
    """The value of a step, and how often a segment was traced, compiled and loaded for it."""

    value: Any
    traced: int
    made: Counter[str]
    keys: list[str]
    executables: list[Any]


@pytest.fixture
def run(tmp_path, monkeypatch) -> Callable[..., Outcome]:
    """Runs a step in a session of its own, with a folder of this test alone."""
    monkeypatch.setenv(cache_folder.VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr(verification, "enabled", False)  # which would trace everything
    traced: list[SegmentProgram] = []
    keys: list[str] = []
    executables: list[Any] = []
    function, key, compile_segment = (
        SegmentProgram.function,
        compiler.segment_key,
        compiler.compile_segment,
    )

    def noting(found: list[Any], call: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*arguments: Any) -> Any:
            result = call(*arguments)
            found.append(result)
            return result

        return noted

    monkeypatch.setattr(SegmentProgram, "function", noting(traced, function))
    monkeypatch.setattr(compiler, "segment_key", noting(keys, key))
    monkeypatch.setattr(compiler, "compile_segment", noting(executables, compile_segment))

    def run(build: Build, times: int = 1, **options: Any) -> Outcome:
        for found in (traced, keys, executables):
            found.clear()
        before = executable_cache.counts.copy()
        config = tf.ConfigProto()
        config.graph_options.optimizer_options.global_jit_level = tf.OptimizerOptions.ON_1
        own = config.graph_options.rewrite_options.custom_optimizers.add(name="runnel")
        for name, value in options.items():
            own.parameter_map[name].b = value
        with tf.Graph().as_default():
            tf.set_random_seed(1)
            fetched, feed = build()
            with tf.Session(config=config) as sess:
                sess.run(tf.global_variables_initializer())
                for _ in range(times):
                    value = sess.run(fetched, feed)
        made = executable_cache.counts - before
        return Outcome(value, len(traced), made, list(keys), list(executables))

    return run


def _folder() -> Path:
    return entry_store.executables_path()


def _plain(
    scale: float = 3.0,
    fed: np.ndarray = X,
    axis: int = 0,
    dtype: Any = tf.float32,
    transposed: bool = False,
    name: str = "x",
    size: int = 4,
    table: Any = (1.0, 2.0, 3.0, 4.0),
) -> tuple[Any, dict[Any, Any]]:
    x = tf.placeholder(tf.float32, [None, 4], name=name)
    v = tf.Variable(np.ones([size, 1]), dtype=dtype)
    y = tf.reduce_sum(tf.matmul(x, x, transpose_b=transposed) * tf.constant(table), axis)
    z = y[:1] * tf.cast(tf.reduce_sum(v.assign_add(v)), tf.float32) * scale
    return z, {x: fed}


_ODD = np.nextafter(np.float32(3), np.float32(4))
_CHANGES: dict[str, dict[str, Any]] = {
    "a constant": {"scale": 4.0},
    "the last bit of a constant": {"scale": float(_ODD)},
    "one element of a constant": {"table": (1.0, 2.0, 3.0, 5.0)},
    "the sign of a zero": {"scale": -0.0},
    "an attribute": {"transposed": True},
    "a value that must be known": {"axis": 1},
    "the type of a variable": {"dtype": tf.float64},
    "the shape of a variable": {"size": 5},
    "a constant's rank": {"table": ((1.0, 2.0, 3.0, 4.0),)},
}


def test_the_same_step_is_neither_traced_nor_compiled_again(run):
    first, second = run(_plain), run(lambda: _plain(name="another"))
    assert first.traced and first.made["compiled"]
    assert second.traced == 0 and set(second.made) == {"loaded"}
    assert first.keys == second.keys
    np.testing.assert_array_equal(first.value, second.value)


@pytest.mark.parametrize("change", _CHANGES)
def test_another_step_has_another_key(change, run):
    base = run(lambda: _plain(scale=0.0) if "zero" in change else _plain())
    other = run(lambda: _plain(**_CHANGES[change]))
    assert other.keys != base.keys  # one of several, where devices share the step
    assert other.traced


def test_another_shape_has_another_key_and_is_computed_rightly(run):
    def square(fed: np.ndarray) -> Build:
        def build() -> tuple[Any, dict[Any, Any]]:
            x = tf.placeholder(tf.float32, [None, None])
            return tf.matmul(x, x) + tf.cast(tf.shape(x)[0], tf.float32), {x: fed}

        return build

    for fed in (X, X[:3, :3], X):
        np.testing.assert_allclose(run(square(fed)).value, fed @ fed + len(fed), rtol=1e-5)
    assert run(square(X[:2, :2])).traced == 1
    assert run(square(X[:2, :2])).traced == 0


def test_the_value_of_a_specialised_input_is_part_of_the_key(run):
    def reshaped(shape: list[int]) -> Build:
        def build() -> tuple[Any, dict[Any, Any]]:
            x, dims = tf.placeholder(tf.float32, [4, 4]), tf.placeholder(tf.int32, [2])
            return tf.reshape(tf.tanh(x), dims) * 2.0, {x: X, dims: shape}

        return build

    for shape in ([2, 8], [8, 2], [2, 8]):
        np.testing.assert_allclose(
            run(reshaped(shape)).value, np.tanh(X).reshape(shape) * 2, rtol=1e-5
        )
    assert run(reshaped([8, 2])).traced == 0


def test_options_of_a_session_are_part_of_the_key(run):
    keys = [run(_plain, tensor_float_32=allowed).keys[-1] for allowed in (True, False)]
    assert keys[0] != keys[1]


@pytest.mark.parametrize(
    "fact", ["sources", "Python", "versions", "JAX", "setting", "library", "compiler"]
)
def test_other_surroundings_have_another_key(fact, run, tmp_path, monkeypatch):
    base = run(_plain)
    if fact == "sources":
        monkeypatch.setattr(segment_key, "sources", lambda: "others")
    elif fact == "Python":
        monkeypatch.setattr(segment_key.sys, "version", "4.0")
    elif fact == "versions":
        monkeypatch.setattr(segment_key, "version_of", lambda package: "other")
    elif fact == "JAX":
        monkeypatch.setattr(jax, "__version__", "0.10.99")
    elif fact == "library":
        monkeypatch.setenv("RUNNEL_ONEDNN", "0")
    elif fact == "compiler":
        _install_compiler(tmp_path, monkeypatch)
    else:
        monkeypatch.setattr(compiler, "segment_key", _with_other_setting(compiler.segment_key))
    other = run(_plain)
    assert other.traced == base.traced
    assert not set(other.keys) & set(base.keys)


def _install_compiler(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another compiler, and oneDNN's headers, which a library could be built with."""
    headers = folder / "include" / "oneapi" / "dnnl"
    headers.mkdir(parents=True)
    (headers / "dnnl.hpp").touch()
    (folder / "lib").mkdir()
    (folder / "lib" / "libdnnl.so").touch()
    (folder / "g++").touch(0o700)
    found = onednn._in_folder(folder)
    monkeypatch.setattr(onednn, "installation", lambda: found)
    before = onednn.circumstances()
    monkeypatch.setenv("CXX", str(folder / "g++"))
    assert onednn.circumstances() != before


def _with_other_setting(key: Callable[..., str]) -> Callable[..., str]:
    def other(*arguments: Any) -> str:
        with jax.numpy_rank_promotion("warn"):
            return key(*arguments)

    return other


def test_every_argument_and_every_field_of_the_code_is_part_of_the_key(run, monkeypatch):
    given: list[Any] = []
    key = segment_key.segment_key
    monkeypatch.setattr(compiler, "segment_key", lambda *all: given.append(all) or key(*all))

    def build() -> tuple[Any, dict[Any, Any]]:
        x, v = tf.placeholder(tf.float32, [4, 4]), tf.Variable(np.ones([4, 4], np.float32))
        drawn = tf.random_uniform([4, 4], seed=2)
        grown = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, tf.tanh(a @ x)), [0, drawn])
        return [v.assign_add(grown[1] * x), tf.reduce_sum(drawn)], {x: X}

    run(build)
    names = [
        *("code", "states", "streams", "inputs", "specialized", "device", "repetitions"),
        *("overwritten", "passed", "options"),
    ]
    arguments = dict(zip(names, given[-1], strict=True))
    keys = {"as it was": key(*arguments.values())}
    for name, changed in {**_other_arguments(arguments), **_other_codes(arguments["code"])}.items():
        keys[name] = key(*{**arguments, **changed}.values())
    same = [(a, b) for a, b in combinations(keys, 2) if keys[a] == keys[b]]
    assert same == []
    assert key(*arguments.values()) == keys["as it was"]


def _other_arguments(arguments: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """By what is changed: arguments of ``segment_key`` in the place of others."""
    double = jax.ShapeDtypeStruct((4, 4), np.float64)
    longer = jax.ShapeDtypeStruct((8, 4), np.float32)
    platform, *flags = arguments["options"]
    others: dict[str, dict[str, Any]] = {
        "a state's type": {"states": [double]},
        "a state's shape": {"states": [longer]},
        "an input's type": {"inputs": [double]},
        "an input's shape": {"inputs": [longer]},
        "no streams": {"streams": None},
        "the shape of streams": {"streams": np.zeros((1, 1), np.uint32)},
        "a specialised input": {"specialized": frozenset({0}), "inputs": [X]},
        "its value": {"specialized": frozenset({0}), "inputs": [X + 1]},
        "the device": {"device": jax.devices()[0]},
        "a repetition": {"repetitions": [Repetition(0, 1, 2, (), {}, frozenset())]},
        "its place": {"repetitions": [Repetition(1, 1, 2, (), {}, frozenset())]},
        "an overwritten variable": {"overwritten": [arguments["code"].loads[0][0]]},
        "the platform": {"options": ("gpu", *flags)},
    }
    for position, flag in enumerate(flags):
        changed = [*flags[:position], not flag, *flags[position + 1 :]]
        others[f"flag {position}"] = {"options": (platform, *changed)}
    return others


def _other_codes(code: Code) -> dict[str, dict[str, Any]]:
    """By what is changed: the code in the place of another."""
    variable, slot, _ = code.loads[0]
    first, *rest = code.instructions
    (loop,) = [i for i, found in enumerate(code.instructions) if found.call.inside]
    condition, body = code.instructions[loop].call.inside
    backwards = dataclasses.replace(body, outputs=body.outputs[::-1])

    def with_node(**fields: Any) -> list[Any]:
        node = copy.copy(first.node)
        for name, value in fields.items():
            setattr(node, name, value)
        return [first._replace(node=node), *rest]

    def with_call(index: int, **fields: Any) -> list[Any]:
        call = copy.copy(code.instructions[index].call)
        for name, value in fields.items():
            setattr(call, name, value)
        instructions = list(code.instructions)
        instructions[index] = instructions[index]._replace(call=call)
        return instructions

    fields: dict[str, dict[str, Any]] = {
        "an instruction less": {"instructions": [first, *rest[:-1]]},
        "an instruction's arguments": {"instructions": [first._replace(args=(90,)), *rest]},
        "an instruction's results": {"instructions": [first._replace(out=90), *rest]},
        "an operation": {"instructions": with_node(op_def=tf.get_op_def("Tan"))},
        "another attribute": {"instructions": with_node(attrs={**first.node.attrs, "more": 1})},
        "a slot": {"template": [*code.template, None]},
        "a constant": {"template": [*code.template, np.zeros(1)]},
        "an input": {"inputs": [*code.inputs, 1]},
        "the order of outputs": {"outputs": code.outputs[::-1]},
        "a load that may lack a value": {"loads": [(variable, slot, None), *code.loads[1:]]},
        "a load's slot": {"loads": [(variable, slot + 1, first.node), *code.loads[1:]]},
        "no stores": {"stores": []},
        "replaced": {"replaced": code.replaced ^ {variable}},
        "reshaped": {"reshaped": code.reshaped ^ {variable}},
        "structured": {"structured": code.structured ^ {variable}},
        "no streams of the code": {"streams": []},
        "watch": {"watch": 77},
        "the device of a call": {"instructions": with_call(0, device="GPU")},
        "assigned dimensions": {"instructions": with_call(0, assigned_dims=(1,))},
        "must know": {"instructions": with_call(0, must_know=not first.call.must_know)},
        "declared outputs": {"instructions": with_call(0, outputs=[])},
        "counters": {"instructions": with_call(loop, counters=None)},
        "a body": {"instructions": with_call(loop, inside=[condition, backwards])},
    }
    return {n: {"code": dataclasses.replace(code, **changed)} for n, changed in fields.items()}


DESCRIBED: dict[type, tuple[str, str]] = {
    Code: (
        "instructions template inputs outputs loads stores replaced reshaped structured streams "
        "watch",
        "infos",  # of what is traced the calls say the same; of equal blocks, where they are
    ),
    Instruction: ("call args out node", ""),
    TracedCall: ("device assigned_dims must_know outputs inside counters", "node"),
    # The numbers of values are slots in the code; what runs before what is its order.
    Node: ("op op_def inputs outputs attrs", "control"),
    ValueInfo: ("dtype dims optional", ""),
    Loop: ("variables invariants condition body exits swap_memory", ""),
    Conditional: ("parameters when_true when_false", ""),
    Program: ("nodes feeds fetches", "infos"),
    Touched: ("reads writes random reshaped", ""),
    Counters: ("bounds exact steps", ""),
    Bound: ("variable step relation", "limit"),  # a number, which is an output of the condition
    Repetition: ("start length times", "sources used summed"),  # which follow from the code
}
"""The fields of what is described, and those that are left out."""


def test_every_field_of_what_is_described_is_described_or_left_out_knowingly():
    for kind, (described, left_out) in DESCRIBED.items():
        if dataclasses.is_dataclass(kind):
            fields = {field.name for field in dataclasses.fields(kind)}
        else:
            fields = set(getattr(kind, "_fields", ()) or kind.__slots__)  # type: ignore[attr-defined]
        assert fields == {*described.split(), *left_out.split()}, kind


def test_what_no_description_knows_has_no_key():
    class Unknown(int):
        pass

    for value in (object(), Unknown(1), lambda: 1, [{"a": (object(),)}], np.array([object()])):
        with pytest.raises(segment_key.Indescribable):
            segment_key._Description().of(value)


def test_values_that_are_equal_but_not_the_same_are_described_differently():
    values = [0, 0.0, -0.0, False, None, "", b"", (), [], {}, np.float32(0), np.float64(0)]
    values += [np.zeros(0), np.zeros([0, 1]), np.zeros(1), np.zeros(1, np.float32), -np.zeros(1)]
    values += [np.zeros(1, np.uint8), np.zeros(1, bool), tf.float32, "float32", np.dtype("f4")]
    values += [tf.TensorShape(None), tf.TensorShape([]), tf.TensorShape([None]), [None], (None,)]
    values += [np.array([b"a", b"bc"], object), np.array([b"ab", b"c"], object), ("a", ("b",))]
    values += [(("a",), "b"), ("a', 'b",), ("a", "b")]
    described = [repr(segment_key._Description().of(value)) for value in values]
    assert len(set(described)) == len(values)


def test_a_large_constant_is_passed_so_what_it_holds_does_not_matter(run):
    def build(value: float) -> Build:
        def described() -> tuple[Any, dict[Any, Any]]:
            x = tf.placeholder(tf.float32, [])
            table = tf.constant(np.full([200, 100], value, np.float32))
            return tf.reduce_mean(tf.tanh(table * x)), {x: 1.0}

        return described

    first, second = run(build(1.0)), run(build(2.0))
    assert first.traced and not second.traced
    np.testing.assert_allclose([first.value, second.value], np.tanh([1.0, 2.0]), rtol=1e-5)


def test_which_variable_is_which_is_part_of_the_key(run):
    def build(swapped: bool) -> Build:
        def described() -> tuple[Any, dict[Any, Any]]:
            a, b = tf.Variable(np.full([2], 2.0)), tf.Variable(np.full([2], 3.0))
            first, second = (b, a) if swapped else (a, b)
            with tf.control_dependencies([first.assign_add(second)]):
                return [a.read_value() * 1.0, b.read_value() * 1.0], {}

        return described

    for swapped, expected in ((False, [5, 3]), (True, [2, 5]), (False, [5, 3])):
        np.testing.assert_array_equal([v[0] for v in run(build(swapped)).value], expected)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no JSON",
        b"[]",
        b"{}",
        b'{"program": ["a", [0], []], "results": [[], [], null, []], "facts": {}}',
    ],
)
def test_a_record_that_says_something_else_is_traced_and_replaced(content, run):
    first = run(_plain)
    store = entry_store.executables()
    assert store is not None
    for key in first.keys:
        store.write(entry_store.RECORD + key, content)
    again = run(_plain)
    assert again.traced == first.traced
    np.testing.assert_array_equal(again.value, first.value)
    assert run(_plain).traced == 0


@pytest.mark.parametrize("kept", ["record", "executable"])
def test_a_damaged_entry_is_traced_and_replaced(kept, run):
    first = run(_plain)
    for path in _folder().iterdir():
        if path.name.startswith(entry_store.RECORD) == (kept == "record"):
            whole = path.read_bytes()
            path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 255]))
    again = run(_plain)
    assert again.traced == first.traced
    np.testing.assert_array_equal(again.value, first.value)
    assert run(_plain).traced == 0


def test_a_record_whose_executable_is_gone_or_takes_other_operands_is_traced(run):
    first = run(_plain)
    store = entry_store.executables()
    assert store is not None
    key = entry_store.RECORD + first.keys[-1]
    told = json.loads(store.read(key) or b"")
    for change in ({0: "gone"}, {1: told["program"][1][:-1]}, {2: ["unknown_function"]}):
        program = [change.get(i, part) for i, part in enumerate(told["program"])]
        store.write(key, json.dumps({**told, "program": program}).encode())
        again = run(_plain)
        assert again.traced == 1
        np.testing.assert_array_equal(again.value, first.value)


def test_an_operation_of_the_user_is_traced_each_time(run):
    twice = tf.register_op("KeptTwice", inputs="x: float", outputs="y: float")
    twice.shape(lambda x: x.dims)
    twice.kernel(lambda xp, x: x * 2.0)

    def build() -> tuple[Any, dict[Any, Any]]:
        x = tf.placeholder(tf.float32, [4, 4])
        return twice(tf.tanh(x)), {x: X}

    run(lambda: (tf.no_op(), {}))  # the step that initialises nothing
    for _ in range(2):
        outcome = run(build)
        assert outcome.traced == 1
        np.testing.assert_allclose(outcome.value, np.tanh(X) * 2, rtol=1e-5)


def test_a_loaded_segment_draws_checks_and_fails_like_a_traced_one(run):
    def build(rows: list[int]) -> Build:
        def described() -> tuple[Any, dict[Any, Any]]:
            table, fed = tf.Variable(np.ones([5, 2], np.float32)), tf.placeholder(tf.int32, [None])
            drawn = tf.random_normal([2], seed=4)
            return tf.scatter_add(table, fed, tf.gather(table, fed) * drawn), {fed: rows}

        return described

    first, second = run(build([1, 3]), 3), run(build([1, 3]), 3)
    assert first.traced and not second.traced
    np.testing.assert_array_equal(first.value, second.value)
    for _ in range(2):
        with pytest.raises(tf.errors.InvalidArgumentError, match="7"):
            run(build([1, 7]))


def test_a_loaded_segment_is_called_without_any_python_code(run):
    run(_plain)
    executable = run(_plain).executables[-1]
    operands = _operands(executable)
    with jax.enable_x64(True):
        executable.call(*operands)  # JAX prepares the first call in Python
        operands = _operands(executable)
        called: list[str] = []
        sys.setprofile(lambda frame, event, _: called.append(frame.f_code.co_name))
        try:
            executable.call(*operands)
        finally:
            sys.setprofile(None)
    assert set(called) == {"test_a_loaded_segment_is_called_without_any_python_code"}


def _operands(executable: Any, device: Any = None) -> Any:
    """Ones for every operand of ``executable``."""
    (shapes, _) = executable.lower().in_avals
    return jax.tree.map(lambda a: jax.device_put(np.ones(a.shape, a.dtype), device), shapes)


def test_a_loaded_segment_is_traced_after_all_where_jax_needs_another_executable(run, monkeypatch):
    run(_plain)
    outcome = run(_plain)
    executable = outcome.executables[-1]
    assert outcome.traced == 0
    traced, function = [], SegmentProgram.function
    monkeypatch.setattr(
        SegmentProgram, "function", lambda self: traced.append(self) or function(self)
    )
    with jax.enable_x64(True):
        expected = executable.call(*_operands(executable))
        there = jax.devices()[-1]
        operands = _operands(executable, there)
        traced.clear()
        found = executable.call(*operands)
        assert traced
        assert {leaf.device for leaf in jax.tree.leaves(found)} == {there}
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


def test_the_program_of_a_loaded_segment_can_be_shown(run):
    texts = []
    for _ in range(2):
        executable = run(_plain).executables[-1]
        with jax.enable_x64(True):
            texts.append(executable.lower().as_text())
    assert "stablehlo.dot_general" in texts[0]
    assert texts[0] == texts[1]


def test_what_is_verified_is_traced(run, monkeypatch):
    run(_plain)
    monkeypatch.setattr(verification, "enabled", True)
    outcome = run(_plain)
    assert outcome.traced and not outcome.keys


def test_switched_off_nothing_is_described(run, monkeypatch):
    monkeypatch.setenv(entry_store.SIZE_VARIABLE, "0")
    assert not run(_plain).keys
    assert run(_plain).traced


def test_an_empty_code_has_a_key():
    nothing = (Code(), [], None, [], (), None, (), (), ())
    assert len({segment_key.segment_key(*nothing, (option,)) for option in (1, 2)}) == 2
