"""``python -m geodp``: the command line."""

import sys

from geodp.cli import main

if __name__ == "__main__":
    sys.exit(main())
