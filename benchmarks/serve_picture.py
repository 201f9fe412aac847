"""Screenshots of the page of `bakeoff serve`, in headless Chromium (pip install playwright; Debian's chromium).

    python benchmarks/serve_picture.py RUN... --comparison DIR --verb fill --text "The [MASK] of France" --out pictures

writes desktop.png, phone.png and dark.png; docs/figures.py makes the figure of the documentation from desktop.png.
"""

import argparse
import re
import shutil
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

VIEWS = {
    "desktop": {"viewport": {"width": 1180, "height": 800}},
    "phone": {
        "viewport": {"width": 360, "height": 740},
        "device_scale_factor": 2,
        "is_mobile": True,
        "has_touch": True,
    },
    "dark": {"viewport": {"width": 1180, "height": 800}, "color_scheme": "dark"},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="+")
    parser.add_argument("--comparison")
    parser.add_argument("--verb", default="fill")
    parser.add_argument("--text", default="The capital of France is [MASK].")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    more = ["--comparison", given.comparison] if given.comparison else []
    command = [sys.executable, "-m", "bakeoff", "serve", *given.runs, "--port", "0", *more]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        said = re.search(r"http://[\d.:]+", server.stderr.readline())
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            for name, view in VIEWS.items():
                context = browser.new_context(**view)
                page = context.new_page()
                page.goto(said[0])
                page.check(f"[value={given.verb}]")
                page.fill("#text", given.text)
                page.click("#go")
                page.wait_for_selector("[aria-busy=false]")
                page.wait_for_selector("[aria-busy=true]", state="detached")
                page.screenshot(path=given.out / f"{name}.png", full_page=True)
                context.close()
            browser.close()
    finally:
        server.terminate()
        server.wait(30)


if __name__ == "__main__":
    main()
