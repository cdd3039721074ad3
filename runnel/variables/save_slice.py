"""Which part of a larger variable a variable holds, for checkpoints that store the whole."""

from __future__ import annotations

from typing import Any

from runnel.variables.proto_names import add_scope, strip_scope


class SaveSliceInfo:
    """A variable of shape ``var_shape`` that begins at ``var_offset`` of the whole.

    The whole is called ``full_name`` and has shape ``full_shape``.
    """

    def __init__(
        self,
        full_name: str | None = None,
        full_shape: list[int] | None = None,
        var_offset: list[int] | None = None,
        var_shape: list[int] | None = None,
        save_slice_info_def: Any = None,
        import_scope: str | None = None,
    ) -> None:
        if save_slice_info_def is not None:
            full_name = add_scope(save_slice_info_def.full_name, import_scope)
            full_shape = list(save_slice_info_def.full_shape)
            var_offset = list(save_slice_info_def.var_offset)
            var_shape = list(save_slice_info_def.var_shape)
        self.full_name = full_name or ""
        self.full_shape = full_shape or []
        self.var_offset = var_offset or []
        self.var_shape = var_shape or []

    @property
    def spec(self) -> str:
        """The slice as checkpoints write it.

        Example:
            >>> SaveSliceInfo("v", [10, 4], [0, 0], [5, 4]).spec
            '10 4 0,5:0,4'
        """
        whole = "".join(f"{size} " for size in self.full_shape)
        return whole + ":".join(f"{o},{s}" for o, s in zip(self.var_offset, self.var_shape))

    def to_proto(self, export_scope: str | None = None) -> Any:
        """This as a ``SaveSliceInfoDef``, or None when it lies outside ``export_scope``."""
        from tensorboard.compat.proto.variable_pb2 import SaveSliceInfoDef

        if export_scope is not None and not self.full_name.startswith(export_scope):
            return None
        return SaveSliceInfoDef(
            full_name=strip_scope(self.full_name, export_scope),
            full_shape=self.full_shape,
            var_offset=self.var_offset,
            var_shape=self.var_shape,
        )
