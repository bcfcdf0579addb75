"""What a conversion of foreign weights did."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from vitnas.config.model import ModelConfig
from vitnas.nn.zoo.weights.layout import Layout


@dataclass(frozen=True)
class Conversion:
    """What was read, as which network, and where it was written.

    Attributes:
        folder: what was written.
        config: the network.
        layout: the code that the weights are of.
        file, sha256, entry: where they were read, its hash, and the key of the state dict in it.
        tensors: how many tensors of the file were read.
        options: what was set because that code computes it: address -> value as in a model file.
        dropped: tensors that were not read, and why.
        remarks: what else has to be known.
    """

    folder: Path
    config: ModelConfig
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
