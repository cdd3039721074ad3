"""Writes ``docs/tensorflow-names.md``: which of TensorFlow 1.15's public names runnel has.

The names were recorded by ``tools/record_tensorflow_names.py``. A test keeps the page true; after
adding a name run::

    python tools/list_names.py
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "tensorflow-names.md"
sys.path.insert(0, str(ROOT))

_START = """\
# TensorFlow 1.15's names

runnel has {present} of the {total} public names of TensorFlow 1.15. This page lists them by
namespace, first those that are there, then those that are not. `tools/list_names.py` writes it from
runnel itself and from a list that TensorFlow {version} gave.

Not counted are `tf.compat`, `tf.estimator`, `tf.keras`, `tf.raw_ops` (a function for each type of
operation that runnel has) and `tf.contrib`, of which runnel has
{contrib}.

| namespace | there | of |
|---|--:|--:|
"""


def recorded() -> tuple[str, list[str]]:
    """The version of TensorFlow, and its names."""
    first, *names = (ROOT / "tools" / "tensorflow_names.txt").read_text().splitlines()
    return first.rpartition(" ")[2], names


def exists(name: str) -> bool:
    """True when runnel has ``name``, such as ``tf.nn.relu``."""
    import runnel

    found: object = runnel
    for part in name.split(".")[1:]:
        try:
            found = getattr(found, part)
        except AttributeError:
            return False
    return True


def page() -> str:
    """The text of the page."""
    import runnel

    version, names = recorded()
    by_namespace: dict[str, list[str]] = {}
    for name in names:
        by_namespace.setdefault(name.rpartition(".")[0], []).append(name)
    there = {name for name in names if exists(name)}
    order = sorted(by_namespace, key=lambda namespace: (namespace != "tf", namespace))
    contrib = ", ".join(f"`tf.contrib.{name}`" for name in dir(runnel.contrib))
    text = _START.format(
        present=len(there),
        total=len(names),
        version=version,
        contrib=contrib,
    )
    for namespace in order:
        members = by_namespace[namespace]
        text += f"| `{namespace}` | {len(there.intersection(members))} | {len(members)} |\n"
    for namespace in order:
        members = by_namespace[namespace]
        text += f"\n## `{namespace}`\n"
        text += _listed("There", [n for n in members if n in there])
        text += _listed("Not there", [n for n in members if n not in there])
    return text


def _listed(title: str, names: Iterable[str]) -> str:
    short = [f"`{name.rpartition('.')[2]}`" for name in names]
    if not short:
        return ""
    lines, line = [], f"{title}:"
    for name in short:
        if len(line) + len(name) + 1 > 100:
            lines.append(line)
            line = name
        else:
            line += f" {name}"
    return "\n" + "\n".join([*lines, line]) + "\n"


def main() -> None:
    """Writes the page."""
    PAGE.write_text(page())
    print(f"wrote {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
