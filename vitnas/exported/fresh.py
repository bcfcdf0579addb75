"""Run as a program of its own: compare the files of an exported folder with known scores.

    python fresh.py FOLDER SCORES

Neither vitnas nor timm can be imported in it. SCORES is a file of `torch.save` with images and
their scores. It prints JSON: of each file the largest difference, in units of the largest score,
and the share of images whose most likely class is the same.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor


def main(folder: Path, given: Path) -> dict[str, tuple[float, float]]:
    """Of each file there is: its largest difference, and the share of equal classes."""
    import torch

    images, expected = torch.load(given, weights_only=True)
    found = {}
    for name, open_file in _READERS.items():
        if (folder / name).is_file():
            with torch.inference_mode():
                found[name] = _compared(open_file(folder / name)(images), expected)
    return found


def _compared(scores: Tensor, expected: Tensor) -> tuple[float, float]:
    """A class is the same if its expected score is the highest, except for rounding."""
    scale = float(expected.abs().max().clamp_min(1.0))
    chosen = expected.gather(1, scores.argmax(1, keepdim=True))[:, 0]
    same = chosen >= expected.max(1).values - 1e-5 * scale
    return float((scores - expected).abs().max()) / scale, float(same.float().mean())


def _source(path: Path) -> Callable[[Tensor], Tensor]:
    spec = spec_from_file_location("exported_model", path)
    assert spec is not None
    assert spec.loader is not None
    module: Any = module_from_spec(spec)
    spec.loader.exec_module(module)
    network: Callable[[Tensor], Tensor] = module.load()
    return network


def _program(path: Path) -> Callable[[Tensor], Tensor]:
    import torch

    module: Callable[[Tensor], Tensor] = torch.export.load(path).module()
    return module


def _onnx(path: Path) -> Callable[[Tensor], Tensor]:
    import onnxruntime
    import torch

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    (entry,) = session.get_inputs()
    return lambda images: torch.from_numpy(session.run(None, {entry.name: images.numpy()})[0])


_READERS = {"model.py": _source, "model.pt2": _program, "model.onnx": _onnx}


if __name__ == "__main__":
    here = Path(__file__).resolve().parent
    sys.path[:] = [path for path in sys.path if Path(path).resolve() != here]
    sys.dont_write_bytecode = True
    absent: Any = dict.fromkeys(("vitnas", "timm"))  # None: cannot be imported
    sys.modules.update(absent)
    print(json.dumps(main(Path(sys.argv[1]), Path(sys.argv[2]))))
