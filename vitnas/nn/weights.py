"""A network's weights as safetensors: no code inside, each tensor once."""

from __future__ import annotations

from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn

from vitnas.errors import ConfigError, DataError


def weights_bytes(model: nn.Module) -> bytes:
    """Parameters and saved buffers (batch norm's included) in safetensors' format.

    A module that is used several times is stored once, under its first name.
    """
    content: bytes = save(
        {name: tensor.cpu().contiguous() for name, tensor in state_of(model).items()}
    )
    return content


def load_weights(
    model: nn.Module, weights: bytes | str | Path, file: str | Path | None = None
) -> None:
    """Copy weights into `model` in place: what is shared stays shared, on whatever device it is.

    Args:
        model: the network that the weights are of.
        weights: what `weights_bytes` gave, or a file that holds it.
        file: where bytes are from, for the error.

    Raises:
        DataError: not readable, or not safetensors.
        ConfigError: the weights of another network; `model` is unchanged.
    """
    file = file if isinstance(weights, bytes) else Path(weights)
    stored = _read(weights, file)
    wanted = state_of(model)
    strange = sorted(stored.keys() ^ wanted.keys())
    if strange:
        side = "have no" if strange[0] in wanted else "have an unknown"
        raise ConfigError(f"weights of another network: they {side} '{strange[0]}'", file=file)
    for name, tensor in wanted.items():
        if tensor.shape != stored[name].shape:
            found, expected = list(stored[name].shape), list(tensor.shape)
            rule = f"weights of another network: '{name}' is {found} and should be {expected}"
            raise ConfigError(rule, file=file)
    model.load_state_dict(stored, strict=False)


def state_of(model: nn.Module) -> dict[str, Tensor]:
    """What `model.state_dict()` holds, a shared tensor under its first name only."""
    saved = model.state_dict()
    named = [*model.named_parameters(), *model.named_buffers()]
    return {name: saved[name] for name, _ in named if name in saved}


def _read(weights: bytes | str | Path, file: str | Path | None) -> dict[str, Tensor]:
    where = "weights" if file is None else str(file)
    try:
        content = weights if isinstance(weights, bytes) else Path(weights).read_bytes()
        state: dict[str, Tensor] = load(content)
    except OSError as error:
        raise DataError(f"{where}: {(error.strerror or 'cannot be read').lower()}") from None
    except (SafetensorError, ValueError, KeyError) as error:
        raise DataError(f"{where}: not a safetensors file ({error})") from None
    return state
