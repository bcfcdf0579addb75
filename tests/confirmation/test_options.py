"""What may be asked of a confirmation."""

from __future__ import annotations

from typing import Any

import pytest

from vitnas.confirmation.options import ConfirmOptions
from vitnas.errors import ConfigError


def test_the_defaults_are_valid() -> None:
    assert ConfirmOptions().networks == 3
    assert ConfirmOptions(trial=(4, 7)).trial == (4, 7)


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        ({"networks": 0}, "networks = 0"),
        ({"epochs": 0}, "epochs = 0"),
        ({"seeds": 101}, "seeds = 101"),
        ({"trial": (-1,)}, "trial: a trial's number is 0 or more"),
        ({"trial": ("x",)}, "trial"),
    ],
)
def test_a_wrong_value_is_one_line(values: dict[str, Any], rule: str) -> None:
    with pytest.raises(ConfigError, match=rule) as caught:
        ConfirmOptions(**values)
    assert "\n" not in str(caught.value)
