"""A network through `vitnas convert` and back, and whether it gives the scores of its code."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from torch import Tensor, nn

import vitnas
from vitnas.cli import main
from vitnas.config.data import DataConfig
from vitnas.deploy import check

BARE, RUNS = ("--formats", "none"), ("--formats", "py")
MHSA = {"token_mixer": "mhsa"}


def converted(
    code: nn.Module, layout: str, model: dict[str, Any] | str | None = None, *more: str
) -> nn.Module:
    """What `vitnas convert` makes of the code's checkpoint, loaded again.

    Without model.py, which `tests.exported` tests, unless `more` asks for it.
    """
    torch.save({"model": code.state_dict(), "epoch": 3}, "a.pth")
    options = ["--from", layout, "--to", "net", *BARE, *more]
    if isinstance(model, dict):
        Path("small.yaml").write_text(yaml.safe_dump(model))
        model = "small.yaml"
    options += ["--model", model] if model else []
    with pytest.raises(SystemExit) as ended:
        main(["convert", "a.pth", *options])
    assert ended.value.code == 0
    return vitnas.load("net")


def check_scores(
    code: nn.Module, ours: nn.Module, side: int, channels: int = 3, exact: float = 1e-9
) -> None:
    """Equal to 1e-5 as they are, and in double precision to `exact`: no epsilon is off."""
    images = torch.randn(2, channels, side, side, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        expected = code(images)
        assert expected.std() > 0.05  # else equal scores would say little
        torch.testing.assert_close(ours(images), expected, rtol=1e-5, atol=1e-5)
        found, wanted = ours.double()(images.double()), code.double()(images.double())
    torch.testing.assert_close(found, wanted, rtol=exact, atol=exact)


def check_where_it_will_run(code: nn.Module, mixer: str) -> None:
    """`vitnas deploy-check` of the folder; in int8 `mixer` keeps nearly all answers.

    Args:
        code: for ten classes of grey images.
    """
    pytest.importorskip("onnxruntime")
    converted(code, "ska_small")
    (one,) = check.deploy_check("net", DataConfig(), rounds=1).networks
    assert set(one.forms) == {"float", "int8", "fp16"}
    assert list(one.changed) == [mixer]
    assert one.changed[mixer] < 5


def refused(state: Mapping[str, Tensor], layout: str, *more: str, match: str = "") -> str:
    """The one line of `vitnas convert`, which ends with 2 and leaves nothing behind."""
    torch.save(dict(state), "a.pth")
    said = io.StringIO()
    with contextlib.redirect_stderr(said), pytest.raises(SystemExit) as ended:
        main(["convert", "a.pth", "--from", layout, "--to", "net", *BARE, *more])
    line = said.getvalue()
    assert (ended.value.code, line.count("\n"), Path("net").exists()) == (2, 1, False), line
    assert re.search(match, line), line
    return line
