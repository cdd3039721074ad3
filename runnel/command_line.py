"""The command ``runnel``."""

from __future__ import annotations

from importlib import import_module

import click

_MODULES = {
    "board": "runnel.board",
    "cache": "runnel.cache_commands",
    "cluster": "runnel.cluster_commands",
    "inspect": "runnel.inspect_checkpoint",
    "kubernetes": "runnel.launch_commands",
    "profile": "runnel.profile_script",
    "run": "runnel.run_script",
    "server": "runnel.cluster_commands",
    "up": "runnel.launch_commands",
}


class _Commands(click.Group):
    """Loads the module of a command when that is called: each starts without what others need."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _MODULES:
            return None
        found = getattr(import_module(_MODULES[cmd_name]), cmd_name)
        assert isinstance(found, click.Command)
        return found


@click.command(cls=_Commands)
def main() -> None:
    """Dataflow graphs with mutable state, compiled by XLA."""
