"""What a session of a run writes down of itself, and what it takes over from earlier ones.

It stands in the study and, for readers, in environment.json and space.yaml beside it.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from vitnas.config.differences import changed_images
from vitnas.config.space import SearchSpace
from vitnas.config.space_files import SPACE_OF_RUN
from vitnas.engine.backends.prepare import Findings
from vitnas.engine.backends.resources import Resources
from vitnas.engine.options import SearchOptions
from vitnas.engine.store import study
from vitnas.environment import session_facts
from vitnas.errors import RunError
from vitnas.files import write_text
from vitnas.sessions import Data


def fixed(space: SearchSpace, options: SearchOptions) -> dict[str, Any]:
    """What does not change between the sessions of a run."""
    return {"space": space.to_tree(), "seed": options.seed}


def begin(
    store: study.RunStore,
    space: SearchSpace,
    options: SearchOptions,
    resources: Resources,
    found: Findings,
) -> SearchOptions:
    """Write down what this session is; the options with what it takes over from the last one.

    Raises:
        RunError: the training images are not those of the earlier sessions.
    """
    _refuse_other_images(store, found.data)
    options = _resumed(options, store)
    _describe(store, space, options, resources, found)
    return options


def _describe(
    store: study.RunStore,
    space: SearchSpace,
    options: SearchOptions,
    resources: Resources,
    found: Findings,
) -> None:
    """Write down what this session is, in the study and beside it."""
    environment = store.attrs.get("environment", {})
    facts = session_facts(
        **options.facts(),
        workers=resources.workers,
        gpus_per_trial=resources.gpus,
        device=found.device,
    )
    environment = {
        "sessions": [*environment.get("sessions", []), facts],
        "seed": options.seed,
        "data": found.data.told(),
        "proxy": space.config.proxy.told(),
    }
    if "tuned" in store.attrs:
        environment["tuned"] = store.attrs["tuned"]["line"]
    store.set("num_trials", options.num_trials or 0)
    store.set("num_baselines", len(found.baselines))
    _keep(store, environment)
    write_text(store.path / SPACE_OF_RUN, space.text)


def _refuse_other_images(store: study.RunStore, found: Data) -> None:
    """Make sure that the images are those of the earlier sessions, where these say so."""
    stored = store.attrs.get("environment", {}).get("data", {}).get("fingerprint")
    changes = changed_images(stored, found.told()["fingerprint"]) if stored else []
    if changes:
        raise RunError(
            f"{store.path}: the images that train, score or test have changed since this run "
            f"began: {'; '.join(changes)}; use another --out"
        )


def note(store: study.RunStore, **facts: str | bool | None) -> None:
    """Add facts to what is known of this session."""
    environment = store.attrs["environment"]
    *earlier, now = environment["sessions"]
    _keep(store, {**environment, "sessions": [*earlier, {**now, **facts}]})


def _keep(store: study.RunStore, environment: dict[str, Any]) -> None:
    store.set("environment", environment)
    write_text(store.path / "environment.json", json.dumps(environment, indent=2) + "\n")


def _resumed(options: SearchOptions, store: study.RunStore) -> SearchOptions:
    """`options`; which weights are kept stays as it was unless they say otherwise."""
    if options.keep_weights is not None:
        return options
    sessions = store.attrs.get("environment", {}).get("sessions")
    return replace(options, keep_weights=sessions[-1].get("keep_weights")) if sessions else options
