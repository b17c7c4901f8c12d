"""One page that can be forwarded: the answer, whether to believe it, and how it was made.

It is a single HTML file without script that asks nothing of any network, for a screen of any size and for paper.
"""

from priorshift.report.page import render, write

__all__ = ["render", "write"]
