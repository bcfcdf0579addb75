"""What a network is built from: read, built, sized, written.

`vitnas.config.design.Design` is a model file, a graft.yaml or a baseline.yaml; all that depends on
which is here.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vitnas.config.baseline import Baseline
from vitnas.config.design import Design
from vitnas.config.files import dump_yaml, exists, read_network_yaml, validate
from vitnas.config.graft_file import GraftFile
from vitnas.config.model import ModelConfig, load_config
from vitnas.config.one_line import one_line
from vitnas.cost.closed_form import Cost, closed_form
from vitnas.errors import ConfigError, printable
from vitnas.exported.folder import BASELINE_FILE, CONFIG_FILE, GRAFT_FILE, why_no_network

if TYPE_CHECKING:
    from torch import nn

    from vitnas.cost.small_scale import Size


def read_design(folder: Path) -> Design:
    """The design in an exported folder.

    Raises:
        ConfigError: the folder has none, or something in it is wrong.
    """
    if (path := folder / GRAFT_FILE).is_file():
        return validate(GraftFile, read_network_yaml(path), file=path)
    if (path := folder / BASELINE_FILE).is_file():
        return validate(Baseline, read_network_yaml(path), file=path)
    if exists(path := folder / CONFIG_FILE):
        return load_config(path)
    raise ConfigError(why_no_network(folder), file=folder)


def file_of(design: Design) -> str:
    """The name of its file."""
    if isinstance(design, Baseline):
        return BASELINE_FILE
    return GRAFT_FILE if isinstance(design, GraftFile) else CONFIG_FILE


def design_text(design: Design) -> str:
    """What its file holds."""
    return dump_yaml(design.to_tree())


def line_of(design: Design) -> str:
    """The network in one line."""
    return one_line(design) if isinstance(design, ModelConfig) else design.line()


def size_of_design(design: Design) -> Cost | Size:
    """Parameters and FLOPs of one image; a graft and a baseline are built and counted once.

    Raises:
        ConfigError: a network of timm does not take images of its size.
        UncountedOperatorError: it has an operator whose FLOPs are not known.
    """
    if isinstance(design, ModelConfig):
        return closed_form(design)
    return _graft_size(design) if isinstance(design, GraftFile) else _baseline_size(design)


@cache
def _graft_size(file: GraftFile) -> Size:
    import torch

    from vitnas.cost.small_scale import size_of
    from vitnas.nn.graft.whole import build_graft

    with torch.random.fork_rng(devices=[]):
        model: Any = build_graft(file)
        try:
            return size_of(model, file.in_chans)
        except (TypeError, ValueError, LookupError, AssertionError, RuntimeError) as error:
            why, (height, width) = str(error).strip().splitlines() or [""], model.image_hw
            rule = f"{file.model} does not take images of {height}x{width} px: {printable(why[-1])}"
            raise ConfigError(rule, address="img_size") from None


def _baseline_size(baseline: Baseline) -> Size:
    from vitnas.baselines.sizes import price
    from vitnas.cost.small_scale import Size

    found = price(baseline)
    return Size(found.num_params, found.flops)


def build_design(design: Design) -> nn.Module:
    """The network with fresh weights, on the default device.

    Raises:
        ConfigError: it cannot be built.
        MemoryLimitError: a network of ours or a baseline takes more memory than this machine has
            free.

    Randomness: the weights, from torch's generator.
    """
    if isinstance(design, Baseline):
        from vitnas.baselines.families import build_baseline
        from vitnas.baselines.sizes import check_room

        check_room(design)
        return build_baseline(design)
    if isinstance(design, GraftFile):
        from vitnas.nn.graft.whole import build_graft

        return build_graft(design)
    from vitnas.nn.model import build_model

    return build_model(design)


def network_of(
    design: Design, weights: bytes | str | Path, file: str | Path | None = None
) -> nn.Module:
    """The network with weights, in eval mode on the CPU; arguments as of `load_weights`.

    Raises:
        ConfigError: it cannot be built, or the weights belong to another network.
        DataError: the weights are missing, unreadable or damaged.
    """
    from vitnas.nn.weights import load_weights, network_with

    if isinstance(design, ModelConfig):
        return network_with(design, weights, file)
    import torch

    with torch.random.fork_rng(devices=[]):
        model = build_design(design)
    load_weights(model, weights, file)
    return model.eval()


def brought_to(network: nn.Module, design: Design, image_hw: tuple[int, int]) -> nn.Module:
    """A network of `design` at another image size; the given one may be changed for it.

    Position tables and static keys are interpolated; those of a baseline are not.

    Raises:
        ConfigError: it cannot have this size.
    """
    if isinstance(design, ModelConfig):
        network.resize(image_hw)  # type: ignore[operator]
        return network
    from vitnas.nn.weights import load_state, state_of

    if isinstance(design, Baseline):
        changed = build_design(design.changed(image_hw=image_hw))
        try:
            load_state(changed, state_of(network))
        except ConfigError:
            (h, w), (height, width) = design.image_hw, image_hw
            rule = f"weights of {design.name} for {h}x{w} px do not fit {height}x{width} px"
            raise ConfigError(f"{rule}: its layers follow from the size") from None
        return changed.eval()
    from vitnas.nn.graft.whole import build_graft, resized_state

    other = build_graft(design.changed(img_size=image_hw))
    load_state(other, resized_state(network, other))
    return other.eval()


def settled_design(design: Design) -> Design:
    """The design with all sizes written out; of a graft, timm is asked for those not given.

    Raises:
        ConfigError: it cannot be built.
    """
    if not isinstance(design, GraftFile):
        return design
    from vitnas.nn.graft.whole import settled

    return settled(design)
