"""config.json: what timm needs to load a folder, `timm.create_model("local-dir:FOLDER")`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field

from vitnas.config.baseline import Baseline
from vitnas.config.design import Design
from vitnas.config.files import exists, validate
from vitnas.config.graft_file import GraftFile
from vitnas.config.parts import Frozen, as_tuple
from vitnas.errors import ConfigError, DataError, printable, reason_of
from vitnas.exported.folder import WEIGHTS_FILE, sha256_of
from vitnas.exported.preprocessing import Interpolation, Preprocessing, of_timm
from vitnas.files import read_bytes
from vitnas.nn.zoo import grafted, reference
from vitnas.nn.zoo.entrypoints import ANY, weights_of

HUB_FILE, DIGEST = "config.json", "weights_sha256"
_MOST_BYTES = 1 << 24
_Value = Annotated[float, Field(ge=-1e6, le=1e6)]
_Deviation = Annotated[float, Field(gt=0.0, le=1e6)]


def hub_text(design: Design, names: Sequence[str], how: Preprocessing, **more: Any) -> str:
    """config.json in the form of timm's hub (timm.models.save_for_hf).

    Its architecture is `vitnas`, `vitnas_graft` or `vitnas_baseline`, which `import vitnas`
    registers with timm; `model_args` are the fields of config.yaml, graft.yaml or baseline.yaml.

    Args:
        design: the network; of a graft, with its sizes written out.
        names: of its classes, or none.
        how: how an image becomes its input.
        **more: entries of vitnas's own, which timm leaves alone.
    """
    found: dict[str, Any] = {
        "architecture": _architecture(design),
        "num_classes": design.num_classes,
        "model_args": _model_args(design),
        "pretrained_cfg": pretrained_cfg(design, how),
    }
    if names:
        found["label_names"] = list(names)
    if how.remark:
        found["remark"] = how.remark
    return json.dumps(found | more, indent=2, ensure_ascii=False) + "\n"


def tell_timm(model: Any, design: Design, how: Preprocessing) -> None:
    """Give a network what timm's own have: `timm.data.resolve_model_data_config` reads how its
    images are prepared, and `timm.models.save_for_hf` writes what it is built from."""
    of_timm = getattr(model, "pretrained_cfg", None) or {}
    ours = {**pretrained_cfg(design, how), "architecture": _architecture(design)}
    model.pretrained_cfg = {**of_timm, **ours}
    model._model_args = _model_args(design)


def _model_args(design: Design) -> dict[str, Any]:
    return {key: value for key, value in design.to_tree().items() if key != "name"}


def _architecture(design: Design) -> str:
    if isinstance(design, Baseline):
        return reference.BASELINE
    return grafted.GRAFTED if isinstance(design, GraftFile) else ANY


def pretrained_cfg(design: Design, how: Preprocessing) -> dict[str, Any]:
    """The fields that timm's data pipeline and its loading of weights read."""
    return {
        "custom_load": False,
        "input_size": (design.in_chans, *design.image_hw),
        "fixed_input_size": True,
        "interpolation": how.interpolation,
        "crop_pct": how.crop,
        "crop_mode": "squash" if how.fit == "stretch" else "center",
        "mean": how.mean,
        "std": how.std,
        "num_classes": design.num_classes,
        **_layers(design),
    }


def _layers(design: Design) -> dict[str, Any]:
    if isinstance(design, Baseline):
        return reference.layers_of(design)
    if isinstance(design, GraftFile):
        return grafted.layers_of(design)
    pool = list(design.grids[-1]) if len(design.stages) > 1 else None
    return {"pool_size": pool, **weights_of(design)}


def check_weights(folder: Path) -> None:
    """Make sure that a folder's weights are those that its config.json was written with.

    Folders without config.json, or of earlier code, do not say which these are.

    Raises:
        DataError: they are others, or a file cannot be read.
    """
    path, weights = folder / HUB_FILE, folder / WEIGHTS_FILE
    stated = read_hub(path).get(DIGEST) if exists(path) else None
    if stated is not None and stated != (found := sha256_of(weights)):
        raise DataError(
            f"{weights}: is not the file that was written here: its SHA-256 begins with "
            f"{found[:12]}, and {DIGEST} in {HUB_FILE} with {printable(str(stated))[:12]}"
        )


def read_preprocessing(folder: Path, channels: int) -> Preprocessing | None:
    """How an image becomes the input of a folder's network; None where it has no config.json.

    Raises:
        DataError: the file cannot be read, or is not JSON.
        ConfigError: a value is wrong, or for another number of channels.
    """
    path = folder / HUB_FILE
    if not exists(path):
        return None
    tree = read_hub(path)
    found = validate(_Stated, tree.get("pretrained_cfg"), file=path)
    for name in ("mean", "std"):
        value = getattr(found, name)
        if len(value) != channels:
            rule = f"the network takes {channels} channels"
            raise ConfigError(rule, address=name, value=list(value), file=path)
    remark = tree.get("remark", "")
    how = of_timm(found.model_dump(), channels)
    return replace(how, remark=remark) if isinstance(remark, str) else how


def stated_pixels(folder: Path, network: Any) -> Mapping[str, Any]:
    """`mean` and `std` of each channel, for pixels from 0 to 1, that a folder's network was trained
    with: what config.json says, else timm's `pretrained_cfg`; empty where nothing says it.

    Raises:
        DataError, ConfigError: as `read_preprocessing`.
    """
    how = read_preprocessing(folder, network.in_chans)
    return (getattr(network, "pretrained_cfg", None) or {}) if how is None else vars(how)


class _Stated(Frozen):
    """What is read of `pretrained_cfg`; it has more fields."""

    model_config = ConfigDict(extra="ignore")

    mean: Annotated[tuple[_Value, ...], BeforeValidator(as_tuple)]
    std: Annotated[tuple[_Deviation, ...], BeforeValidator(as_tuple)]
    interpolation: Interpolation = "bicubic"
    crop_pct: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0
    crop_mode: Literal["center", "squash"] = "center"


def read_hub(path: Path) -> dict[str, Any]:
    """All that is in a config.json.

    Raises:
        DataError: the file cannot be read, or is not JSON.
    """
    try:
        tree = json.loads(read_bytes(path, _MOST_BYTES))
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {reason_of(error)}") from None
    except (ValueError, RecursionError):
        raise DataError(f"{path}: is not JSON") from None
    if not isinstance(tree, dict):
        raise DataError(f"{path}: is not an object of JSON")
    return tree
