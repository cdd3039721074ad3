"""Symbolic differentiation: walks a graph backwards and adds the gradient's operations.

The walk visits each operation on a path from an ``x`` to a ``y`` once, after all of its consumers,
with the sum of the gradients that they sent. The order of construction is the schedule, since a
consumer is newer than its inputs (unless an input was replaced by hand).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from enum import Enum
from typing import Any

import runnel.autodiff.branches  # noqa: F401 (registers the gradients of control flow)
import runnel.autodiff.tensor_array_gradients  # noqa: F401 (registers those of arrays)
from runnel.autodiff.aggregation import AggregationMethod, aggregate
from runnel.autodiff.custom_gradient import custom_gradient_function
from runnel.autodiff.differentiation import differentiation, guards_of
from runnel.autodiff.loop_gradient import loop_gradients
from runnel.autodiff.loop_record import records_of
from runnel.autodiff.loops import LoopLevel, WalkedLoop, is_trainable
from runnel.autodiff.stack_gradients import StackGradients
from runnel.autodiff.zeros import Gradient, completed
from runnel.graph.collection_pause import collection_paused
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.functions.symbolic_gradient import declare_gradients
from runnel.graph.gradient_registry import gradient_function
from runnel.graph.graph import Graph, name_scope
from runnel.graph.indexed_slices import IndexedSlices
from runnel.graph.operation import Operation, Tensor
from runnel.graph.registry import Formula
from runnel.graph.shapes import compatible_dims, format_dims
from runnel.graph.topological_order import topological_order
from runnel.ops.control import identity
from runnel.ops.control_flow import CONTROL_FLOW, is_switch

_PASS_SLICES_ON = CONTROL_FLOW | {
    "Add",
    "AddN",
    "AddV2",
    "Cast",
    "Concat",
    "ConcatV2",
    "EnsureShape",
    "Identity",
    "IdentityN",
    "Neg",
    "PlaceholderWithDefault",
    "Print",
    "ReadVariableOp",
    "RefIdentity",
    "Snapshot",
    "Sub",
    "TensorScatterAdd",
    "TensorScatterSub",
}
"""Op types whose gradient of a sparse gradient is sparse; others get it dense."""


class UnconnectedGradients(Enum):
    """What ``tf.gradients`` gives for an ``x`` on which no ``y`` depends."""

    NONE = "none"
    ZERO = "zero"


def gradients(
    ys: Any,
    xs: Any,
    grad_ys: Any = None,
    name: str = "gradients",
    colocate_gradients_with_ops: bool = False,
    gate_gradients: bool = False,
    aggregation_method: int | None = None,
    stop_gradients: Any = None,
    unconnected_gradients: Any = UnconnectedGradients.NONE,
) -> list[Any]:
    """The derivative of the sum of ``ys`` with respect to each of ``xs``.

    ``grad_ys`` weighs the elements of ``ys`` (ones by default). Tensors in ``stop_gradients``
    are taken as constants. An ``x`` on which no ``y`` depends gets None (or zeros), and so does one
    that a ``y`` depends on through integers or booleans only. Gradients
    of gathers stay sparse (:class:`IndexedSlices`). ``gate_gradients`` is accepted and needs
    nothing: a step's order is defined.

    Example:
        >>> x = tf.constant(3.0)
        >>> tf.Session().run(tf.gradients(x * x, x))
        [6.0]
    """
    unconnected = UnconnectedGradients(
        getattr(unconnected_gradients, "value", unconnected_gradients)
    )
    targets = _tensors(ys, "ys")
    sources = [_source(x) for x in _as_list(xs)]
    if not targets:
        return [None] * len(sources)
    graph = targets[0].graph
    for tensor in (*targets, *sources):
        if tensor.graph is not graph:
            raise ValueError(f"{tensor!r} is of another graph than {targets[0].name}")
    stops = {_source(t) for t in _as_list(stop_gradients)}
    initial = _as_list(grad_ys) if grad_ys is not None else [None] * len(targets)
    if len(initial) != len(targets):
        raise ValueError(f"Passed {len(initial)} grad_ys for {len(targets)} ys")
    with (
        collection_paused(),
        graph.as_default(),
        graph.one_creation_site(),
        name_scope(name, "gradients", [*targets, *sources]) as scope,
    ):
        loops = records_of(graph)
        loops.catch_up(graph)
        seeds = [
            _initial_gradient(y, g, i)
            for i, (y, g) in enumerate(zip(targets, initial, strict=True))
        ]
        backward = _Backward(graph, sources, stops, aggregation_method, colocate_gradients_with_ops)
        source = loops.name_for_array_gradients(scope.rstrip("/") or "gradients")
        with differentiation(graph, source):
            found = backward.run(targets, seeds)
        if unconnected is UnconnectedGradients.ZERO:
            from runnel.ops.fill import zeros_like

            found = [zeros_like(x) if g is None else g for x, g in zip(sources, found, strict=True)]
    return found


def _through_formula(formula: Formula, op: Operation, grads: list[Any]) -> list[Any]:
    """The gradients of the inputs of ``op``: those of the graph code that stands for it."""
    # Fresh tensors: the gradient of one must not go through another that itself comes from it.
    sources = [identity(tensor) for tensor in op.inputs[: formula.arity]]
    results = formula(op, *sources)
    found = gradients(results, sources, grad_ys=grads[: len(results)], name="formula")
    return [*found, *[None] * (len(op.inputs) - len(sources))]


def _as_list(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


def _tensors(values: Any, what: str) -> list[Tensor]:
    return [
        v.values if isinstance(v, IndexedSlices) else convert_to_tensor(v) for v in _as_list(values)
    ]


def _source(x: Any) -> Tensor:
    """The tensor that stands for ``x``: for a variable its reference or handle."""
    if isinstance(x, Tensor):
        return x
    handle = getattr(x, "handle", None)
    if isinstance(handle, Tensor):
        return handle
    return convert_to_tensor(x, as_ref=True)


def _initial_gradient(y: Tensor, given: Any, index: int) -> Gradient:
    if given is None:
        if y.dtype.is_complex:
            raise TypeError(
                f"Gradients of complex tensors must set grad_ys ({y.name} is {y.dtype.name})"
            )
        if not (is_trainable(y.dtype) or y.dtype.is_integer or y.dtype.is_bool):
            raise TypeError(f"A tensor of type {y.dtype.name} has no gradient: {y.name}")
        from runnel.ops.array_shape import shape
        from runnel.ops.constants import constant
        from runnel.ops.fill import fill

        one = constant(
            True if y.dtype.is_bool else 1, dtype=y.dtype.base_dtype, name=f"grad_ys_{index}"
        )
        return one if y.dims == () else fill(shape(y), one)
    if isinstance(given, IndexedSlices):
        return given
    tensor = convert_to_tensor(given, dtype=y.dtype.base_dtype, name=f"grad_y_{index}")
    if not compatible_dims(tensor.dims, y.dims):
        raise ValueError(
            f"grad_ys[{index}] has shape {format_dims(tensor.dims)}, but {y.name} has "
            f"{format_dims(y.dims)}"
        )
    return tensor


class _Backward:
    """One backward walk."""

    def __init__(
        self,
        graph: Graph,
        sources: Sequence[Tensor],
        stops: set[Tensor],
        aggregation_method: int | None,
        colocate: bool,
        level: LoopLevel | None = None,
        stacks: StackGradients | None = None,
    ) -> None:
        self.graph = graph
        self.level = level or LoopLevel.current(graph)
        self.stacks = stacks or StackGradients()
        self.sources = sources
        self.wanted = frozenset(sources)
        self.stops = stops
        self.aggregation_method = aggregation_method
        self.colocate = colocate
        self.arrived: dict[Tensor, list[Gradient]] = {}
        self.has_branches = False

    def run(
        self, targets: Sequence[Tensor], seeds: Sequence[Gradient], also: Sequence[WalkedLoop] = ()
    ) -> list[Any]:
        """The gradients of the sources.

        ``also`` are loops that are visited although no target depends on them: what they have
        pushed onto stacks has gradients.
        """
        schedule = self._schedule(targets, also)
        self.has_branches = any(isinstance(op, Operation) and is_switch(op) for op in schedule)
        on_path = self._on_path(schedule)
        for tensor, seed in zip(targets, seeds, strict=True):
            self.arrived.setdefault(tensor, []).append(seed)
        found: dict[Tensor, Any] = {}
        for op in reversed(schedule):
            sums = [self._sum(tensor) for tensor in op.outputs]
            for tensor, total in zip(op.outputs, sums, strict=True):
                if tensor in self.wanted:
                    found[tensor] = total
            # A stopped tensor, and one of integers, receives its gradient, but passes none on.
            passed = [
                None if tensor in self.stops or not is_trainable(tensor.dtype) else total
                for tensor, total in zip(op.outputs, sums, strict=True)
            ]
            if op in on_path and (
                any(total is not None for total in passed)
                or (isinstance(op, WalkedLoop) and op.receives(self.stacks))
            ):
                self._propagate(op, passed, on_path)
        for x in self.sources:
            if x not in found and x in self.arrived:  # at the boundary of a loop's body
                found[x] = self._sum(x)
        return [found.get(x) for x in self.sources]

    def _schedule(self, targets: Sequence[Tensor], also: Sequence[WalkedLoop]) -> list[Any]:
        """The ancestors of the targets, producers first; a loop counts as one of them."""
        producers = self.level.producers
        seen: set[Any] = set()
        stack = [*producers(targets), *also]
        while stack:
            op = stack.pop()
            if op in seen:
                continue
            seen.add(op)
            stack += producers(op.inputs)
        ordered = sorted(seen, key=lambda op: op.id)
        if any(source.id >= op.id for op in ordered for source in producers(op.inputs)):
            # An input was replaced by a newer tensor.
            return topological_order(ordered, lambda op: list(producers(op.inputs)))
        return ordered

    def _on_path(self, schedule: Iterable[Any]) -> set[Any]:
        """Operations that have a source among their (indirect) inputs."""
        on_path: set[Operation] = set()
        for op in schedule:
            for tensor in op.inputs:
                leads = self.level.producer(tensor) in on_path and tensor not in self.stops
                if is_trainable(tensor.dtype) and (tensor in self.wanted or leads):
                    on_path.add(op)
                    break
        return on_path

    def _sum(self, tensor: Tensor) -> Gradient | None:
        parts = self.arrived.pop(tensor, None)
        if not parts:
            return None
        return aggregate(parts, self.aggregation_method)

    def _propagate(self, op: Any, sums: list[Any], on_path: set[Any]) -> None:
        if isinstance(op, WalkedLoop):
            leads = [t in self.wanted or self.level.producer(t) in on_path for t in op.inputs]
            into = loop_gradients(op, sums, leads, self._walk, self.stacks)
            self._send(op, into, on_path)
            return
        if op.type == "StackPopV2":
            self.stacks.push(op, sums[0])
            return
        function = self._gradient_function(op)
        if function is None:
            return
        scope = self.graph.colocate_with(op) if self.colocate else nullcontext()
        with self.graph.name_scope(f"{op.name}_grad"), scope:
            grads = [
                self._or_zeros(tensor, total)
                for tensor, total in zip(op.outputs, sums, strict=True)
            ]
            if op.type not in _PASS_SLICES_ON:
                grads = [convert_to_tensor(g) if isinstance(g, IndexedSlices) else g for g in grads]
            if isinstance(function, Formula):
                result: Any = _through_formula(function, op, grads)
            else:
                result = function(op, *grads)
            into = list(result) if isinstance(result, list | tuple) else [result]
            self._check_result(op, into)
        self._send(op, into, on_path)

    def _send(self, op: Any, grads: Sequence[Any], on_path: set[Any]) -> None:
        for tensor, grad in zip(op.inputs, grads, strict=True):
            if grad is None or not is_trainable(tensor.dtype):
                continue
            if tensor in self.wanted or self.level.producer(tensor) in on_path:
                if self.has_branches:
                    grad = self._alive_with(tensor, grad, op)
                self.arrived.setdefault(tensor, []).append(grad)

    def _alive_with(self, tensor: Tensor, grad: Gradient, op: Any) -> Gradient:
        """``grad``, which ``op`` passes on, zero where ``tensor`` is alive and ``op`` is dead.

        ``tf.cond`` brings all that a branch uses into it. But a gradient that another one is
        taken of was made outside, of values of branches and of others.
        """
        if isinstance(op, Operation) and op.op_def.name in CONTROL_FLOW:
            return grad
        analysis = guards_of(self.graph)
        guards = op.guards() if isinstance(op, WalkedLoop) else analysis.in_branches(op.outputs[0])
        if not guards:
            return grad
        missing = analysis.missing(tensor, guards)
        return completed(grad, tensor, missing, analysis.in_branches(tensor))

    def _walk(
        self,
        targets: Sequence[Tensor],
        seeds: Sequence[Gradient],
        sources: Sequence[Tensor],
        level: LoopLevel,
        also: Sequence[WalkedLoop],
    ) -> list[Any]:
        """The gradients within one iteration of a loop."""
        inner = _Backward(
            self.graph,
            sources,
            self.stops,
            self.aggregation_method,
            self.colocate,
            level,
            self.stacks,
        )
        return inner.run(targets, seeds, also)

    @staticmethod
    def _or_zeros(tensor: Tensor, total: Gradient | None) -> Any:
        """A gradient function sees zeros where only other outputs received a gradient."""
        if (
            total is not None
            or is_switch(tensor.op)  # the zeros must be dead where the gradient is alive
            or not is_trainable(tensor.dtype)
            or tensor.dtype.name in ("resource", "variant")
        ):
            return total
        from runnel.ops.fill import zeros_like

        return zeros_like(tensor)

    @staticmethod
    def _gradient_function(op: Operation) -> Any:
        name = op.gradient_name or op.attrs.get("_gradient_op_type") or op.type
        if isinstance(name, bytes):
            name = name.decode()
        custom = custom_gradient_function(name)
        if custom is not None:
            return custom
        try:
            return gradient_function(name)
        except LookupError:
            site = "\n  ".join(op.creation_site())
            raise LookupError(
                f"No gradient is defined for operation {op.name!r} (op type: {name}), created at:\n"
                f"  {site}\nRegister one with @tf.RegisterGradient({name!r}), or cut the path "
                "with tf.stop_gradient."
            ) from None

    @staticmethod
    def _check_result(op: Operation, grads: list[Any]) -> None:
        if len(grads) != len(op.inputs):
            raise ValueError(
                f"The gradient of {op.name!r} ({op.type}) returned {len(grads)} gradients for "
                f"{len(op.inputs)} inputs; return one for each input, None where there is none"
            )
        for index, (tensor, grad) in enumerate(zip(op.inputs, grads, strict=True)):
            if grad is None:
                continue
            if isinstance(grad, IndexedSlices):
                continue
            if not isinstance(grad, Tensor):
                grads[index] = grad = convert_to_tensor(grad, dtype=tensor.dtype.base_dtype)
            if tensor.dtype.name == "resource":
                continue
            if grad.dtype.base_dtype is not tensor.dtype.base_dtype and is_trainable(tensor.dtype):
                raise ValueError(
                    f"The gradient of {op.name!r} ({op.type}) for input {index} is of type "
                    f"{grad.dtype.name}, but the input is {tensor.dtype.name}"
                )
            if not compatible_dims(grad.dims, tensor.dims):
                raise ValueError(
                    f"The gradient of {op.name!r} ({op.type}) for input {index} has shape "
                    f"{format_dims(grad.dims)}, but the input has {format_dims(tensor.dims)}"
                )
            grad.set_shape(tensor.dims)


__all__ = ["AggregationMethod", "UnconnectedGradients", "gradients", "is_trainable"]


def _of_function(ys: list[Tensor], xs: list[Tensor], grad_ys: list[Tensor]) -> list[Tensor]:
    """The gradients of a function of a GraphDef's library, with zeros where there are none."""
    from runnel.ops.fill import zeros_like

    pairs = [(y, g) for y, g in zip(ys, grad_ys, strict=True) if is_trainable(y.dtype)]
    found = gradients([y for y, _ in pairs], xs, [g for _, g in pairs]) if pairs else []
    found = found or [None] * len(xs)
    return [
        zeros_like(x) if grad is None else convert_to_tensor(grad)
        for x, grad in zip(xs, found, strict=True)
    ]


declare_gradients(_of_function)
