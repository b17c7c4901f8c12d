"""The command line."""

from priorshift.cli.main import main

__all__ = ["main"]
