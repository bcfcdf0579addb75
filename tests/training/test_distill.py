"""Soft distillation: Eq. 17 by hand, a teacher that only answers, and DeiT's loss beside it."""

from __future__ import annotations

import pickle
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
import timm
import torch
from torch import nn
from torch.nn.functional import cross_entropy, kl_div, log_softmax

from vitnas.config.files import write_bytes, write_text
from vitnas.config.model import ModelConfig, save_config
from vitnas.config.recipe import DistillConfig, Recipe
from vitnas.config.training import ProxyConfig
from vitnas.errors import ConfigError, DataError
from vitnas.exported.folder import sha256_of, write_classes
from vitnas.exported.hub import DIGEST, hub_text
from vitnas.exported.preprocessing import Preprocessing
from vitnas.exported.read import load
from vitnas.nn.model import build_model
from vitnas.nn.weights import weights_bytes
from vitnas.training.distill import (
    Teacher,
    hard_cross_entropy,
    load_teacher,
    soft_cross_entropy,
    taught,
)
from vitnas.training.images import Images
from vitnas.training.objective import Batch, Objective
from vitnas.training.proxy import ProxyTraining

CPU = torch.device("cpu")


def logits(seed: int, number: int = 5, classes: int = 7) -> torch.Tensor:
    return torch.randn(number, classes, generator=torch.Generator().manual_seed(seed))


def exported(config: ModelConfig, folder: Path) -> Path:
    """A folder as an export leaves it, with fresh weights."""
    torch.manual_seed(0)
    save_config(config, folder / "config.yaml")
    write_bytes(folder / "model.safetensors", weights_bytes(build_model(config)))
    return folder


def test_the_formula_by_hand() -> None:
    """Teacher (3/4, 1/4), student (1/2, 1/2): -(3/4 + 1/4) log 1/2."""
    teacher = torch.tensor([[3.0, 1.0]]).log()
    student = torch.zeros(1, 2)
    assert float(soft_cross_entropy(student, teacher)) == pytest.approx(0.6931472)
    student = torch.tensor([[1.0, 3.0]]).log()
    expected = -(0.75 * torch.tensor(0.25).log() + 0.25 * torch.tensor(0.75).log())
    assert float(soft_cross_entropy(student, teacher)) == pytest.approx(float(expected))


def test_its_least_value_is_the_teachers_entropy_and_is_at_the_teacher() -> None:
    teacher = logits(0)
    probabilities = teacher.softmax(1)
    entropy = float(-(probabilities * probabilities.log()).sum(1).mean())
    student = teacher.clone().requires_grad_()
    loss = soft_cross_entropy(student, teacher)
    assert float(loss.detach()) == pytest.approx(entropy)
    loss.backward()
    assert student.grad is not None
    assert student.grad.abs().max() < 1e-6
    for seed in range(1, 20):
        assert float(soft_cross_entropy(teacher + 0.1 * logits(seed), teacher)) > entropy


def test_no_gradient_reaches_the_teachers_logits() -> None:
    student, teacher = logits(1).requires_grad_(), logits(2).requires_grad_()
    soft_cross_entropy(student, teacher).backward()
    assert teacher.grad is None
    assert student.grad is not None
    assert student.grad.abs().sum() > 0


def test_a_temperature_divides_both() -> None:
    student, teacher = logits(1), logits(2)
    warm = soft_cross_entropy(student, teacher, 4.0)
    assert torch.equal(warm, soft_cross_entropy(student / 4, teacher / 4))


def test_deits_loss_differs_by_a_constant_and_the_number_of_classes() -> None:
    """So the logarithm that SReT's footnote 7 blames is not what makes it small."""
    student, teacher = logits(1).requires_grad_(), logits(2)
    deit = kl_div(
        log_softmax(student, 1), log_softmax(teacher, 1), reduction="sum", log_target=True
    )
    deit = deit / student.numel()
    ours, entropy = soft_cross_entropy(student, teacher), soft_cross_entropy(teacher, teacher)
    assert float(deit.detach()) * 7 == pytest.approx(float((ours - entropy).detach()), rel=1e-5)
    (theirs,) = torch.autograd.grad(deit, student)
    (mine,) = torch.autograd.grad(ours, student)
    assert torch.allclose(7 * theirs, mine, atol=1e-6)


def test_a_teacher_is_in_eval_and_gets_no_gradient() -> None:
    norm = nn.BatchNorm1d(10)
    model = nn.Sequential(nn.Flatten(), nn.Dropout(0.9), nn.Linear(64, 10), norm)
    teacher = Teacher(model.train(), CPU)
    x = torch.randn(4, 1, 8, 8)
    first = teacher(x)
    assert not any(module.training for module in model.modules())
    assert not any(parameter.requires_grad for parameter in model.parameters())
    assert not first.requires_grad
    assert torch.equal(first, teacher(x))
    assert norm.num_batches_tracked is not None
    assert int(norm.num_batches_tracked) == 0


