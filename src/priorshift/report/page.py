"""Render a result as one page, HTML or PDF: :mod:`priorshift.report.contents` gathers what it shows.

Templates lay it out.
"""

from __future__ import annotations

import base64
import hashlib
import os
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from priorshift.class_priors import ClassPriors
from priorshift.class_priors_by_target import ClassPriorsByTarget
from priorshift.diagnosis.class_targets import ClassDiagnoses
from priorshift.diagnosis.classes import ClassDiagnosis
from priorshift.diagnosis.diagnosis import Diagnoses, Diagnosis
from priorshift.errors import InputError, MissingExtraError
from priorshift.io.files import atomic_write
from priorshift.monitoring.monitor import Monitor
from priorshift.prior_estimates import PriorEstimates
from priorshift.results import PriorEstimate
from priorshift.scores.ratio_test import LEAST_SEPARATION

if TYPE_CHECKING:
    from jinja2 import Environment

ENDINGS = (".html", ".htm", ".pdf")
_OF_SEVERAL_TARGETS = (PriorEstimates, Diagnoses, ClassPriorsByTarget, ClassDiagnoses)
_OF_CLASSES = (ClassPriors, ClassDiagnosis, ClassPriorsByTarget, ClassDiagnoses)


def render(result: Any, *, title: str | None = None, command: str | None = None) -> str:
    """Render a result as an HTML page.

    Parameters
    ----------
    result : PriorEstimate, Diagnosis, Monitor or another result
        Result of an estimate or a diagnosis, of one target or several, of positives or several classes; or a monitor.
    title : str or None
        Heading of the page. Default: a question about the target.
    command : str or None
        Command that repeats the analysis. Default: the call in Python, for a diagnosis.

    Returns
    -------
    str
        The page. The same result gives the same text.

    Examples
    --------
    >>> import priorshift as ps
    >>> from priorshift import report
    >>> s = ps.simulate.gaussian(0.2, 0.6, n_source=500, n_target=500, shared=False, random_state=1)
    >>> page = report.render(ps.estimate_prior(s.positive, s.unlabeled, s.target, source_prior=0.2, random_state=0))
    >>> page.startswith("<!doctype html>"), "<script" in page
    (True, False)
    """
    if not isinstance(result, (PriorEstimate, Diagnosis, Monitor, *_OF_SEVERAL_TARGETS, *_OF_CLASSES)):
        raise InputError(
            f"A report needs an estimate, a diagnosis or a monitor, but got {type(result).__name__}. Pass the result "
            "of estimate_prior or diagnose, or a fitted Monitor."
        )
    environment = _environment()
    if isinstance(result, Monitor):
        from priorshift.report.monitor_contents import monitor_contents

        variables = monitor_contents(result) | {"title": _title(title, "How common are positives over time?")}
        return environment.get_template("monitor.html").render(variables | {"command": command})
    from priorshift.report.contents import contents

    template, variables = contents(result)
    several = isinstance(result, _OF_SEVERAL_TARGETS)
    # strata, which have a pooled estimate, are parts of one target
    one_population = not several or getattr(result, "pooled", None) is not None
    subject = "is each class" if isinstance(result, _OF_CLASSES) else "are positives"
    default = f"How common {subject} in the {'target' if one_population else 'targets'}?"
    variables |= {"title": _title(title, default), "command": command, "several": several}
    return environment.get_template(f"{template}.html").render(variables)


def _title(title: str | None, default: str) -> str:
    """Return the title of the user, or the default if there is none."""
    return title if title and title.strip() else default


def write(result: Any, path: str | os.PathLike[str], *, title: str | None = None, command: str | None = None) -> None:
    """Write a result to a file as an HTML page, or as a PDF (extra `pdf`).

    Parameters
    ----------
    result : PriorEstimate, Diagnosis, Monitor or another result
        Result of an estimate or a diagnosis, of one target or several, of positives or several classes; or a monitor.
    path : str or path
        File to write, which ends in .html, .htm or .pdf.
    title, command : str or None
        As in :func:`render`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import priorshift as ps
    >>> from priorshift.report import write
    >>> s = ps.simulate.gaussian(0.2, 0.6, n_source=300, n_target=300, shared=False, random_state=0)
    >>> path = Path(tempfile.mkdtemp()) / "report.html"
    >>> write(ps.TCPU(0.2).fit(s.X, s.y).estimate(s.target), path, title="Spring")
    >>> "<title>Spring" in path.read_text(encoding="utf-8")
    True
    """
    if Path(path).suffix.lower() not in ENDINGS:
        raise InputError(f"{path} must end in .html or .pdf. Rename it.")
    if is_pdf(path):
        check_pdf_extra()
    page = render(result, title=title, command=command)
    with atomic_write(path) as draft:
        if is_pdf(path):
            _write_pdf(page, draft)
        else:
            draft.write_text(page, encoding="utf-8", newline="\n")


def is_pdf(path: str | os.PathLike[str]) -> bool:
    """Return whether a report with this name is a PDF."""
    return Path(path).suffix.lower() == ".pdf"


def _write_pdf(page: str, path: Path) -> None:
    """Write a page of HTML to a file as a PDF, tagged for screen readers; nothing that it names is loaded."""
    from weasyprint import HTML
    from weasyprint.urls import URLFetcher

    HTML(string=page, url_fetcher=URLFetcher(allowed_protocols=())).write_pdf(path, pdf_tags=True)


def check_pdf_extra() -> None:
    """Raise MissingExtraError if a PDF cannot be written: WeasyPrint, or the library Pango, is not installed."""
    try:
        import weasyprint  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(
            f'a PDF needs {error.name}, which is not installed; run pip install "priorshift[pdf]", or write .html.'
        ) from None
    except OSError:  # WeasyPrint is installed, and cannot load a library of the system
        raise MissingExtraError(
            "a PDF needs the library Pango, which is not installed; install it with the system's packages, or write "
            ".html."
        ) from None


def check_extra() -> None:
    """Raise MissingExtraError if the optional packages of a report, jinja2 and matplotlib, are not installed."""
    try:
        import jinja2  # noqa: F401
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(
            f'a report needs {error.name}, which is not installed; run pip install "priorshift[report]".'
        ) from None


@cache
def _environment() -> Environment:
    """Return jinja2's environment of the templates, with the filters, functions and style sheet that they use."""
    check_extra()
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    from priorshift.report import contents, numbers, pictures, provenance

    loader = PackageLoader("priorshift.report")
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    style = files("priorshift.report").joinpath("templates", "style.css").read_text(encoding="utf-8")
    # a hash with which the page's content policy allows this style sheet and no other
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    environment.filters |= {
        "name": numbers.name, "plain": numbers.plain, "prose": numbers.prose, "code": numbers.code,
        "setting": provenance.setting,
    }  # fmt: skip
    environment.globals |= {
        "style": Markup(style),  # not escaped: it is part of the package
        "style_hash": f"sha256-{digest}",
        "versions": provenance.versions(),
        "badges": contents.BADGES,
        "class_badges": contents.CLASS_BADGES,
        "is_informative": numbers.is_informative,
        "bare": numbers.bare,
        "interval_graphic": pictures.IntervalGraphic.from_estimate,
        "len": len,
        "str": str,
        "denominator": contents.denominator,
        "label_shift_status": contents.label_shift_status,
        "prior_status": contents.prior_status,
        "status_of_test": contents.status_of_test,
        "least_separation": LEAST_SEPARATION,
    }
    return environment
