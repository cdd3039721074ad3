"""XLA's executables on disk: loads a program that was compiled before, instead of compiling it.

The name of an entry is a checksum of everything that the executable depends on: the program in
StableHLO, XLA's options, the versions, the device, this machine's processor. The entry holds XLA's
own serialized form. JAX traces and lowers as always and makes the calls. Only when it asks a client
to compile, another client answers, which looks into the store first. JAX has no public name for the
place of that client: if it is not found, or not accepted, everything is compiled.

Whatever is known by another name than that of its program, such as a segment (``segment_key``), can
be found without lowering it: :func:`made` tells under which name it is kept, and :func:`loaded`
takes it.

Foreign functions are kept by their names; tracing the program registered them. So are callbacks on
a CPU, by their number: XLA gets those of this process with the program that it loads. Elsewhere a
program with callbacks is not kept.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import os
import platform
import re
import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax

from runnel.runtime.compile.entry_store import EntryStore, executables
from runnel.runtime.compile.source_checksum import packages_named, version_of
from runnel.runtime.state import at_exit
from runnel.threads import usable_cores

_FORM = "1"
"""Another where the meaning of an entry changes."""
_VARIABLES = ("XLA_FLAGS", "LIBTPU_INIT_ARGS", "NPROC", "PJRT_NPROC")
_PROCESSOR = (
    *("vendor_id", "cpu family", "model", "model name", "stepping", "flags"),
    *("CPU implementer", "CPU architecture", "CPU variant", "CPU part", "CPU revision", "Features"),
)
_FOREIGN = re.compile(r"custom_call @\"?([^\s\"(]+)")
_OF_XLA = frozenset({"annotate_device_placement", "mhlo.topk", "mhlo.erf"})
"""Custom calls that XLA's compiler itself replaces."""
counts: Counter[str] = Counter()
"""How many executables this process has "compiled" and "loaded"."""
_counting = threading.Lock()
logger = logging.getLogger("runnel")

at_exit.install()  # again: steps end before JAX, now imported, takes its devices down


class KeptProgram(NamedTuple):
    """What has to be known to load a program without having lowered it."""

    name: str
    """That of its entry."""
    operands: tuple[int, ...]
    """Those that it takes, of all: JAX leaves out what it does not use."""
    targets: tuple[str, ...]
    """The foreign functions that it calls."""


class Made(NamedTuple):
    """An executable, and how it is kept; None where it is not, or can only be loaded as here."""

    compiled: jax.stages.Compiled
    kept: KeptProgram | None = None


def compiled(lowered: jax.stages.Lowered) -> jax.stages.Compiled:
    """``lowered.compile()``, without XLA where the result was kept."""
    return made(lowered).compiled


def made(lowered: jax.stages.Lowered) -> Made:
    """:func:`compiled`, and how that is kept."""
    store = executables()
    arguments = _compile_arguments(lowered)
    if store is None or arguments is None:
        return _plainly_made(lowered)
    if arguments.get("keepalive"):  # the program has addresses of this process
        return _plainly_made(lowered)
    text = lowered.as_text()
    client = arguments["backend"]
    keeping = _KeepingClient(client, store, text)
    arguments["backend"] = keeping
    try:
        executable = lowered.compile()
        return Made(executable, _kept(lowered, arguments, keeping.kept_as, text))
    except Exception as error:
        if keeping.failed:
            raise
        logger.info("What is compiled is not kept: JAX %s: %s", jax.__version__, error)
    finally:
        arguments["backend"] = client
    return _plainly_made(lowered)


def loaded(lowered: jax.stages.Lowered, kept: KeptProgram) -> jax.stages.Compiled | None:
    """What is kept as ``kept``, called like ``lowered``; None where it cannot be had."""
    store = executables()
    arguments = _compile_arguments(lowered)
    if store is None or arguments is None:
        return None
    if _operands(lowered, arguments) != kept.operands:
        return None
    client = arguments["backend"]
    arguments["backend"] = _LoadingClient(client, store, kept.name)
    try:
        return lowered.compile()
    except Exception as error:  # noqa: BLE001 (whatever it is, tracing and compiling helps)
        logger.info("An executable that was kept cannot be loaded: %s", error)
        return None
    finally:
        arguments["backend"] = client


def _compile_arguments(lowered: jax.stages.Lowered) -> dict[str, Any] | None:
    arguments = getattr(getattr(lowered, "_lowering", None), "compile_args", None)
    return arguments if isinstance(arguments, dict) and "backend" in arguments else None


