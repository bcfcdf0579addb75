"""timm's model interface on our networks: groups, checkpoints, drop rates, sizes, saving, types."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import timm
import torch
from timm.models._manipulate import group_parameters
from torch import Tensor, nn

import vitnas  # noqa: F401
from tests.nn.networks import VARIED, deep, hierarchy, images_for, ready
from tests.strategies import random_config
from vitnas.nn import InputSizeError
from vitnas.nn.zoo import zoo_config

# Groups and weight decay


def test_groups_follow_the_layers() -> None:
    model = ready(hierarchy())
    groups = group_parameters(model, model.group_matcher(), reverse=True)
    order = [
        "stem.conv.0.weight",
        "stages.0.blocks.0.block.norm1.weight",
        "stages.0.blocks.1.nlls.1.mlp.fc1.weight",
        "stages.1.blocks.0.mixer.static_key",
        "stages.2.blocks.0.norm1.weight",
        "head.classifier.weight",
    ]
    assert [groups[name] for name in order] == list(range(6))
    assert groups["pos_embed"] == 0
    assert groups["stages.2.downsample.conv.weight"] == groups["stages.2.blocks.0.norm1.weight"]
    coarse = group_parameters(model, model.group_matcher(coarse=True), reverse=True)
    assert [coarse[name] for name in order] == [0, 1, 1, 2, 3, 4]
    flat = ready(deep())
    for coarse_groups in (False, True):
        groups = group_parameters(flat, flat.group_matcher(coarse_groups), reverse=True)
        assert groups["class_token"] == groups["stem.conv.0.weight"] == 0
        assert groups["norm.weight"] == groups["stages.0.blocks.3.norm1.weight"] == 4
        assert groups["head.classifier.weight"] == 5


def test_timms_optimizer_takes_layer_decay_and_no_weight_decay() -> None:
    from timm.optim import create_optimizer_v2

    model = ready(hierarchy(residual="lrc"))
    optimizer = create_optimizer_v2(model, "adamw", lr=1.0, weight_decay=0.1, layer_decay=0.5)
    decays = {id(p): group for group in optimizer.param_groups for p in group["params"]}
    names = dict(model.named_parameters())
    assert set(decays) == {id(parameter) for parameter in names.values()}
    scale = [decays[id(names[n])]["lr_scale"] for n in ("pos_embed", "head.classifier.weight")]
    assert scale == [0.5**5, 1.0]
    decayed = {name for name, p in names.items() if decays[id(p)]["weight_decay"]}
    assert "stages.1.blocks.0.mixer.static_key" in decayed
    assert not decayed & model.no_weight_decay()
    assert not any(name.endswith((".bias", ".identity", "norm1.weight")) for name in decayed)


# Gradient checkpointing

CHECKPOINTED = {
    "recursion, groups, static key": hierarchy(residual="lrc", drop_path_rate=0.3, drop_rate=0.2),
    "re-attention": deep(reattention_blocks=3, attn_drop_rate=0.2, proj_drop_rate=0.1),
    "broad": deep(broad={"gamma": 0.5}, pos_drop_rate=0.1),
    "shared maps": deep(reattention_blocks=2, reattention={"source": "shared"}),
}


@pytest.mark.parametrize("name", CHECKPOINTED)
def test_checkpointing_changes_memory_and_nothing_else(name: str) -> None:
    """Same scores, same gradients, same statistics; fewer bytes kept for the backward pass."""
    plain = ready(CHECKPOINTED[name]).train()
    saving = copy.deepcopy(plain)
    saving.set_grad_checkpointing()
    images, found = images_for(plain, 4), []
    for model in (plain, saving):
        torch.manual_seed(5)
        with _KeptBytes() as kept:
            scores = model(images)
        scores.square().sum().backward()
        found.append((scores, kept.total))
    (expected, much), (scores, little) = found
    assert torch.equal(scores, expected)
    for (word, parameter), other in zip(plain.named_parameters(), saving.parameters(), strict=True):
        torch.testing.assert_close(other.grad, parameter.grad, msg=word)
    for (word, buffer), other in zip(plain.named_buffers(), saving.buffers(), strict=True):
        assert torch.equal(buffer, other), word
    assert little < 0.5 * much
    saving.set_grad_checkpointing(False)
    with _KeptBytes() as kept:
        saving(images)
    assert kept.total == much


class _KeptBytes(torch.autograd.graph.saved_tensors_hooks):
    """Bytes of distinct tensors that autograd keeps inside."""

    def __init__(self) -> None:
        self.seen: dict[int, Tensor] = {}
        super().__init__(self._keep, lambda tensor: tensor)

    def __enter__(self) -> _KeptBytes:  # type: ignore[override]
        super().__enter__()
        return self

    def _keep(self, tensor: Tensor) -> Tensor:
        if not isinstance(tensor, nn.Parameter):
            self.seen[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    @property
    def total(self) -> int:
        return sum(tensor.untyped_storage().nbytes() for tensor in self.seen.values())


# Options of create_model


def test_drop_rates_arrive() -> None:
    rates = {"drop_rate": 0.1, "pos_drop_rate": 0.2, "proj_drop_rate": 0.3, "attn_drop_rate": 0.4}
    model = timm.create_model("deepvit_16b", img_size=32, drop_path_rate=0.5, **rates)
    block = model.stages[0].blocks[-1]
    assert (model.head.drop.p, model.pos_drop.p) == (0.1, 0.2)
    assert (block.mixer.proj_drop.p, block.mixer.attn_drop.p) == (0.3, 0.4)
    assert block.mlp.drop1.p == 0.3
    assert block.drop_path.drop_prob == 0.5
    images = torch.randn(2, 3, 32, 32)
    assert not torch.equal(model(images), model(images))
    model.eval()
    assert torch.equal(model(images), model(images))


@pytest.mark.parametrize("name", ["drop_rate", "pos_drop_rate"])
def test_head_and_position_dropout_act_in_training_alone(name: str) -> None:
    model, plain = ready(deep(**{name: 0.5})), ready(deep())
    images = images_for(model)
    features = model.forward_features(images)
    assert torch.equal(model(images), plain(images))
    trained, expected = (net.train().forward_features(images) for net in (model, plain))
    assert torch.equal(trained, expected) == (name == "drop_rate")
    vector = model.forward_head(features, pre_logits=True)
    assert torch.equal(vector, features[:, 0]) == (name == "pos_drop_rate")


def test_no_classes_no_pooling_other_channels_device_and_type() -> None:
    options: dict[str, Any] = {"img_size": (32, 64), "in_chans": 5, "device": "meta"}
    model = timm.create_model("sret_t", num_classes=0, dtype=torch.bfloat16, **options)
    assert (model.num_classes, model.config.num_classes) == (0, 1000)
    assert {p.dtype for p in model.parameters()} == {torch.bfloat16}
    assert all(t.is_meta for t in [*model.parameters(), *model.buffers()])
    images = torch.empty(2, 5, 32, 64, dtype=torch.bfloat16, device="meta")
    assert model(images).shape == (2, 256)
    model = timm.create_model("sret_t", num_classes=0, global_pool="", **options)
    assert model(images.float()).shape == (2, 1, 2, 256)
    model = timm.create_model("bvit_5m", num_classes=3, global_pool="", **options)
    assert model(images.float()).shape == (2, 9, 3)


@pytest.mark.parametrize("name", ["sret_t", "skaformer_s18", "bvit_5m", "mixer_b16"])
def test_weights_of_another_image_size(name: str, tmp_path: Any) -> None:
    """timm loads a checkpoint saved at 32 px into a network for 64 px, and it is interpolated."""
    stages = [dict(stage, depth=1) for stage in zoo_config(name).to_tree()["stages"]]
    options: dict[str, Any] = {"num_classes": 5, "stages": stages}
    small = timm.create_model(name, img_size=32, **options).eval()
    torch.save(small.state_dict(), tmp_path / "weights.pt")
    source = {"file": str(tmp_path / "weights.pt"), "num_classes": 5, "input_size": (3, 32, 32)}
    large = timm.create_model(
        name, pretrained=True, pretrained_cfg_overlay=source, img_size=64, **options
    )
    small.resize(64)
    images = torch.randn(1, 3, 64, 64)
    torch.testing.assert_close(large.eval()(images), small(images))


def test_saved_for_the_hub_and_back(tmp_path: Any) -> None:
    """timm's folder of a model that was resized and given another head."""
    from timm.models import get_model_input_config
    from timm.models._hub import save_for_hf

    model = timm.create_model("sret_t", img_size=32, in_chans=4).eval()
    model.set_input_size((64, 32))
    model.reset_classifier(3)
    save_for_hf(model, tmp_path)
    again = timm.create_model(f"local-dir:{tmp_path}", pretrained=True).eval()
    images = torch.randn(1, 4, 64, 32)
    assert torch.equal(again(images), model(images))
    assert get_model_input_config(again)["input_size"] == (4, 64, 32)


@pytest.mark.parametrize("images", [(1, 3, 64, 32), (1, 1, 32, 32), (3, 32, 32), (1, 3, 40, 40)])
def test_other_images_are_refused_naming_what_fits(images: tuple[int, ...]) -> None:
    model = timm.create_model("sret_t", img_size=32)
    with pytest.raises(InputSizeError, match=r"32|3 channels|axis for the batch") as caught:
        model(torch.randn(images))
    assert "\n" not in str(caught.value)


# Where it runs


@pytest.mark.parametrize("seed", VARIED)
def test_traces_with_fx(seed: int) -> None:
    model = ready(random_config(seed))
    traced = torch.fx.symbolic_trace(model)
    other = images_for(model, 3)
    torch.testing.assert_close(traced(other), model(other))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("seed", VARIED)
def test_whole_network_in_half(seed: int, dtype: torch.dtype) -> None:
    model = ready(random_config(seed))
    images = images_for(model)
    expected = model(images)
    found = model.to(dtype)(images.to(dtype))
    assert found.dtype == dtype
    scale = max(expected.abs().max(), torch.finfo(dtype).smallest_normal)  # scores may be smaller
    torch.testing.assert_close(found.float() / scale, expected / scale, rtol=0.1, atol=0.1)