def test_an_exported_folder_teaches(
    tiny_config: ModelConfig, digits: Images, tmp_path: Path
) -> None:
    folder = exported(tiny_config, tmp_path / "teacher")
    teacher = load_teacher(DistillConfig(teacher=str(folder)), digits, CPU)
    x = digits.val.normalise(digits.val.x[:4])
    assert teacher(x).shape == (4, 10)


def test_an_exported_folder_sees_pixels_as_its_own_training_had_them(
    tiny_config: ModelConfig, digits: Images, tmp_path: Path
) -> None:
    """As of other images of the same classes, or of a paper's weights that were converted."""
    folder = exported(tiny_config, tmp_path / "teacher")
    how = Preprocessing((0.5,), (0.25,))
    digest = {DIGEST: sha256_of(folder / "model.safetensors")}
    write_text(folder / "config.json", hub_text(tiny_config, (), how, **digest))
    teacher = load_teacher(DistillConfig(teacher=str(folder)), digits, CPU)
    pixels = digits.val.x[:4]
    expected = load(folder)((pixels.float() / 255 - 0.5) / 0.25)
    assert torch.allclose(teacher(digits.val.normalise(pixels)), expected, atol=1e-4)


def test_a_timm_model_teaches_and_sees_pixels_in_its_own_normalisation(
    digits: Images, tmp_path: Path
) -> None:
    source = timm.create_model("test_resnet", num_classes=10, in_chans=1)
    path = tmp_path / "teacher.pth"
    torch.save(source.state_dict(), path)
    config = DistillConfig(teacher="test_resnet", weights=str(path))
    teacher = load_teacher(config, digits, CPU)
    x = digits.val.normalise(digits.val.x[:4])
    assert torch.allclose(teacher(x), source.eval()(x), atol=1e-5)
    pixels = digits.val.x[:4].float() / 255
    scale, shift = torch.tensor(digits.std[0]) / 0.5, (torch.tensor(digits.mean[0]) - 0.5) / 0.5
    own = Teacher(nn.Identity(), CPU, scale[None, None, None], shift[None, None, None])
    assert torch.allclose(own(x), (pixels - 0.5) / 0.5, atol=1e-4)


def test_teachers_that_do_not_fit_are_refused(
    tiny_config: ModelConfig, digits: Images, tmp_path: Path
) -> None:
    tree = tiny_config.model_dump()
    for changes, message in (
        ({"num_classes": 7}, "has 7 classes and digits has 10"),
        ({"img_size": 16}, "cannot take these images of 1 x 8 x 8: .*16x16"),
        ({"in_chans": 3}, "cannot take these images of 1 x 8 x 8: .*3 channels"),
    ):
        config = ModelConfig.model_validate(tree | changes)
        folder = exported(config, tmp_path / "-".join(changes))
        with pytest.raises(ConfigError, match=message) as caught:
            load_teacher(DistillConfig(teacher=str(folder)), digits, CPU)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("teacher", "weights", "message"),
    [
        ("resnet5O", None, r"distill\.teacher = 'resnet5O': is neither .*\(nearest: resnet50"),
        (
            "regnety_160.deit_in1k",
            None,
            "= 'regnety_160.deit_in1k': has 1000 classes and digits has 10",
        ),
        ("test_resnet", "gone.pth", r"teacher test_resnet: gone\.pth: no such file"),
        ("test_resnet", "/", "teacher test_resnet: /: no such file"),
        ("sret_t", None, "teacher sret_t: its weights cannot be loaded: .*distill.weights"),
        ("resnet50.zzz", None, r"teacher resnet50\.zzz: its weights cannot be loaded: .*tag"),
    ],
)
def test_teachers_that_cannot_be_had_are_one_line(
    digits: Images,
    teacher: str,
    weights: str | None,
    message: str,
) -> None:
    with pytest.raises((ConfigError, DataError), match=message) as caught:
        load_teacher(DistillConfig(teacher=teacher, weights=weights), digits, CPU)
    assert "\n" not in str(caught.value)


def test_a_pickle_with_code_is_not_read(digits: Images, tmp_path: Path) -> None:
    path = tmp_path / "bad.pth"
    torch.save({"state_dict": Path}, path)
    config = DistillConfig(teacher="test_resnet", weights=str(path))
    with pytest.raises(DataError, match="cannot be loaded"):
        load_teacher(config, digits, CPU)


