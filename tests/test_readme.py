"""What the README tells people to write works as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from vitnas.api import load_space
from vitnas.cli import main
from vitnas.cost.survey import survey

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()


@pytest.fixture
def own_space(tmp_path: Path) -> Path:
    """The README's space for somebody's own images."""
    (text,) = re.findall(r"```yaml\n(name: my_space\n.*?)```", README, flags=re.DOTALL)
    file = tmp_path / "my_space.yaml"
    file.write_text(text)
    return file


def test_most_networks_of_the_own_space_meet_its_limits(own_space: Path) -> None:
    found = survey(load_space(own_space), draws=400)
    assert found.within > 0.75
    assert found.problems == ()
    assert found.flops[1] > 3 * found.flops[0], "a front needs room"


@pytest.mark.slow
def test_the_own_space_is_described_without_its_images(
    own_space: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["space", str(own_space)])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("my_space")


PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("results/*.md")])


def _anchors(page: Path) -> set[str]:
    """Headings as GitHub links to them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_what_a_page_links_to_is_there(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if ":" in link:
            continue  # on the web
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        assert target.exists(), link
        assert not anchor or anchor in _anchors(target), link


def test_the_index_of_the_documentation_has_every_page() -> None:
    index = (ROOT / "docs/README.md").read_text()
    named = set(re.findall(r"\]\((\w+\.\w+)\)", index))
    pages = {page.name for suffix in ("md", "ipynb") for page in ROOT.glob(f"docs/*.{suffix}")}
    assert named == pages - {"README.md"}
