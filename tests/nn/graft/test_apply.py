"""What a graft changes, what it leaves alone, and that it is the network it says it is."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from tests.nn.graft.networks import ALL, images, vit
from vitnas.config.files import validate
from vitnas.config.model import ModelConfig
from vitnas.cost.operators import count_operators
from vitnas.nn import build_model
from vitnas.nn.graft import graft

POSSIBLE = [
    *((name, {"mixer": "ska"}) for name in ALL),
    *((name, {"mixer": "cska"}) for name in ALL if name != "deit"),
    *((name, {"broad": {"gamma": 0.4}}) for name in ("vit", "deit", "swin", "caformer", "lvt")),
    *(
        (name, {"reattention_blocks": 2})
        for name in ("vit", "deit", "eva", "pvt", "caformer", "lvt")
    ),
    ("vit", {"mixer": "ska", "num_heads": 4, "mask_diagonal": True, "broad": {"gamma": 0.4}}),
    ("cait", {"mixer": "cska", "key_kernel": 5, "attn_act": "relu", "num_heads": 2}),
    ("swin", {"mixer": "cska", "key_kernel": 5, "attn_act": "gelu", "mask_diagonal": True}),
    ("cvt", {"mixer": "ska", "attn_act": "gelu", "temperature": {"kind": "learnable"}}),
    ("lvt", {"mixer": "ska", "blocks": "stages:1", "broad": {"gamma": 0.4}}),
    ("swin", {"mixer": "ska", "blocks": "stages:1", "broad": {"gamma": 0.4}}),
    ("vit", {"mixer": "cska", "blocks": "3", "reattention_blocks": 1, "broad": {"gamma": 0.4}}),
]
NORMS = ("layer_norm", "batch_norm", "adaptive_avg_pool2d")


@pytest.fixture(params=POSSIBLE, ids=lambda case: f"{case[0]}-{case[1]}")
def grafted(request: pytest.FixtureRequest) -> nn.Module:
    name, fields = request.param
    model = ALL[name]()
    graft(model, **fields)
    return model


# Nothing but what was asked for


@pytest.mark.parametrize("name", ALL)
def test_a_graft_of_nothing_changes_nothing(name: str) -> None:
    model, before = ALL[name](), ALL[name]()
    done = graft(model)
    assert (done.replaced, done.reattention, done.broad) == ((), (), ())
    assert torch.equal(model(images()), before(images()))
    assert list(model.state_dict()) == list(before.state_dict())
    assert not hasattr(model, "grafts")


@pytest.mark.parametrize("mixer", ["ska", "cska"])
@pytest.mark.parametrize("name", [name for name in ALL if name != "deit"])
def test_only_replaced_attention_differs(name: str, mixer: str) -> None:
    model, before = ALL[name](), ALL[name]().state_dict()
    done = graft(model, mixer=mixer, blocks="last:2")
    assert len(done.replaced) == 2
    after = model.state_dict()
    elsewhere = {key for key in before if not key.startswith(done.replaced)}
    assert elsewhere == {key for key in after if not key.startswith(done.replaced)}
    assert all(torch.equal(before[key], after[key]) for key in elsewhere)
    assert not torch.equal(model(images()), ALL[name]()(images()))


@pytest.mark.parametrize("name", ["vit", "cait", "swin", "cvt"])
def test_the_projections_of_query_value_and_output_are_kept(name: str) -> None:
    model, before = ALL[name](), ALL[name]().state_dict()
    for site in graft(model, mixer="ska").replaced:
        mixer = model.get_submodule(site).mixer
        query, _, value = before[f"{site}.qkv.weight"].chunk(3)
        assert torch.equal(mixer.qv.weight, torch.cat([query, value]))
        query, _, value = before[f"{site}.qkv.bias"].chunk(3)
        assert torch.equal(mixer.qv.bias, torch.cat([query, value]))
        for part in ("weight", "bias"):
            assert torch.equal(getattr(mixer.proj, part), before[f"{site}.proj.{part}"])


def test_says_what_it_did() -> None:
    done = graft(vit(), mixer="ska", blocks="3,1", reattention_blocks=1, broad={"gamma": 0.4})
    assert done.was == "Attention"
    assert done.replaced == ("blocks.1.attn", "blocks.3.attn")
    assert done.reattention == ("blocks.2.attn",)
    assert done.broad == tuple(f"blocks.{index}.attn" for index in range(4))
    assert done.left == ("blocks.0.attn",)


def test_class_attention_of_cait_is_left_and_that_is_said() -> None:
    model = ALL["cait"]()
    before = {name: id(part) for name, part in model.blocks_token_only.named_modules()}
    done = graft(model, mixer="cska")
    assert done.left == ("blocks_token_only.0.attn", "blocks_token_only.1.attn")
    assert before == {name: id(part) for name, part in model.blocks_token_only.named_modules()}


def test_grafts_follow_each_other() -> None:
    model = vit()
    graft(model, mixer="ska", blocks="0-1")
    graft(model, mixer="cska", blocks="2", reattention_blocks=1)
    graft(model, broad={"gamma": 0.4})
    assert [config.mixer for config in model.grafts] == ["ska", "cska", None]
    at_once = vit()
    graft(at_once, mixer="ska", blocks="0-1")
    graft(at_once, mixer="cska", blocks="2", reattention_blocks=1, broad={"gamma": 0.4})
    at_once.load_state_dict(model.state_dict())
    assert torch.equal(at_once(images()), model(images()))


# It is the same network as one said in our language


@pytest.mark.parametrize(
    "fields",
    [
        {"mixer": "ska"},
        {"mixer": "cska"},
        {"reattention_blocks": 3},
        {"broad": {"gamma": 0.4}},
        {"broad": {"gamma": 0.7, "pool": "layers", "scale": "embed_dim", "with_v": False}},
        {"mixer": "ska", "broad": {"gamma": 0.4}},
        {"reattention_blocks": 2, "reattention": {"norm": "layer"}, "broad": {"gamma": 0.4}},
        {"mixer": "ska", "qk_scale": False, "key_init": "randn"},
        {"mixer": "ska", "num_heads": 4, "temperature": {"kind": "learnable"}},
        {"mixer": "cska", "num_heads": 2, "key_kernel": 5, "mask_diagonal": True},
        {"mixer": "cska", "attn_act": "star_relu"},
        {"mixer": "ska", "num_heads": 6, "broad": {"gamma": 0.4}},
        {"mixer": "ska", "windows": 2, "broad": {"gamma": 0.4}},
        {"mixer": "cska", "windows": 4, "key_kernel": 1},
    ],
    ids=str,
)
def test_a_grafted_vit_is_a_network_of_ours(fields: dict[str, Any]) -> None:
    model = vit(**_without_class_token(fields))
    graft(model, **fields)
    _disturb(model)
    ours = build_model(_in_our_language(fields)).eval()
    ours.load_state_dict({_in_our_words(name): v for name, v in model.state_dict().items()})
    torch.testing.assert_close(model(images()), ours(images()), rtol=1e-5, atol=1e-5)


def _without_class_token(fields: dict[str, Any]) -> dict[str, Any]:
    """Options of timm: a class token would be in no window."""
    without = {"class_token": False, "global_pool": "avg"}
    return without if "windows" in fields else {}


def _in_our_language(fields: dict[str, Any]) -> ModelConfig:
    stage = {"token_mixer": fields.get("mixer", "mhsa"), "num_heads": fields.get("num_heads", 3)}
    stage |= {"depth": 4, "embed_dim": 24, "attn_dim": 8 * stage["num_heads"]}
    of_stage = ("qk_scale", "attn_act", "mask_diagonal", "key_kernel", "windows")
    stage |= {name: fields[name] for name in of_stage if name in fields}
    tree = {"img_size": 16, "num_classes": 5, "class_token": "windows" not in fields}
    tree["stages"] = [stage]
    tree["stem"] = {"kind": "patch", "stride": 4}
    same = ("reattention_blocks", "reattention", "broad", "temperature")
    return validate(ModelConfig, tree | {name: fields[name] for name in same if name in fields})


def _in_our_words(name: str) -> str:
    for theirs, ours in (
        ("cls_token", "class_token"),
        ("patch_embed.proj", "stem.conv.0"),
        ("head.", "head.classifier."),
        ("fc_norm.", "head.norm."),
        ("blocks.", "stages.0.blocks."),
        ("attn.mixer.", "mixer."),
        ("attn.attn_drop.reattention", "mixer.reattention"),
        ("attn.", "mixer."),
    ):
        name = name.replace(theirs, ours)
    return name


def _disturb(model: nn.Module) -> None:
    """Move new keys, Thetas and running means away from where they start."""
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for tensor in model.state_dict().values():
            if tensor.is_floating_point():
                tensor.add_(0.2 * torch.rand(tensor.shape, generator=generator))


# It behaves like a network


def test_a_step_of_training_changes_it(grafted: nn.Module, request: pytest.FixtureRequest) -> None:
    before = copy.deepcopy(grafted.state_dict())
    new = [n for n, _ in grafted.named_parameters() if ".mixer." in n or "reattention" in n]
    optimizer = torch.optim.SGD(grafted.parameters(), lr=1e3)  # norms are near 1
    nn.functional.cross_entropy(grafted.train()(images()), torch.tensor([1, 3])).backward()
    optimizer.step()
    after = grafted.state_dict()
    # in the last block of a network that reads its class token, no other row of the map matters
    unread = {
        "vit": (".3.attn.mixer.key.",),
        "t2t": (".1.attn.mixer.key.",),
        "cvt": ("stages.1.blocks.1.attn.mixer.key.",),
        "ska_cvt": ("stages.1.blocks.1.attn.mixer.key.", "1.attn.mixer.convs.query."),
        "eva": ("blocks.2.attn.mixer.class_key",),  # which reads the mean of all others
    }.get(request.node.callspec.params["grafted"][0], ())
    for name in new:
        if not any(part in name for part in unread):
            assert not torch.equal(before[name], after[name]), name


def test_eval_is_deterministic_and_draws_nothing(grafted: nn.Module) -> None:
    state = torch.get_rng_state()
    first = grafted(images())
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(grafted(images()), first)


def test_images_do_not_see_each_other(grafted: nn.Module) -> None:
    together, alone = grafted(images()), grafted(images()[1:])
    torch.testing.assert_close(together[1:], alone, rtol=1e-4, atol=1e-5)


def test_a_copy_is_a_network_of_its_own(grafted: nn.Module) -> None:
    scores = grafted(images())
    for other in (copy.deepcopy(grafted), pickle.loads(pickle.dumps(grafted))):
        assert torch.equal(other(images()), scores)
        with torch.no_grad():
            for parameter in other.parameters():
                parameter.zero_()
        other(images())
        assert torch.equal(grafted(images()), scores)


def test_the_state_goes_round(grafted: nn.Module, request: pytest.FixtureRequest) -> None:
    name, fields = request.node.callspec.params["grafted"]
    other = ALL[name]()
    graft(other, **fields)
    other.load_state_dict(grafted.state_dict())
    assert torch.equal(other(images()), grafted(images()))


@pytest.mark.nightly
def test_exports(grafted: nn.Module) -> None:
    program = torch.export.export(grafted, (images(),))
    torch.testing.assert_close(program.module()(images()), grafted(images()), atol=1e-5, rtol=1e-4)


def test_half_precision(grafted: nn.Module) -> None:
    whole = grafted(images())
    with torch.autocast("cpu", torch.bfloat16):
        half: Tensor = grafted(images())
    torch.testing.assert_close(half.float(), whole, rtol=0.2, atol=0.3)
    assert grafted.bfloat16()(images().bfloat16()).isfinite().all()


# Its FLOPs are counted exactly


@pytest.mark.slow
def test_counted_flops_are_torchs(grafted: nn.Module) -> None:
    assert _counted(grafted) == _by_torch(grafted)


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_counted_flops_of_the_plain_network_are_torchs(name: str) -> None:
    assert _counted(ALL[name]()) == _by_torch(ALL[name]())


def test_gamma_zero_costs_nothing() -> None:
    model = vit()
    graft(model, broad={"gamma": 0.0})
    assert _counted(model) == _counted(vit())
    assert not model.blocks[-1]._forward_hooks


def _counted(model: nn.Module) -> int:
    counted = count_operators(model, (3, 16, 16))
    return sum(flops for name, flops in counted.items() if name not in NORMS)


def _by_torch(model: nn.Module) -> int:
    model.requires_grad_(False)
    with FlopCounterMode(display=False) as counter:
        model(images(1))
    return counter.get_total_flops() // 2
