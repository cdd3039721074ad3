"""The registry of operation types: signature, shape function, kernels and gradient in one place.

Example, a whole new operation:

    cube = register_op("Cube", inputs="x: T", outputs="y: T", attrs="T: {float, double}")

    @cube.shape
    def _(x):
        return x.dims

    @cube.kernel
    def _(xp, x):
        return x * x * x

    @cube.gradient
    def _(op, grad):
        return 3 * op.inputs[0] ** 2 * grad

    y = cube(tf.constant(2.0))
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from runnel.graph.creation_site import Site, render_site
from runnel.graph.dtypes import DType, as_dtype
from runnel.graph.signature import REQUIRED, Argument, Attribute, parse_arguments, parse_attributes

if TYPE_CHECKING:
    from runnel.graph.operation import Operation

# Keyword-only parameters that the executor supplies to a kernel, beside the attributes.
RUNTIME_PARAMETERS = frozenset({"check", "stream", "platform", "operation", "waiter"})

INTERPRETED = "interpreted"
COMPILED = "compiled"
BOTH = "both"


@dataclass(frozen=True, slots=True)
class Kernel:
    """One implementation of an op: for a device kind, element types and a tier (None: any)."""

    function: Callable[..., Any]
    device: str | None
    dtypes: frozenset[DType] | None
    tier: str
    parameters: tuple[str, ...]
    """The keyword-only parameters: attribute names and ``RUNTIME_PARAMETERS``."""
    site: Site

    def serves(self, device: str, dtype: DType | None, tier: str) -> bool:
        return (
            self.device in (None, device)
            and (self.dtypes is None or dtype in self.dtypes)
            and self.tier in (BOTH, tier)
        )

    @property
    def serving(self) -> str:
        """What this kernel serves, in words."""
        return f"{self.device or 'any device'}/{_names(self.dtypes)}"

    @property
    def specificity(self) -> tuple[bool, bool, bool]:
        return (self.device is not None, self.dtypes is not None, self.tier != BOTH)


def keyword_only(function: Callable[..., Any]) -> tuple[str, ...]:
    """Names of the keyword-only parameters of ``function``."""
    code = function.__code__ if hasattr(function, "__code__") else None
    if code is not None:
        start = code.co_argcount
        return code.co_varnames[start : start + code.co_kwonlyargcount]
    parameters = inspect.signature(function).parameters.values()
    return tuple(p.name for p in parameters if p.kind is p.KEYWORD_ONLY)


@dataclass(frozen=True, slots=True)
class Formula:
    """A gradient that is given by graph code to be differentiated (see :meth:`OpDef.formula`)."""

    function: Callable[..., Any]

    def __call__(self, op: Any, *inputs: Any) -> list[Any]:
        results = self.function(op, *inputs)
        return list(results) if isinstance(results, list | tuple) else [results]

    @property
    def arity(self) -> int:
        """How many of the op's inputs it takes."""
        return self.function.__code__.co_argcount - 1


