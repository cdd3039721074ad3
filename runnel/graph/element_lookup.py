"""Finding operations and tensors of a graph by name or by object."""

from __future__ import annotations

from typing import Any

from runnel.graph.operation import Operation, Tensor


class ElementLookup:
    """The part of a graph that finds its elements."""

    @property
    def _by_name(self) -> dict[str, Operation]:
        raise NotImplementedError

    def get_operation_by_name(self, name: str) -> Operation:
        """The operation of that name, or a KeyError."""
        if not isinstance(name, str):
            raise TypeError(f"An operation's name must be a string, not {name!r}")
        return self.as_graph_element(name, allow_tensor=False, allow_operation=True)

    def get_tensor_by_name(self, name: str) -> Tensor:
        """The tensor of that name (``"op:0"``), or a KeyError."""
        if not isinstance(name, str):
            raise TypeError(f"A tensor's name must be a string, not {name!r}")
        return self.as_graph_element(name, allow_tensor=True, allow_operation=False)

    def as_graph_element(
        self, obj: Any, allow_tensor: bool = True, allow_operation: bool = True
    ) -> Any:
        """The tensor or operation of this graph that ``obj`` (an object or a name) denotes."""
        convert = getattr(obj, "_as_graph_element", None)
        if convert is not None:
            obj = convert()
        if isinstance(obj, Tensor | Operation):
            allowed = allow_tensor if isinstance(obj, Tensor) else allow_operation
            if not allowed:
                kinds = "an Operation" if allow_operation else "a Tensor"
                raise TypeError(f"Cannot use {obj!r} here: {kinds} is needed.")
            if obj.graph is not self:
                source = obj.op if isinstance(obj, Tensor) else obj
                raise ValueError(
                    f"{obj!r} is not an element of this graph: it was created in another one, at "
                    f"{source.creation_site()[-1].splitlines()[0]}. Create it inside "
                    "`with graph.as_default():`, or use a session of its graph "
                    "(tf.Session(graph=...))."
                )
            return obj
        if isinstance(obj, bytes):
            obj = obj.decode()
        if not isinstance(obj, str):
            raise TypeError(f"Cannot use {obj!r} ({type(obj).__name__}) as a Tensor or Operation.")
        op_name, colon, index = obj.rpartition(":")
        if colon and allow_tensor:
            op = self._by_name.get(op_name)
            if not index.isdigit():
                raise ValueError(f"{obj!r} is not a tensor's name; those look like 'op:0'.")
            if op is None:
                raise KeyError(f"{obj!r} refers to an operation that is not in the graph.")
            if int(index) >= len(op.outputs):
                raise KeyError(f"{obj!r}: {op_name!r} has only {len(op.outputs)} outputs.")
            return op.outputs[int(index)]
        if colon:
            raise ValueError(f"{obj!r} names a tensor, but an operation is needed.")
        op = self._by_name.get(obj)
        if not allow_operation:
            hint = f" Did you mean '{obj}:0'?" if op is not None else ""
            raise ValueError(f"{obj!r} is not a tensor's name; those look like 'op:0'.{hint}")
        if op is None:
            raise KeyError(f"{obj!r} refers to an operation that is not in the graph.")
        return op
