"""A survey of a space, as text and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any

from vitnas.config.notation import human
from vitnas.config.one_line import one_line, one_lines
from vitnas.config.space import SearchSpace
from vitnas.cost.closed_form import closed_form
from vitnas.cost.survey import SpaceSurvey


def survey_json(space: SearchSpace, survey: SpaceSurvey) -> dict[str, Any]:
    """Plain values; `num_networks` is None where it is infinite."""
    return {
        "name": space.name,
        "num_networks": survey.num_networks if isfinite(survey.num_networks) else None,
        "relative_error": survey.error,
        "flops": list(survey.flops),
        "num_params": list(survey.num_params),
        "share_within_limits": survey.within,
        "num_seen": survey.num_seen,
        "samples": [one_line(config) for config in survey.samples],
        "problems": list(survey.problems),
    }


def survey_text(space: SearchSpace, survey: SpaceSurvey, images: Sequence[str] = ()) -> str:
    """What `vitnas space` prints; `images` are lines on the images."""
    title = ": ".join(filter(None, (space.name, space.config.description)))
    exact = _is_exact(survey)
    seen = "all of them" if exact else f"{survey.num_seen:,} random draws"
    lines = [
        title,
        f"  networks    {_count(survey)}, {len(space.axes)} axes",
        f"  FLOPs       {human(survey.flops[0])} to {human(survey.flops[1])}",
        f"  parameters  {human(survey.num_params[0])} to {human(survey.num_params[1])}",
        f"  in limits   {100 * survey.within:.0f} % of {seen}",
        *images,
    ]
    if survey.samples:
        lines.append("  samples")
    for config, line in zip(survey.samples, one_lines(survey.samples), strict=True):
        lines.append(f"    {human(closed_form(config).flops):>7} FLOPs  {line}")
    lines += (f"  problem     {problem}" for problem in survey.problems)
    return "\n".join(lines)


def _is_exact(survey: SpaceSurvey) -> bool:
    return not survey.error and survey.num_networks <= survey.num_seen


def _count(survey: SpaceSurvey) -> str:
    if not isfinite(survey.num_networks):
        return "uncountable (a float axis without step)"
    if _is_exact(survey):
        return f"{survey.num_networks:,.0f}"
    return f"about {survey.num_networks:.2g} (+-{100 * survey.error:.0f} %, estimated)"
