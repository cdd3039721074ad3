"""A program of TensorFlow 1, run as it stands: ``runnel run SCRIPT``."""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path

import click

from runnel.tensorflow_name import imported_as_tensorflow


def run_program(program: str, arguments: tuple[str, ...], is_module: bool = False) -> None:
    """Runs a script, or a module, as ``python`` would, with runnel under TensorFlow's name too."""
    before = sys.argv, sys.path[:]
    sys.argv = [program, *arguments]
    sys.path.insert(0, os.getcwd() if is_module else str(Path(program).resolve().parent))
    try:
        with imported_as_tensorflow():
            if is_module:
                runpy.run_module(program, run_name="__main__", alter_sys=True)
            else:
                runpy.run_path(program, run_name="__main__")
    finally:
        sys.argv, sys.path[:] = before


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("-m", "is_module", is_flag=True, help="PROGRAM is the name of a module.")
@click.argument("program")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def run(is_module: bool, program: str, arguments: tuple[str, ...]) -> None:
    """Run PROGRAM with its ARGUMENTS: it and its libraries get runnel for `import tensorflow`."""
    if not is_module and not Path(program).is_file():
        raise click.BadParameter(
            f"there is no file {program!r}; -m runs a module", param_hint="PROGRAM"
        )
    run_program(program, arguments, is_module)
