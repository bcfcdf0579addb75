"""A page in a real browser: what it made of it, and what it looks like."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from PIL import Image, ImageStat

CHROMIUM = shutil.which("chromium")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-logging=stderr",
    "--window-size=1200,2400",
    "--virtual-time-budget=20000",
)
DARK = "--blink-settings=preferredColorScheme=0"


@dataclass(frozen=True)
class Visit:
    """What a browser made of a page.

    Attributes:
        page: its file.
        dom: the page after its scripts have run, without the scripts' own text.
        console: what was written to the console, errors that nobody caught included.
        requests: addresses that the page asked the network for; the browser's own are left out.
        picture: a screenshot.
    """

    page: Path
    dom: str
    console: list[str]
    requests: list[str]
    picture: Path


def visit(page: Path, scratch: Path, *options: str) -> Visit:
    """Open `page` twice in a browser without any history: for its DOM, and for a picture."""
    picture, log = scratch / "picture.png", scratch / "net.json"
    first, second = scratch / "first", scratch / "second"
    shown, logged = browse(page, first, "--dump-dom", f"--log-net-log={log}", *options)
    browse(page, second, f"--screenshot={picture}", *options)
    console = [line for line in logged.splitlines() if ":CONSOLE:" in line]
    dom = re.sub(r"(?s)<script.*?</script>", "", shown)
    return Visit(page, dom, console, _requests(log.read_text(errors="replace")), picture)


def browse(page: Path, profile: Path, *options: str) -> tuple[str, str]:
    """The DOM and the log, with the browser's history and settings in the folder `profile`."""
    assert CHROMIUM is not None
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={profile}", *options, page.resolve().as_uri()]
    done = subprocess.run(command, capture_output=True, timeout=120, check=True)
    return done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")


def _requests(log: str) -> list[str]:
    """Addresses in the browser's network log that a page opened from a file has asked for."""
    asked = [line for line in log.splitlines() if '"network_isolation_key":"file:' in line]
    found = [re.search(r'"url":"((?!file:|data:|blob:)[^"]*)"', line) for line in asked]
    return [match.group(1) for match in found if match]


def brightness(picture: Path) -> float:
    """From 0 to 255, the mean of all pixels."""
    with Image.open(picture) as image:
        return float(ImageStat.Stat(image.convert("L")).mean[0])
