"""What a network may cost: one record for each cost, and how amounts are compared and written;
and which accuracy stands against the costs.

Plain Python. A new cost is a record here, a function where its `measured_by` says, and a field of
`Objectives` and `Limits`; searches, limits, tables, plots and pages read the record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, log
from typing import Any, Literal, Protocol

from vitnas.config.notation import human

Direction = Literal["minimize", "maximize"]


@dataclass(frozen=True)
class CostKind:
    """Everything that is said of a cost.

    Attributes:
        name: in space files, studies and tables.
        head: heading of a narrow column.
        noun: within a sentence.
        best: the word for its best value, with `noun` after it.
        axis: of a plot.
        unit: after an amount; empty for counts, which have `k`, `M` or `G`.
        direction: which way is better.
        measured_by: `module:function`, a function of a network and a batch of images that gives
            the amount. None: the cost follows from the configuration.
        batch: images of the pass that is measured.
        by_onnx: whether onnxruntime makes that pass, on the CPU and with the packages of the extra
            `onnx`, in a file that is exported for it.
    """

    name: str
    head: str
    noun: str
    best: str
    axis: str
    unit: str = ""
    direction: Direction = "minimize"
    measured_by: str | None = None
    batch: int = 1
    by_onnx: bool = False

    @property
    def sign(self) -> int:
        """1, or -1 if more is better: a lower amount times `sign` is better."""
        return 1 if self.direction == "minimize" else -1

    @property
    def is_told_by_unit(self) -> bool:
        """Whether an amount with its unit says which cost it is."""
        return bool(self.unit) and not self.by_onnx

    @property
    def is_measured(self) -> bool:
        """Whether it is known only after a measurement on a device."""
        return self.measured_by is not None


_KINDS = (
    CostKind("flops", "FLOPs", "FLOPs", "Fewest", "FLOPs of one image (multiply-adds)"),
    CostKind("num_params", "params", "parameters", "Fewest", "parameters"),
    CostKind(
        "latency_ms", "latency", "latency", "Lowest", "latency of one image (ms)", "ms",
        measured_by="vitnas.cost.device:latency_ms",
    ),
    CostKind(
        "latency_onnx_ms", "onnx latency", "latency in onnxruntime", "Lowest",
        "latency of one image in onnxruntime, one CPU thread (ms)", "ms",
        measured_by="vitnas.exported.runtime:latency_onnx_ms", by_onnx=True,
    ),
    CostKind(
        "peak_memory_mb", "memory", "peak memory", "Lowest", "peak memory of one image (MB)", "MB",
        measured_by="vitnas.cost.device:peak_memory_mb",
    ),
    CostKind(
        "throughput", "throughput", "throughput", "Highest",
        "throughput in batches of 64 (images/s)", "images/s", "maximize",
        measured_by="vitnas.cost.device:throughput", batch=64,
    ),
)  # fmt: skip
COSTS: Mapping[str, CostKind] = {kind.name: kind for kind in _KINDS}
"""All costs by name, in the one order in which values are stored."""
EXACT = tuple(kind.name for kind in _KINDS if not kind.is_measured)
"""Costs that follow from the configuration."""
MEASURED = tuple(kind.name for kind in _KINDS if kind.is_measured)
"""Costs that are measured on the device, before the first epoch."""
DEFAULT_COSTS = ("flops",)

Quality = Literal["top1", "top1_int8"]
QUALITIES: Mapping[Quality, str] = {"top1": "top-1", "top1_int8": "int8 top-1"}
"""The accuracies that a search may maximise, with their names in texts. The second one is that of
the trained network in int8 (see `vitnas.exported.quantized`)."""


class Priced(Protocol):
    """A record of what a network costs. It may have `measured`: measured amounts by name."""

    @property
    def flops(self) -> int: ...
    @property
    def num_params(self) -> int: ...


def cost_of(network: Priced, name: str) -> float | None:
    """A cost of a network; None where it has to be measured and has not been."""
    if not COSTS[name].is_measured:
        amount: float = getattr(network, name)
        return amount
    amounts: Mapping[str, float] = getattr(network, "measured", {})
    return amounts.get(name)


def costs_of(space: Any) -> tuple[str, ...]:
    """The costs among the objectives of a stored space; FLOPs where it does not say."""
    named = space.get("objectives") if isinstance(space, Mapping) else None
    if not isinstance(named, Mapping):
        return DEFAULT_COSTS
    return tuple(name for name in COSTS if named.get(name) is not None) or DEFAULT_COSTS


def quality_of(space: Any) -> Quality:
    """The accuracy among the objectives of a stored space; top-1 where it does not say."""
    named = space.get("objectives") if isinstance(space, Mapping) else None
    is_int8 = isinstance(named, Mapping) and named.get("top1_int8") is not None
    return "top1_int8" if is_int8 else "top1"


def measured_with(asked: Sequence[str]) -> tuple[str, ...]:
    """The costs that are measured if `asked` are needed: PyTorch's pass of one image measures all
    costs of it."""
    if not asked:
        return ()
    free = {name for name in MEASURED if COSTS[name].batch == 1 and not COSTS[name].by_onnx}
    return tuple(name for name in MEASURED if name in asked or name in free)


def directions_of(costs: Sequence[str]) -> list[Direction]:
    """Optuna's directions of an accuracy and `costs`."""
    return ["maximize", *(COSTS[name].direction for name in costs)]


def log_cost(name: str, value: float) -> float:
    """ln of a cost, negated if more is better; 0 for a cost of 0. Costs are compared by it."""
    return COSTS[name].sign * log(value) if value > 0 else 0.0


def log_costs(names: Sequence[str], values: Sequence[float]) -> tuple[float, ...]:
    """`log_cost` of the values of several costs."""
    return tuple(map(log_cost, names, values))


def amount(name: str, value: float) -> str:
    """A cost as people read it: `41.2 M` for counts, `0.530 ms`, `1.20 MB`."""
    unit = COSTS[name].unit
    if not unit:
        return human(value)
    is_whole = not isfinite(value) or abs(value) >= 100 or value == 0
    return f"{f'{value:,.0f}' if is_whole else f'{value:#.3g}'} {unit}"
