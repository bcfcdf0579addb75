"""What a training wrote for a network is what it scores, to the last digit, in every form."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import timm
import torch
from PIL import Image
from timm.data import ImageNetInfo

import vitnas
from tests.nn.networks import images_for
from tests.training.conftest import fill_folder
from vitnas.config.data import DataConfig
from vitnas.errors import ConfigError, DataError, VitnasError
from vitnas.exported.programs import write_programs
from vitnas.nn.weights import weights_bytes
from vitnas.scoring.load import load_classifier
from vitnas.training.data import load_data
from vitnas.training.score import score


def written(folder: Path) -> float:
    """The last top-1 in a training's log."""
    lines = (folder / "log.jsonl").read_text().splitlines()
    top1: float = json.loads(lines[-1])["top1"]
    return top1


def on_card(top1: float) -> str:
    return f"| top-1 on the test split | {top1:.2f} % |"


def test_a_trained_network_scores_what_its_training_wrote(digits_net: Path) -> None:
    held, test = (vitnas.evaluate(digits_net, "digits", score_on=x) for x in ("val", "test"))
    assert held.top1 == written(digits_net)
    assert on_card(test.top1) in (digits_net / "README.md").read_text()
    whole = score(vitnas.load(digits_net), load_data(DataConfig(), 8).test())
    assert test.top1 == whole.top1
    assert test.answers.log_loss == pytest.approx(-whole.log_likelihood, rel=1e-6)
    assert (held.images, test.images) == (
        "held out of the training images of digits",
        "test images of digits",
    )


def test_images_that_trained_it_are_not_taken_for_held_out_ones(digits_net: Path) -> None:
    """Of a larger share, or of another draw, some have trained it, and top-1 is too high."""
    told = "the network's training held out 20 % (split_seed 0)"
    for data in (DataConfig(val_fraction=0.4), DataConfig(split_seed=1)):
        (note,) = vitnas.evaluate(digits_net, data, score_on="val").notes
        assert note.startswith(told)
        assert vitnas.evaluate(digits_net, data).notes == ()
    assert vitnas.evaluate(digits_net, "digits", score_on="val").notes == ()


@pytest.mark.slow
def test_so_does_one_of_a_folder(colours_net: Path, colours: Path) -> None:
    held, test = (
        vitnas.evaluate(colours_net, DataConfig(name="imagefolder", root=str(colours)), score_on=x)
        for x in ("val", "test")
    )
    assert test.images == f"images of {colours / 'val'}"
    assert on_card(test.top1) in (colours_net / "README.md").read_text()
    assert held.top1 == test.top1  # both are val/


@pytest.mark.slow
def test_a_program_scores_what_its_folder_does(digits_program: Path) -> None:
    folder = vitnas.evaluate(digits_program, "digits")
    program = vitnas.evaluate(digits_program / "model.pt2", "digits")
    assert program.top1 == folder.top1
    assert program.runtime == "torch.export"
    _same_scores(digits_program, digits_program / "model.pt2")