def _operands(lowered: jax.stages.Lowered, arguments: dict[str, Any]) -> tuple[int, ...] | None:
    """The operands that a program takes; None where it takes more than that, or it is not known."""
    lowering = lowered._lowering
    special = ("keepalive", "host_callbacks", "ordered_effects", "unordered_effects")
    if any(arguments.get(name, True) for name in special) or "kept_var_idx" not in arguments:
        return None
    if len(getattr(lowering, "const_args", (None,))):
        return None
    return tuple(sorted(arguments["kept_var_idx"]))


def _kept(
    lowered: jax.stages.Lowered, arguments: dict[str, Any], name: str | None, text: str
) -> KeptProgram | None:
    operands = _operands(lowered, arguments)
    if name is None or operands is None:
        return None
    targets = tuple(sorted(set(_FOREIGN.findall(text)) - _OF_XLA))
    return KeptProgram(name, operands, targets)


def _plainly_made(lowered: jax.stages.Lowered) -> Made:
    _count("compiled")
    return Made(lowered.compile())


def _count(what: str) -> None:
    with _counting:
        counts[what] += 1


class _Client:
    """XLA's client, in the place of which a subclass is asked to compile."""

    def __init__(self, client: Any, store: EntryStore) -> None:
        self._client = client
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def _read(self, name: str, devices: Any, options: Any, others: Mapping[str, Any]) -> Any:
        """The executable that is kept as ``name``; None where there is none that XLA can read."""
        try:
            content = self._store.read(name)
            if content is not None:
                logger.debug("The executable %s is loaded: it was compiled before", name)
                found = self._client.deserialize_executable(content, devices, options, **others)
                _count("loaded")
                return found
        except Exception as error:  # noqa: BLE001 (whatever it is, compiling helps)
            logger.info("An executable that was kept cannot be loaded: %s", error)
        return None


class _KeepingClient(_Client):
    """Looks into ``store`` for the program ``text`` first."""

    def __init__(self, client: Any, store: EntryStore, text: str) -> None:
        super().__init__(client, store)
        self._digest = hashlib.sha256(text.encode())
        self.failed = False
        """True when XLA could not compile the program."""
        self.kept_as: str | None = None
        """The name of the entry that the program has."""

    def compile_and_load(
        self, module: Any, executable_devices: Any, compile_options: Any, **others: Any
    ) -> Any:
        """What JAX calls; ``others`` are callbacks."""
        name = None
        if not others or self._client.platform == "cpu":
            name = self._name(executable_devices, compile_options)
            found = self._read(name, executable_devices, compile_options, others)
            if found is not None:
                self.kept_as = name
                return found
        _count("compiled")
        try:
            executable = self._client.compile_and_load(
                module,
                executable_devices=executable_devices,
                compile_options=compile_options,
                **others,
            )
        except Exception:
            self.failed = True
            raise
        if name is not None:
            try:
                self._store.write(name, executable.serialize())
                self.kept_as = name
            except Exception as error:  # noqa: BLE001 (not every device can)
                logger.info("What was compiled is not kept: %s", error)
        return executable

    def _name(self, devices: Iterable[Any], options: Any) -> str:
        digest = self._digest.copy()
        digest.update(options.SerializeAsString())
        for fact in surroundings(self._client, list(devices)):
            digest.update(b"\0" + fact.encode())
        return digest.hexdigest()


class _LoadingClient(_Client):
    """Takes the entry ``name`` for whatever it is to compile."""

    def __init__(self, client: Any, store: EntryStore, name: str) -> None:
        super().__init__(client, store)
        self._name = name

    def compile_and_load(
        self, module: Any, executable_devices: Any, compile_options: Any, **others: Any
    ) -> Any:
        """What JAX calls."""
        found = self._read(self._name, executable_devices, compile_options, others)
        if found is None:
            raise LookupError(f"the entry {self._name} is gone")
        return found


def surroundings(client: Any, devices: Sequence[Any]) -> list[str]:
    """What an executable depends on beside its program and XLA's options."""
    facts = [_FORM, jax.__version__, version_of("jaxlib")]
    facts += [client.platform, client.platform_version, *(d.device_kind for d in devices)]
    facts += [os.environ.get(variable, "") for variable in _VARIABLES]
    if client.platform == "cpu":
        facts += [processor(), str(usable_cores())]  # for so many threads XLA splits the work
    else:
        # The libraries of an accelerator (cuDNN among them) that came as packages.
        facts += packages_named("nvidia", "jax", "amd", "libtpu")
    return facts


@functools.cache
def processor() -> str:
    """This machine's processor: its model and what it can do."""
    facts = [platform.machine(), platform.processor()]
    try:
        first = Path("/proc/cpuinfo").read_text().partition("\n\n")[0]
    except OSError:
        return "\n".join(facts)
    return "\n".join(facts + [s for s in first.splitlines() if s.split("\t")[0] in _PROCESSOR])
