"""What a profile counts and shows."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

_EVERYTHING: dict[str, Any] = {
    "max_depth": 10000,
    "min_bytes": 0,
    "min_peak_bytes": 0,
    "min_residual_bytes": 0,
    "min_output_bytes": 0,
    "min_micros": 0,
    "min_accelerator_micros": 0,
    "min_cpu_micros": 0,
    "min_params": 0,
    "min_float_ops": 0,
    "min_occurrence": 0,
    "order_by": "name",
    "account_type_regexes": [".*"],
    "start_name_regexes": [".*"],
    "trim_name_regexes": [],
    "show_name_regexes": [".*"],
    "hide_name_regexes": [],
    "account_displayed_op_only": True,
    "select": ["micros"],
    "step": -1,
    "output": "stdout",
}


class ProfileOptionBuilder:
    """Puts the options of a profile together.

    Example:
        >>> build = tf.profiler.ProfileOptionBuilder
        >>> options = build(build.time_and_memory()).with_max_depth(2).build()
    """

    def __init__(self, options: dict[str, Any] | None = None) -> None:
        self._options = copy.deepcopy(_EVERYTHING if options is None else options)

    @staticmethod
    def trainable_variables_parameter() -> dict[str, Any]:
        """Options for the number of parameters, scope by scope."""
        return copy.deepcopy(
            _EVERYTHING | {"account_type_regexes": ["_trainable_variables"], "select": ["params"]}
        )

    @staticmethod
    def float_operation() -> dict[str, Any]:
        """Options for the number of floating-point operations, scope by scope."""
        return copy.deepcopy(
            _EVERYTHING | {"min_float_ops": 1, "order_by": "float_ops", "select": ["float_ops"]}
        )

    @staticmethod
    def time_and_memory(
        min_micros: int = 1,
        min_bytes: int = 1,
        min_accelerator_micros: int = 0,
        min_cpu_micros: int = 0,
        min_peak_bytes: int = 0,
        min_residual_bytes: int = 0,
        min_output_bytes: int = 0,
    ) -> dict[str, Any]:
        """Options for the time and the memory of each operation of a traced step."""
        return copy.deepcopy(
            _EVERYTHING
            | {
                "min_micros": min_micros,
                "min_bytes": min_bytes,
                "min_accelerator_micros": min_accelerator_micros,
                "min_cpu_micros": min_cpu_micros,
                "min_peak_bytes": min_peak_bytes,
                "min_residual_bytes": min_residual_bytes,
                "min_output_bytes": min_output_bytes,
                "order_by": "micros",
                "select": ["micros", "bytes"],
            }
        )

    def build(self) -> dict[str, Any]:
        """The options."""
        return copy.deepcopy(self._options)

    def _with(self, **changes: Any) -> ProfileOptionBuilder:
        self._options.update(changes)
        return self

    def with_max_depth(self, max_depth: int) -> ProfileOptionBuilder:
        """Shows scopes down to that depth."""
        return self._with(max_depth=max_depth)

    def with_min_memory(
        self,
        min_bytes: int = 0,
        min_peak_bytes: int = 0,
        min_residual_bytes: int = 0,
        min_output_bytes: int = 0,
    ) -> ProfileOptionBuilder:
        """Shows what takes, leaves or gives at least so many bytes."""
        return self._with(
            min_bytes=min_bytes,
            min_peak_bytes=min_peak_bytes,
            min_residual_bytes=min_residual_bytes,
            min_output_bytes=min_output_bytes,
        )

    def with_min_execution_time(
        self, min_micros: int = 0, min_accelerator_micros: int = 0, min_cpu_micros: int = 0
    ) -> ProfileOptionBuilder:
        """Shows what takes at least so many microseconds: in all, on accelerators, on CPUs."""
        return self._with(
            min_micros=min_micros,
            min_accelerator_micros=min_accelerator_micros,
            min_cpu_micros=min_cpu_micros,
        )

    def with_min_parameters(self, min_params: int) -> ProfileOptionBuilder:
        """Shows what has at least so many parameters."""
        return self._with(min_params=min_params)

    def with_min_float_operations(self, min_float_ops: int) -> ProfileOptionBuilder:
        """Shows what makes at least so many floating-point operations."""
        return self._with(min_float_ops=min_float_ops)

    def with_min_occurrence(self, min_occurrence: int) -> ProfileOptionBuilder:
        """Shows types of operations of which there are at least so many."""
        return self._with(min_occurrence=min_occurrence)

    def with_accounted_types(self, account_type_regexes: Sequence[str]) -> ProfileOptionBuilder:
        """Counts only operations of types that match; ``_trainable_variables`` is one."""
        return self._with(account_type_regexes=list(account_type_regexes))

    def with_node_names(
        self,
        start_name_regexes: Sequence[str] | None = None,
        show_name_regexes: Sequence[str] | None = None,
        hide_name_regexes: Sequence[str] | None = None,
        trim_name_regexes: Sequence[str] | None = None,
    ) -> ProfileOptionBuilder:
        """Chooses by name what is shown."""
        given = {
            "start_name_regexes": start_name_regexes,
            "show_name_regexes": show_name_regexes,
            "hide_name_regexes": hide_name_regexes,
            "trim_name_regexes": trim_name_regexes,
        }
        return self._with(**{key: list(names) for key, names in given.items() if names is not None})

    def account_displayed_op_only(self, is_true: bool) -> ProfileOptionBuilder:
        """Whether totals are those of what is shown."""
        return self._with(account_displayed_op_only=is_true)

    def order_by(self, attribute: str) -> ProfileOptionBuilder:
        """Sorts by ``name``, ``occurrence``, or something that is counted, such as ``micros``."""
        return self._with(order_by=attribute)

    def select(self, attributes: Sequence[str]) -> ProfileOptionBuilder:
        """Chooses what is printed."""
        return self._with(select=list(attributes))

    def with_step(self, step: int) -> ProfileOptionBuilder:
        """Takes the trace of one step of a :class:`Profiler`; -1 is the mean of all."""
        return self._with(step=step)

    def with_stdout_output(self) -> ProfileOptionBuilder:
        """Prints the profile."""
        return self._with(output="stdout")

    def with_empty_output(self) -> ProfileOptionBuilder:
        """Prints nothing; the profile is returned all the same."""
        return self._with(output="none")

    def with_file_output(self, outfile: Any) -> ProfileOptionBuilder:
        """Writes the profile to a file."""
        return self._with(output=f"file:outfile={outfile}")

    def with_timeline_output(self, timeline_file: Any) -> ProfileOptionBuilder:
        """Writes the trace to a file for Chrome's tracing and Perfetto."""
        return self._with(output=f"timeline:outfile={timeline_file}")

    def with_pprof_output(self, pprof_file: Any) -> ProfileOptionBuilder:
        """Writes a profile by lines of code (``cmd="code"``) to a file for pprof."""
        return self._with(output=f"pprof:outfile={pprof_file}")
