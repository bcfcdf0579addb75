"""The evolution of the learnable residual coefficients."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.diagnose.networks import MHSA, network
from vitnas.diagnose.coefficients import (
    KEY,
    Coefficient,
    coefficient,
    evolution,
    evolution_finding,
    read_log,
)
from vitnas.errors import DataError, VitnasError
from vitnas.nn.layers.residual import residual_scales

RECURSIVE = MHSA | {"depth": 2, "groups": [1, 1], "nll_ratio": 1.0}


def test_every_coefficient_of_a_network_has_its_place() -> None:
    model = network(MHSA | {"embed_dim": 8}, RECURSIVE, residual="lrc", stem={"stride": 1})
    found = {name: coefficient(name) for name in residual_scales(model)}
    assert None not in found.values()
    assert len(set(found.values())) == len(found)


def test_names_are_blocks_sites_and_what_is_multiplied() -> None:
    parse = coefficient
    assert parse("stages.0.blocks.1.residual1.branch") == Coefficient("1.2", "mixer", "branch")
    assert parse("stages.1.blocks.0.block.residual2.identity") == Coefficient(
        "2.1", "mlp", "identity"
    )
    assert parse("stages.1.blocks.0.nlls.1.residual.branch") == Coefficient(
        "2.1", "nll 2", "branch"
    )
    assert parse("head.classifier.weight") is None


def write_log(folder: Path, epochs: int, names: dict[str, float]) -> Path:
    lines = [
        {"epoch": epoch, "loss": 1.0, KEY: dict.fromkeys(names, 1 + 0.1 * epoch)}
        for epoch in range(1, epochs + 1)
    ]
    path = folder / "log.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_curves_are_read_from_the_log_and_drawn(tmp_path: Path) -> None:
    model = network(RECURSIVE, residual="lrc")
    log = write_log(tmp_path, 3, residual_scales(model))
    curves = evolution(read_log(log))
    assert curves[Coefficient("1.1", "nll 1", "branch")] == pytest.approx([1.1, 1.2, 1.3])
    found = evolution_finding(model, log)
    assert found.numbers["epochs"] == [1, 2, 3]
    assert found.numbers["blocks"]["1.2"]["mixer"]["identity"] == [1.1, 1.2, 1.3]
    assert found.figure is not None
    assert found.summary == "after epoch 3 the branches have 1.30 to 1.30"


@pytest.mark.slow
def test_coefficients_of_identities_alone_are_drawn(tmp_path: Path) -> None:
    model = network(RECURSIVE, residual="lrc_identity")
    found = evolution_finding(model, write_log(tmp_path, 3, residual_scales(model)))
    assert set(found.numbers["blocks"]["1.2"]["mixer"]) == {"identity"}
    assert found.summary == "after epoch 3 the identities have 1.30 to 1.30"


def test_lines_without_coefficients_are_passed_over(tmp_path: Path) -> None:
    model = network(RECURSIVE, residual="lrc")
    log = tmp_path / "log.jsonl"
    log.write_text('{"epoch": 1, "loss": 2.0}\n\n')
    with pytest.raises(VitnasError, match="has no coefficients"):
        evolution_finding(model, log)
    with pytest.raises(VitnasError, match="there is no training log"):
        evolution_finding(model, None)


def test_a_network_without_learnable_residuals_says_so(tmp_path: Path) -> None:
    with pytest.raises(VitnasError, match="no residual of this network is learnable"):
        evolution_finding(network(MHSA), None)


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[1]",
        "{}",
        '{"epoch": 1, "residual_scales": {"a": "x"}}',
        '{"epoch": "1"}',
        "[" * 100_000,
    ],
    ids=str.__len__,
)
def test_a_damaged_log_is_told_by_its_line(tmp_path: Path, line: str) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text('{"epoch": 1}\n' + line + "\n")
    with pytest.raises(DataError, match=r"log\.jsonl: line 2: "):
        read_log(log)


def test_a_log_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        read_log(tmp_path / "none.jsonl")
