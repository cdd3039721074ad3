"""``tf.profiler``: parameters are counted as TensorFlow counts them."""

from __future__ import annotations

import pytest

import runnel as tf

reference = pytest.importorskip("tensorflow").compat.v1
reference.disable_v2_behavior()


def parameters(lib, **names):
    with lib.Graph().as_default() as graph:
        with lib.variable_scope("a"):
            w = lib.get_variable("w", [3, 4], use_resource=False)
            lib.get_variable("b", [4], trainable=False, use_resource=False)
            with lib.variable_scope("inner"):
                lib.get_variable("v", [2, 2], use_resource=False)
        lib.get_variable("c", [5], use_resource=False)
        lib.matmul(lib.placeholder(lib.float32, [2, 3]), w)
        build = lib.profiler.ProfileOptionBuilder
        options = build(build.trainable_variables_parameter()).with_empty_output()
        if names:
            options = options.with_node_names(**names)
        root = lib.profiler.profile(graph, options=options.build())

    def plain(node):
        inner = [plain(child) for child in node.children]
        return node.name, node.parameters, node.total_parameters, inner

    return plain(root)


@pytest.mark.parametrize(
    "names", [{}, {"hide_name_regexes": ["a/w"]}, {"show_name_regexes": ["a/inner.*"]}]
)
def test_parameters_by_scope(names):
    assert parameters(tf, **names) == parameters(reference, **names)
