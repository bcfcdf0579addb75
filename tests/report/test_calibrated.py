"""A run that is told of a calibration keeps it, and its report says what it found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.calibration.made_up import DATA, SPACE, judged
from tests.report.runs import run_of, trial
from vitnas.calibration.result import FILE_NAME, Calibration
from vitnas.calibration.write import write_calibration
from vitnas.errors import RunError
from vitnas.report.calibrated import adopt, calibration_of
from vitnas.report.caveats import sentences
from vitnas.report.trust import assess
from vitnas.run import Run


def calibrated_run(path: Path, fingerprint: str = "a", trials: int = 4, **space: Any) -> Run:
    data = DATA.told() | {"fingerprint": {"train": fingerprint}, "name": "digits"}
    some = [trial(number, 50.0 + number, 10 ** (5 + number)) for number in range(trials)]
    path.mkdir(exist_ok=True)
    return run_of(path, *some, space=SPACE.to_tree() | space, environment={"data": data})


def written(folder: Path, found: Calibration) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / FILE_NAME).write_text(found.model_dump_json())
    return folder


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


def test_the_trust_card_tells_of_a_calibration_where_the_run_has_no_taus(tmp_path: Path) -> None:
    run = calibrated_run(tmp_path / "run", trials=2)
    adopt(run, written(tmp_path / "c", judged()))
    text = " ".join(sentences(assess(run)))
    assert "2 complete trials cannot show how stable" in text
    assert "A calibration on 16 networks of this space" in text


def test_a_damaged_calibration_is_not_copied_and_no_report_stops_at_one(tmp_path: Path) -> None:
    run, found = calibrated_run(tmp_path / "run"), judged()
    sizes = tuple(one for one in found.proxies if one.kind == "size")
    damaged = found.model_copy(update={"proxies": sizes})
    with pytest.raises(RunError, match=r"proxies\.name = .*: one must have the name 'proxy'"):
        adopt(run, written(tmp_path / "c", damaged))
    assert not (run.path / FILE_NAME).exists()
    tree = json.loads((written(tmp_path / "c", found) / FILE_NAME).read_text())
    tree["data"]["fingerprint"] = [1]
    (tmp_path / "c" / FILE_NAME).write_text(json.dumps(tree))
    with pytest.raises(RunError, match=r"data\.fingerprint = \[1\]: should be an object"):
        adopt(run, tmp_path / "c")
    written(run.path, damaged)
    text = " ".join(sentences(assess(run)))
    assert f"The calibration in this folder is not used: {run.path / FILE_NAME}: proxies" in text
    adopt(run, written(tmp_path / "c", found))
    assert "is not used" not in " ".join(sentences(assess(run)))


def test_a_tuned_run_is_told_which_space_to_calibrate(tmp_path: Path) -> None:
    run = calibrated_run(tmp_path / "run", proxy=SPACE.to_tree()["proxy"] | {"lr": 0.0125})
    with pytest.raises(RunError) as caught:
        adopt(run, written(tmp_path / "c", judged()))
    assert str(caught.value) == (
        f"{tmp_path / 'c' / FILE_NAME}: must calibrate the space of {run.path}; proxy differs; "
        f"`vitnas calibrate {run.path / 'space.yaml'} --out DIR` calibrates it"
    )


def test_a_calibration_of_something_else_is_refused_and_not_used(tmp_path: Path) -> None:
    written(tmp_path / "c", judged())
    others = calibrated_run(tmp_path / "run", fingerprint="b")
    with pytest.raises(
        RunError, match=r"must calibrate the space of .*; the images' fingerprint differs"
    ):
        adopt(others, tmp_path / "c")
    assert not (others.path / FILE_NAME).exists()
    (others.path / FILE_NAME).write_bytes((tmp_path / "c" / FILE_NAME).read_bytes())
    with pytest.raises(RunError, match="fingerprint differs"):
        calibration_of(others)
    assert "fingerprint differs." in " ".join(sentences(assess(others)))
    with pytest.raises(RunError, match="no calibration"):
        adopt(others, tmp_path / "nowhere")
