"""One network from Python: what is wrong is said in one line before anything is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vitnas import api
from vitnas.errors import ConfigError, RunError, VitnasError
from vitnas.run import Run


@pytest.mark.parametrize("options", [{}, {"trial": 3}, {"baseline": "vgg"}])
def test_a_training_is_of_a_model_or_of_a_run_s_network(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    with pytest.raises(ConfigError, match="name a MODEL to train, or a network of a run by --for"):
        api.train(None, tmp_path / "to", **options)
    assert not (tmp_path / "to").exists()


def test_a_model_alone_has_no_images_to_be_looked_into_with(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--data: is required: a data set, a folder or a space"):
        api.diagnose("sret_t", out=tmp_path / "to")
    assert not (tmp_path / "to").exists()


def test_a_folder_without_a_run_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"no study\.db in it, so it is not a run of vitnas"):
        api.export(str(tmp_path), tmp_path / "to", knee=True)
    with pytest.raises(RunError, match=r"no study\.db in it, so it is not a run of vitnas"):
        api.train(None, tmp_path / "to", run=str(tmp_path), trial=0)


@pytest.mark.slow
def test_a_run_is_given_as_itself_or_by_its_folder(searched: Run, tmp_path: Path) -> None:
    number = searched.front[0].number
    given: tuple[Run | str | Path, ...] = (searched, searched.path, str(searched.path))
    for place, run in enumerate(given):
        api.export(run, tmp_path / str(place), trial=number)
        with pytest.raises(VitnasError, match=f"{searched.path}: there is no trial 99"):
            api.deploy_check(run, trials=[99])
        with pytest.raises(VitnasError, match=f"{searched.path}: there is no trial 99"):
            api.confirm(run, trial=(99,))
    first, *others = ((tmp_path / str(place) / "config.yaml").read_text() for place in range(3))
    assert others == [first, first]


@pytest.mark.slow
def test_a_network_of_a_run_has_weights_of_its_own(searched: Run, tmp_path: Path) -> None:
    number, to = searched.front[0].number, tmp_path / "to"
    with pytest.raises(
        VitnasError, match="network of a run has its own weights; leave --weights out"
    ):
        api.diagnose(searched.path, trial=number, weights="w.safetensors", out=to)
    assert not to.exists()
