"""Variables of which each worker has its own, beside a center that all workers share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from runnel.graph.collections import GraphKeys
from runnel.graph.graph import get_default_graph
from runnel.graph.operation import Operation
from runnel.ops.assign import assign
from runnel.ops.control import group
from runnel.train.optimizer import Optimizer
from runnel.train.session_run_hook import SessionRunHook
from runnel.variables.get_variable import get_variable
from runnel.variables.partitioned_variable import PartitionedVariable

CENTER = "global_center_variable"


class OwnVariablesGetter:
    """A custom getter: a trainable variable is local to the worker, and has a center beside it.

    The center is where the surrounding device function puts variables: on parameter servers. With
    ``beside`` there is another variable of the worker's own, under that name.
    """

    def __init__(self, worker_device: Any, beside: str | None = None) -> None:
        self._worker_device = worker_device
        self._beside_name = beside
        self.centers: dict[Any, Any] = {}
        """The center of each trainable variable."""
        self.beside: dict[Any, Any] = {}

    def __call__(
        self,
        getter: Callable[..., Any],
        name: str,
        trainable: Any,
        collections: Any,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        device = get_default_graph().device
        if not trainable:
            options = {"trainable": trainable, "collections": collections, **kwargs}
            if GraphKeys.LOCAL_VARIABLES in (collections or ()):
                with device(self._worker_device):
                    return getter(name, *args, **options)
            return getter(name, *args, **options)
        local = [GraphKeys.LOCAL_VARIABLES]
        with device(self._worker_device):
            own = getter(name, *args, trainable=True, collections=local, **kwargs)
        if kwargs.get("reuse") is True or _parts(own)[0] in self.centers:
            return own
        kwargs = {**kwargs, "trainable": False}
        center = self._center(getter, name, own, *args, **kwargs)
        self.centers.update(zip(_parts(own), _parts(center), strict=True))
        if self._beside_name is not None:
            with device(self._worker_device):
                other = getter(f"{self._beside_name}/{name}", *args, collections=local, **kwargs)
            self.beside.update(zip(_parts(own), _parts(other), strict=True))
        return own

    def _center(
        self, getter: Callable[..., Any], name: str, own: Any, *args: Any, **kwargs: Any
    ) -> Any:
        shared = [GraphKeys.GLOBAL_VARIABLES]
        return getter(f"{CENTER}/{name}", *args, collections=shared, **kwargs)


def _parts(variable: Any) -> list[Any]:
    return list(variable) if isinstance(variable, PartitionedVariable) else [variable]


class OwnVariablesOptimizer(Optimizer):
    """``opt`` for variables of the worker's own, which meet those of others now and then."""

    def __init__(
        self, opt: Optimizer, getter: OwnVariablesGetter, use_locking: bool, name: str
    ) -> None:
        super().__init__(use_locking, name)
        self._opt = opt
        self._centers = getter.centers
        self._local_step = get_variable(
            "local_step",
            initializer=0,
            trainable=False,
            collections=[GraphKeys.LOCAL_VARIABLES],
        )

    def compute_gradients(self, *args: Any, **kwargs: Any) -> list[tuple[Any, Any]]:
        """The gradients with respect to the worker's own variables."""
        return self._opt.compute_gradients(*args, **kwargs)

    def _pulled(self, variables: Iterable[Any]) -> Operation:
        """Has the worker's own variables be what their centers are."""
        return group(*(assigned_from(own, self._centers[own]) for own in variables))


def assigned_from(variable: Any, center: Any) -> Operation:
    """Sets a variable to what its center is now."""
    device = get_default_graph().device
    with device(center.device):  # read there: a branch elsewhere gets what it was before
        value = center.read_value()
    with device(variable.device):
        return assign(variable, value).op


class StartAtCenterHook(SessionRunHook):
    """Runs operations when a worker's session begins, and so again after a recovery."""

    def __init__(self, operations: Callable[[], Operation]) -> None:
        self._operations = operations

    def begin(self) -> None:
        self._start = self._operations()

    def after_create_session(self, session: Any, coord: Any) -> None:
        session.run(self._start)
