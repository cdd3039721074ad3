"""TensorFlow's switches between its versions: here graphs are described first and run later.

What asks for that does nothing; what asks for anything else is refused.
"""

from __future__ import annotations

from typing import Any, NoReturn


def executing_eagerly() -> bool:
    """False: operations are described, and run by a session."""
    return False


def control_flow_v2_enabled() -> bool:
    """False: loops and conditionals are TensorFlow 1's."""
    return False


def disable_eager_execution() -> None:
    """Nothing: there is no eager execution."""


def disable_v2_behavior() -> None:
    """Nothing: this is TensorFlow 1's behaviour."""


def disable_control_flow_v2() -> None:
    """Nothing: loops and conditionals are TensorFlow 1's."""


def disable_tensor_equality() -> None:
    """Nothing: ``==`` of tensors compares the objects."""


def disable_v2_tensorshape() -> None:
    """Nothing: the elements of a shape are ``tf.Dimension``."""


def _refuse(what: str) -> NoReturn:
    raise NotImplementedError(
        f"runnel has TensorFlow 1's behaviour: graphs that are described first and run by a "
        f"tf.Session. It does not have {what}."
    )


def enable_eager_execution(
    config: Any = None, device_policy: Any = None, execution_mode: Any = None
) -> None:
    """Refused: there is no eager execution."""
    _refuse("eager execution")


def enable_v2_behavior() -> None:
    """Refused: this is TensorFlow 1's behaviour."""
    _refuse("TensorFlow 2's behaviour")


def enable_control_flow_v2() -> None:
    """Refused: loops and conditionals are TensorFlow 1's."""
    _refuse("TensorFlow 2's control flow; its own compiles, and differentiates to any order")


def enable_tensor_equality() -> None:
    """Refused: ``==`` of tensors compares the objects."""
    _refuse("== of tensors element by element: use tf.equal")


def enable_v2_tensorshape() -> None:
    """Refused: the elements of a shape are ``tf.Dimension``."""
    _refuse("shapes of integers: use shape.as_list()")
