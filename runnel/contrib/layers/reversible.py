"""Reversible layers, whose inputs the gradient computes from their outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from runnel.autodiff.custom_gradient import custom_gradient
from runnel.autodiff.gradients import gradients
from runnel.autodiff.recomputation import recompute_grad as recomputed
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import get_default_graph
from runnel.graph.operation import Tensor
from runnel.layers.base import Layer
from runnel.ops.arithmetic import add_n
from runnel.ops.control import barrier_op, identity
from runnel.variables.variable_scope import VariableScope, get_variable_scope, variable_scope

Side = Sequence[Any] | None


def recompute_grad(
    fn: Callable[..., Any] | None = None,
    use_data_dep: Any = True,
    tupleize_grads: bool = False,
) -> Any:
    """Decorates a function whose values the gradient computes again rather than keeps.

    The arguments are those of TensorFlow; what they ask for always holds.

    Example:
        >>> @tf.contrib.layers.recompute_grad
        ... def block(x):
        ...     return tf.nn.relu(tf.layers.dense(x, 512))
    """
    return recompute_grad if fn is None else recomputed(fn)


def scale_gradient(inputs: Any, gradient_multiplier: Any) -> Tensor:
    """``inputs``, whose gradient is multiplied.

    Example:
        >>> shared = tf.contrib.layers.scale_gradient(features, tf.constant(0.1))
    """
    factor = convert_to_tensor(gradient_multiplier)

    @custom_gradient
    def passed(x: Tensor) -> Any:
        return identity(x), lambda grad: grad * factor

    return passed(convert_to_tensor(inputs))  # type: ignore[no-any-return]


class RevBlock(Layer):
    """``num_layers`` layers ``y1 = x1 + f(x2)``, ``y2 = x2 + g(y1)``.

    They need memory for the outputs of the last one only: the gradient goes back through the
    inputs that it computes from them. ``f`` and ``g`` are functions, or a list with one for each
    layer, and keep the shape. (Gomez et al., *The Reversible Residual Network*, 2017.)
    """

    def __init__(
        self,
        f: Any,
        g: Any,
        num_layers: int = 1,
        f_side_input: Side = None,
        g_side_input: Side = None,
        use_efficient_backprop: bool = True,
        name: str = "revblock",
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, **kwargs)
        self._f = list(f) if isinstance(f, list | tuple) else [f] * num_layers
        self._g = list(g) if isinstance(g, list | tuple) else [g] * num_layers
        if len(self._f) != num_layers or len(self._g) != num_layers:
            raise ValueError(f"There must be a function for each of the {num_layers} layers")
        self._sides = ([*(f_side_input or [])], [*(g_side_input or [])])
        self._efficient = use_efficient_backprop

    def call(self, inputs: Any, forward: bool = True) -> tuple[Tensor, Tensor]:
        """The outputs of the last layer; with ``forward=False``, the inputs of the first."""
        first, second = (convert_to_tensor(value) for value in inputs)
        with variable_scope(get_variable_scope(), use_resource=True) as scope:
            if not forward:
                return self._back(first, second, scope)
            if not self._efficient:
                return self._through(first, second, *self._sides)
            return self._reversible(first, second, scope)

    def forward(self, x1: Any, x2: Any) -> tuple[Tensor, Tensor]:
        """The outputs of the last layer."""
        return self([x1, x2])  # type: ignore[no-any-return]

    def backward(self, y1: Any, y2: Any) -> tuple[Tensor, Tensor]:
        """The inputs of the first layer."""
        return self([y1, y2], forward=False)  # type: ignore[no-any-return]

    def _called(self, which: str, layer: int, x: Tensor, side: Sequence[Tensor]) -> Tensor:
        function = (self._f if which == "f" else self._g)[layer]
        with variable_scope(f"revlayer_{layer}/{which}"):
            found = function(x, list(side)) if side else function(x)
        return found  # type: ignore[no-any-return]

    def _through(self, x1: Tensor, x2: Tensor, f_side: Any, g_side: Any) -> tuple[Tensor, Tensor]:
        for layer in range(len(self._f)):
            x1 = x1 + self._called("f", layer, x2, f_side)
            x2 = x2 + self._called("g", layer, x1, g_side)
        return x1, x2

    def _back(self, y1: Tensor, y2: Tensor, scope: VariableScope) -> tuple[Tensor, Tensor]:
        with variable_scope(scope, reuse=True):
            for layer in reversed(range(len(self._f))):
                y2 = y2 - self._called("g", layer, y1, self._sides[1])
                y1 = y1 - self._called("f", layer, y2, self._sides[0])
        return y1, y2

    def _reversible(self, x1: Tensor, x2: Tensor, scope: VariableScope) -> tuple[Tensor, Tensor]:
        sides = self._sides
        count = len(sides[0])

        @custom_gradient
        def computed(first: Tensor, second: Tensor, *given: Tensor) -> Any:
            f_side, g_side = given[:count], given[count:]
            y1, y2 = self._through(first, second, f_side, g_side)

            def gradient(*grads: Any, variables: Any = None) -> Any:
                used = list(variables or ())
                ready = [convert_to_tensor(grad) for grad in grads]
                # Nothing is computed again before the gradient has come so far.
                held = barrier_op([y1, y2, *given, *ready])
                state = _Backwards(self, held[: 2 + len(given)], held[-2:], count, used)
                with (
                    variable_scope(scope, reuse=True),
                    get_default_graph().name_scope("reversed"),
                ):
                    for layer in reversed(range(len(self._f))):
                        state.step(layer)
                of_inputs = [*state.grads, *state.of_sides()]
                return of_inputs if variables is None else (of_inputs, state.of_variables())

            return (y1, y2), gradient

        y1, y2 = computed(x1, x2, *sides[0], *sides[1])
        return y1, y2


class _Backwards:
    """The gradient of a block on its way from the last layer to the first."""

    def __init__(
        self,
        block: RevBlock,
        held: Sequence[Tensor],
        grads: Sequence[Tensor],
        count: int,
        variables: list[Any],
    ) -> None:
        self._block = block
        self._values = list(held[:2])
        self._sides = (list(held[2 : 2 + count]), list(held[2 + count :]))
        self.grads = list(grads)
        self._variables = variables
        self._collected: list[list[Tensor]] = [[] for _ in range(len(held) - 2 + len(variables))]

    def step(self, layer: int) -> None:
        """Goes through one layer: ``y2 - g(y1)``, then ``y1 - f(x2)``."""
        for which, number in (("g", 0), ("f", 1)):
            source, other = self._values[number], self._values[1 - number]
            side = self._sides[1 - number]
            found = self._block._called(which, layer, source, side)
            self._values[1 - number] = other - found
            sources = [source, *side, *self._variables]
            slopes = gradients(
                found, sources, grad_ys=self.grads[1 - number], stop_gradients=[source, *side]
            )
            if slopes[0] is not None:
                self.grads[number] = self.grads[number] + slopes[0]
            self._collect(slopes[1:], which)

    def _collect(self, slopes: Sequence[Tensor | None], which: str) -> None:
        counts = [len(side) for side in self._sides]
        start = 0 if which == "f" else counts[0]
        own = counts[0] if which == "f" else counts[1]
        for number, slope in enumerate(slopes):
            place = start + number if number < own else sum(counts) + number - own
            if slope is not None:
                self._collected[place].append(convert_to_tensor(slope))

    def _total(self, slopes: list[Tensor]) -> Tensor | None:
        return add_n(slopes) if slopes else None

    def of_sides(self) -> list[Tensor | None]:
        """The gradients of the side inputs."""
        count = len(self._collected) - len(self._variables)
        return [self._total(slopes) for slopes in self._collected[:count]]

    def of_variables(self) -> list[Tensor | None]:
        """The gradients of the variables."""
        count = len(self._collected) - len(self._variables)
        return [self._total(slopes) for slopes in self._collected[count:]]


def rev_block(
    x1: Any,
    x2: Any,
    f: Any,
    g: Any,
    num_layers: int = 1,
    f_side_input: Side = None,
    g_side_input: Side = None,
    is_training: bool = True,
) -> tuple[Tensor, Tensor]:
    """A :class:`RevBlock` that is made and applied at once.

    Example:
        >>> y1, y2 = tf.contrib.layers.rev_block(x1, x2, attention, feed_forward, num_layers=6)
    """
    block = RevBlock(
        f,
        g,
        num_layers,
        f_side_input,
        g_side_input,
        use_efficient_backprop=is_training,
        _reuse=get_variable_scope().reuse,
    )
    return block.forward(x1, x2)
