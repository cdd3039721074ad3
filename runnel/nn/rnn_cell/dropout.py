"""``DropoutWrapper``: dropout around a cell."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from runnel.control_flow.structure import flatten, is_nested, pack_as
from runnel.control_flow.tensor_array import TensorArray
from runnel.graph.constant_value import constant_value
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.nn.rnn_cell.batch_shape import batch_shape
from runnel.nn.rnn_cell.lstm import LSTMStateTuple
from runnel.nn.rnn_cell.wrappers import RNNCellWrapper
from runnel.ops.division import divide
from runnel.ops.rounding import floor
from runnel.ops.sampling.dropout import dropout
from runnel.ops.sampling.random import random_uniform


class DropoutWrapper(RNNCellWrapper):
    """Dropout of what goes into a cell, comes out, and is remembered.

    Each of ``input_keep_prob``, ``output_keep_prob`` and ``state_keep_prob`` is a number or a
    scalar tensor; 1 drops nothing. The memory ``c`` of an LSTM is not dropped, only ``h``
    (Semeniuta et al., 2016), unless ``dropout_state_filter_visitor`` says otherwise: it gets a
    state and returns True to drop in all of it, False for none, or a structure of those.

    With ``variational_recurrent`` the same elements are dropped at every step and for every member
    of the batch (Gal & Ghahramani, 2015); it needs ``dtype`` and, when inputs are dropped,
    ``input_size``.

    Example:
        >>> cell = tf.nn.rnn_cell.LSTMCell(16)
        >>> cell = tf.nn.rnn_cell.DropoutWrapper(cell, output_keep_prob=0.5, seed=1)
    """

    def __init__(
        self,
        cell: Any,
        input_keep_prob: Any = 1.0,
        output_keep_prob: Any = 1.0,
        state_keep_prob: Any = 1.0,
        variational_recurrent: bool = False,
        input_size: Any = None,
        dtype: Any = None,
        seed: int | None = None,
        dropout_state_filter_visitor: Callable[[Any], Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(cell, dtype=dtype, **kwargs)
        if dropout_state_filter_visitor is not None and not callable(dropout_state_filter_visitor):
            raise TypeError(
                "dropout_state_filter_visitor must be callable, not "
                f"{dropout_state_filter_visitor!r}"
            )
        self._dropout_state_filter = dropout_state_filter_visitor or _drops_by_default
        self._seed = seed
        with name_scope("DropoutWrapperInit"):
            self._input_keep_prob = _probability(input_keep_prob, "input_keep_prob")
            self._state_keep_prob = _probability(state_keep_prob, "state_keep_prob")
            self._output_keep_prob = _probability(output_keep_prob, "output_keep_prob")
        self._variational_recurrent = variational_recurrent
        self._input_noise = self._state_noise = self._output_noise = None
        if variational_recurrent:
            self._make_noise(cell, input_size, dtype)

    def _make_noise(self, cell: Any, input_size: Any, dtype: Any) -> None:
        """One draw for the whole sequence and batch."""
        if dtype is None:
            raise ValueError("When variational_recurrent=True, dtype must be provided")

        def noise_for(sizes: Any, salt: str) -> Any:
            def noise(i: int, size: Any) -> Tensor:
                return random_uniform(
                    batch_shape(1, size), seed=self._gen_seed(salt, i), dtype=dtype
                )

            return pack_as(sizes, [noise(i, size) for i, size in enumerate(flatten(sizes))])

        if _drops(self._input_keep_prob):
            if input_size is None:
                raise ValueError(
                    "When variational_recurrent=True and input_keep_prob < 1.0 or is unknown, "
                    "input_size must be provided"
                )
            self._input_noise = noise_for(input_size, "input")
        self._state_noise = noise_for(cell.state_size, "state")
        self._output_noise = noise_for(cell.output_size, "output")

    def _gen_seed(self, salt: str, index: int) -> int | None:
        """A seed for each place where something is dropped, the same as TensorFlow's."""
        if self._seed is None:
            return None
        digest = hashlib.md5(f"{self._seed}{salt}_{index}".encode(), usedforsecurity=False)
        return int(digest.hexdigest()[:8], 16) & 0x7FFFFFFF

    def _call_wrapped(self, inputs: Any, state: Any, arguments: dict[str, Any]) -> Any:
        if _drops(self._input_keep_prob):
            inputs = self._dropout(inputs, inputs, "input", self._input_noise)
        output, new_state = self.cell(inputs, state, **arguments)
        if _drops(self._state_keep_prob):
            chosen = _chosen(self._dropout_state_filter, new_state)
            new_state = self._dropout(chosen, new_state, "state", self._state_noise)
        if _drops(self._output_keep_prob):
            output = self._dropout(output, output, "output", self._output_noise)
        return output, new_state

    def _dropout(self, chosen: Any, values: Any, salt: str, noise: Any) -> Any:
        """``values`` with dropout at the leaves of ``chosen`` that are not False."""
        keep_prob = getattr(self, f"_{salt}_keep_prob")
        count = 0

        def walk(choice: Any, value: Any, own_noise: Any) -> Any:
            nonlocal count
            if is_nested(choice):
                parts = _children(choice)
                noises = _children(own_noise) if own_noise is not None else [None] * len(parts)
                made = [walk(*x) for x in zip(parts, _children(value), noises, strict=True)]
                return _like(value, made)
            index, count = count, count + 1
            if choice is False:
                return value
            if own_noise is None:
                return dropout(value, rate=1.0 - keep_prob, seed=self._gen_seed(salt, index))
            kept = divide(value, keep_prob) * floor(keep_prob + own_noise)
            kept.set_shape(value.dims)
            return kept

        return walk(chosen, values, noise)


