"""Reports: one HTML file with the answer, its reliability and its provenance, for any screen and for paper.

A page has no script and loads nothing from a network.
"""

from priorshift.report.page import render, write

__all__ = ["render", "write"]
