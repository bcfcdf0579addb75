"""The proxy's weights of the networks on the front: `weights/<trial>.safetensors` in the run.

Other networks' weights are not kept: a training is a function of configuration and seed, so
they can be made again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from vitnas.config.files import write_bytes
from vitnas.records import TrialRecord, front_of


class FrontWeights:
    """The folder `weights/` of a run."""

    def __init__(self, run: Path) -> None:
        self.folder = run / "weights"

    def path(self, number: int) -> Path:
        return self.folder / f"{number}.safetensors"

    def put(self, number: int, content: bytes) -> None:
        """Store the weights of trial `number`, whole or not at all."""
        write_bytes(self.path(number), content)

    def get(self, number: int) -> bytes | None:
        """The weights of trial `number`, or None when they are not kept."""
        path = self.path(number)
        return path.read_bytes() if path.is_file() else None

    def keep_front(self, trials: Iterable[TrialRecord], costs: Sequence[str]) -> None:
        """Delete the weights of every network that is not on the front of top-1 and `costs`."""
        kept = {self.path(trial.number) for trial in front_of(trials, costs)}
        for path in self.folder.glob("*.safetensors"):
            if path not in kept:
                path.unlink(missing_ok=True)