class OpDef:
    """An operation type. Calling it adds an operation to the default graph.

    Parameters of :func:`register_op` that say how it may be run:

    * ``stateful``: it has an effect or an identity beyond its value, so two of the same are
      two, and it is never folded or merged.
    * ``static_inputs``: inputs whose *values* a compiled step must know beforehand, such as a
      reshape's shape (:meth:`OpDef.needs_static` can narrow them for one operation).
    * ``known_from_shapes``: its output depends only on its inputs' shapes (``Shape``, ``Rank``).
    * ``updates`` / ``overwrites``: reference inputs whose variable the kernel replaces; the
      kernel returns the new values in that order, before its other outputs. An overwritten
      reference is not read: the kernel receives None for it.
    * ``variable``: its output denotes a variable.
    * ``host``: it runs on the host with NumPy only: strings, data-dependent shapes, effects.
    * ``random``: its kernel draws from ``stream``; the function gives the number of counters by
      which an execution advances the stream, from the shape of its first output. The
      attributes ``seed`` and ``seed2`` say where the stream begins; zeros: anywhere.
    * ``heavy``: a step that contains it is compiled at once, without being interpreted first.
    * ``blocking``: it may have to wait for what another step does (a queue's elements, say), or
      touches what such an op touches. It runs on the host, and never inside a loop or branch that
      is compiled as a whole. Its kernel takes ``waiter`` and returns the list of all its outputs,
      or :data:`runnel.queues.waiter.WAITING` after leaving the waiter with something that will
      tell it the outputs later; the rest of the step goes on meanwhile.
    * ``holds_thread``: its kernel may wait for something outside the step (a file, a function of
      the user's, another step) on the thread that runs it. It never runs on a thread that others
      need in order to go on, such as one that reads from the network.
    * ``self_gated``: its kernel drops its update when a check of the step fails
      (``check.gate_indices``), so the executor need not select the whole old value.
    * ``empty_outputs``: outputs that have no content. Versions of TensorFlow disagree about
      their shapes, so no graph is written with them, and those of a graph that is read do not
      count.

    ``row_kernel`` is set on one that changes rows of a variable. Called with the inputs and
    ``check`` it gives the :class:`runnel.ops.row_update.RowUpdate` of each variable instead of new
    values, which the interpreter carries out in place.

    ``block_kernel`` is set on one whose outputs can be made some rows at a time. Called with the
    inputs, attributes, ``stream`` and ``blocks`` (for each output, whether it is wanted so) it
    gives a :class:`runnel.ops.block_value.BlockValue` for each such output.
    """

    __slots__ = (
        "name",
        "inputs",
        "outputs",
        "attributes",
        "stateful",
        "static_inputs",
        "static_function",
        "known_from_shapes",
        "updates",
        "overwrites",
        "variable",
        "host",
        "random",
        "allows_uninitialized",
        "site",
        "shape_function",
        "shape_parameters",
        "kernels",
        "gradient_function",
        "gradient_site",
        "differentiable",
        "defaults",
        "required",
        "heavy",
        "blocking",
        "holds_thread",
        "self_gated",
        "empty_outputs",
        "row_kernel",
        "block_kernel",
        "inferred",
        "has_single_output",
        "takes_reference",
        "has_list_inputs",
        "fixed_arity",
        "kernel_type",
        "_selected",
    )

    def __init__(
        self,
        name: str,
        inputs: str | list[str] = "",
        outputs: str | list[str] = "",
        attrs: str | list[str] = "",
        *,
        stateful: bool = False,
        static_inputs: tuple[str, ...] = (),
        known_from_shapes: bool = False,
        updates: tuple[str, ...] = (),
        overwrites: tuple[str, ...] = (),
        variable: bool = False,
        host: bool = False,
        random: Callable[[tuple[int, ...]], int] | None = None,
        allows_uninitialized: bool = False,
        differentiable: bool = True,
        heavy: bool = False,
        blocking: bool = False,
        holds_thread: bool = False,
        self_gated: bool = False,
        empty_outputs: tuple[str, ...] = (),
    ) -> None:
        self.name = name
        self.attributes: dict[str, Attribute] = parse_attributes(attrs)
        self.inputs: tuple[Argument, ...] = parse_arguments(inputs, self.attributes)
        self.outputs: tuple[Argument, ...] = parse_arguments(outputs, self.attributes)
        self.stateful = stateful or blocking or bool(updates or overwrites or variable or random)
        self.known_from_shapes = known_from_shapes
        self.updates = self._positions(updates)
        self.overwrites = self._positions(overwrites)
        self.static_inputs = self._positions(static_inputs)
        self.static_function: Callable[..., tuple[str, ...]] | None = None
        self.variable = variable
        self.host = host or blocking
        self.random = random
        self.allows_uninitialized = allows_uninitialized
        self.differentiable = differentiable
        self.heavy = heavy
        self.blocking = blocking
        self.holds_thread = holds_thread
        self.self_gated = self_gated
        self.empty_outputs = frozenset(
            place for place, output in enumerate(self.outputs) if output.name in empty_outputs
        )
        self.row_kernel: Callable[..., Any] | None = None
        self.block_kernel: Callable[..., Any] | None = None
        self.site: Site = ()
        self.shape_function: Callable[..., Any] | None = None
        self.shape_parameters: tuple[str, ...] = ()
        self.kernels: list[Kernel] = []
        self.gradient_function: Callable[..., Any] | None = None
        self.gradient_site: Site = ()
        inferred: set[str] = set()
        for argument in self.inputs:
            inferred |= {
                a
                for a in (argument.type_attr, argument.number_attr, argument.type_list_attr)
                if a is not None
            }
        self.defaults = {
            a.name: a.default for a in self.attributes.values() if a.default is not REQUIRED
        }
        self.required = tuple(
            a.name
            for a in self.attributes.values()
            if a.default is REQUIRED and a.name not in inferred
        )
        # A cache of ``apply_op``'s short path: by the types of the inputs, the attributes that
        # follow and, if no others are given, the types of the outputs.
        self.inferred: dict[tuple[Any, ...], tuple[dict[str, Any], list[DType]] | None] = {}
        self.takes_reference = bool(self.inputs) and self.inputs[0].is_ref
        self.has_single_output = len(self.outputs) == 1 and not self.outputs[0].is_list
        self.has_list_inputs = any(a.is_list for a in self.inputs)
        self.fixed_arity = -1 if self.has_list_inputs else len(self.inputs)
        """The number of tensors that it takes; -1 where that depends on the operation."""
        types = (a.name for a in self.attributes.values() if a.kind == "type" and not a.is_list)
        self.kernel_type: str | None = next(types, None)
        """The attribute whose value, an element type, selects a kernel."""
        self._selected: dict[tuple[str, DType | None, str], Kernel | None] = {}

    def _positions(self, names: tuple[str, ...]) -> tuple[int, ...]:
        by_name = {argument.name: i for i, argument in enumerate(self.inputs)}
        missing = [name for name in names if name not in by_name]
        if missing:
            raise ValueError(f"{self.name} has no input named {missing[0]!r}")
        return tuple(by_name[name] for name in names)

    def __call__(self, *inputs: Any, name: str | None = None, **attrs: Any) -> Any:
        return add_to_graph(self, inputs, attrs, name)

    def __repr__(self) -> str:
        return f"<OpDef {self.name}>"

    # Registration ---------------------------------------------------------------------------

    def shape(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Registers the shape function.

        It takes the input tensors (a list for a list input) and, as keyword-only parameters,
        the attributes that it names; it returns the ``Dims`` of the output, or a list of them.
        """
        self._check_parameters(function, "shape function", frozenset())
        self.shape_function = function
        self.shape_parameters = keyword_only(function)
        return function

    def kernel(
        self,
        function: Callable[..., Any] | None = None,
        *,
        device: str | None = None,
        dtype: Any = None,
        tier: str = BOTH,
    ) -> Any:
        """Registers a kernel: ``kernel(xp, *inputs, *, attributes...)`` over a namespace ``xp``.

        ``device`` ("CPU", "GPU", "TPU") and ``dtype`` (one or several, of the op's first type
        attribute) narrow what it serves; the most specific kernel wins. ``tier`` restricts it to
        the interpreter (``xp`` is NumPy) or to compilation (``xp`` is jax.numpy).
        """
        if function is None:
            return lambda f: self.kernel(f, device=device, dtype=dtype, tier=tier)
        self._check_parameters(function, "kernel", RUNTIME_PARAMETERS)
        self._check_arity(function)
        if ("stream" in keyword_only(function)) != (self.random is not None):
            raise ValueError(
                f"{self.name} (registered at {where(self.site)}): the kernels of an op that is "
                "registered with random=... take 'stream', and no others do"
            )
        if dtype is None:
            types = None
        else:
            given = dtype if isinstance(dtype, list | tuple | set | frozenset) else (dtype,)
            types = frozenset(as_dtype(t) for t in given)
        device = device.upper() if device else None
        for other in self.kernels:
            if (other.device, other.dtypes, other.tier) == (device, types, tier):
                raise ValueError(
                    f"A kernel for {self.name} on {device or 'any device'} and "
                    f"{_names(types)} is registered already, at {where(other.site)}"
                )
        site = (function.__code__, 0) if hasattr(function, "__code__") else caller()
        self.kernels.append(Kernel(function, device, types, tier, keyword_only(function), site))
        self._selected.clear()
        return function

    def needs_static(self, function: Callable[..., tuple[str, ...]]) -> Callable[..., Any]:
        """Registers a function that tells which of ``static_inputs`` one operation needs.

        ``x[i]`` with a tensor ``i`` is a slice whose size is known although its place is not; its
        kernel can be compiled without knowing ``i``. The function takes the operation and returns
        the names of inputs.
        """
        self.static_function = function
        return function

    def static_inputs_of(self, op: Operation) -> tuple[int, ...]:
        """Positions of the inputs of ``op`` whose values a compiled step must know."""
        if self.static_function is None or op.op_def is not self:
            return self.static_inputs
        return self._positions(self.static_function(op))

    def gradient(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Registers the gradient: ``gradient(op, *output_gradients)``, one for each input."""
        if self.gradient_function is not None or not self.differentiable:
            first = where(self.gradient_site)
            raise KeyError(f"The gradient of {self.name} is registered already, at {first}")
        self.gradient_function = function
        self.gradient_site = (function.__code__, 0) if hasattr(function, "__code__") else caller()
        return function

    def formula(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Registers the op as graph code, ``formula(op, *inputs)``: its gradient is that of it.

        It gives the outputs, or the first of them; the others have no gradient. Nor have the last
        inputs if it does not take them.
        """
        self.gradient(Formula(function))
        self.gradient_site = (function.__code__, 0)
        return function

    def _check_parameters(
        self, function: Callable[..., Any], what: str, extra: frozenset[str]
    ) -> None:
        for name in keyword_only(function):
            if name not in self.attributes and name not in extra:
                known = ", ".join([*self.attributes, *sorted(extra)]) or "none"
                raise ValueError(
                    f"The {what} of {self.name} takes {name!r}, which is not an attribute of "
                    f"{self.name} (registered at {where(self.site)}; attributes: {known})"
                )

    def _check_arity(self, function: Callable[..., Any]) -> None:
        code = getattr(function, "__code__", None)
        if code is None or code.co_flags & inspect.CO_VARARGS:
            return
        if code.co_argcount != len(self.inputs) + 1:
            raise ValueError(
                f"The kernel of {self.name} at {where((code, 0))} takes {code.co_argcount} "
                f"positional parameters, but must take {len(self.inputs) + 1}: the array "
                f"namespace and the inputs ({', '.join(a.name for a in self.inputs)})"
            )

    # Grouping -------------------------------------------------------------------------------

    def group(self, flat: Sequence[Any], attrs: dict[str, Any]) -> list[Any]:
        """``flat`` inputs as the signature groups them: one item, or a list for a list argument."""
        if not self.has_list_inputs:
            return list(flat)
        return group_arguments(self.inputs, flat, attrs)

    # Selection ------------------------------------------------------------------------------

    def select_kernel(self, device: str, dtype: DType | None, tier: str) -> Kernel | None:
        """The most specific kernel for a device kind, element type and tier, or None."""
        key = (device, dtype, tier)
        try:
            return self._selected[key]
        except KeyError:
            pass
        serving = [k for k in self.kernels if k.serves(device, dtype, tier)]
        best = max(serving, key=lambda k: k.specificity, default=None)
        self._selected[key] = best
        return best

    def can_compile(self, device: str, dtype: DType | None) -> bool:
        """True when a compiled step may contain this op."""
        return not self.host and self.select_kernel(device, dtype, COMPILED) is not None


def add_to_graph(op_def: OpDef, inputs: Any, attrs: dict[str, Any], name: str | None) -> Any:
    """Adds an operation; ``runnel.graph.apply`` puts itself in this place when it is loaded."""
    raise AssertionError("runnel.graph.apply is not loaded")


def group_arguments(
    arguments: Sequence[Argument], flat: Sequence[Any], attrs: Mapping[str, Any]
) -> list[Any]:
    """``flat`` items as ``arguments`` group them: one item, or a list for a list argument."""
    grouped: list[Any] = []
    position = 0
    for argument in arguments:
        count = argument.count(attrs)
        items = list(flat[position : position + count])
        grouped.append(items if argument.is_list else items[0])
        position += count
    return grouped


def _names(types: frozenset[DType] | None) -> str:
    return "any type" if types is None else ", ".join(sorted(t.name for t in types))


def caller(depth: int = 2) -> Site:
    """The place that called the function that asks."""
    frame = sys._getframe(depth)
    return (frame.f_code, frame.f_lasti)


def where(site: Site) -> str:
    """``file:line, in function`` of a registration."""
    rendered = render_site(site)
    return rendered[-1].splitlines()[0] if rendered else "an unknown place"


_REGISTRY: dict[str, OpDef] = {}
_families: list[str] = []
"""Modules that register operations, not yet imported."""


def declare_families(*modules: str) -> None:
    """Names modules that register operations, to be imported when one is missed."""
    _families.extend(modules)


def _import_families(until: str | None = None) -> None:
    """Imports them, in order; no more than it takes to find the operation ``until``."""
    for module in list(_families):  # several threads may do so at once
        import_module(module)
        with suppress(ValueError):
            _families.remove(module)
        if until in _REGISTRY:
            return


def register_op(
    name: str, inputs: Any = "", outputs: Any = "", attrs: Any = "", **how: Any
) -> OpDef:
    """Registers an operation type; see :class:`OpDef` for ``how``, this module for an example."""
    existing = _REGISTRY.get(name)
    if existing is not None:
        raise ValueError(f"The op {name} is registered already, at {where(existing.site)}")
    op_def = OpDef(name, inputs, outputs, attrs, **how)
    op_def.site = caller()
    _REGISTRY[name] = op_def
    return op_def


def get_op_def(name: str) -> OpDef:
    """The registered operation type, or a KeyError that says how to register one."""
    found = find_op_def(name)
    if found is not None:
        return found
    import difflib

    close = difflib.get_close_matches(name, _REGISTRY, n=3)
    hint = f" Did you mean {' or '.join(close)}?" if close else ""
    raise KeyError(
        f"No op named {name!r} is registered.{hint} Register it with runnel.register_op."
    )


def find_op_def(name: str) -> OpDef | None:
    """The registered operation type, or None."""
    found = _REGISTRY.get(name)
    if found is None and _families:
        _import_families(until=name)
        found = _REGISTRY.get(name)
    return found


def registered_ops() -> dict[str, OpDef]:
    """All registered operation types by name."""
    _import_families()
    return dict(_REGISTRY)
