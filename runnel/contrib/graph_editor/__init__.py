"""``tf.contrib.graph_editor``: selects, copies and rewires parts of a graph that is there."""

from runnel.contrib.graph_editor.copying import (
    TransformerInfo,
    copy,
    copy_with_input_replacements,
    graph_replace,
)
from runnel.contrib.graph_editor.detaching import (
    bypass,
    connect,
    detach,
    detach_inputs,
    detach_outputs,
)
from runnel.contrib.graph_editor.elements import (
    get_consuming_ops,
    get_generating_ops,
    get_tensors,
    make_list_of_op,
    make_list_of_t,
)
from runnel.contrib.graph_editor.placeholders import (
    make_placeholder_from_dtype_and_shape,
    make_placeholder_from_tensor,
    placeholder_name,
)
from runnel.contrib.graph_editor.rerouting import (
    add_control_inputs,
    remove_control_inputs,
    reroute_inputs,
    reroute_ios,
    reroute_outputs,
    reroute_ts,
    swap_inputs,
    swap_ios,
    swap_outputs,
    swap_ts,
)
from runnel.contrib.graph_editor.selection import (
    can_be_regex,
    compute_boundary_ts,
    filter_ops,
    filter_ops_from_regex,
    filter_ts,
    filter_ts_from_regex,
    get_name_scope_ops,
    get_ops_ios,
    make_regex,
    select_ops,
    select_ops_and_ts,
    select_ts,
)
from runnel.contrib.graph_editor.view import SubGraphView, make_view, make_view_from_scope
from runnel.contrib.graph_editor.walks import (
    get_backward_walk_ops,
    get_forward_walk_ops,
    get_walks_intersection_ops,
    get_walks_union_ops,
    get_within_boundary_ops,
)

ph = make_placeholder_from_dtype_and_shape
sgv = make_view
sgv_scope = make_view_from_scope

__all__ = [
    "SubGraphView",
    "TransformerInfo",
    "add_control_inputs",
    "bypass",
    "can_be_regex",
    "compute_boundary_ts",
    "connect",
    "copy",
    "copy_with_input_replacements",
    "detach",
    "detach_inputs",
    "detach_outputs",
    "filter_ops",
    "filter_ops_from_regex",
    "filter_ts",
    "filter_ts_from_regex",
    "get_backward_walk_ops",
    "get_consuming_ops",
    "get_forward_walk_ops",
    "get_generating_ops",
    "get_name_scope_ops",
    "get_ops_ios",
    "get_tensors",
    "get_walks_intersection_ops",
    "get_walks_union_ops",
    "get_within_boundary_ops",
    "graph_replace",
    "make_list_of_op",
    "make_list_of_t",
    "make_placeholder_from_dtype_and_shape",
    "make_placeholder_from_tensor",
    "make_regex",
    "make_view",
    "make_view_from_scope",
    "ph",
    "placeholder_name",
    "remove_control_inputs",
    "reroute_inputs",
    "reroute_ios",
    "reroute_outputs",
    "reroute_ts",
    "select_ops",
    "select_ops_and_ts",
    "select_ts",
    "sgv",
    "sgv_scope",
    "swap_inputs",
    "swap_ios",
    "swap_outputs",
    "swap_ts",
]


def __dir__() -> list[str]:
    return __all__
