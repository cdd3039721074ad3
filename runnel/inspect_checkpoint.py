"""What is in a checkpoint, for people: ``runnel inspect CKPT``."""

from __future__ import annotations

import os
import sys
from math import prod

import click
import numpy as np

from runnel.checkpoint.reading import CheckpointReader, open_checkpoint
from runnel.graph.errors import OpError
from runnel.runtime.devices.device_memory import readable_size
from runnel.train.checkpoint_state import latest_checkpoint


@click.command()
@click.argument("checkpoint", type=click.Path())
@click.option("--tensor", "names", multiple=True, help="Show the values of this one, too.")
@click.option("--verify", is_flag=True, help="Read everything, and check it.")
def inspect(checkpoint: str, names: tuple[str, ...], verify: bool) -> None:
    """Show what is in CHECKPOINT: its prefix, or a folder, whose latest it is."""
    prefix = checkpoint
    if os.path.isdir(checkpoint):
        found = latest_checkpoint(checkpoint)
        if found is None:
            raise click.ClickException(f"{checkpoint} has no checkpoint")
        prefix = found
    try:
        reader = open_checkpoint(prefix.removesuffix(".index"))
        _show(reader, prefix)
        for name in names:
            text = np.array2string(reader.tensor(name), threshold=100)
            click.echo(f"\n{name} =\n{text}")
        if verify:
            _verify(reader)
    except OpError as error:
        raise click.ClickException(error.message) from None


def _show(reader: CheckpointReader, prefix: str) -> None:
    rows, elements, size = [], 0, 0
    for name in reader.names():
        dtype, shape = reader.type_and_shape(name)
        rows.append((name, dtype.name, str(list(shape))))
        elements += prod(shape)
        size += prod(shape) * dtype.size
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(2)]
    click.echo(f"{prefix}: {len(rows)} tensors, {elements:,} elements, {readable_size(size)}")
    for name, kind, sizes in rows:
        click.echo(f"{name:<{widths[0]}}  {kind:<{widths[1]}}  {sizes}")


def _verify(reader: CheckpointReader) -> None:
    names = reader.names()
    errors = sys.stderr
    with click.progressbar(names, label="checking", file=errors) as bar:
        for name in bar:
            reader.tensor(name)
    click.echo(f"all {len(names)} tensors are as they were written")
