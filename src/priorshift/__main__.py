"""Run the command line by ``python -m priorshift``."""

import sys

from priorshift.cli import main

if __name__ == "__main__":
    sys.exit(main())
