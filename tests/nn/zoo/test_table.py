"""docs/published.md and the list."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from vitnas.cli import app
from vitnas.nn.zoo import zoo_names, zoo_text
from vitnas.nn.zoo.table import agrees, published_page, zoo_list

PAGE = Path(__file__).resolve().parents[3] / "docs" / "published.md"


def test_the_page_is_current() -> None:
    assert PAGE.read_text() == published_page(), "vitnas zoo --table > docs/published.md"


@pytest.mark.parametrize(
    ("figure", "built", "same"),
    [
        ("4.8", 4.756, True),
        ("4.8", 4.69, False),
        ("1.38", 1.3749, True),
        ("1.01", 1.087, False),
        ("55", 55.636, True),
        ("55", 56.1, False),
        (None, 1.0, True),
    ],
)
def test_agrees_within_one_in_the_last_digit(figure: str, built: float, same: bool) -> None:
    assert agrees(figure, built) is same


@pytest.mark.slow
def test_command() -> None:
    def said(*arguments: str) -> str:
        result = CliRunner().invoke(app, ["zoo", *arguments])
        assert result.exit_code == 0, result.output
        return result.stdout

    assert said() == zoo_list() + "\n"
    assert all(f"\n{name} " in said() for name in zoo_names())
    assert said("--table") == published_page()
    assert said("sret_t") == zoo_text("sret_t")
