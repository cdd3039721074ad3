"""The order of imports: each folder imports only from those before it in docs/architecture.md."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "runnel"
PAGE = ROOT / "docs" / "architecture.md"

GROUPED = ("ops", "passes", "runtime")
"""Folders whose own folders stand in the order by themselves."""
TABLED = ("passes", "runtime")
"""Folders of which the page lists every file."""

ALLOWED: dict[tuple[str, str], str] = {}
"""Imports against the order, module by module, each with the reason why it must be."""

NAMES = re.compile(r"`([\w/]+(?:/|\.py))`")


def _order() -> list[str]:
    """What the headings of the page, and its list of files that lie in no folder, name in turn."""
    found: list[str] = []
    for line in PAGE.read_text().splitlines():
        if re.match(r"#{2,3} |- `", line):
            found.append(line)
        elif found and found[-1].startswith("- ") and line.startswith("  "):
            found[-1] += line
    # What comes after the colon explains.
    return [name for text in found for name in NAMES.findall(text.partition(": ")[0])]


def _modules() -> dict[str, Path]:
    """Every module of runnel by its dotted name."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = _modules()


def _place(module: str) -> str:
    """The entry of the order that ``module`` belongs to."""
    folders = MODULES[module].relative_to(PACKAGE).parts[:-1]
    if not folders:
        return MODULES[module].name
    depth = 2 if folders[0] in GROUPED else 1
    return "/".join(folders[:depth]) + "/"


def _imported(module: str) -> set[str]:
    """The modules of runnel that ``module`` imports, in functions and for type checks too."""
    found = set()
    for node in ast.walk(ast.parse(MODULES[module].read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name in MODULES}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} has a relative import"
            for alias in node.names:
                inside = f"{node.module}.{alias.name}"
                name = inside if inside in MODULES else node.module
                if name in MODULES:
                    found.add(name)
    return found


def test_the_page_has_every_folder_once():
    order = _order()
    assert len(set(order)) == len(order)
    assert set(order) == {_place(module) for module in MODULES}


@pytest.mark.parametrize("place", sorted({_place(module) for module in MODULES}))
def test_a_folder_imports_only_from_those_before_it(place):
    order = _order()
    before = set(order[: order.index(place) + 1])
    against = {
        (module, other)
        for module in MODULES
        if _place(module) == place
        for other in _imported(module)
        if _place(other) not in before
    }
    assert against <= ALLOWED.keys()


def test_every_exception_is_one():
    order = _order()
    for (module, other), reason in ALLOWED.items():
        assert reason
        assert other in _imported(module)
        assert order.index(_place(module)) < order.index(_place(other))


def _files_in(place: str) -> set[str]:
    """The files that the section of a folder has in its tables."""
    sections = re.split(r"^#{2,3} ", PAGE.read_text(), flags=re.MULTILINE)
    (text,) = [section for section in sections if section.startswith(f"`{place}`")]
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    return set(re.findall(r"`(\w+\.py)`", " ".join(rows)))


@pytest.mark.parametrize(
    "place", [place for place in _order() if place.startswith(TABLED) and place.count("/") > 1]
)
def test_the_page_lists_the_files_of_a_folder(place):
    assert _files_in(place) == {path.name for path in (PACKAGE / place).glob("[!_]*.py")}
