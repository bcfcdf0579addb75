"""model.pt2 and model.onnx are opened, and what is wrong with them is one line."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from vitnas.errors import ConfigError, DataError, DeviceError, VitnasError
from vitnas.scoring import programs
from vitnas.scoring.programs import open_program


class Flat(nn.Module):
    """Two scores of an image, or none."""

    def forward(self, images: Tensor) -> Tensor:
        return images.flatten(1)[:, :2]


def pt2(path: Path, *, batch: bool = True, shape: tuple[int, ...] = (2, 1, 4, 4)) -> Path:
    dynamic = ({0: torch.export.Dim("batch")},) if batch else None
    images = (torch.zeros(shape),)
    torch.export.save(torch.export.export(Flat(), images, dynamic_shapes=dynamic), path)
    return path


def onnx(path: Path, shape: list[str | int], kind: str = "FLOAT") -> Path:
    """A model that gives the first two numbers of each image; made by hand, which is quick."""
    from onnx import TensorProto, helper, save_model

    number = getattr(TensorProto, kind)
    axes = [
        helper.make_tensor(name, TensorProto.INT64, [1], [value])
        for name, value in (("start", 0), ("stop", 2), ("axis", 1))
    ]
    nodes = [
        helper.make_node("Flatten", ["images"], ["flat"], axis=1),
        helper.make_node("Slice", ["flat", "start", "stop", "axis"], ["scores"]),
    ]
    graph = helper.make_graph(
        nodes,
        "flat",
        [helper.make_tensor_value_info("images", number, shape)],
        [helper.make_tensor_value_info("scores", number, None)],
        axes,
    )
    opset = [helper.make_opsetid("", 20)]
    save_model(helper.make_model(graph, opset_imports=opset, ir_version=10), str(path))
    return path


@pytest.mark.parametrize(
    ("make", "runtime"),
    [
        (lambda place: pt2(place / "a.pt2"), "torch.export"),
        (lambda place: onnx(place / "a.onnx", ["batch", 1, 4, 4]), "onnxruntime"),
    ],
)
def test_a_program_says_what_it_takes(
    make: Callable[[Path], Path], runtime: str, tmp_path: Path
) -> None:
    if runtime == "onnxruntime":
        pytest.importorskip("onnxruntime")
    found = open_program(make(tmp_path))
    assert (found.runtime, found.in_chans, found.image_hw) == (runtime, 1, (4, 4))
    assert (found.num_classes, found.preprocessing, found.names) == (2, None, ())
    images = torch.randn(5, 1, 4, 4)
    assert torch.equal(found.scores(images), images.flatten(1)[:, :2])


def test_a_fixed_batch_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"a\.pt2: takes batches of 2 images only"):
        open_program(pt2(tmp_path / "a.pt2", batch=False))


@pytest.mark.parametrize(
    ("shape", "kind", "rule"),
    [
        (["batch", 16], "FLOAT", r"takes \['batch', '16'\] and not images of one size"),
        (["batch", 1, "h", "w"], "FLOAT", r"takes .* and not images of one size"),
        ([1, 1, 4, 4], "FLOAT", "takes batches of 1 images only"),
        (["batch", 1, 4, 4], "FLOAT16", r"takes images tensor\(float16\) and not images as one"),
    ],
)
def test_an_onnx_of_other_images_is_refused(
    shape: list[str | int], kind: str, rule: str, tmp_path: Path
) -> None:
    pytest.importorskip("onnxruntime")
    with pytest.raises(DataError, match=rf"a\.onnx: {rule}"):
        open_program(onnx(tmp_path / "a.onnx", shape, kind))


def test_a_program_of_another_network_than_its_folder_s(digits_net: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(digits_net, tmp_path / "net")
    pt2(folder / "model.pt2")
    with pytest.raises(ConfigError, match=r"1 x 8 x 8 images and 10 classes .*not the same"):
        open_program(folder / "model.pt2")


@pytest.mark.parametrize("suffix", [".pt2", ".onnx"])
def test_a_damaged_file_is_one_line(suffix: str, tmp_path: Path) -> None:
    if suffix == ".onnx":
        pytest.importorskip("onnxruntime")
    path = tmp_path / f"a{suffix}"
    path.write_bytes(b"nothing of the kind")
    with pytest.raises(DataError, match=rf"a\{suffix}: .* cannot read it: "):
        open_program(path)
    with pytest.raises(DataError, match="no such file or directory"):
        open_program(tmp_path / f"b{suffix}")


def test_without_onnxruntime_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.onnx").write_bytes(b"")
    monkeypatch.setattr(programs, "find_spec", lambda name: None)
    with pytest.raises(VitnasError, match=r"onnxruntime is not installed \(pip install vitnas"):
        open_program(tmp_path / "a.onnx")


def test_it_runs_on_the_cpu(tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match="on the CPU, not on 'cuda'"):
        open_program(tmp_path / "a.pt2", "cuda")
