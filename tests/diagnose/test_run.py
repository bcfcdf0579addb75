"""All diagnostics on small networks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import timm
import torch
from torch import Tensor

from tests.diagnose.networks import CONV, CSKA, MHSA, SKA, config, hooks_of, network, small_swin
from vitnas import api
from vitnas.config.files import dump_yaml
from vitnas.diagnose.names import OF_MAPS, USUAL
from vitnas.diagnose.run import Diagnosis, check_place, diagnose
from vitnas.errors import RunError, VitnasError
from vitnas.nn.graft import graft
from vitnas.training.split import Split

PNG = b"\x89PNG\r\n"


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.set_num_threads(1)
    monkeypatch.chdir(tmp_path)


def images(number: int = 6, channels: int = 1, side: int = 8) -> Split:
    generator = torch.Generator().manual_seed(0)
    x = torch.randint(0, 256, (number, channels, side, side), generator=generator)
    moment: Tensor = torch.full((channels, 1, 1), 100.0)
    return Split(x.to(torch.uint8), torch.zeros(number).long(), moment, moment)


def write_model(path: Path, *stages: dict[str, Any], **fields: Any) -> str:
    path.write_text(dump_yaml(config(*stages, **fields).to_tree()))
    return str(path)


HIERARCHY = (
    CONV,
    MHSA | {"depth": 2, "groups": [2, 1], "nll_ratio": 1.0},
    MHSA | {"embed_dim": 24, "num_heads": 3, "depth": 2},
)


@pytest.mark.slow
def test_a_hierarchy_with_recursion_groups_and_reattention() -> None:
    model = network(*HIERARCHY, stem={"stride": 1}, reattention_blocks=1, residual="lrc")
    found = diagnose(model, images())
    assert set(found.findings) == set(USUAL) - {"lrc"}
    assert "there is no training log" in found.absent["lrc"]
    assert all(figure.startswith(PNG) for figure in found.figures.values())
    tree = json.loads(json.dumps(found.to_tree(), allow_nan=False))
    layers = {layer["name"]: layer for layer in tree["layers"]}
    assert len(layers) == 7
    assert layers["stage 1, block 1"]["why_no_map"] == "dwconv has no attention map"
    assert layers["stage 2, block 2, pass 1"]["map"] is True
    assert layers["stage 3, block 2"]["mixer"] == "mhsa with re-attention"
    numbers = tree["diagnostics"]
    assert [s["stage"] for s in numbers["similarity"]["stages"]] == [2, 3]
    assert numbers["rollout"]["grid"] == [4, 4]
    assert numbers["rollout"]["counted_as_identity"] == ["stage 1, block 1"]
    assert len(numbers["cka"]["cka"]) == 7
    assert [len(one["pixels"]) for one in numbers["distance"]["layers"]] == [2, 2, 2, 2, 3, 3]
    assert not hooks_of(model)


@pytest.mark.slow
@pytest.mark.parametrize("stage", [SKA, CSKA])
def test_static_keys_have_maps(stage: dict[str, Any]) -> None:
    model = network(stage | {"depth": 2}, class_token=True)
    found = diagnose(model, images(), OF_MAPS)
    assert set(found.findings) == set(OF_MAPS)
    assert found.findings["rollout"].numbers["read_from"] == "class token"


@pytest.mark.slow
def test_broad_attention_is_a_layer_of_cka_alone() -> None:
    found = diagnose(network(MHSA | {"depth": 2}, broad={"gamma": 0.4}), images())
    assert found.findings["cka"].numbers["layers"] == ["block 1", "block 2", "broad attention"]
    assert set(found.findings["features"].numbers["cosine"]) == {"block 1", "block 2"}
    assert "none in broad" in found.text()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("vit_tiny_patch16_224", {"img_size": 64, "depth": 3}),
        ("deit_tiny_distilled_patch16_224", {"img_size": 64, "depth": 2}),
        ("cait_xxs24_224", {"img_size": 64, "depth": 2}),
    ],
)
def test_timms_networks(name: str, options: dict[str, Any]) -> None:
    torch.manual_seed(0)
    found = diagnose(timm.create_model(name, **options), images(4, 3, 64))
    assert set(found.findings) == set(USUAL) - {"lrc", "theta"}
    assert not found.found.layers[0].absent


@pytest.mark.slow
def test_windows_are_short_sighted_and_comparable_within_a_stage() -> None:
    found = diagnose(small_swin(64, 4), images(4, 3, 64))
    numbers = {name: finding.numbers for name, finding in found.findings.items()}
    assert [len(stage["ratio"]) for stage in numbers["similarity"]["stages"]] == [2, 2]
    for one in numbers["distance"]["layers"]:
        assert max(one["tokens"]) < 2.5 < one["uniform_tokens"]  # 4 x 4 windows
    assert numbers["rollout"]["grid"] == [16, 16]


def test_the_numbers_are_those_of_the_maps() -> None:
    """One block of one head over 4 x 4 tokens against the map as the mixer computes it."""
    model = network(MHSA | {"num_heads": 1})
    shown = images(2)
    mixer: Any = model.stages[0].blocks[0].mixer
    kept: list[Tensor] = []
    mixer.fused_attn = False
    handle = mixer.attn_drop.register_forward_hook(lambda m, args, out: kept.append(out))
    with torch.no_grad():
        model(shown.normalise(shown.x))
    handle.remove()
    mixer.fused_attn = True
    places = torch.cartesian_prod(torch.arange(4.0), torch.arange(4.0))
    expected = (kept[0][:, 0] * torch.cdist(places, places)).sum(-1).mean()
    found = diagnose(model, shown, ["distance"]).findings["distance"].numbers["layers"][0]
    assert found["tokens"][0] == pytest.approx(float(expected), abs=1e-5)
    assert found["pixels"][0] == pytest.approx(2 * float(expected), abs=1e-5)


def test_a_network_without_maps_is_still_looked_into() -> None:
    found = diagnose(network(CONV | {"depth": 2}), images())
    assert set(found.findings) == {"features", "cka", "responses"}
    for name in OF_MAPS:
        assert found.absent[name] == "no block of this network has an attention map (dwconv)"
    assert "not done: no block of this network has an attention map" in found.text()


def test_nothing_to_be_done_is_an_error() -> None:
    with pytest.raises(VitnasError) as error:
        diagnose(network(CONV), images(), ["similarity", "rollout", "lrc"])
    assert str(error.value).startswith("no block of this network has an attention map (dwconv)")
    assert str(error.value).count("no block") == 1


def test_an_image_that_is_not_there() -> None:
    with pytest.raises(VitnasError, match=r"--image = 6: must be from 0 to 5 \(nearest: 5\)"):
        diagnose(network(MHSA), images(), ["rollout"], image=6)


def done(folder: Path, only: list[str]) -> Diagnosis:
    found = diagnose(network(MHSA | {"depth": 2}), images(), only)
    found.write(folder)
    return found


def test_an_earlier_diagnosis_is_replaced(tmp_path: Path) -> None:
    done(tmp_path / "out", ["cka", "heads"])
    assert {p.name for p in (tmp_path / "out").iterdir()} == {
        "cka.png",
        "heads.png",
        "diagnosis.json",
    }
    done(tmp_path / "out", ["features"])
    assert {p.name for p in (tmp_path / "out").iterdir()} == {"features.png", "diagnosis.json"}


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="cannot be written"):
        done(tmp_path / "file" / "out", ["cka"])


@pytest.mark.slow
@pytest.mark.parametrize("mixer", ["ska", "cska"])
def test_a_graft_is_looked_into_like_what_it_replaced(mixer: str) -> None:
    torch.manual_seed(0)
    model = timm.create_model("vit_tiny_patch16_224", img_size=64, depth=2)
    graft(model, mixer=mixer)
    found = diagnose(model, images(4, 3, 64), OF_MAPS)
    assert [layer.mixer for layer in found.found.layers] == [mixer] * 2
    assert set(found.findings) == set(OF_MAPS)


def test_a_grafted_reattention_shows_the_mixed_map() -> None:
    torch.manual_seed(0)
    model = timm.create_model("vit_tiny_patch16_224", img_size=64, depth=2)
    graft(model, reattention_blocks=1)
    found = diagnose(model, images(4, 3, 64), ["similarity"])
    assert [layer.mixer for layer in found.found.layers] == [
        "Attention",
        "Attention with re-attention",
    ]


@pytest.mark.slow
def test_from_a_long_training_to_the_evolution_of_its_coefficients(tmp_path: Path) -> None:
    """Train, then look: every diagnostic has something to show, but for that of re-attention,
    which no network with token groups has."""
    shown = set(USUAL) - {"theta"}
    model = write_model(tmp_path / "m.yaml", MHSA | {"groups": [2, 1], "nll_ratio": 1.0,
                                                     "depth": 2}, residual="lrc")  # fmt: skip
    api.train(model, tmp_path / "trained", data="digits", epochs=2)
    found, folder = api.diagnose(tmp_path / "trained", "digits", images=32)
    assert set(found.findings) == shown
    curves = found.findings["lrc"].numbers
    assert curves["epochs"] == [1, 2]
    last: Any = found.found.network
    value = float(last.stages[0].blocks[1].nlls[0].residual.identity.detach())
    assert curves["blocks"]["1.2"]["nll 1"]["identity"][-1] == pytest.approx(value, abs=1e-5)
    assert {path.name for path in folder.iterdir()} == {f"{name}.png" for name in shown} | {
        "diagnosis.json"
    }


@pytest.mark.parametrize("name", ["heads.png", "diagnosis.json"])
def test_a_file_of_somebody_else_is_left_alone(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(RunError, match=f"{name}: is .*give another --out"):
        check_place(tmp_path)
    assert (tmp_path / name).read_text() == "mine"
