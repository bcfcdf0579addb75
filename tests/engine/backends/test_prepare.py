"""Images are read once, whatever a back end is prepared for afterwards."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.engine.test_search import folder_space
from tests.training.conftest import fill_folder
from vitnas.config.trials import RandomTrial
from vitnas.engine.backends.backend import Backend
from vitnas.engine.backends.serial import SerialBackend
from vitnas.engine.batch.request import Request
from vitnas.errors import DataError
from vitnas.records import Outcome


def check_reads_once(backend: Backend, folder: Path) -> None:
    fill_folder(folder)
    space = folder_space(folder)
    first = backend.prepare(space)
    shutil.rmtree(folder)
    proxy = space.config.proxy.model_copy(update={"lr": 0.01})
    again = backend.prepare(space.with_proxy(proxy), 4)
    assert again.data == first.data
    assert len(again.baselines) == 4
    asked = Request(space.suggest(RandomTrial(0)), proxy, 0)
    assert [answer.outcome for _, answer in backend.answers([asked])] == [Outcome.COMPLETE]
    with pytest.raises(DataError):
        backend.prepare(folder_space(folder / "other"))


def test_this_process_reads_once(tmp_path: Path) -> None:
    check_reads_once(SerialBackend(0.0), tmp_path / "data")


@pytest.mark.slow
def test_ray_reads_once(shared_ray: Any, tmp_path: Path) -> None:
    from vitnas.engine.backends.parallel import RayBackend

    check_reads_once(RayBackend(1, 0.0, None), tmp_path / "data")
