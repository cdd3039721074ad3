"""``tf.config.optimizer``: how sessions without a configuration compile and rewrite steps."""

from __future__ import annotations

from typing import Any

from runnel.runtime.session import settings

_OPTIONS = {
    "arithmetic_optimization": "arithmetic_optimization",
    "auto_mixed_precision": "auto_mixed_precision",
    "constant_folding": "constant_folding",
    "debug_stripper": "debug_stripper",
    "dependency_optimization": "dependency_optimization",
    "disable_meta_optimizer": "disable_meta_optimizer",
    "disable_model_pruning": "disable_model_pruning",
    "function_optimization": "function_optimization",
    "layout_optimizer": "layout_optimizer",
    "loop_optimization": "loop_optimization",
    "min_graph_nodes": "min_graph_nodes",
    "pin_to_host_optimization": "pin_to_host_optimization",
    "remapping": "remapping",
    "scoped_allocator_optimization": "scoped_allocator_optimization",
    "shape_optimization": "shape_optimization",
}
"""TensorFlow's options, and the fields of ``RewriterConfig`` that they are."""
_FLAGS = ("disable_meta_optimizer", "disable_model_pruning", "min_graph_nodes")
_ON, _OFF = 1, 2


def set_jit(enabled: Any) -> None:
    """Has every step compiled from the start, or, with False, those that are worth it.

    Example:
        >>> tf.config.optimizer.set_jit(True)
    """
    settings.default_config().graph_options.optimizer_options.global_jit_level = int(bool(enabled))


def get_jit() -> bool:
    """Whether every step is compiled from the start."""
    return bool(settings.default_config().graph_options.optimizer_options.global_jit_level > 0)


def set_experimental_options(options: dict[str, Any]) -> None:
    """Sets options of TensorFlow's rewriters; runnel acts upon ``auto_mixed_precision``."""
    rewriter = settings.default_config().graph_options.rewrite_options
    for name, value in options.items():
        if name not in _OPTIONS:
            raise ValueError(f"There is no option {name!r}; there are {', '.join(_OPTIONS)}")
        setattr(rewriter, _OPTIONS[name], value if name in _FLAGS else _ON if value else _OFF)


def get_experimental_options() -> dict[str, Any]:
    """The options that have been set."""
    rewriter = settings.default_config().graph_options.rewrite_options
    found: dict[str, Any] = {}
    for name, field in _OPTIONS.items():
        value = getattr(rewriter, field)
        if name in _FLAGS:
            found[name] = value
        elif value:
            found[name] = value == _ON
    return {name: value for name, value in found.items() if name not in _FLAGS or value}


__all__ = ["get_experimental_options", "get_jit", "set_experimental_options", "set_jit"]


def __dir__() -> list[str]:
    return __all__
