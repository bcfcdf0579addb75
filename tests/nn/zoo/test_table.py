"""docs/published.md and the list."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from vitnas.cli import app
from vitnas.nn.zoo import printed, zoo_names, zoo_text
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


READ: dict[str, dict[str, dict[str, str]]] = {
    "SReT, Table 5": {
        "plain": {
            "sret_star_t": "76.1", "sret_t": "76.0", "sret_star_tl": "76.8", "sret_tl": "76.7",
            "sret_star_s": "82.0", "sret_s": "81.9",
        },
        "distilled": {
            "sret_star_t": "77.7", "sret_t": "77.6", "sret_star_tl": "77.9", "sret_tl": "77.7",
            "sret_star_s": "82.8", "sret_s": "82.7", "sret_star_t_384": "79.7",
            "sret_t_384": "79.6", "sret_star_tl_384": "80.0", "sret_tl_384": "79.8",
            "sret_star_s_384": "83.8", "sret_s_512": "84.3", "sret_star_s_512": "84.3",
        },
    },
    "SReT, Table 7": {
        "plain": {
            "sret_star_t": "76.07", "sret_t_g8_8_4_4": "75.73", "sret_t_g16_2_4_2": "75.79",
            "sret_t": "75.97", "sret_star_tl": "76.78", "sret_tl_g8_8_4_4": "76.06",
            "sret_tl_g8_4_4_2": "76.16", "sret_tl": "76.65", "sret_tl_g8_1_4_1": "76.72",
            "sret_tl_g16_1_14_1": "76.56", "sret_tl_g49_1_28_1": "76.30",
        },
    },
    "SReT, Table 12": {
        "plain": {"sret_star_t": "76.1", "sret_star_tl": "76.8", "sret_star_s": "82.0"}
        | {"sret_b": "82.7", "sret_b_table12": "82.7"},
        "distilled": {"sret_star_t": "77.7", "sret_star_tl": "77.9", "sret_star_s": "82.8"}
        | {"sret_b": "83.7", "sret_b_table12": "83.7", "sret_star_t_384": "79.7"}
        | {"sret_star_tl_384": "80.0", "sret_star_s_384": "83.8"},
    },
    "DeepViT, Table 4": {
        "plain": {
            "vit_16b": "78.9", "deepvit_16b": "79.1", "vit_24b": "79.4", "deepvit_24b": "80.1",
            "vit_32b": "79.3", "deepvit_32b": "80.9",
        },
    },
    "DeepViT, Table 6": {
        "plain": {"deepvit_s": "81.4", "deepvit_l": "82.2"},
        "deit": {"deepvit_s": "82.3", "deepvit_l_420": "83.1", "deepvit_l_384": "84.3"},
    },
    "BViT, Tables II and III": {
        "plain": {"bvit_5m_w_v": "74.2", "bvit_5m_wo_v": "74.4", "bvit_5m": "75.0"}
        | {"bvit_22m": "81.6"},
    },
    "SKA, Table 2": {
        "plain": {
            "convformer_s18": "83.0", "caformer_s18": "83.3", "skaformer_s18": "82.3",
            "cskaformer_s18": "83.4", "caformer_b36": "85.5", "skaformer_b36": "83.9",
            "cskaformer_b36": "85.7",
        },
    },
    "SKA, Table 5": {
        "short": {
            "caformer_s18": "77.6", "caformer_s18_ska_stage1": "77.6", "skaformer_s18": "77.0",
            "caformer_s18_ska_stage3": "76.7", "cskaformer_s18": "77.8",
            "caformer_s18_cska_stage2": "77.4", "caformer_s18_cska_stage3": "76.7",
        },
    },
}  # fmt: skip
"""The papers' tables, read a second time, apart from `papers.yaml`: training -> name -> top-1."""


def test_every_printed_top1_is_what_the_papers_tables_say() -> None:
    """Table 7 of SReT has a digit more than its Table 5, which rounds the same trainings."""
    said = {
        (name, one.training): one.percent for name, entry in printed().items() for one in entry.top1
    }
    read = [
        (table, (name, training), figure)
        for table, trainings in READ.items()
        for training, figures in trainings.items()
        for name, figure in figures.items()
    ]
    assert {of for _, of, _ in read} == set(said), "each is read, and no more"
    far = [row for row in read if abs(float(said[row[1]]) - float(row[2])) > 0.0501]
    assert not far


def test_a_top1_has_its_table_and_its_training() -> None:
    (row,) = (line for line in published_page().splitlines() if line.startswith("| `sret_t` |"))
    assert "| 75.97 (Table 7); 77.6 distilled (Table 5) | 4.76 | 4.756 |" in row
    (row,) = (line for line in published_page().splitlines() if line.startswith("| `mixer_b16` |"))
    assert "| – | – | 59.880 |" in row, "its paper draws curves and prints no figure"


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
