"""Makes executables of one segment: its code for XLA, its equal blocks, and the cost."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from runnel.graph import errors
from runnel.graph.collection_pause import collection_paused
from runnel.graph.operation import Operation
from runnel.ops.sampling.philox import STREAM_WORDS
from runnel.passes.clusters.cluster import Segment
from runnel.passes.program.program import Node, Program
from runnel.runtime.compile.executable import CompileOptions, Executable
from runnel.runtime.devices.device_memory import require_memory
from runnel.runtime.devices.devices import xla_device
from runnel.runtime.interpret.code import Code, TracedCall
from runnel.runtime.interpret.segment_state import SegmentState
from runnel.runtime.segment.compile_cost import compile_cost

if TYPE_CHECKING:
    from runnel.runtime.compile.repetition import Repetition

logger = logging.getLogger("runnel")

_LARGE = 150
"""Nodes of a segment in which there may be equal blocks that are compiled once."""


class SegmentCompiler:
    """Compiles a segment of ``count`` nodes as ``options`` say; ``lower()`` gives its code.

    ``device_error(error)`` says what a device did wrong.
    """

    def __init__(
        self,
        program: Program,
        segment: Segment,
        count: int,
        options: CompileOptions,
        lower: Callable[[], Code],
        device_error: Callable[[Exception], errors.OpError],
    ) -> None:
        self._segment = segment
        self.options = options
        self._lower = lower
        self._device_error = device_error
        self._repetitions: list[Repetition] | None = None
        self._count = count
        self.expected_count = self._count
        """The nodes that XLA will see, as far as is known: of equal blocks it sees one."""
        if self._count >= _LARGE:
            infos = program.infos
            kinds = {(n.op_def, *[infos[v].dims for v in n.outputs]) for n in segment.nodes}
            self.expected_count = len(kinds)

    @cached_property
    def code(self) -> Code:
        """The instructions that are traced."""
        with collection_paused():
            return self._lower()

    @property
    def device_name(self) -> str:
        """The device, for messages."""
        device = self._segment.device
        return f"the {self.options.platform.upper()}" if device is None else device.name

    def traced_by(self, node: Node) -> TracedCall:
        """What ``node`` is traced by."""
        return next(i.call for i in self.code.instructions if i.node is node)

    def find_repetitions(self) -> bool:
        """Looks for equal blocks, so that :attr:`expected_count` is right; False if it has."""
        if self._repetitions is not None:
            return False
        from runnel.runtime.compile.gates import repetitions_in

        with collection_paused():
            self._repetitions = repetitions_in(self.code, self.options.platform)
        self.expected_count = self._count - sum(found.saved for found in self._repetitions)
        return True

    def executable(
        self,
        state: SegmentState,
        states: list[Any],
        inputs: list[Any],
        specialized: Collection[int],
        overwritten: list[Operation],
    ) -> Executable:
        """The segment for arrays like ``states`` and ``inputs``, as one call."""
        from runnel.runtime.compile import compiler

        state.require_values(states[: len(state.loads)])
        streams = None
        if state.streams:
            streams = np.zeros((len(state.streams), STREAM_WORDS), np.uint32)
        start = time.perf_counter()
        # The XLA device to compile for; None: the one that JAX takes by itself.
        pinned = None if self._segment.device is None else xla_device(self._segment.device)
        try:
            executable = compiler.compile_segment(
                self.code,
                states,
                streams,
                inputs,
                frozenset(specialized),
                self.options,
                pinned,
                overwritten,
                self._repetitions or (),
            )
        except RuntimeError as error:
            if "RESOURCE_EXHAUSTED" not in str(error):
                raise
            raise self._device_error(error) from error
        require_memory(executable.needed_bytes, pinned, self._segment.nodes, self.device_name)
        seconds = time.perf_counter() - start
        compile_cost.learn(self._count - executable.saved, seconds)
        logger.debug("compiled %d operations in %.2f s", len(self._segment.nodes), seconds)
        return executable
