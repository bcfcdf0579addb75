"""The options of a calibration are declared like a search's."""

from __future__ import annotations

import pytest

from vitnas.calibration.options import CalibrationOptions
from vitnas.engine.declare import check, declared
from vitnas.errors import ConfigError


def test_options_are_checked_by_name_and_value() -> None:
    assert set(declared(CalibrationOptions)) >= {"networks", "long_epochs", "seeds", "workers"}
    assert "networks: Networks to train" in (CalibrationOptions.__doc__ or "")
    with pytest.raises(ConfigError, match=r"netwoks.*there is no such option"):
        check(CalibrationOptions, {"netwoks": 5})
    with pytest.raises(ConfigError, match="backend"):
        CalibrationOptions(backend="slurm")  # type: ignore[arg-type]
