"""What all layers of ``tf.contrib.layers`` do: a scope, model variables, named outputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from runnel.contrib.framework.variables import model_variable
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import get_default_graph
from runnel.graph.operation import Tensor
from runnel.variables.partitioned_variable import PartitionedVariable
from runnel.variables.variable_scope import VariableScope, variable_scope

_ALIASES_KEY = ("__tensor_aliases",)

DATA_FORMATS = {
    "NWC": "channels_last",
    "NCW": "channels_first",
    "NHWC": "channels_last",
    "NCHW": "channels_first",
    "NDHWC": "channels_last",
    "NCDHW": "channels_first",
}


def channels(data_format: str | None) -> str:
    """Where the channels are, in the words of ``tf.layers``."""
    if data_format is None:
        return "channels_last"
    if data_format not in DATA_FORMATS:
        raise ValueError(f"data_format has to be one of {', '.join(DATA_FORMATS)}: {data_format!r}")
    return DATA_FORMATS[data_format]


@contextmanager
def layer_scope(
    scope: Any,
    default_name: str,
    inputs: Any,
    reuse: Any = None,
    renamed: Mapping[str, str] | None = None,
) -> Iterator[VariableScope]:
    """The scope of a layer, in which variables belong to the model and have contrib's names."""
    names = renamed or {}

    def as_model_variable(getter: Any, *args: Any, **kwargs: Any) -> Any:
        name = args[0] if args else kwargs.pop("name")
        above, slash, last = name.rpartition("/")
        kwargs["custom_getter"] = getter
        return model_variable(above + slash + names.get(last, last), *args[1:], **kwargs)

    with variable_scope(
        scope, default_name, [inputs], reuse=reuse, custom_getter=as_model_variable
    ) as opened:
        yield opened


def as_input(inputs: Any) -> Tensor:
    """The inputs of a layer as a tensor of known rank."""
    found = convert_to_tensor(inputs)
    if found.shape.rank is None:
        raise ValueError(f"The inputs of a layer must have a known rank, but {found!r} has none")
    return found


def add_variable_to_collections(variable: Any, collections: Any, name: str) -> None:
    """Adds a variable to those of ``collections`` (a list, or lists by name) that are for it."""
    wanted = collections.get(name) if isinstance(collections, Mapping) else collections
    if not wanted or variable is None:
        return
    parts = list(variable) if isinstance(variable, PartitionedVariable) else [variable]
    graph = get_default_graph()
    for collection in [wanted] if isinstance(wanted, str) else wanted:
        for part in parts:
            if not any(part is member for member in graph.get_collection(collection)):
                graph.add_to_collection(collection, part)


def finished(
    outputs: Any,
    scope: VariableScope | str,
    activation_fn: Any = None,
    outputs_collections: Any = None,
    normalizer_fn: Any = None,
    normalizer_params: Mapping[str, Any] | None = None,
) -> Any:
    """``outputs`` normalised, activated and collected under the name of the scope."""
    if normalizer_fn is not None:
        outputs = normalizer_fn(outputs, **(normalizer_params or {}))
    if activation_fn is not None:
        outputs = activation_fn(outputs)
    name = scope.original_name_scope[:-1] if isinstance(scope, VariableScope) else scope
    return collect_named_outputs(outputs_collections, name, outputs)


def _aliases() -> dict[Any, list[str]]:
    """The aliases of the tensors of the default graph."""
    kept = get_default_graph().get_collection_ref(_ALIASES_KEY)
    if not kept:
        kept.append({})
    return kept[0]  # type: ignore[no-any-return]


def append_tensor_alias(tensor: Any, alias: str) -> Any:
    """Gives a tensor one more name, for :func:`convert_collection_to_dict`."""
    _aliases().setdefault(id(tensor), []).append(alias.removesuffix("/"))
    return tensor


def get_tensor_aliases(tensor: Any) -> list[str]:
    """The names that a tensor was given, or that of its operation."""
    found = _aliases().get(id(tensor))
    return found or [tensor.name.removesuffix(":0")]


def collect_named_outputs(collections: Any, alias: str, outputs: Any) -> Any:
    """``outputs``, which are in ``collections`` under ``alias`` from now on."""
    if collections:
        append_tensor_alias(outputs, alias)
        for collection in [collections] if isinstance(collections, str) else collections:
            get_default_graph().add_to_collection(collection, outputs)
    return outputs


def convert_collection_to_dict(collection: str, clear_collection: bool = False) -> dict[str, Any]:
    """The tensors of a collection by the names of the layers that gave them."""
    graph = get_default_graph()
    found = {a: t for t in graph.get_collection(collection) for a in get_tensor_aliases(t)}
    if clear_collection:
        graph.clear_collection(collection)
    return found
