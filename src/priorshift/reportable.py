"""Base class of results that can be written as a report."""

from __future__ import annotations

import os


class Reportable:
    """A result of which there is a page."""

    def report(self, path: str | os.PathLike[str], *, title: str | None = None, command: str | None = None) -> None:
        """Write a page on this result as one self-contained HTML file, or as a PDF.

        Parameters
        ----------
        path : str or path
            File to write, which ends in .html or .pdf.
        title : str or None
            Heading of the page.
        command : str or None
            Command that repeats the analysis, shown on the page.
        """
        from priorshift.report import write  # when it is needed: reports use all results

        write(self, path, title=title, command=command)
