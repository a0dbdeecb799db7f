"""Links within the project lead somewhere."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("*/*/README.md")]
PAGES = sorted(page for page in PAGES if "_run" not in page.parts)
TOP = {
    "start": "README",
    "start_ko": "README.ko",
    "results": "RESULTS",
    "design": "BUILD",
    "changelog": "CHANGELOG",
}
"""Pages of the site that are files of the top folder."""


def links(page):
    """(path, anchor) of every link of a page that leads to a file of ours."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    return re.findall(r"\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]+))?\)", text)


def anchors(page):
    """The names that GitHub and Sphinx give to a page's headings."""
    headings = re.findall(r"^#+ (.*)", page.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_link_leads_to_a_file_and_a_heading(page):
    for path, anchor in links(page):
        target = (page.parent / path).resolve() if path else page
        if target.parent == ROOT / "docs" and target.stem in TOP:
            target = ROOT / f"{TOP[target.stem]}.md"
        assert target.exists(), f"no file {path}"
        assert not anchor or anchor in anchors(target), f"{path} has no heading {anchor}"


def test_there_are_links_to_check():
    assert sum(len(links(page)) for page in PAGES) > 100