def _probability(given: Any, name: str) -> Any:
    """A number, where it is known; otherwise a tensor."""
    tensor = convert_to_tensor(given)
    known = constant_value(tensor)
    if known is None:
        return tensor
    if not 0 <= known <= 1:
        raise ValueError(f"Parameter {name} must be between 0 and 1, not {known}")
    return float(known)


def _drops(keep_prob: Any) -> bool:
    return not isinstance(keep_prob, float) or keep_prob < 1


def _drops_by_default(substate: Any) -> Any:
    if isinstance(substate, LSTMStateTuple):
        return LSTMStateTuple(c=False, h=True)
    return not isinstance(substate, TensorArray)


def _chosen(visitor: Callable[[Any], Any], state: Any) -> Any:
    """True or False for ``state``, or, as far as ``visitor`` looks into it, for its parts."""
    answer = visitor(state)
    if isinstance(answer, bool):
        if not answer or not is_nested(state):
            return answer
        return _like(state, [_chosen(visitor, part) for part in _children(state)])
    if not is_nested(answer) or not is_nested(state):
        raise TypeError(
            "dropout_state_filter_visitor must return a bool, or for a structured state a "
            f"structure of bools, not {answer!r}"
        )
    answers = _children(answer)
    if len(answers) != len(_children(state)) or not all(isinstance(x, bool) for x in answers):
        raise TypeError(
            f"dropout_state_filter_visitor returned {answer!r}; it must have a bool for each part "
            f"of {state!r}"
        )
    parts = zip(answers, _children(state), strict=True)
    return _like(state, [wanted and _chosen(visitor, part) for wanted, part in parts])


def _children(structure: Any) -> list[Any]:
    if isinstance(structure, dict):
        return [structure[key] for key in sorted(structure)]
    return list(structure)


def _like(structure: Any, parts: list[Any]) -> Any:
    """``parts`` in a container like ``structure``."""
    if isinstance(structure, dict):
        return dict(zip(sorted(structure), parts, strict=True))
    if hasattr(structure, "_fields"):
        return type(structure)(*parts)
    return type(structure)(parts)