@pytest.mark.parametrize(
    ("names", "other"),
    [
        ([f"digit {n}" for n in range(9)] + ["letter"], "9 is 'letter', and of digits 'digit 9'"),
        ([f"digit {9 - n}" for n in range(10)], "0 is 'digit 9', and of digits 'digit 0'"),
        ([f"digit {n}" for n in range(10)], None),
    ],
    ids=["another", "another order", "the same"],
)
def test_a_teacher_of_as_many_other_classes_is_refused(
    names: list[str],
    other: str | None,
    tiny_config: ModelConfig,
    digits: Images,
    tmp_path: Path,
) -> None:
    config = tiny_config.model_copy(update={"img_size": 8, "in_chans": 1})
    folder = exported(config, tmp_path / "t")
    write_classes(folder, names)
    named = replace(digits, classes=tuple(f"digit {n}" for n in range(10)))
    teacher = DistillConfig(teacher=str(folder))
    with pytest.raises(ConfigError, match=other) if other else nullcontext():
        load_teacher(teacher, named, CPU)
    load_teacher(teacher, digits, CPU)  # which are only numbered


def test_hard_distillation_is_the_mean_of_two_labels_losses() -> None:
    student, teacher, y = logits(1), logits(2), torch.arange(5)
    other = cross_entropy(student, teacher.max(dim=1).indices)
    assert torch.equal(hard_cross_entropy(student, teacher), other)
    recipe = Recipe.model_validate({"distill": {"teacher": "t", "kind": "hard"}})
    objective = Objective(recipe, nn.Identity(), 7, CPU)
    loss = objective(Batch(student, y, teacher))
    label = cross_entropy(student, y, label_smoothing=0.1)
    assert float(loss) == pytest.approx(float((label + other) / 2))


def test_a_teacher_is_sent_to_workers(
    tiny_config: ModelConfig, digits: Images, tmp_path: Path
) -> None:
    folder = exported(tiny_config, tmp_path / "teacher")
    teacher = load_teacher(DistillConfig(teacher=str(folder)), digits, CPU)
    sent: Teacher = pickle.loads(pickle.dumps(teacher)).to(CPU)
    x = digits.val.normalise(digits.val.x[:4])
    assert torch.equal(sent(x), teacher(x))


class Counted(nn.Module):
    """Ten logits from an image, and how many images it has seen."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = 0
        self.layer = nn.Linear(64, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen += len(x)
        found: torch.Tensor = self.layer(x.flatten(1))
        return found


@pytest.fixture
def counted() -> Counted:
    torch.manual_seed(0)
    return Counted()


SHORT = {"epochs": 2, "train_fraction": 0.3, "batch_size": 64, "distill": {"teacher": "t"}}


def test_a_teacher_sees_each_image_once_if_it_always_looks_the_same(
    tiny_config: ModelConfig, digits: Images, counted: Counted
) -> None:
    proxy, teacher = ProxyConfig.model_validate(SHORT), Teacher(counted, CPU)
    once = taught(digits, proxy, teacher)
    assert counted.seen == len(digits.train)
    assert once.train.taught is not None
    live = teacher(digits.train.normalise(digits.train.x))
    assert torch.allclose(once.train.taught, live, atol=1e-6)
    assert taught(once, proxy, teacher) is once
    counted.seen = 0
    found = [
        [
            (each.top1, each.loss)
            for each in ProxyTraining(tiny_config, proxy, images, 0, CPU, teacher)
        ]
        for images in (once, digits)
    ]
    assert found[0] == found[1], "whoever asked the teacher"
    assert counted.seen == len(digits.train), "by the second alone, once"


def test_a_teacher_sees_what_the_student_sees(
    tiny_config: ModelConfig, digits: Images, counted: Counted
) -> None:
    proxy = ProxyConfig.model_validate(SHORT | {"augment": "shift"})
    teacher = Teacher(counted, CPU)
    assert taught(digits, proxy, teacher) is digits
    training = ProxyTraining(tiny_config, proxy, digits, 0, CPU, teacher)
    list(training)
    assert counted.seen == 2 * len(training._train)


def test_answers_stay_with_their_images(digits: Images, counted: Counted) -> None:
    proxy, teacher = ProxyConfig.model_validate(SHORT), Teacher(counted, CPU)
    folded = taught(replace(digits, folds=2), proxy, teacher).fold(1)
    for split in (folded.train, folded.train.subset(0.3, 0), folded.val):
        assert split.taught is not None
        live = teacher(split.normalise(split.x))
        assert torch.allclose(split.taught, live, atol=1e-6)


def test_a_temperature_is_of_soft_distillation() -> None:
    with pytest.raises(ValueError, match="is of soft distillation"):
        DistillConfig(teacher="t", kind="hard", temperature=2.0)
