"""What a network is: the one language that models, spaces and exports are written in.

The fields are in `parts` and `network`, the file format in `space/README.md`, what the network
computes in the blocks under `vitnas/nn`.
"""

from __future__ import annotations

import hashlib
import json
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from pydantic import model_validator

from vitnas.config.canonical import canonical
from vitnas.config.checks import check_network
from vitnas.config.files import dump_yaml, read_network_yaml, validate
from vitnas.config.findings import RuleError
from vitnas.config.network import Network
from vitnas.config.notation import fit_schedule, format_schedule, parse_schedule
from vitnas.files import write_text


class ModelConfig(Network):
    """A whole network that keeps every rule.

    `groups` may be written once as `"[8,2][4,1][1,1]"` or in each stage.
    """

    shorthand_keys: ClassVar[tuple[str, ...]] = ("groups",)

    @model_validator(mode="before")
    @classmethod
    def _spread_schedule(cls, tree: Any) -> Any:
        """`groups` of the network goes to its stages, one bracket each."""
        if not isinstance(tree, dict) or "groups" not in tree:
            return tree
        tree = dict(tree)
        schedule, stages = tree.pop("groups"), tree.get("stages")
        try:
            if not isinstance(schedule, str):
                raise ValueError('must be text like "[8,2][4,1][1,1]"')
            brackets = parse_schedule(schedule)
        except ValueError as error:
            raise RuleError(str(error), "groups", schedule) from None
        if not isinstance(stages, (list, tuple)) or not all(isinstance(s, dict) for s in stages):
            return tree  # the error of `stages` itself says more
        if len(brackets) != len(stages):
            rule = f"{len(brackets)} brackets for {len(stages)} stages"
            raise RuleError(rule, "groups", schedule, fit_schedule(brackets, len(stages)))
        for index, stage in enumerate(stages):
            for name in ("groups", "passes"):
                if name in stage:
                    rule = "groups are given for the network; give them for stages or for it"
                    raise RuleError(rule, f"stages[{index}].{name}", stage[name])
        tree["stages"] = [{**s, "groups": g} for s, g in zip(stages, brackets, strict=True)]
        return tree

    @model_validator(mode="after")
    def _stages_fit_together(self) -> ModelConfig:
        check_network(self)
        return self

    def to_tree(self) -> dict[str, Any]:
        """A model file's plain tree: what differs from the defaults, groups in brackets."""
        tree = self.model_dump(mode="json", exclude_defaults=True)
        tree = {"name": self.name, "img_size": self.model_dump(mode="json")["img_size"], **tree}
        for stage in tree["stages"]:
            stage.pop("groups", None)
        if any(stage.groups != (1,) for stage in self.stages):
            tree["groups"] = format_schedule(stage.groups for stage in self.stages)
        return tree

    def canonical(self) -> ModelConfig:
        """The one spelling of this network: what cannot matter is at its default, no name."""
        return canonical(self)

    @cached_property
    def key(self) -> str:
        """Twelve hex digits that two spellings of the same network share.

        It counts what differs from the defaults, so a new field does not change keys of old runs.
        """
        tree = self.canonical().model_dump(mode="json", exclude_defaults=True)
        text = json.dumps(tree, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:12]


def load_config(path: str | Path) -> ModelConfig:
    """Read a model file.

    Raises:
        ConfigError: with file, address, value and rule.
    """
    return validate(ModelConfig, read_network_yaml(path), file=path)


def save_config(config: ModelConfig, path: str | Path) -> None:
    """Write a model file that `load_config` reads back as an equal configuration."""
    write_text(path, dump_yaml(config.to_tree()))
