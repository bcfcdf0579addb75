"""Images are read once, whatever a back end is prepared for afterwards."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.engine.conftest import make_space
from tests.engine.test_search import folder_space
from tests.training.conftest import fill_folder
from vitnas.config.baseline import Baseline, PricedBaseline
from vitnas.config.data import DataConfig
from vitnas.config.trials import RandomTrial
from vitnas.data import imagefolder
from vitnas.data.listing import Folder, list_folder
from vitnas.engine.backends import prepare
from vitnas.engine.backends.backend import Backend
from vitnas.engine.backends.prepare import prepare_worker
from vitnas.engine.backends.resources import Resources
from vitnas.engine.backends.serial import SerialBackend
from vitnas.engine.batch.rates import USUAL_CLIMB
from vitnas.engine.batch.request import Request
from vitnas.errors import ConfigError, DataError, DeviceError
from vitnas.records import Outcome
from vitnas.training.data import load_data


def check_reads_once(backend: Backend, folder: Path) -> None:
    fill_folder(folder)
    space = folder_space(folder)
    first = backend.prepare(space)
    assert first.data.classes == ["blue", "green", "red"]
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


def test_each_size_of_images_has_its_own_mean_and_deviation() -> None:
    tree = make_space().to_tree()
    tree["model"] |= {"img_size": {"choice": [8, 16]}}
    data = SerialBackend(0.0).prepare(make_space(**tree)).data
    assert data.mean is None
    large, small = (data.normalisation((side, side)) for side in (16, 8))
    assert large is not None
    assert small is not None
    assert large.std != small.std
    images = load_data(DataConfig(), 16)
    assert large.mean == pytest.approx(images.mean, abs=1e-6)


def test_more_images_are_read_when_more_are_asked_for(tmp_path: Path) -> None:
    fill_folder(tmp_path)
    space, backend = folder_space(tmp_path), SerialBackend(0.0)
    half = space.with_proxy(space.config.proxy.model_copy(update={"train_fraction": 0.5}))
    assert backend.prepare(half).data.num_train_images == 12
    asked = Request(half.suggest(RandomTrial(0)), half.config.proxy, 0)
    scores = replace(asked, zero_cost=True)
    answers = [answer for _, answer in backend.answers([asked, scores])]
    assert [answer.outcome for answer in answers] == [Outcome.COMPLETE] * 2
    backend.prepare(space)
    whole = Request(asked.subject, space.config.proxy, 0)
    assert [answer.outcome for _, answer in backend.answers([whole])] == [Outcome.COMPLETE]


def test_a_folder_is_listed_once_for_all_sizes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker has what was listed; `check_reads_once` deletes the folder before it trains."""
    fill_folder(tmp_path)
    listed: list[DataConfig] = []

    def counted(config: DataConfig) -> Folder:
        listed.append(config)
        return list_folder(config)

    monkeypatch.setattr(imagefolder, "list_folder", counted)
    space, backend = folder_space(tmp_path, img_size={"choice": [8, 16]}), SerialBackend(0.0)
    backend.prepare(space)
    networks = [space.suggest(RandomTrial(seed)) for seed in range(8)]
    assert {network.image_hw for network in networks} == {(8, 8), (16, 16)}
    asked = [Request(network, space.config.proxy, 0) for network in networks[:2]]
    assert [a.outcome for _, a in backend.answers(asked)] == [Outcome.COMPLETE] * 2
    assert len(listed) == 1


def test_the_time_of_baselines_contains_their_learning_rates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A search had counted 33 trainings where 54 followed."""
    monkeypatch.setattr(prepare, "_seconds_of", lambda subject, worker: 1.0)
    one: dict[str, Any] = {"image_hw": (8, 8), "in_chans": 1, "num_classes": 10}
    members = {
        name: [
            PricedBaseline(Baseline(family=name, width=width, **one), 1000 * width, 10 * width)
            for width in (1, 2, 3, 4)
        ]
        for name in ("vgg", "dwcnn", "mobilenet")
    }
    worker = prepare_worker(make_space(), Resources(1, 0.0, 1))[1]

    def seconds(*families: str) -> float | None:
        return prepare._seconds_of_baselines([m for f in families for m in members[f]], worker)

    def climbing(number: int) -> float:
        return USUAL_CLIMB * number

    assert seconds("vgg") == pytest.approx(4 + climbing(4))
    assert seconds("vgg", "dwcnn") == pytest.approx(8 + climbing(8))
    assert seconds("vgg", "dwcnn", "mobilenet") == pytest.approx(12 + climbing(9))
    assert seconds() == 0


def test_too_small_a_share_is_refused_at_its_address(tmp_path: Path) -> None:
    fill_folder(tmp_path)
    space = folder_space(tmp_path)
    few = space.with_proxy(space.config.proxy.model_copy(update={"train_fraction": 0.01}))
    with pytest.raises(ConfigError, match=r"proxy\.train_fraction = 0\.01: leaves less than two"):
        SerialBackend(0.0).prepare(few)


def test_data_of_a_package_that_is_not_there_are_refused_at_their_address() -> None:
    """A package without importing it, what it holds once the images are read."""
    with pytest.raises(ConfigError, match="no_such_package is not installed") as early:
        make_space(data={"name": "no_such_package:images"})
    space = make_space(data={"name": "vitnas.plugins:no_such_function"})
    with pytest.raises(ConfigError, match="has no no_such_function") as late:
        SerialBackend(0.0).prepare(space)
    assert early.value.address == late.value.address == "data.name"


@pytest.mark.slow
def test_ray_reads_once(shared_ray: Any, tmp_path: Path) -> None:
    from vitnas.engine.backends.parallel import RayBackend

    check_reads_once(RayBackend(1, 0.0, None), tmp_path / "data")


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has one")
def test_a_machine_without_a_card_prepares_trainings_on_cards() -> None:
    """The first machine of a cluster need not have one."""
    space = make_space(objectives={"top1": "maximize", "latency_ms": "minimize"})
    elsewhere: Any = object()  # what hands images out; those of digits are sent whole
    findings, worker = prepare_worker(space, Resources(1, 1.0, 1), sender=elsewhere)
    assert (findings.device, findings.measured_on, worker.device) == ("cuda", "cuda", "cuda")
    with pytest.raises(DeviceError, match=r"^--gpus-per-trial 1: .* no CUDA device that torch"):
        prepare_worker(space, Resources(1, 1.0, 1))
