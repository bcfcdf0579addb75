"""A network's weights as safetensors: no code inside, each tensor once, every number checked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import load, save
from torch import Tensor, nn

from vitnas.config.model import ModelConfig
from vitnas.cost.closed_form import closed_form
from vitnas.errors import ConfigError, DataError, reason_of, shorten
from vitnas.files import open_file
from vitnas.nn.model import HybridTransformer, build_model
from vitnas.nn.numbers import check_finite, kind_of


def weights_bytes(model: nn.Module) -> bytes:
    """Parameters and saved buffers (batch norm's included) in safetensors' format.

    A module that is used several times is stored once, under its first name.
    """
    content: bytes = save(
        {name: tensor.cpu().contiguous() for name, tensor in state_of(model).items()}
    )
    return content


def state_of(model: nn.Module) -> dict[str, Tensor]:
    """`model.state_dict()`, where a shared tensor is only under its first name."""
    saved = model.state_dict()
    named = [*model.named_parameters(), *model.named_buffers()]
    return {name: saved[name] for name, _ in named if name in saved}


def load_weights(
    model: nn.Module,
    weights: bytes | str | Path,
    file: str | Path | None = None,
    own: tuple[str, ...] = (),
) -> None:
    """Copy weights into `model` in place, on any device. Shared tensors stay shared.

    Args:
        model: the network to which the weights belong.
        weights: the result of `weights_bytes`, or a file with it.
        file: the file from which bytes were read, for errors.
        own: tensors whose names begin so stay the model's own, whatever `weights` holds for them.

    Raises:
        DataError: the file is not readable or not safetensors, or a number is not finite.
        ConfigError: the weights belong to another network, or hold another kind of numbers;
            `model` does not change.
    """
    file = file if isinstance(weights, bytes) else Path(weights)
    load_state(model, _read(weights, file), file, own)


def load_state(
    model: nn.Module,
    state: Mapping[str, Tensor],
    file: str | Path | None = None,
    own: tuple[str, ...] = (),
) -> None:
    """As `load_weights`, from the tensors of a `state_of`."""
    kept = {name: tensor for name, tensor in state_of(model).items() if name.startswith(own)}
    _fill(model, {**state, **kept}, file)


def shapes(path: str | Path) -> dict[str, tuple[int, ...]]:
    """The shape of each tensor of a file.

    Raises:
        DataError: the file is not readable or not safetensors.
    """
    return {name: tuple(tensor.shape) for name, tensor in _read(path, path).items()}


def network_with(
    config: ModelConfig, weights: bytes | str | Path, file: str | Path | None = None
) -> HybridTransformer:
    """The network of `config` with weights, on the CPU in eval mode.

    Weights with fewer numbers than the network has parameters are refused before it is built.

    Raises:
        DataError, ConfigError: see `load_weights`.
    """
    file = file if isinstance(weights, bytes) else Path(weights)
    stored, wanted = _read(weights, file), closed_form(config).num_params
    found = sum(tensor.numel() for tensor in stored.values())
    if found < wanted:
        numbers = f"{found:,} numbers" if found else "no numbers"
        rule = f"weights of another network: they have {numbers} for {wanted:,} parameters"
        raise ConfigError(rule, file=file)
    model = build_model(config)
    _fill(model, stored, file)
    return model.eval()


def check_state(
    stored: Mapping[str, Tensor], wanted: Mapping[str, Tensor], file: str | Path | None = None
) -> None:
    """Check that `stored` can replace `wanted`, tensor by tensor.

    Raises:
        ConfigError: a name, a shape or a kind of numbers differs; the error names the first one.
        DataError: a number is not finite, or is not finite in the precision of `wanted`.
    """
    strange = sorted(stored.keys() ^ wanted.keys())
    if strange:
        side = "have no" if strange[0] in wanted else "have an unknown"
        rule = f"weights of another network: they {side} {shorten(strange[0])}"
        raise ConfigError(rule, file=file)
    for name, tensor in wanted.items():
        if tensor.shape != stored[name].shape:
            found, expected = list(stored[name].shape), list(tensor.shape)
            rule = f"weights of another network: '{name}' is {found} and should be {expected}"
            raise ConfigError(rule, file=file)
        if kind_of(tensor) != kind_of(stored[name]):
            rule = f"'{name}' holds {kind_of(stored[name])} and should hold {kind_of(tensor)}"
            raise ConfigError(rule, file=file)
        check_finite(name, stored[name].to(tensor.dtype), file)


def _fill(model: nn.Module, stored: dict[str, Tensor], file: str | Path | None) -> None:
    check_state(stored, state_of(model), file)
    model.load_state_dict(stored, strict=False)


def _read(weights: bytes | str | Path, file: str | Path | None) -> dict[str, Tensor]:
    where = "weights" if file is None else str(file)
    try:
        state: dict[str, Tensor] = load(weights) if isinstance(weights, bytes) else _open(weights)
    except OSError as error:
        raise DataError(f"{where}: {reason_of(error)}") from None
    except (SafetensorError, ValueError, KeyError) as error:
        raise DataError(f"{where}: not a safetensors file ({error})") from None
    except MemoryError:
        raise DataError(f"{where}: does not fit into memory") from None
    return state


def _open(path: str | Path) -> dict[str, Tensor]:
    """The tensors of a regular file, which is mapped into memory and not read as a whole."""
    open_file(path).close()
    with safe_open(path, framework="pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
