"""What a calibration has found, as `calibration.json` holds it. Needs neither torch nor Ray."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from vitnas.calibration.agreement import Tau
from vitnas.config.findings import RuleError, as_config_error
from vitnas.errors import RunError, nearest_name, reason_of
from vitnas.files import read_bytes
from vitnas.sessions import Data

FILE_NAME = "calibration.json"
PROXY = "proxy"
"""Name of the space's own short training among the proxies."""
_MOST_BYTES = 1 << 26
Kind = Literal["size", "score", "first epoch", "cut", "training", "likelihood"]
SAID = {
    "size": "known before anything is built",
    "score": "one batch at initialisation",
    "first epoch": "training loss of the first epoch",
    "cut": "a long training's curve, cut: its rate has not fallen",
    "training": "a training of its own",
    "likelihood": "the same training, by its log-likelihood in place of top-1",
}


class _Stored(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)


class Member(_Stored):
    """A network of the calibration.

    Attributes:
        model: its model file's tree.
        flops, num_params: its size.
        top1: percent on the scoring split after each long training.
    """

    model: dict[str, Any]
    flops: int
    num_params: int
    top1: tuple[float, ...]


class ProxyFigures(_Stored):
    """How well one score or cheap training ranks the networks.

    Attributes:
        name: short, for people.
        kind: see `SAID`.
        cost: seconds as a share of those of one long training.
        overall, within: Kendall's tau to the mean of the long trainings, over all networks and
            within bins of FLOPs.
        missing: networks that it has no figure of; they rank last.
    """

    name: str
    kind: Kind
    cost: float
    overall: Tau
    within: Tau
    missing: int = 0


class Calibration(_Stored):
    """How well cheap trainings foretell long ones, on one space.

    Attributes:
        format: of the file.
        space: the space file's tree.
        data: what was trained and scored on.
        long_epochs: epochs of a long training.
        seeds: long trainings of each network.
        networks: those that were trained long to the end, by rising FLOPs.
        lost: networks that were not, and are left out.
        bins: of FLOPs.
        ceiling_overall, ceiling_within: taus of one long training to the mean of the others.
        proxies: what was compared, the cheapest first.
        best: the one with the highest tau within bins.
        cheapest: the cheapest that cannot be told from it.
        session: when, where and by which versions it was last worked out.
    """

    format: Literal[1] = 1
    space: dict[str, Any]
    data: Data
    long_epochs: int
    seeds: int
    networks: tuple[Member, ...]
    lost: int = 0
    bins: int
    ceiling_overall: Tau
    ceiling_within: Tau
    proxies: tuple[ProxyFigures, ...]
    best: str
    cheapest: str
    session: dict[str, Any] = {}

    @model_validator(mode="after")
    def _has_what_is_read(self) -> Calibration:
        """`figures` and `best_size` find what is asked of them."""
        names = [one.name for one in self.proxies]
        if PROXY not in names:
            raise RuleError(f"one must have the name '{PROXY}'", "proxies.name", names)
        kinds = [one.kind for one in self.proxies]
        if "size" not in kinds:
            raise RuleError("one must be of the kind 'size'", "proxies.kind", kinds)
        for address, name in (("best", self.best), ("cheapest", self.cheapest)):
            if name not in names:
                nearest = nearest_name(name, names)
                raise RuleError("must be the name of one of the proxies", address, name, nearest)
        return self

    def figures(self, name: str) -> ProxyFigures:
        """Of the proxy of this name."""
        return next(one for one in self.proxies if one.name == name)

    @property
    def best_size(self) -> ProxyFigures:
        """FLOPs or parameters, whichever ranks better within bins."""
        sizes = (one for one in self.proxies if one.kind == "size")
        return max(sizes, key=lambda one: one.within.value)

    @property
    def beats_size(self) -> bool:
        """Whether anything ranks networks of similar FLOPs better than their size does."""
        return self.figures(self.cheapest).kind != "size"


def read_calibration(folder: Path) -> Calibration:
    """The calibration in a folder.

    Raises:
        RunError: there is none, or it is damaged or of a later format.
    """
    file = folder / FILE_NAME
    try:
        content = read_bytes(file, _MOST_BYTES)
    except OSError as error:
        raise RunError(f"{folder}: no calibration ({FILE_NAME}: {reason_of(error)})") from None
    try:
        return Calibration.model_validate_json(content)
    except ValidationError as error:
        raise RunError(str(as_config_error(error, Calibration, file))) from None
