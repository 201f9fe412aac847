"""The command `bakeoff`, also started by `python -m bakeoff`."""

import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line and exit; its parts are imported here, so that Ctrl-C has one answer from the start."""
    try:
        from bakeoff.cli import main as run
    except KeyboardInterrupt:
        sys.stderr.write("bakeoff: interrupted\n")
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
