"""A grafted network by its name, and as a folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vitnas.config.files import validate, write_text
from vitnas.config.graft import GraftConfig
from vitnas.config.graft_file import GraftFile
from vitnas.config.notation import human
from vitnas.errors import ConfigError
from vitnas.exported.card import card_of
from vitnas.exported.design import network_of, settled_design
from vitnas.exported.folder import CARD_FILE, beside, check_free
from vitnas.exported.preprocessing import of_timm
from vitnas.exported.write import Content, write_network

if TYPE_CHECKING:
    from torch import nn

    from vitnas.cost.small_scale import Size
    from vitnas.nn.graft import Grafted


@dataclass(frozen=True)
class NamedGraft:
    """A network that was built by its name and grafted.

    Attributes:
        model: the network.
        name: the name by which it was built.
        done: what `graft` changed.
        before, after: parameters and FLOPs.
    """

    model: Any
    name: str
    done: Grafted
    before: Size
    after: Size

    def text(self) -> str:
        """What `vitnas graft` prints."""
        changes = {
            name: self._as_it_is(name) for name in (*self.done.replaced, *self.done.reattention)
        }
        width = max(map(len, changes), default=0)
        lines = [f"{self.name}: {type(self.model).__name__}"]
        lines += [f"  {name:<{width}}  {self.done.was} -> {now}" for name, now in changes.items()]
        if self.done.broad:
            gamma = self.model.grafts[-1].broad.gamma
            lines.append(f"  broad attention, gamma {gamma:g}, over {_short(self.done.broad)}")
        if self.done.left:
            lines.append(f"  left as they were: {_short(self.done.left)}")
        lines.append(f"  {'':<10}  {'before':>8}  {'after':>8}")
        for what, was, now in zip(("parameters", "FLOPs"), self.before, self.after, strict=True):
            lines.append(f"  {what:<10}  {human(was):>8}  {human(now):>8}")
        return "\n".join(lines)

    def _as_it_is(self, name: str) -> str:
        if name in self.done.reattention:
            return "re-attention"
        attention = self.model.get_submodule(name)
        return f"{attention.kind}, {attention.num_tokens} tokens"


def _short(names: Sequence[str]) -> str:
    """The number of names, and at most six of them."""
    shown = names if len(names) <= 6 else (*names[:3], "...", *names[-2:])
    return f"{len(names)} ({', '.join(shown)})"


def graft_named(
    name: str,
    fields: Mapping[str, Any],
    options: Mapping[str, Any],
    *,
    pretrained: bool = False,
    seed: int = 0,
    to: str | Path | None = None,
    formats: tuple[str, ...] = (),
    notice: Callable[[str], None] = lambda line: None,
) -> NamedGraft:
    """Build a network, graft it, count it before and after, and write it to `to` if given.

    Args:
        name: name of a timm model, or of a network of SKA's Table 1.
        fields: fields of `vitnas.config.graft.GraftConfig`.
        options: options of the network.
        pretrained: whether timm downloads its weights; else they are random.
        seed: seed of random weights and static keys.
        to: a folder for `save_graft`, or None.
        formats, notice: as for `save_graft`.

    Raises:
        ConfigError: there is no such network, or this graft is impossible. Nothing is written.
        DataError: timm cannot get the weights.
        RunError: the folder is not empty or cannot be written.
    """
    if not name:
        raise ConfigError("is required: a network of timm or of SKA's Table 1", address="MODEL")
    if not validate(GraftConfig, dict(fields)).changes:
        raise ConfigError("nothing to graft: give --mixer, --reattention or --gamma")
    if to is not None:
        check_free(Path(to))
    import torch

    from vitnas.cost.small_scale import size_of
    from vitnas.nn.graft import build_network, family_of, graft

    torch.manual_seed(seed)
    channels = options.get("in_chans", 3)
    model = build_network(name, pretrained, **options)
    family_of(model)  # refuses other networks before they are counted
    before = size_of(model, channels)
    done = graft(model, **fields)
    after = size_of(model, channels)
    if to is not None:
        save_graft(model, to, name, formats=formats, notice=notice, **options)
    return NamedGraft(model, name, done, before, after)


def save_graft(
    model: nn.Module,
    to: str | Path,
    name: str,
    *,
    formats: tuple[str, ...] = (),
    notice: Callable[[str], None] = lambda line: None,
    **options: Any,
) -> Path:
    """Write a grafted network as a folder that `vitnas.load` reads.

    First the network is built again from the name, the options and the grafts. With the same
    weights it must give the same scores for an image. Then the folder is written as a whole; after
    an error there is none. Image size, channels and classes are written out, and how timm prepares
    images for the network.

    Args:
        model: a network of `build_network` or of timm, after `graft`.
        to: the folder. It must not exist, or be empty.
        name: the name by which the network was built.
        formats: files that run without vitnas: `pt2` and `onnx`; see docs/export.md.
        notice: called with a line on these files, and with one on each that is left out.
        **options: the options with which it was built, as for `timm.create_model`.

    Raises:
        ConfigError: nothing was grafted, or the name and options do not give this network.
        RunError: the folder is not empty or cannot be written.
    """
    from vitnas.nn.weights import weights_bytes

    grafts = [config.to_tree() for config in getattr(model, "grafts", ())]
    if not grafts:
        raise ConfigError("must have at least 1 graft", address="grafts", value=[])
    tree = {"model": name, "options": _plain(options), "grafts": grafts}
    file, weights = validate(GraftFile, tree), weights_bytes(model)
    _check_rebuilds(model, file, weights)
    design, folder = settled_design(file), Path(to)
    cfg: Any = getattr(model, "pretrained_cfg", None) or {}
    how = of_timm(cfg, design.in_chans)
    content = Content(design, weights, design.name, (), how, formats=formats)
    with beside(folder) as draft:
        written = write_network(draft, folder, content)
        write_text(draft / CARD_FILE, card_of(design, folder, "graft.md.j2", standalone=written))
    for line in written.lines():
        notice(line)
    return folder


def _check_rebuilds(model: nn.Module, file: GraftFile, weights: bytes) -> None:
    """Check that `file` and `weights` give the scores of this network for an image of noise.

    Raises:
        ConfigError: the scores differ, or the network cannot be built.
    """
    import torch

    from vitnas.nn.graft.networks import image_size
    from vitnas.nn.modes import evaluating

    rule = f"{file.model} with these options is another network; give all options of this one"
    given = file.options.given()
    try:
        again = network_of(file, weights)
    except ConfigError as error:
        raise ConfigError(f"{rule} ({error})", address="options", value=given) from None
    some = next(model.parameters())
    image = torch.randn(1, file.in_chans, *image_size(model)).to(some)
    with evaluating(model):
        same = torch.equal(model(image), again.to(some)(image))
    if not same:
        raise ConfigError(rule, address="options", value=given)


def _plain(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options with lists instead of tuples, for YAML."""
    return {name: list(v) if isinstance(v, tuple) else v for name, v in options.items()}
