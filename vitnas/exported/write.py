"""The files of a network that every export has: one place writes and checks them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vitnas.config.baseline import Baseline
from vitnas.config.design import Design
from vitnas.config.files import write_bytes, write_text
from vitnas.config.graft_file import GraftFile
from vitnas.errors import ConfigError, nearest_name
from vitnas.exported.check import Check, check_files
from vitnas.exported.design import design_text, file_of, network_of
from vitnas.exported.folder import WEIGHTS_FILE, write_classes
from vitnas.exported.held_out import HELD_OUT, HeldOut
from vitnas.exported.hub import DIGEST, HUB_FILE, hub_text
from vitnas.exported.preprocessing import Preprocessing, unknown
from vitnas.exported.programs import write_programs

if TYPE_CHECKING:
    from torch import Tensor

SOURCE_FILE = "model.py"
FORMATS = ("py", "pt2", "onnx")
"""Files that run without vitnas, by the end of their names."""


@dataclass(frozen=True)
class Content:
    """A network to be written.

    Attributes:
        design: the network.
        weights: in safetensors' format.
        title: what it is, in a few words.
        names: of its classes; empty where they are not known.
        preprocessing: how an image becomes its input; None = it is not known.
        images: normalised images (n, C, H, W) to check the files on; None = random ones.
        formats: which of `FORMATS` are written, too.
        held_out: how its training split its images; None = it is not known.
    """

    design: Design
    weights: bytes
    title: str
    names: Sequence[str] = ()
    preprocessing: Preprocessing | None = None
    images: Tensor | None = None
    formats: tuple[str, ...] = ()
    held_out: HeldOut | None = None


@dataclass(frozen=True)
class Written:
    """The files of `FORMATS` in a folder.

    Attributes:
        preprocessing: what model.py has.
        left_out: why a file is not there, by its name.
        check: how the files compare with the network; None if none was written.
    """

    preprocessing: Preprocessing
    left_out: dict[str, str] = field(default_factory=dict)
    check: Check | None = None

    @property
    def files(self) -> tuple[str, ...]:
        """The files that are there and agree with the network."""
        return tuple(self.check.differences) if self.check else ()

    def lines(self) -> list[str]:
        """What a command prints of it."""
        lines = [f"{name}: left out, because {why}" for name, why in self.left_out.items()]
        if self.check:
            worst = max(self.check.differences.values())
            named = ", ".join(self.files)
            lines.append(
                f"{named}: the same scores without vitnas on {self.check.images} "
                f"(largest difference {worst:.0e})"
            )
        return lines


def parse_formats(text: str) -> tuple[str, ...]:
    """`"py,onnx"` -> `("py", "onnx")`; `none` -> `()`.

    Raises:
        ConfigError: there is no such format.
    """
    asked = [name.strip() for name in text.split(",")] if text != "none" else []
    for name in asked:
        if name not in FORMATS:
            rule = f"must be of {', '.join(FORMATS)}, with commas between, or none"
            nearest = nearest_name(name, FORMATS)
            raise ConfigError(rule, address="--formats", value=name, nearest=nearest)
    return tuple(name for name in FORMATS if name in asked)


def write_network(draft: Path, folder: Path, content: Content) -> Written:
    """Write the design, config.json, the weights, the names of the classes, and `formats`.

    The files of `formats` are run in a fresh process without vitnas.

    Args:
        draft: the folder that is written to.
        folder: the folder that it becomes.
        content: what is written.

    Raises:
        RunError: a file does not compute what the network does.
    """
    design = content.design
    write_text(draft / file_of(design), design_text(design))
    write_bytes(draft / WEIGHTS_FILE, content.weights)
    write_classes(draft, content.names)
    preprocessing = content.preprocessing or unknown(design.in_chans)
    facts: dict[str, Any] = {"title": content.title}
    if content.held_out is not None:
        facts[HELD_OUT] = content.held_out.model_dump()
    facts[DIGEST] = sha256(content.weights).hexdigest()
    write_text(draft / HUB_FILE, hub_text(design, content.names, preprocessing, **facts))
    if not content.formats:
        return Written(preprocessing)
    network: Any = network_of(design, content.weights)
    left_out = _write_source(draft, content, preprocessing) if "py" in content.formats else {}
    left_out |= write_programs(draft, network, content.formats)
    if not _runnable(draft, content.formats):
        return Written(preprocessing, left_out)
    check = check_files(draft, network, content.images, str(folder))
    return Written(preprocessing, left_out, check)


def _runnable(draft: Path, formats: Iterable[str]) -> bool:
    return any((draft / f"model.{name}").is_file() for name in formats)


def _write_source(draft: Path, content: Content, how: Preprocessing) -> dict[str, str]:
    """Write model.py; why it is left out, where it is."""
    from vitnas.exported.source.expressed import unexpressed
    from vitnas.exported.source.write import model_source, plain_source

    design = content.design
    if isinstance(design, GraftFile):
        from vitnas.nn.graft.networks import BUILT_HERE

        ours = design.model in BUILT_HERE
        why = f"it has no text for {design.model} yet" if ours else f"{design.model} is timm's code"
        return {SOURCE_FILE: why}
    if isinstance(design, Baseline):
        from vitnas.exported.source.plain import plain_layers

        if not (layers := plain_layers(design)):
            return {SOURCE_FILE: f"the blocks of {design.name} are timm's code"}
        source = plain_source(design, layers, how, content.title)
        write_text(draft / SOURCE_FILE, source)
        return {}
    field_without = unexpressed(design)
    if field_without:
        return {SOURCE_FILE: f"it has no text for {field_without} yet"}
    write_text(draft / SOURCE_FILE, model_source(design, how, content.title))
    return {}
