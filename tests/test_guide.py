"""The guide's programs run: the Python blocks of each page, in order, as one program."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import pytest

GUIDE = Path(__file__).parent.parent / "docs" / "guide"
PAGES = sorted(GUIDE.glob("*.md"))
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#:]+)\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_programs_of_a_page_run(page, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # where they leave their files
    namespace = {"__name__": f"guide_{page.stem.replace('-', '_')}"}
    text = page.read_text()
    blocks = list(BLOCK.finditer(text))
    assert blocks, f"{page.name} shows no program"
    for block in blocks:
        line = text[: block.start()].count("\n") + 1
        code = compile("\n" * line + block.group(1), str(page), "exec")
        exec(code, namespace)


@pytest.mark.parametrize(
    "page", [*PAGES, *GUIDE.parent.glob("*.md"), GUIDE.parent.parent / "README.md"], ids=str
)
def test_links_lead_somewhere(page):
    for target in LINK.findall(page.read_text()):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"
