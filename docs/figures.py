"""Makes the pictures of the documentation from what the commands of the first hour have left.

    python docs/figures.py FOLDER

FOLDER is where the commands of docs/first-hour.md were typed. What is missing beside them (the page of kernels, that of
speeds) is made first. Pages are photographed by Chromium without a window, that of `bakeoff serve` with playwright, and
end up in docs/pictures.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PICTURES = Path(__file__).parent / "pictures"

RUN = "comparison/runs/laptop-conv-tiny/seed-0/pretrain"
MADE = {
    "inspect/inspect.html": f"inspect {RUN} --corpus corpora/mine --out inspect",
    "speeds/speed.html": "speed laptop-encoder-tiny laptop-conv-tiny --vocabulary 2048 --lengths 64..1024 --out speeds",
}
"""Pages, and what makes them."""

PHOTOGRAPHS: dict[str, tuple[str, int, int]] = {
    "report.png": ("comparison/report.html", 1000, 1200),
    "kernels.png": ("inspect/inspect.html", 1000, 1622),
    "speed.png": ("speeds/speed.html", 1000, 985),
}
"""Pictures: the page, and how much of its beginning is seen, wide and high."""

CHARTS = {
    "scores.svg": "comparison/figures/scores-1.svg",
    "curves.svg": "comparison/figures/loss-1-mlm-tokens.svg",
}
"""Charts that a comparison has written as they are."""

SERVED = [
    "runs/encoder",
    "runs/convolution",
    "--comparison=comparison",
    "--text=This function returns a [MASK] of all elements, and is [MASK] by default.",
]
"""What is served, and the text that both models fill."""


def photograph(page: Path, picture: Path, width: int, height: int) -> None:
    """Have a browser draw the beginning of a page."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        raise SystemExit("Chromium is not installed")
    with tempfile.TemporaryDirectory() as profile:
        options = ["--headless", "--no-sandbox", "--hide-scrollbars", f"--user-data-dir={profile}"]
        size = [f"--window-size={width},{height}", "--virtual-time-budget=5000", f"--screenshot={picture}"]
        subprocess.run([browser, *options, *size, page.resolve().as_uri()], check=True, stderr=subprocess.DEVNULL)


def photograph_serving(folder: Path, picture: Path) -> None:
    """Have two models fill the same masks in the page of `bakeoff serve`."""
    script = PICTURES.parents[1] / "benchmarks" / "serve_picture.py"
    with tempfile.TemporaryDirectory() as out:
        subprocess.run([sys.executable, script, *SERVED, "--out", out], cwd=folder, check=True)
        shutil.copyfile(Path(out) / "desktop.png", picture)


def main() -> None:
    """Make every picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    for page, command in MADE.items():
        if not (folder / page).exists():
            subprocess.run([sys.executable, "-m", "bakeoff", *command.split()], cwd=folder, check=True)
    PICTURES.mkdir(exist_ok=True)
    for name, (page, width, height) in PHOTOGRAPHS.items():
        photograph(folder / page, PICTURES / name, width, height)
    for name, chart in CHARTS.items():
        shutil.copyfile(folder / chart, PICTURES / name)
    photograph_serving(folder, PICTURES / "serve.png")


if __name__ == "__main__":
    main()
