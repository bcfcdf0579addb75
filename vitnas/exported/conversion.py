"""The result of a conversion of another code's weights."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from vitnas.config.design import ModelOrGraft
from vitnas.nn.zoo.weights.layout import Layout


@dataclass(frozen=True)
class Conversion:
    """The weights that were read, their network, and the folder that was written.

    Attributes:
        folder: the folder that was written.
        config: the network.
        layout: the code from which the weights come.
        file, sha256, entry: the file, its hash, and the key of the state dict in it.
        tensors: number of tensors of the file that were used.
        options: fields that were set because that code computes so: address -> value.
        dropped: tensor that was not used -> why.
        remarks: further notes for the user.
    """

    folder: Path
    config: ModelOrGraft
    layout: Layout
    file: Path
    sha256: str
    entry: str
    tensors: int
    options: dict[str, str]
    dropped: dict[str, str]
    remarks: tuple[str, ...]

    def text(self) -> str:
        """What `vitnas convert` prints of it."""
        lines = [f"{self.file.name}: {self.tensors} tensors of {self.config.name}, none left over"]
        if self.options:
            options = ", ".join(f"{name} {value}" for name, value in self.options.items())
            lines.append(f"  as {self.layout.title} has it: {options}")
        lines += (f"  left out: {name} ({why})" for name, why in self.dropped.items())
        lines += (f"  {remark}" for remark in self.remarks)
        return "\n".join(lines)
