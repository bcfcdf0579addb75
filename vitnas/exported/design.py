"""What a network is built from, a model file or a graft.yaml: read, built, sized, written.

`vitnas.config.graft_file.Design` is either; all that depends on which is here.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from vitnas.config.files import dump_yaml, read_network_yaml, validate
from vitnas.config.graft_file import Design, GraftFile
from vitnas.config.model import ModelConfig, load_config
from vitnas.config.one_line import one_line
from vitnas.cost.closed_form import Cost, closed_form
from vitnas.exported.folder import CONFIG_FILE, GRAFT_FILE

if TYPE_CHECKING:
    from torch import nn

    from vitnas.cost.small_scale import Size


def read_design(folder: Path) -> Design:
    """The design in an exported folder.

    Raises:
        ConfigError: its file is missing, or something in it is wrong.
    """
    path = folder / GRAFT_FILE
    if path.is_file():
        return validate(GraftFile, read_network_yaml(path), file=path)
    return load_config(folder / CONFIG_FILE)


def file_of(design: Design) -> str:
    """The name of its file."""
    return GRAFT_FILE if isinstance(design, GraftFile) else CONFIG_FILE


def design_text(design: Design) -> str:
    """What its file holds."""
    return dump_yaml(design.to_tree())


def line_of(design: Design) -> str:
    """The network in one line."""
    return design.line() if isinstance(design, GraftFile) else one_line(design)


def size_of_design(design: Design) -> Cost | Size:
    """Parameters and FLOPs of one image; a graft is built and counted once."""
    return _graft_size(design) if isinstance(design, GraftFile) else closed_form(design)


@cache
def _graft_size(file: GraftFile) -> Size:
    import torch

    from vitnas.cost.small_scale import size_of
    from vitnas.nn.graft.whole import build_graft

    with torch.random.fork_rng(devices=[]):
        return size_of(build_graft(file), file.in_chans)


def build_design(design: Design) -> nn.Module:
    """The network with fresh weights, on the default device.

    Raises:
        ConfigError: it cannot be built.
        MemoryLimitError: a network of ours takes more memory than this machine has free.

    Randomness: the weights, from torch's generator.
    """
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

    Position tables and static keys are interpolated.

    Raises:
        ConfigError: it cannot have this size.
    """
    if not isinstance(design, GraftFile):
        network.resize(image_hw)  # type: ignore[operator]
        return network
    from vitnas.nn.graft.whole import build_graft, resized_state
    from vitnas.nn.weights import load_state

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
