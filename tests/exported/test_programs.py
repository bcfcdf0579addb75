"""Programs that PyTorch and onnxruntime run, for any number of images."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.cost.test_shipped_spaces import within_limits
from tests.exported.source.parity import Compared, program_distances
from tests.exported.source.test_write import draws
from tests.nn.networks import images_for, ready, vit
from vitnas.config.space import load_space, shipped_spaces
from vitnas.exported import programs
from vitnas.exported.programs import write_programs

NETWORK = ready(vit())


def test_a_program_of_torch_export(tmp_path: Path) -> None:
    assert write_programs(tmp_path, NETWORK, ("py", "pt2")) == {}
    program = torch.export.load(tmp_path / "model.pt2").module()
    for batch in (1, 5):
        images = images_for(NETWORK, batch)
        torch.testing.assert_close(program(images), NETWORK(images))
    assert [path.name for path in tmp_path.iterdir()] == ["model.pt2"]


@pytest.mark.slow
def test_a_program_for_onnxruntime(tmp_path: Path) -> None:
    runtime = pytest.importorskip("onnxruntime")
    assert write_programs(tmp_path, NETWORK, ("onnx",)) == {}
    session = runtime.InferenceSession(str(tmp_path / "model.onnx"))
    for batch in (1, 5):
        images = images_for(NETWORK, batch)
        (scores,) = session.run(["scores"], {"images": images.numpy()})
        torch.testing.assert_close(torch.from_numpy(scores), NETWORK(images), rtol=1e-4, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("number", [6, pytest.param(20, marks=pytest.mark.nightly)])
def test_drawn_networks_give_the_same_scores(number: int, compared: Compared) -> None:
    """Two seconds of a core each, most of it for the export to ONNX."""
    for differences in program_distances(draws(load_space("digits"), number)):
        compared(differences)


@pytest.mark.nightly
@pytest.mark.parametrize("name", shipped_spaces())
def test_networks_of_each_space_give_the_same_scores(name: str, compared: Compared) -> None:
    """Different ones within the limits; few of a paper's ablation at full size, which is deep."""
    different = {config.key: config for config in within_limits(load_space(name), 20)}
    configs = list(different.values())
    assert configs
    for differences in program_distances(configs[: 5 if max(configs[0].image_hw) <= 64 else 2]):
        compared(differences)


def test_a_missing_package_leaves_onnx_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "_PACKAGES", ("onnx", "no_such_package"))
    said = write_programs(tmp_path, NETWORK, ("onnx",))
    assert said == {"model.onnx": "no_such_package not installed (pip install vitnas[onnx])"}
    assert not list(tmp_path.iterdir())


def test_what_pytorch_cannot_export_is_left_out(tmp_path: Path) -> None:
    class Unforeseen(torch.nn.Module):
        in_chans, image_hw = 1, (2, 2)

        def forward(self, images: torch.Tensor) -> torch.Tensor:
            return images if float(images.sum()) > 0 else -images

    network: object = Unforeseen()
    (said,) = write_programs(tmp_path, network, ("pt2",)).values()  # type: ignore[arg-type]
    assert said.startswith("PyTorch cannot export it: ")
    assert not list(tmp_path.iterdir())
