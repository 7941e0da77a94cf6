"""`python -m engine` is the command line."""

from __future__ import annotations

import sys

if __name__ == "__main__":
    try:
        from engine.cli import main
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
        sys.exit(130)
    sys.exit(main())
