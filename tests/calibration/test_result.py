"""The stored form: written, read, refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.calibration.made_up import judged
from vitnas.calibration.result import FILE_NAME, read_calibration
from vitnas.errors import RunError


def test_what_is_written_is_read(tmp_path: Path) -> None:
    found = judged()
    (tmp_path / FILE_NAME).write_text(found.model_dump_json())
    assert read_calibration(tmp_path) == found
    assert found.best_size.kind == "size"
    assert found.beats_size == (found.figures(found.cheapest).kind != "size")


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (None, "no calibration (calibration.json: "),
        ("{", "calibration.json: Invalid JSON: "),
        ('{"format": 2}', "calibration.json: format = 2: should be 1"),
    ],
)
def test_what_is_no_calibration_is_one_line(tmp_path: Path, content: str | None, line: str) -> None:
    if content is not None:
        (tmp_path / FILE_NAME).write_text(content)
    with pytest.raises(RunError) as caught:
        read_calibration(tmp_path)
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)


def without(**matching: str) -> str:
    """A calibration without the proxies of a name or kind."""
    found = judged()
    ((field, value),) = matching.items()
    kept = tuple(one for one in found.proxies if getattr(one, field) != value)
    return found.model_copy(update={"proxies": kept}).model_dump_json()


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (
            without(name="proxy"),
            "calibration.json: proxies.name = ['FLOPs', 'parameters', 'naswot', ",
        ),
        (
            without(kind="size"),
            "proxies.kind = ['score', 'first epoch', 'cut', 'training', 'likelihood',...: one must "
            "be of the kind 'size'",
        ),
        (
            judged().model_copy(update={"best": "proxi"}).model_dump_json(),
            "calibration.json: best = 'proxi': must be the name of one of the proxies (nearest: ",
        ),
        (
            judged().model_copy(update={"cheapest": "?"}).model_dump_json(),
            "calibration.json: cheapest = '?': must be the name of one of the proxies",
        ),
        (
            judged().model_copy(update={"long_epochs": "many"}).model_dump_json(warnings=False),
            "calibration.json: long_epochs = 'many': should be a whole number",
        ),
    ],
    ids=["no proxy", "no size", "best", "cheapest", "long epochs"],
)
def test_a_damaged_calibration_is_one_line_with_address_value_and_rule(
    tmp_path: Path, content: str, line: str
) -> None:
    (tmp_path / FILE_NAME).write_text(content)
    with pytest.raises(RunError) as caught:
        read_calibration(tmp_path)
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)
