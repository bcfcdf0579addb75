"""A node without the images trains on them: it gets the decoded ones through Ray."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.config.trees import TREE
from tests.engine.backends.test_cluster import start_cluster
from tests.engine.conftest import make_space
from vitnas.config.trials import RandomTrial
from vitnas.data.cache import held_sets, home
from vitnas.engine.backends.serial import SerialBackend
from vitnas.engine.batch.request import Request


def write_folder(root: Path) -> None:
    """160 training images of two classes, and 20 test images."""
    random = np.random.default_rng(0)
    for part, number in (("train", 80), ("test", 10)):
        for label, name in enumerate(("dark", "light")):
            (root / part / name).mkdir(parents=True)
            for index in range(number):
                pixels = random.integers(100 * label, 100 * label + 156, (8, 8, 3), dtype=np.uint8)
                Image.fromarray(pixels).save(root / part / name / f"{index:03}.png")


@pytest.fixture
def node_elsewhere(tmp_path: Path, without_ray: None) -> Iterator[tuple[str, Path]]:
    """A cluster's address; its one node that trains has this empty cache."""
    import ray

    made, _ = start_cluster(0)
    elsewhere = tmp_path / "elsewhere"
    made.add_node(num_cpus=1, env_vars={"VITNAS_IMAGE_CACHE": str(elsewhere)})
    try:
        yield made.address, elsewhere
    finally:
        ray.shutdown()
        made.shutdown()


@pytest.mark.slow
def test_a_node_without_the_files_trains_as_this_machine_does(
    tmp_path: Path, node_elsewhere: tuple[str, Path]
) -> None:
    from vitnas.engine.backends.parallel import RayBackend

    write_folder(tmp_path / "data")
    model: dict[str, Any] = {**TREE["model"], "img_size": 8, "in_chans": 3, "num_classes": 2}
    data = {"name": "imagefolder", "root": str(tmp_path / "data")}
    space = make_space(data=data, model=model)
    network = space.suggest(RandomTrial(0))
    requests = [Request(network, space.config.proxy, seed, test=True) for seed in range(2)]
    serial = SerialBackend(0.0)
    serial.prepare(space)
    expected = [(a.outcome, a.curve, a.test_top1) for _, a in serial.answers(requests)]
    address, elsewhere = node_elsewhere
    backend = RayBackend(1, 0.0, address)
    try:
        backend.prepare(space)
        (tmp_path / "data").rename(tmp_path / "gone")
        assert not elsewhere.exists(), "sent before anybody asks"
        found = {request.seed: answer for request, answer in backend.answers(requests)}
        there = [(a.outcome, a.curve, a.test_top1) for _, a in sorted(found.items())]
        assert there == expected
        names = [{held.images.folder.name for held in held_sets(at)} for at in (home(), elsewhere)]
        assert names[0] == names[1]
        assert len(names[0]) == 2, "the training and the test images"
    finally:
        backend.close()
