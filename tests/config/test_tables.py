"""The tables of fields: current on their pages, and every field is described."""

from __future__ import annotations

import pytest
from pydantic import BaseModel

from vitnas.config.model import ModelConfig
from vitnas.config.recipe import Recipe
from vitnas.config.space import SpaceConfig, shipped_spaces
from vitnas.config.tables import END, fields_of, fields_page, start_of


@pytest.mark.parametrize("kind", ["space", "model", "recipe"])
def test_the_tables_of_fields_are_current(kind: str) -> None:
    """Between the two comments stands what `vitnas schema fields` prints."""
    folder = next(iter(shipped_spaces().values())).parent
    name = "docs/training.md" if kind == "recipe" else "space/README.md"
    page = (folder.parent / name).read_text()
    start = page.index(start_of(kind))
    assert page[start : page.index(END, start)] + END + "\n" == fields_of(kind)
    assert fields_of(kind) in fields_page()


@pytest.mark.parametrize("of", [SpaceConfig, ModelConfig, Recipe])
def test_every_field_is_described(of: type[BaseModel]) -> None:
    schema = of.model_json_schema()
    for part in (schema, *schema["$defs"].values()):
        for name, field in part["properties"].items():
            assert field.get("description"), f"{part.get('title')}.{name}"


@pytest.mark.parametrize("kind", ["space", "model", "recipe"])
def test_a_table_is_one_in_markdown(kind: str) -> None:
    """All rows of a table have as many cells as its head."""
    tables = fields_of(kind).split("### ")[1:]
    assert len(tables) > 1 or kind == "recipe"
    for table in tables:
        head, line, *rows = [row for row in table.splitlines() if row.startswith("|")]
        assert rows
        assert {row.count(" | ") for row in rows} == {head.count(" | ")}
        assert line == "|" + "---|" * (head.count(" | ") + 1)


@pytest.mark.parametrize(
    ("kind", "row"),
    [
        ("model", "| `depth` | whole number from 1 to 1 000 000 | `1` | always | "),
        ("model", "| `norm_eps` | number above 0 to 1 | `1.0e-6` | "),
        ("model", "| `reattention_blocks` | whole number from 0 | `0` | the last stage with "),
        ("model", "| `stem` |  |  | always | "),
        ("space", "| `name` | text | required | "),
        ("space", "| `augment` | `auto`, `none`, "),
    ],
)
def test_a_field_has_its_range_and_its_default(kind: str, row: str) -> None:
    assert any(line.startswith(row) for line in fields_of(kind).splitlines())
