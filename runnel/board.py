"""TensorBoard on a folder of event files: ``runnel board LOGDIR``."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("logdir", type=click.Path(exists=True, file_okay=False))
@click.option("--host", default="localhost", show_default=True, help="Who may see it.")
@click.option("--port", default=6006, show_default=True, help="0 takes a free one.")
def board(logdir: str, host: str, port: int) -> None:
    """Show the event files in LOGDIR, and those that appear there, in a browser."""
    from tensorboard import default, program

    runs = {path.parent for path in Path(logdir).rglob("*.tfevents.*")}
    if runs:
        click.echo(f"{len(runs)} run{'s' if len(runs) > 1 else ''} in {logdir}", err=True)
    else:
        click.echo(f"{logdir} has no event file yet; tf.summary.FileWriter writes some", err=True)
    server = program.TensorBoard(default.get_plugins())
    options = ["--logdir", logdir, "--host", host, "--port", str(port)]
    server.configure(argv=["runnel board", *options])
    raise SystemExit(server.main())
