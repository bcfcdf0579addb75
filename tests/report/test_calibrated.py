"""A run that is told of a calibration keeps it, and its report says what it found."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.calibration.made_up import DATA, SPACE, judged
from tests.report.runs import run_of, trial
from vitnas.calibration.result import FILE_NAME
from vitnas.calibration.write import write_calibration
from vitnas.errors import RunError
from vitnas.report.calibrated import adopt, calibration_of
from vitnas.report.caveats import sentences
from vitnas.report.trust import assess
from vitnas.run import Run


def calibrated_run(path: Path, fingerprint: str = "a", name: str = "digits") -> Run:
    data = DATA.told() | {"fingerprint": {"train": fingerprint}, "name": name}
    trials = [trial(number, 50.0 + number, 10 ** (5 + number)) for number in range(4)]
    path.mkdir(exist_ok=True)
    return run_of(path, *trials, space=SPACE.to_tree(), environment={"data": data})


@pytest.mark.slow
def test_the_trust_card_tells_what_the_calibration_found(tmp_path: Path) -> None:
    run = calibrated_run(tmp_path / "run")
    assert "`vitnas calibrate` measures it" in " ".join(sentences(assess(run)))
    found = judged()
    (tmp_path / "c").mkdir()
    write_calibration(found, tmp_path / "c")
    adopt(run, tmp_path / "c")
    assert calibration_of(run) == found
    text = " ".join(sentences(assess(run)))
    assert "A calibration on 16 networks of this space" in text
    assert f"tau is {found.figures('proxy').overall.value:.2f} (" in text
    assert "`vitnas calibrate` measures it" not in text


def test_a_calibration_of_something_else_is_refused_and_not_used(tmp_path: Path) -> None:
    (tmp_path / "c").mkdir()
    write_calibration(judged(), tmp_path / "c")
    others = calibrated_run(tmp_path / "run", fingerprint="b")
    with pytest.raises(
        RunError, match=r"must calibrate the space of .*; the images' fingerprint differs"
    ):
        adopt(others, tmp_path / "c")
    assert not (others.path / FILE_NAME).exists()
    (others.path / FILE_NAME).write_bytes((tmp_path / "c" / FILE_NAME).read_bytes())
    assert calibration_of(others) is None
    with pytest.raises(RunError, match="no calibration"):
        adopt(others, tmp_path / "nowhere")
