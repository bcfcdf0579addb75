"""Fronts, ranks, hypervolume and knee of points in several objectives; numpy only.

Every objective is minimised: to maximise accuracy, pass it negated. To use logarithms of FLOPs,
pass logarithms. Points are n rows of d numbers. A point with a NaN cannot be compared: it is on no
front, ranks behind all others and adds no volume. Infinities compare like numbers.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Points = Sequence[Sequence[float]] | npt.NDArray[Any]
_Array = npt.NDArray[np.float64]
_Indices = npt.NDArray[np.intp]


def front(points: Points) -> list[int]:
    """Indices of the non-dominated points, in the order given.

    A point is dominated when another is no worse in every objective and better in one. Of equal
    points only the first counts.

    Args:
        points: n rows of d objectives, all minimised.

    Raises:
        ValueError: `points` is not a table of n rows of d numbers.
    """
    unique, first, _ = _sorted_unique(_table(points))
    kept = np.flatnonzero(_first_front(unique))
    return sorted(int(index) for index in first[kept])


def front_ranks(points: Points) -> npt.NDArray[np.intp]:
    """Non-dominated sorting: 0 for the front, 1 for the front of the remaining points, and so on.

    Equal points share a rank, so a repeat of a front member has rank 0 although `front` leaves it
    out. Points with a NaN share one rank behind all others.

    Args:
        points: n rows of d objectives, all minimised.

    Returns:
        n ranks.

    Raises:
        ValueError: as `front`.
    """
    table = _table(points)
    known = ~np.isnan(table).any(axis=1)
    unique, _, inverse = _sorted_unique(table)
    ranks = _ranks_2d(unique) if table.shape[1] == 2 else _ranks_by_peeling(unique)
    result = np.full(len(table), ranks.max(initial=-1) + 1, dtype=np.intp)
    result[known] = ranks[inverse]
    return result


def hypervolume(points: Points, reference: Sequence[float]) -> float:
    """Volume that the points dominate, up to `reference`, in the product of the objectives' units.

    Exact: a sweep for two objectives; with more, points are added one by one, from the worst by the
    last objective to the best, each with the part of its box that no later point dominates (While
    et al. 2012), which has an objective less. Good for a few hundred points in three to five. A
    point that is not better than the reference in every
    objective adds nothing.

    Args:
        points: n rows of d objectives, all minimised.
        reference: d finite numbers, the worst corner.

    Raises:
        ValueError: the reference is not d finite numbers, or a point is at minus infinity.
    """
    corner = np.asarray(reference, dtype=np.float64)
    if corner.ndim != 1 or not len(corner) or not np.isfinite(corner).all():
        raise ValueError("the reference must be one finite number per objective")
    table = _table(points, columns=len(corner))
    inside = table[(table < corner).all(axis=1)]
    if np.isneginf(inside).any():
        raise ValueError("a point at minus infinity dominates an infinite volume")
    return _volume(inside, corner)


def knee(points: Points) -> int:
    """Index of the point of a front at which the sum of the objectives is smallest.

    All axes are scaled to the front's own range. With two objectives the chord of the front's ends
    runs from (0, 1) to (1, 0), and the knee is the point farthest from it; no point beyond the
    chord is chosen: with one point, with two, or with all on a line the answer is the earliest end.
    With more objectives it is the compromise in which each counts the same. Ties go to the earlier
    point.

    Args:
        points: n rows of finite objectives, minimised; meant to be a front.

    Raises:
        ValueError: no points, not a table of numbers, or a number that is not finite.
    """
    table = _table(points)
    if not len(table) or not np.isfinite(table).all():
        raise ValueError("a knee needs at least one point, and finite ones")
    low, high = table.min(axis=0), table.max(axis=0)
    scaled = (table - low) / np.where(high > low, high - low, 1.0)
    sums = scaled.sum(axis=1).round(12)  # points on the chord differ by rounding only
    return int(np.argmin(sums))


def _table(points: Points, columns: int | None = None) -> _Array:
    """`points` as an array of shape (n, d); (0, d) for none."""
    table = np.asarray(points, dtype=np.float64)
    if table.size == 0:
        width = columns or (table.shape[1] if table.ndim == 2 else 0) or 2
        return np.empty((0, width))
    if table.ndim != 2 or columns not in (None, table.shape[1]):
        wanted = "d" if columns is None else str(columns)
        raise ValueError(f"points must be n rows of {wanted} objectives, not shape {table.shape}")
    return table


def _sorted_unique(table: _Array) -> tuple[_Array, _Indices, _Indices]:
    """Distinct rows without NaN in lexicographic order.

    Returns:
        The m rows; the index in `table` where each stands first; and for each row without NaN
        the distinct row that it equals.
    """
    known = np.flatnonzero(~np.isnan(table).any(axis=1))
    rows = table[known]
    order = np.lexsort(rows.T[::-1])  # stable, so the first of equal rows comes first
    ordered = rows[order]
    new = np.ones(len(rows), dtype=bool)
    new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    inverse = np.empty(len(rows), dtype=np.intp)
    inverse[order] = np.cumsum(new) - 1
    return ordered[new], known[order[new]], inverse


def _first_front(unique: _Array) -> npt.NDArray[np.bool_]:
    """Which of distinct, lexicographically sorted rows are not dominated."""
    if unique.shape[1] == 2:
        best = np.minimum.accumulate(unique[:, 1])
        return np.concatenate(([True], unique[1:, 1] < best[:-1]))[: len(unique)]
    kept = np.zeros(len(unique), dtype=bool)
    left = np.arange(len(unique))
    while len(left):  # nothing later in the order can dominate the first that is left
        kept[left[0]] = True
        worse = (unique[left] >= unique[left[0]]).all(axis=1)
        left = left[~worse]
    return kept


def _ranks_2d(unique: _Array) -> _Indices:
    """Ranks of distinct sorted rows: each goes to the first front whose lowest second is higher."""
    lowest: list[float] = []  # per front, rising
    ranks = np.empty(len(unique), dtype=np.intp)
    for index, second in enumerate(unique[:, 1].tolist()):
        rank = bisect_right(lowest, second)
        ranks[index] = rank
        lowest[rank : rank + 1] = [second]
    return ranks


def _ranks_by_peeling(unique: _Array) -> _Indices:
    """Ranks of distinct sorted rows for any number of objectives: front after front is removed."""
    ranks = np.empty(len(unique), dtype=np.intp)
    left, rank = np.arange(len(unique)), 0
    while len(left):
        kept = _first_front(unique[left])
        ranks[left[kept]] = rank
        left, rank = left[~kept], rank + 1
    return ranks


def _volume(inside: _Array, corner: _Array) -> float:
    """Volume between `corner` and points that are all better than it."""
    if not len(inside):
        return 0.0
    if len(corner) == 1:
        return float(corner[0] - inside.min())
    unique, _, _ = _sorted_unique(inside)
    members = unique[_first_front(unique)]
    if len(corner) == 2:  # first objective rises, second falls
        until = np.append(members[1:, 0], corner[0])
        return float(((until - members[:, 0]) * (corner[1] - members[:, 1])).sum())
    members = members[np.argsort(-members[:, -1], kind="stable")]
    total = 0.0
    for index, point in enumerate(members):
        later = np.maximum(members[index + 1 :, :-1], point[:-1])
        alone = (corner[:-1] - point[:-1]).prod() - _volume(later, corner[:-1])
        total += float(alone * (corner[-1] - point[-1]))
    return total
