"""``runnel cache``: what is kept on disk."""

from __future__ import annotations

import click

from runnel.native.build import kept_libraries
from runnel.native.cache_folder import UnusableFolder, cache_folder, cache_path
from runnel.runtime.compile.entry_store import (
    RECORD,
    EntryStore,
    KeptEntry,
    executables_path,
    size_limit,
)
from runnel.runtime.devices.device_memory import readable_size


@click.group(invoke_without_command=True)
@click.pass_context
def cache(context: click.Context) -> None:
    """Show what runnel has compiled and kept for later processes."""
    if context.invoked_subcommand is not None:
        return
    store = _store()
    entries = store.entries()
    size = readable_size(sum(entry.size for entry in entries))
    limit = f"at most {readable_size(store.limit)}" if store.limit else "nothing is kept"
    click.echo(f"folder       {cache_path()}")
    click.echo(f"executables  {_executables(entries)}, {size}; {limit}")
    sizes = [path.stat().st_size for path in kept_libraries()]
    click.echo(f"libraries    {len(sizes)}, {readable_size(sum(sizes))}")
    try:
        if cache_path().exists():
            cache_folder()
    except UnusableFolder as error:
        click.echo(f"not used: {error}")


@cache.command()
def clear() -> None:
    """Remove all of it."""
    store = _store()
    entries, libraries = store.entries(), kept_libraries()
    size = sum(e.size for e in entries) + sum(path.stat().st_size for path in libraries)
    try:
        store.clear()
        for path in libraries:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise click.ClickException(f"not everything could be removed: {error}") from error
    what = f"{_executables(entries)} executables and {len(libraries)} libraries"
    click.echo(f"removed {what}, {readable_size(size)}")


def _executables(entries: list[KeptEntry]) -> int:
    """How many of ``entries`` are executables."""
    return sum(not entry.path.name.startswith(RECORD) for entry in entries)


def _store() -> EntryStore:
    """The executables that are kept, whether more may be or not."""
    try:
        return EntryStore(executables_path(), size_limit())
    except ValueError as error:
        raise click.ClickException(str(error)) from error
