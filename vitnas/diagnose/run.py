"""All diagnostics of one network on some images, and the folder to which they are written."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import nn

from vitnas import __version__
from vitnas.config.model import save_config
from vitnas.diagnose.cka import LayerCka
from vitnas.diagnose.coefficients import evolution_finding
from vitnas.diagnose.distance import AttentionDistance
from vitnas.diagnose.features import SimilarityToLast
from vitnas.diagnose.heads import HeadSimilarity
from vitnas.diagnose.landscape import POINTS, axis_of, landscape_finding
from vitnas.diagnose.maps import MOST_IMAGES, AttentionMaps
from vitnas.diagnose.names import NAMES, OF_MAPS, USUAL, WHAT
from vitnas.diagnose.observer import Finding, Observer
from vitnas.diagnose.responses import ResponseMaps
from vitnas.diagnose.rollout import Rollout
from vitnas.diagnose.similarity import TAU, CrossLayerSimilarity
from vitnas.diagnose.suggest import SUGGESTION_FILE, Suggestion, suggest_reattention
from vitnas.diagnose.survey import Survey, survey
from vitnas.diagnose.sweep import sweep_features, sweep_maps
from vitnas.diagnose.theta import theta_finding
from vitnas.errors import ConfigError, DataError, RunError, VitnasError, reason_of
from vitnas.files import read_bytes, remove_files, write_bytes, write_text
from vitnas.training.split import Split

NUMBERS_FILE = "diagnosis.json"
_MOST_BYTES = 1 << 28


@dataclass(frozen=True)
class Diagnosis:
    """The results of all diagnostics of one network.

    Attributes:
        found: the network's layers.
        findings: diagnostic -> its result.
        absent: diagnostic that was not possible -> why.
        facts: network, weights and data, for JSON.
        suggestion: how many blocks a search may start with re-attention in, if it was asked for.
    """

    found: Survey
    findings: dict[str, Finding]
    absent: dict[str, str]
    facts: dict[str, Any]
    suggestion: Suggestion | None = None

    @property
    def figures(self) -> dict[str, bytes]:
        """Diagnostic -> PNG."""
        return {name: f.figure for name, f in self.findings.items() if f.figure is not None}

    def to_tree(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "vitnas": __version__,
            **self.facts,
            "layers": [layer.facts() for layer in self.found.layers],
            "diagnostics": {
                name: {"what": WHAT[name], "summary": finding.summary, **finding.numbers}
                for name, finding in self.findings.items()
            },
            "absent": self.absent,
            **self._suggested(),
        }

    def _suggested(self) -> dict[str, Any]:
        if self.suggestion is None:
            return {}
        found = {"similar_blocks": self.suggestion.similar}
        return {"suggested": found | {"reattention_blocks": self.suggestion.blocks}}

    def text(self) -> str:
        """One line for the network, one for the images where it is known which these are, and one
        for each diagnostic."""
        layers, with_maps = self.found.layers, self.found.with_maps
        stages = f" in {self.found.num_stages} stages" if self.found.num_stages > 1 else ""
        lines = [f"{len(layers)} layers{stages}, {len(with_maps)} with an attention map"]
        if 0 < len(with_maps) < len(layers):
            without = sorted({layer.mixer for layer in layers if layer.absent})
            lines[0] += f" (none in {', '.join(without)})"
        if "part" in self.facts:
            lines.append(f"  {'images':<11} {self.facts['images']:,}, of {self.facts['part']}")
        said = {name: finding.summary for name, finding in self.findings.items()}
        said |= {name: f"not done: {why}" for name, why in self.absent.items()}
        lines += [f"  {name:<11} {said[name]}" for name in NAMES if name in said]
        return "\n".join(lines)

    def write(self, folder: str | Path) -> list[Path]:
        """Write the numbers and a PNG for each figure. Older figures of a diagnosis are deleted.

        Raises:
            RunError: the folder cannot be written, or it has files of these names that are not
                from a diagnosis.
        """
        folder = Path(folder)
        before, figures = check_place(folder), self.figures
        try:
            remove_files(folder, [f"{name}.png" for name in before if name not in figures])
            remove_files(folder, [SUGGESTION_FILE])
            write_text(folder / NUMBERS_FILE, json.dumps(self.to_tree(), indent=1) + "\n")
            if self.suggestion is not None and self.suggestion.config is not None:
                save_config(self.suggestion.config, folder / SUGGESTION_FILE)
            for name, figure in figures.items():
                write_bytes(folder / f"{name}.png", figure)
        except OSError as error:
            raise RunError(f"{folder}: cannot be written: {reason_of(error)}") from None
        return [*(folder / f"{name}.png" for name in figures), folder / NUMBERS_FILE]


def check_place(folder: Path) -> list[str]:
    """The names of figures in `folder` that a new diagnosis may replace.

    Raises:
        RunError: a file that would be replaced is not from a diagnosis.
    """
    path, listed, is_suggested = folder / NUMBERS_FILE, list[str](), False
    if os.path.lexists(path):
        try:
            tree = json.loads(read_bytes(path, _MOST_BYTES))
            listed = [name for name in NAMES if name in tree["diagnostics"] and tree["vitnas"]]
            is_suggested = "suggested" in tree
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            raise RunError(f"{path}: is not a diagnosis of vitnas; give another --out") from None
    figures = [f"{name}.png" for name in NAMES if name not in listed]
    for name in (*figures, *[SUGGESTION_FILE] * (not is_suggested)):
        if os.path.lexists(folder / name):
            raise RunError(
                f"{folder / name}: is not from a diagnosis; move it, or give another --out"
            )
    return listed


def diagnose(
    network: nn.Module,
    images: Split,
    only: Sequence[str] = USUAL,
    *,
    tau: float = TAU,
    image: int = 0,
    map_images: int = 1,
    classes: int | None = None,
    points: int = POINTS,
    seed: int = 0,
    log: Path | None = None,
    notice: Callable[[str], None] = lambda line: None,
    facts: dict[str, Any] | None = None,
) -> Diagnosis:
    """Run diagnostics on a network. Its mode, weights and `fused_attn` do not change.

    Args:
        network: our network, or a transformer of timm with a list `blocks`; on any device.
        images: images of the network's size; see `vitnas.diagnose.images.show`.
        only: names of diagnostics, from `NAMES`.
        tau: threshold of similar vectors (DeepViT, Eq. 7).
        image: index of the image for maps, rollout and responses.
        map_images: how many images `maps` shows, 1 to 8: that one and those after it.
        classes: of how many classes the images are, for the landscape; None = of none.
        points: on each side of the landscape, odd.
        seed: of the landscape's directions.
        log: the log of its training, for the residual coefficients.
        notice: told how far the landscape is.
        facts: further facts for the file of numbers.

    Raises:
        ConfigError: there are no such images, or `points` is even.
        VitnasError: the network's blocks cannot be found, its maps are too large, or none of the
            diagnostics is possible.
    """
    device = next(network.parameters()).device
    _check_within("--image", image, 0, len(images) - 1)
    left = len(images) - image
    why = f": --image {image} is followed by {left - 1}" if left < MOST_IMAGES else ""
    _check_within("--map-images", map_images, 1, min(MOST_IMAGES, left), why)
    axis_of(points)
    of_maps = [name for name in only if name in OF_MAPS]
    first = images.normalise(images.x[:1]).to(device)
    found = survey(network, first, maps=bool(of_maps))
    findings: dict[str, Finding] = {}
    absent: dict[str, str] = {}
    if of_maps and not found.with_maps:
        absent = dict.fromkeys(of_maps, why_no_maps(found))
    elif of_maps:
        findings |= _of_maps(found, images, of_maps, tau, image, map_images)
    findings |= _of_features(found, images, only, image)
    others: dict[str, Callable[[], Finding]] = {
        "theta": lambda: theta_finding(found.places, found.layers),
        "lrc": lambda: evolution_finding(network, log),
        "landscape": lambda: landscape_finding(network, images, classes, points, seed, notice),
    }
    for name in (name for name in others if name in only):
        try:
            findings[name] = others[name]()
        except DataError:
            raise
        except VitnasError as error:
            absent[name] = str(error)
    if not findings:
        raise VitnasError("; ".join(dict.fromkeys(absent.values())))
    ordered = {name: findings[name] for name in NAMES if name in findings}
    return Diagnosis(found, ordered, absent, facts or {})


def with_suggestion(diagnosis: Diagnosis) -> Diagnosis:
    """The diagnosis with the number of re-attention blocks that its similarities suggest.

    Raises:
        VitnasError: no maps were compared.
    """
    similarity = diagnosis.findings.get("similarity")
    if similarity is None:
        raise VitnasError(f"--suggest: {diagnosis.absent['similarity']}")
    return replace(diagnosis, suggestion=suggest_reattention(diagnosis.found, similarity))


def why_no_maps(found: Survey) -> str:
    """Why no diagnostic of maps is possible."""
    mixers = ", ".join(sorted({layer.mixer for layer in found.layers}))
    return f"no block of this network has an attention map ({mixers})"


def _of_maps(
    found: Survey, images: Split, only: Sequence[str], tau: float, image: int, map_images: int
) -> dict[str, Finding]:
    """One run over as many images as the size of the maps allows, the others over single images."""
    layers, image_hw = found.with_maps, (images.x.shape[-2], images.x.shape[-1])
    observers: dict[str, Observer] = {}
    if "similarity" in only:
        observers["similarity"] = CrossLayerSimilarity(layers, tau)
    if "heads" in only:
        observers["heads"] = HeadSimilarity(layers, tau)
    if "distance" in only:
        observers["distance"] = AttentionDistance(layers, image_hw)
    sweep_maps(found, _some(images, slice(found.most_map_images)), list(observers.values()))
    if "maps" in only:
        drawn = _some(images, slice(image, image + map_images))
        observers["maps"] = AttentionMaps(layers, drawn.x, image)
        sweep_maps(found, drawn, [observers["maps"]])
    if "rollout" in only:
        reads_class = _reads_class_token(found.network)
        observers["rollout"] = Rollout(found.layers, images.x[image], reads_class=reads_class)
        sweep_maps(found, _some(images, slice(image, image + 1)), [observers["rollout"]])
    return {name: observer.finding() for name, observer in observers.items()}


def _of_features(
    found: Survey, images: Split, only: Sequence[str], image: int
) -> dict[str, Finding]:
    observers: dict[str, Observer] = {}
    if "features" in only:
        observers["features"] = SimilarityToLast(found.layers)
    if "cka" in only:
        observers["cka"] = LayerCka(found.layers, len(images))
    sweep_features(found, images, list(observers.values()))
    if "responses" in only:
        observers["responses"] = ResponseMaps(found.layers, images.x[image])
        sweep_features(found, _some(images, slice(image, image + 1)), [observers["responses"]])
    return {name: observer.finding() for name, observer in observers.items()}


def _check_within(option: str, value: int, least: int, most: int, why: str = "") -> None:
    if not least <= value <= most:
        rule = f"must be from {least} to {most}{why}"
        raise ConfigError(rule, address=option, value=value, nearest=min(max(value, least), most))


def _some(images: Split, part: slice) -> Split:
    return replace(images, pixels=images.x[part], y=images.y[part])


def _reads_class_token(network: nn.Module) -> bool:
    """Whether the head reads only the class token. Our networks and timm's say so."""
    config: Any = getattr(network, "config", None)
    pool = getattr(config, "pool", None) or getattr(network, "global_pool", "")
    return str(pool) == "token"
