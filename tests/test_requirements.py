"""The files in requirements/ say the same as pyproject.toml."""

import re
import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parent.parent


def _project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def _dependencies() -> dict[str, Requirement]:
    found = [Requirement(line) for line in _project()["project"]["dependencies"]]
    return {canonicalize_name(each.name): each for each in found}


def _pinned(name: str) -> dict[str, Version]:
    """The exact versions in a file of requirements."""
    found = {}
    for line in (ROOT / "requirements" / name).read_text().splitlines():
        if line and not line.startswith("#"):
            requirement = Requirement(line)
            (only,) = requirement.specifier
            assert only.operator == "==", line
            found[canonicalize_name(requirement.name)] = Version(only.version)
    return found


def test_the_oldest_versions_are_the_lower_limits_of_the_dependencies():
    oldest = _pinned("oldest.txt")
    for name, requirement in _dependencies().items():
        (limit,) = [each.version for each in requirement.specifier if each.operator == ">="]
        assert name in oldest, f"requirements/oldest.txt does not name {name}"
        assert oldest[name] == Version(limit), name
    # jaxlib is jax's own; the two are released together.
    assert oldest.keys() - _dependencies().keys() == {"jaxlib"}
    assert oldest["jaxlib"] == oldest["jax"]


def test_mypy_sees_supported_versions():
    dependencies = _dependencies()
    for name, pinned in _pinned("typed.txt").items():
        if name != "jaxlib":
            assert pinned in dependencies[name].specifier, name


def test_ruff_refuses_to_run_in_another_version_than_the_pinned_one():
    required = _project()["tool"]["ruff"]["required-version"]
    assert required == f"=={_pinned('lint.txt')['ruff']}"


def test_the_tools_check_for_the_oldest_python():
    project = _project()
    oldest = project["project"]["requires-python"].removeprefix(">=")
    assert project["tool"]["mypy"]["python_version"] == oldest
    assert project["tool"]["ruff"]["target-version"] == f"py{oldest.replace('.', '')}"


def _extra(name: str) -> set[str]:
    """The packages of an extra, also those of the extras that it names."""
    found: set[str] = set()
    for line in _project()["project"]["optional-dependencies"][name]:
        requirement = Requirement(line)
        if requirement.name == "runnel":
            found = found.union(*map(_extra, requirement.extras))
        else:
            found.add(canonicalize_name(requirement.name))
    return found


IMPORTED_AS = {"re2": "google-re2", "sklearn": "scikit-learn", "yaml": "pyyaml"}


def test_make_test_installs_whatever_a_test_is_skipped_without():
    installed = _extra("dev") | _extra("tested") | _dependencies().keys()
    makefile = (ROOT / "Makefile").read_text()
    assert "'.[dev]'" in makefile and "'.[tested]'" in makefile
    needed = re.compile(r'\bimportorskip\("(\w+)|\bfind_spec\("(\w+)"\) is None')
    for file in (ROOT / "tests").rglob("*.py"):
        if "conformance" not in file.parts and "benchmarks" not in file.parts:
            for module in map("".join, needed.findall(file.read_text())):
                package = canonicalize_name(IMPORTED_AS.get(module, module))
                assert package in installed, f"{file}: {module}"


@pytest.mark.parametrize("name", sorted(_dependencies()))
def test_what_is_installed_is_supported(name):
    try:
        installed = version(name)
    except PackageNotFoundError:
        pytest.skip("it is not installed here")
    assert installed in _dependencies()[name].specifier
