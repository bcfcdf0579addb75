"""What a search scores and what its candidates must meet: objectives, and limits on costs.

Each cost of `costs` is a field of both.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from vitnas.config.costs import COSTS, QUALITIES, Quality
from vitnas.config.findings import RuleError
from vitnas.config.parts import Frozen


class Bounds(Frozen):
    """Least and greatest allowed value, both included."""

    min: Annotated[float, Field(ge=0.0)] | None = Field(
        None, description="least allowed amount; null: no bound"
    )
    max: Annotated[float, Field(gt=0.0)] | None = Field(
        None, description="greatest allowed amount; null: no bound"
    )

    @model_validator(mode="after")
    def _is_not_empty(self) -> Bounds:
        if self.min is not None and self.max is not None and self.min > self.max:
            raise RuleError(f"must not be above max {self.max}", "min", self.min, self.max)
        return self


class Limits(Frozen):
    """What a candidate must meet before it is trained.

    FLOPs (multiply-adds) and parameters are known before anything is built; latency, memory and
    throughput are measured on the device before the first epoch.
    """

    flops: Bounds = Field(Bounds(), description="on multiply-adds of one image")
    num_params: Bounds = Field(Bounds(), description="on numbers to learn")
    latency_ms: Bounds = Field(Bounds(), description="on milliseconds of one image")
    latency_onnx_ms: Bounds = Field(
        Bounds(), description="on milliseconds of one image in onnxruntime, one CPU thread"
    )
    peak_memory_mb: Bounds = Field(Bounds(), description="on 10^6 bytes of one image")
    throughput: Bounds = Field(Bounds(), description="on images a second")

    @model_validator(mode="before")
    @classmethod
    def _are_on_costs(cls, given: Any) -> Any:
        for name in QUALITIES:
            if isinstance(given, dict) and name in given:
                rule = f"is known after the training only; limits are on {', '.join(COSTS)}"
                raise RuleError(rule, name, given[name])
        return given


class Objectives(Frozen):
    """What is scored, two or more: an accuracy and at least one cost.

    The file's order means nothing: stored values have the order of `COSTS`, the accuracy first.
    """

    top1: Literal["maximize"] | None = Field(
        None,
        description="percent on the scoring split, known after the training; it can have no limit",
    )
    top1_int8: Literal["maximize"] | None = Field(
        None,
        description="in place of `top1`: the same of the trained network in int8, as onnxruntime "
        "runs it on the CPU; calibrated on training images, which score nothing",
    )
    flops: Literal["minimize"] | None = Field(
        None, description="multiply-adds of one image, known exactly before anything is built"
    )
    num_params: Literal["minimize"] | None = Field(
        None, description="numbers to learn, known exactly before anything is built"
    )
    latency_ms: Literal["minimize"] | None = Field(
        None, description="milliseconds of a forward pass of one image, measured"
    )
    latency_onnx_ms: Literal["minimize"] | None = Field(
        None,
        description="milliseconds of a forward pass of one image in onnxruntime, on the CPU with "
        "one thread; measured only if an objective or a limit needs it",
    )
    peak_memory_mb: Literal["minimize"] | None = Field(
        None,
        description="10^6 bytes: parameters, the image and the most that the pass allocates at a "
        "time; measured",
    )
    throughput: Literal["maximize"] | None = Field(
        None,
        description="images a second, in forward passes of 64 images; measured only if an "
        "objective or a limit needs it",
    )

    @model_validator(mode="after")
    def _have_one_accuracy(self) -> Objectives:
        if self.top1 is None and self.top1_int8 is None:
            raise RuleError("is required, or top1_int8 in its place", "top1")
        if self.top1 is not None and self.top1_int8 is not None:
            rule = "stands in place of top1, which is recorded with it; name one of the two"
            raise RuleError(rule, "top1_int8", self.top1_int8)
        return self

    @model_validator(mode="after")
    def _have_a_cost(self) -> Objectives:
        if not self.costs:
            rule = f"need a cost beside {self.quality}: {', '.join(COSTS)}"
            raise RuleError(rule, nearest=f"{{{self.quality}: maximize, flops: minimize}}")
        return self

    @model_serializer(mode="wrap")
    def _named_ones(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: way for name, way in dump(self).items() if way is not None}

    @property
    def quality(self) -> Quality:
        """The accuracy among them."""
        return "top1" if self.top1_int8 is None else "top1_int8"

    @property
    def is_int8(self) -> bool:
        """Whether a trained network is scored in int8."""
        return self.quality == "top1_int8"

    @property
    def costs(self) -> tuple[str, ...]:
        """The costs among them."""
        return tuple(name for name in COSTS if getattr(self, name) is not None)
