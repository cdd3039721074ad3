"""One checksum of everything that a compiled segment depends on.

It describes every field of the input of ``compile_segment``, and all that a trace may look at
besides: runnel's own sources, the versions of the packages, JAX's settings, the native library, the
machine and the device. A description knows a few types. For any other it raises
:class:`Indescribable`, and the segment is traced each time. So is a segment with an operation, or a
kernel, that is not runnel's own, since nobody can see from here what such a function does.

Names of operations and numbers of values are left out: two graphs that compute the same by the same
instructions are the same. Variables are numbered in the order in which they are met.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from functools import cache
from typing import Any

import jax
import numpy as np

from runnel.graph.dtypes import DType
from runnel.graph.operation import Operation
from runnel.graph.registry import OpDef
from runnel.graph.shapes import TensorShape
from runnel.native import onednn
from runnel.passes.program.program import Node, Program, ValueInfo
from runnel.passes.structure.counters import Counters
from runnel.passes.structure.structured import Conditional, Loop, Touched, nested_nodes
from runnel.runtime.compile.executable_cache import surroundings
from runnel.runtime.compile.repetition import Repetition
from runnel.runtime.compile.source_checksum import PACKAGE, sources, version_of
from runnel.runtime.interpret.code import Code, TracedCall

_FORM = "1"
"""Another where the meaning of a description changes."""
_MADE_WITH = ("numpy", "ml_dtypes", "scipy", "opt_einsum")
_SMALL_BYTES = 32
"""Of an array that is itself no longer than a checksum."""
_PLAIN = frozenset({type(None), bool, int, float, complex, str, bytes})


class Indescribable(Exception):
    """Something that a segment depends on is of a type that no description knows."""


def segment_key(
    code: Code,
    states: Sequence[Any],
    streams: Any,
    inputs: Sequence[Any],
    specialized: Iterable[int],
    device: Any,
    repetitions: Sequence[Repetition],
    overwritten: Sequence[Operation],
    passed: Sequence[int],
    options: Sequence[Any],
) -> str:
    """The checksum of a segment; ``options`` are plain values.

    The constants in the slots ``passed`` are arguments of a call: only their types matter.

    Raises:
        Indescribable: it has none.
    """
    known = sorted(specialized)
    description = _Description(code, passed)
    described = (
        description.of(code),
        [_array_type(state) for state in states],
        None if streams is None else _array_type(streams),
        [_array_type(value) for value in inputs],
        [(position, description.of(np.asarray(inputs[position]))) for position in known],
        [(found.start, found.length, found.times) for found in repetitions],
        description.of(list(overwritten)),
        description.of(tuple(options)),
        _around(device),
    )
    return hashlib.sha256(repr(described).encode()).hexdigest()


def _around(device: Any) -> Any:
    """What a trace, and an executable, depends on beside the segment."""
    used = jax.local_devices()[0] if device is None else device
    settings = sorted(jax.config.values.items())
    for name, value in settings:
        if type(value) not in _PLAIN and not isinstance(value, Enum):
            raise Indescribable(f"JAX's setting {name}")
    return (
        *(_FORM, sources(), sys.version, [*map(version_of, _MADE_WITH)], settings),
        *(device is None, used.id, used.process_index, surroundings(used.client, [used])),
        _native(*(os.environ.get(name, "") for name in (onednn.VARIABLE, "CXX", "PATH"))),
    )


@cache
def _native(*environment: str) -> list[str]:
    """The native library that kernels may choose, in this ``environment``."""
    return onednn.circumstances()


def _array_type(value: Any) -> Any:
    return None if value is None else (tuple(map(int, np.shape(value))), _name(value.dtype))


@cache
def _name(dtype: Any) -> str:
    """The name of a NumPy type, which NumPy puts together anew each time."""
    return np.dtype(dtype).name


class _Description:
    """Describes by tuples and lists of plain values: the same for the same, and only for that."""

    def __init__(self, code: Code | None = None, passed: Sequence[int] = ()) -> None:
        """``passed`` are slots of ``code`` whose constants are arguments."""
        self._outermost = code
        self._passed = frozenset(passed)
        self._operations: dict[Operation, int] = {}
        self._own: dict[OpDef, bool] = {}

    def of(self, value: Any) -> Any:
        """The description of anything that is known here."""
        kind = type(value)
        if kind in _PLAIN:
            return value
        describe = _KNOWN.get(kind)
        if describe is None:
            if isinstance(value, np.ndarray | np.generic):
                return self._array(value)
            if isinstance(value, np.dtype):
                return "numpy", value.name
            raise Indescribable(f"a {kind.__module__}.{kind.__qualname__}")
        return describe(self, value)

    def _array(self, value: np.ndarray | np.generic) -> Any:
        dtype = value.dtype
        if dtype.names is not None:
            raise Indescribable(f"an array of {dtype}")
        if dtype.hasobject:  # of strings
            content = self._list(np.asarray(value).ravel().tolist())
        elif value.nbytes <= _SMALL_BYTES:
            content = value.tobytes()
        else:
            flat: Any = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
            content = hashlib.sha256(flat).digest()
        return "array", type(value).__name__, _name(dtype), value.shape, content

    def _list(self, value: Sequence[Any]) -> Any:
        return [self.of(item) for item in value]

    def _tuple(self, value: Sequence[Any]) -> Any:
        return tuple([self.of(item) for item in value])

    def _dict(self, value: dict[Any, Any]) -> Any:
        return "dict", [(self.of(key), self.of(item)) for key, item in value.items()]

    def _dtype(self, value: DType) -> Any:
        return "dtype", value.name

    def _shape(self, value: TensorShape) -> Any:
        return "shape", self.of(value._dims)

    def _info(self, value: ValueInfo) -> Any:
        return "info", value.dtype.name, value.dims, value.optional

    def _operation(self, value: Operation) -> Any:
        """A variable, or what draws from a stream: its number, and at first what is declared."""
        number = self._operations.get(value)
        if number is not None:
            return "operation", number
        number = self._operations[value] = len(self._operations)
        declared = [self.of(value.attrs.get(name)) for name in ("shape", "dtype")]
        return "operation", number, value.op_def.name, declared

    def _set(self, operations: Iterable[Operation]) -> Any:
        """Operations in no order; those that have not been met are not state of this code."""
        met = [self._operations[op] for op in operations if op in self._operations]
        return sorted(met)

    def _code(self, code: Code) -> Any:
        instructions = [
            (self._call(call), args, out, self._node(node))
            for call, args, out, node in code.instructions
        ]
        passed = self._passed if code is self._outermost else ()
        template = [
            ("passed", _array_type(value)) if slot in passed else self.of(value)
            for slot, value in enumerate(code.template)
        ]
        return (
            "code",
            template,
            code.inputs,
            code.outputs,
            [(self._operation(v), slot, node is None) for v, slot, node in code.loads],
            [(self._operation(variable), slot) for variable, slot in code.stores],
            [(self._operation(op), stream, drawn) for op, stream, drawn in code.streams],
            instructions,
            *(self._set(found) for found in (code.replaced, code.reshaped, code.structured)),
            code.watch,
        )

    def _call(self, call: Any) -> Any:
        if type(call) is not TracedCall:
            raise Indescribable(f"a call by {type(call).__name__}")
        return (
            *(call.device, call.assigned_dims, call.must_know),
            [self._info(info) for info in call.outputs],
            [self._code(code) for code in call.inside],
            None if call.counters is None else self._counters(call.counters),
        )

    def _node(self, node: Node) -> Any:
        op_def = node.op_def
        is_structure = "structure" in node.attrs
        own = self._own.get(op_def)
        if own is None:
            own = self._own[op_def] = is_structure or _is_own(op_def)
        if not own:
            raise Indescribable(f"the operation {op_def.name}")
        dims = [] if is_structure else [tensor.dims for tensor in node.op.outputs]
        attrs = [
            (name, value if type(value) in _PLAIN else self.of(value))
            for name, value in node.attrs.items()
        ]
        return op_def.name, op_def.stateful, len(node.inputs), len(node.outputs), attrs, dims

    def _loop(self, loop: Loop) -> Any:
        counts = len(loop.variables), len(loop.invariants)
        programs = self._program(loop.condition), self._program(loop.body)
        return "loop", counts, loop.exits, loop.swap_memory, programs

    def _conditional(self, found: Conditional) -> Any:
        programs = self._program(found.when_true), self._program(found.when_false)
        return "conditional", len(found.parameters), programs

    def _program(self, program: Program) -> Any:
        """What the codes made of a program do not say: which results there are, which effects."""
        effects = [(n.op_def.stateful, n.op_def.variable) for n in nested_nodes(program.nodes)]
        return len(program.feeds), [value is None for value in program.fetches], effects

    def _touched(self, touched: Touched) -> Any:
        parts = (touched.reads, touched.writes, touched.random, touched.reshaped)
        return "touched", [self._list(part) for part in parts]

    def _counters(self, counters: Counters) -> Any:
        bounds = [(b.variable, b.step, b.relation) for b in counters.bounds]
        return "counters", bounds, counters.exact, sorted(counters.steps.items())


_KNOWN: dict[type, Callable[[_Description, Any], Any]] = {
    list: _Description._list,
    tuple: _Description._tuple,
    dict: _Description._dict,
    DType: _Description._dtype,
    TensorShape: _Description._shape,
    ValueInfo: _Description._info,
    Operation: _Description._operation,
    Code: _Description._code,
    Loop: _Description._loop,
    Conditional: _Description._conditional,
    Touched: _Description._touched,
    Counters: _Description._counters,
}


def _is_own(op_def: OpDef) -> bool:
    """True where all kernels are runnel's, and are told nothing but inputs and attributes."""
    functions = [kernel.function for kernel in op_def.kernels]
    if op_def.random is not None:
        functions.append(op_def.random)
    return (
        bool(op_def.site)
        and _is_in_package(op_def.site[0])
        and all(map(_is_own_function, functions))
        and not any("operation" in kernel.parameters for kernel in op_def.kernels)
    )


def _is_own_function(function: Any) -> bool:
    code = getattr(function, "__code__", None)
    if code is None or not _is_in_package(code):
        return False
    held = [cell.cell_contents for cell in function.__closure__ or ()]
    return all(_is_own_function(one) for one in held if hasattr(one, "__code__"))


def _is_in_package(code: Any) -> bool:
    return str(code.co_filename).startswith(f"{PACKAGE}{os.sep}")
