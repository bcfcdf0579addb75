"""Work on a CUDA device that is captured once and then launched as a whole: a CUDA graph."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

Work = Callable[..., Tensor]


class Replayed:
    """Calls a function of tensors, from its second call with inputs of some shapes on as a graph.

    The kernels of a small network take less time than their launches from Python. A graph launches
    all of them at once. It does the same arithmetic in the same order, and draws from torch's
    global generator as the call does. `torch.cuda.make_graphed_callables` would leave clipping and
    the optimizer outside, and takes inputs of one shape.

    The first call runs as it is, so that libraries and caches are ready. The second captures it and
    replays the graph. Each set of shapes has a graph of its own, and all of them share one pool of
    memory. Where a call cannot be captured, one warning says so, and all others run as they are.
    """

    def __init__(self) -> None:
        self._is_refused = False
        self._graphs: dict[_Shapes, _Graph | None] = {}
        self._pool: Any = None

    def __call__(self, work: Work, *inputs: Tensor) -> Tensor:
        """What `work(*inputs)` gives; valid until the next call.

        Args:
            work: the same in each call. It reads no value on the host, and nothing changes there
                from call to call but the inputs.
            inputs: on one CUDA device.
        """
        shapes = tuple((one.shape, one.dtype) for one in inputs)
        is_known = shapes in self._graphs
        graph = self._graphs.setdefault(shapes, None)
        if is_known and graph is None and not self._is_refused:
            graph = self._graphs[shapes] = self._captured(work, inputs)
        if graph is None:
            return work(*inputs)
        torch._foreach_copy_(graph.inputs, list(inputs))
        graph.whole.replay()
        return graph.output

    def _captured(self, work: Work, inputs: tuple[Tensor, ...]) -> _Graph | None:
        """The graph of a call with these inputs, which has not run yet; None where it fails."""
        held, whole = [one.clone() for one in inputs], torch.cuda.CUDAGraph()
        device = held[0].device
        try:
            # other threads of this process may use the device meanwhile
            capture = torch.cuda.graph(whole, self._pool, capture_error_mode="thread_local")
            with torch.cuda.device(device), capture:
                output = work(*held)
            self._pool = whole.pool()
        except RuntimeError as error:
            self._is_refused = True
            _recover_randomness(device)
            line = (str(error).strip().splitlines() or [type(error).__name__])[0]
            warnings.warn(f"steps are not captured as a CUDA graph: {line}", stacklevel=2)
            return None
        return _Graph(held, whole, output)


_Shapes = tuple[tuple[torch.Size, torch.dtype], ...]


class _Graph(NamedTuple):
    """What replaying needs: where the inputs go, and where the output appears."""

    inputs: list[Tensor]
    whole: torch.cuda.CUDAGraph
    output: Tensor


def _recover_randomness(device: torch.device) -> None:
    """Let torch's generator draw again: a capture that fails leaves it waiting for its end."""
    generator = torch.cuda.default_generators[device.index or 0]
    generator.graphsafe_set_state(generator.clone_state())
