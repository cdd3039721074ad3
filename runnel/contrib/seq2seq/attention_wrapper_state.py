"""``AttentionWrapperState``: what a cell with attention carries from step to step."""

from __future__ import annotations

from typing import Any, NamedTuple

from runnel.control_flow.structure import flatten, require_same
from runnel.graph.operation import Tensor
from runnel.graph.shapes import compatible_dims, format_dims


class AttentionWrapperState(NamedTuple):
    """The state of an :class:`AttentionWrapper`.

    ``cell_state`` is the wrapped cell's; ``attention`` what was attended to in the step before;
    ``alignments`` its weights, ``attention_state`` the mechanism's own state, and
    ``alignment_history`` a TensorArray of all weights so far, or ``()``. Each of the last three is
    a tuple where there are several mechanisms.
    """

    cell_state: Any
    attention: Any
    time: Any
    alignments: Any
    alignment_history: Any
    attention_state: Any

    def clone(self, **kwargs: Any) -> AttentionWrapperState:
        """A state with some parts replaced by others of the same structure and shapes.

        Example:
            >>> initial = wrapper.zero_state(batch, tf.float32).clone(cell_state=encoder_state)
        """
        replaced = self._replace(**kwargs)
        for name in kwargs:
            old, new = getattr(self, name), getattr(replaced, name)
            require_same(old, new, (f"The {name} of the state", "the new one"))
            for one, other in zip(flatten(old), flatten(new), strict=True):
                _require_same_shape(name, one, other)
        return replaced


def _require_same_shape(name: str, old: Any, new: Any) -> None:
    if not (isinstance(old, Tensor) and isinstance(new, Tensor)):
        return
    if not compatible_dims(old.dims, new.dims):
        raise ValueError(
            f"The {name} of the state has shape {format_dims(old.dims)}, but {new.name}, which "
            f"should replace it, has {format_dims(new.dims)}. Is the batch size that of "
            "zero_state, and the cell of the encoder's size? For a beam search both are tiled by "
            "tf.contrib.seq2seq.tile_batch."
        )
    new.set_shape(old.dims)