@pytest.mark.slow
def test_so_does_onnx(digits_net: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    folder = shutil.copytree(digits_net, tmp_path / "net")
    assert write_programs(folder, vitnas.load(folder), ("onnx",)) == {}  # type: ignore[arg-type]
    found = vitnas.evaluate(folder / "model.onnx", "digits", batch_sizes=(1,))
    assert found.top1 == vitnas.evaluate(folder, "digits").top1
    assert found.speeds[1] > 0
    _same_scores(folder, folder / "model.onnx")


def _same_scores(folder: Path, file: Path) -> None:
    one, other = load_classifier(folder), load_classifier(file)
    images = images_for(vitnas.load(folder), 32)  # type: ignore[arg-type]
    torch.testing.assert_close(one.scores(images), other.scores(images), rtol=1e-4, atol=1e-4)
    assert (one.preprocessing, one.names) == (other.preprocessing, other.names)


@pytest.mark.slow
def test_a_folder_in_another_order_and_with_some_classes(colours_net: Path, tmp_path: Path) -> None:
    fill_folder(tmp_path)
    shutil.rmtree(tmp_path / "train")
    shutil.rmtree(tmp_path / "val" / "green")
    found = vitnas.evaluate(colours_net, str(tmp_path))
    assert [one.name for one in found.classes] == ["blue", "red"]
    assert [one.images for one in found.classes] == [2, 2]
    assert found.labels == ("blue", "green", "red")
    assert "2 of the network's 3 classes" in found.notes[0]
    whole = vitnas.evaluate(colours_net, str(tmp_path / "val"))
    assert whole.answers.pairs() == found.answers.pairs()


def test_weights_of_more_classes_than_the_folder_has(tmp_path: Path) -> None:
    """ImageNet's thousand by their names; without names there must be as many."""
    file, known = tmp_path / "w.safetensors", ImageNetInfo("imagenet-1k").label_names()
    file.write_bytes(weights_bytes(timm.create_model("test_vit")))
    fill_folder(tmp_path / "data")
    shutil.rmtree(tmp_path / "data" / "train")
    for name, synset in (("blue", known[217]), ("red", known[3])):
        (tmp_path / "data" / "val" / name).rename(tmp_path / "data" / "val" / synset)
    shutil.rmtree(tmp_path / "data" / "val" / "green")
    found = vitnas.evaluate("test_vit", str(tmp_path / "data"), weights=str(file))
    assert {one.name for one in found.classes} == {known[3], known[217]}
    assert "2 of the network's 1000 classes" in found.notes[0]
    (tmp_path / "data" / "val" / known[3]).rename(tmp_path / "data" / "val" / "red")
    with pytest.raises(ConfigError, match=r"test_vit: has 1000 classes, and .*data has 2$"):
        vitnas.evaluate("test_vit", str(tmp_path / "data"), weights=str(file))


def test_labels_in_another_order_are_followed(colours_net: Path, tmp_path: Path) -> None:
    """The network's outputs are renamed, and so are the classes of its answers."""
    fill_folder(tmp_path / "data")
    folder = shutil.copytree(colours_net, tmp_path / "net")
    (folder / "labels.txt").write_text("red\nblue\ngreen\n")
    before = vitnas.evaluate(colours_net, str(tmp_path / "data")).answers
    after = vitnas.evaluate(folder, str(tmp_path / "data"))
    assert "another order" in after.notes[0]
    assert after.answers.predicted.tolist() == before.predicted.tolist()
    assert after.answers.labels.tolist() == [(label + 1) % 3 for label in before.labels.tolist()]


def test_without_values_those_of_the_data_count(digits_net: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(digits_net, tmp_path / "net")
    (folder / "config.json").unlink()
    found = vitnas.evaluate(folder, "digits")
    assert found.top1 == vitnas.evaluate(digits_net, "digits").top1
    assert "does not say how images are prepared" in found.notes[0]


def test_few_broken_images_are_named_and_many_are_refused(
    colours_net: Path, tmp_path: Path
) -> None:
    for number in range(120):
        path = tmp_path / "red" / f"{number:03}.png"
        path.parent.mkdir(exist_ok=True)
        Image.new("RGB", (16, 16), (255, 0, 0)).save(path)
    Image.new("RGB", (16, 16)).save(tmp_path / "red" / "a.png")
    (tmp_path / "blue").mkdir()
    Image.new("RGB", (16, 16)).save(tmp_path / "blue" / "a.png")
    (tmp_path / "red" / "000.png").write_bytes(b"no image")
    found = vitnas.evaluate(colours_net, str(tmp_path))
    assert len(found.answers) == 121
    assert "000.png: not a readable image" in found.notes[-1]
    (tmp_path / "red" / "001.png").write_bytes(b"no image")
    with pytest.raises(DataError, match=r"000\.png.*001\.png.*more than 1%"):
        vitnas.evaluate(colours_net, str(tmp_path))


def test_throughput_is_of_the_batches_that_are_asked_for(digits_net: Path) -> None:
    found = vitnas.evaluate(digits_net, "digits", batch_sizes=(2, 8))
    assert list(found.speeds) == [2, 8]
    assert all(value > 0 for value in found.speeds.values())


@pytest.mark.parametrize(
    ("data", "options", "rule"),
    [
        ("digits", {"score_on": "tests"}, r"--score-on = 'tests': .*nearest: test"),
        ("digitz", {}, "--data = 'digitz': .*nearest: digits"),
    ],
)
def test_what_is_misspelt_is_one_line(
    data: str, options: dict[str, str], rule: str, digits_net: Path
) -> None:
    with pytest.raises(ConfigError, match=rule):
        vitnas.evaluate(digits_net, data, **options)  # type: ignore[arg-type]


def test_images_of_other_channels_or_classes(digits_net: Path, colours: Path) -> None:
    with pytest.raises(ConfigError, match=r"net: has 10 classes, and .* has 3"):
        vitnas.evaluate(digits_net, str(colours))
    data = DataConfig(name="cifar10", root="nowhere")
    with pytest.raises(VitnasError, match="takes images of 1, and those of cifar10 have 3"):
        vitnas.evaluate(digits_net, data)


def test_usual_values_are_said(colours_net: Path, colours: Path, tmp_path: Path) -> None:
    """As of weights that were converted."""
    folder = shutil.copytree(colours_net, tmp_path / "net")
    tree = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**tree, "remark": "check these"}))
    (note,) = vitnas.evaluate(folder, str(colours)).notes
    assert "prepared: taken are usual values, mean 0." in note
