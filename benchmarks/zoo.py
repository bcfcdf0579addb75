"""The papers' models: building SReT-S, counting it, and what their registration costs an import.

`import vitnas` registers nothing by itself: a hook waits for timm. So three fresh processes are
compared: `import vitnas`, `import timm`, and timm after vitnas, which registers every model.
"""

from __future__ import annotations

import statistics

from common import conclude, fresh_process, is_quick, median_seconds, rounded, show

INSIDE = "import time; start = time.perf_counter(); {}; print(time.perf_counter() - start)"
IMPORTS = {
    "import vitnas": "import vitnas",
    "import timm": "import timm",
    "import vitnas, timm": "import vitnas, timm",
}


def import_seconds(code: str, repeats: int) -> float:
    """Median seconds of `code` inside fresh processes."""
    program = INSIDE.format(code)
    return statistics.median(float(fresh_process("-c", program)[1].stdout) for _ in range(repeats))


def main() -> None:
    quick = is_quick(__doc__)
    repeats = 1 if quick else 9
    imports = {name: import_seconds(code, repeats) for name, code in IMPORTS.items()}

    import torch

    from vitnas.cost.closed_form import closed_form
    from vitnas.nn import build_model
    from vitnas.nn.zoo import zoo_config

    torch.set_num_threads(1)
    config = zoo_config("sret_s")
    counting = median_seconds(lambda: closed_form(config), 10 * repeats)
    reading = median_seconds(lambda: zoo_config("sret_s"), repeats)
    building = median_seconds(lambda: build_model(config), repeats)
    registering = imports["import vitnas, timm"] - imports["import timm"]
    show(
        ("what", "ms"),
        [
            *((name, f"{1e3 * seconds:.1f}") for name, seconds in imports.items()),
            ("reading sret_s", f"{1e3 * reading:.1f}"),
            ("building sret_s", f"{1e3 * building:.0f}"),
            ("closed form of sret_s", f"{1e3 * counting:.3f}"),
        ],
    )
    figures = {
        "import_vitnas_ms": rounded(1e3 * imports["import vitnas"]),
        "import_timm_ms": rounded(1e3 * imports["import timm"]),
        "registering_ms": rounded(1e3 * registering),
        "reading_sret_s_ms": rounded(1e3 * reading),
        "building_sret_s_ms": rounded(1e3 * building),
        "closed_form_sret_s_ms": rounded(1e3 * counting),
    }
    targets = {
        "import_vitnas_ms": {"max": 50},
        "building_sret_s_ms": {"max": 1000},
        "closed_form_sret_s_ms": {"max": 5},
    }
    conclude("zoo", quick, figures, targets)


if __name__ == "__main__":
    main()
