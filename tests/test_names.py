"""One word for one thing: a name of a class means one class."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "runnel"

SHARED = {
    "LogicalDevice": "tf.config.experimental has TensorFlow's record of that name",
}
"""Names of several classes, each with the reason why it must be."""


NAMED_BY_TENSORFLOW = ("keras/", "contrib/learn/", "distributions/bijectors/")
"""Folders where TensorFlow has classes of its own under the names of its other namespaces."""


def _classes() -> dict[str, list[str]]:
    """The files that define a class of each public name."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.relative_to(PACKAGE).as_posix().startswith(NAMED_BY_TENSORFLOW):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(str(path.relative_to(PACKAGE)))
    return found


def test_no_two_classes_share_a_name():
    several = {name: files for name, files in _classes().items() if len(files) > 1}
    assert {n: files for n, files in several.items() if n not in SHARED} == {}
    assert several.keys() == SHARED.keys(), "an exception that is none any more"
