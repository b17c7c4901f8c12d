"""`priorshift demo`: an estimate on bundled data with a made shift, beside the truth, and a page of it."""

from __future__ import annotations

import argparse
import shlex
import sys

from priorshift import plots, simulate
from priorshift.cli.inputs import estimator_settings
from priorshift.cli.output import check_figure, print_json, print_result, write_figure
from priorshift.cli.report import check_page
from priorshift.diagnosis.diagnose import diagnose_target
from priorshift.errors import InputError
from priorshift.io.tables import Table
from priorshift.loading import InputOptions, load_problem
from priorshift.methods.witness_shift import WitnessShift
from priorshift.report.page import write

_PAGE = "demo.html"
_TITLE = "How many of the new tumours are malignant?"
_NEXT = """
try next:
  priorshift report --positive P.csv --unlabeled U.csv --target T.csv -o report.html
  priorshift app              # the same without typing commands
  priorshift estimate --help  # all that can be told, with examples"""


def run(args: argparse.Namespace) -> None:
    """Breast-cancer data: tumours, 20% malignant in the source, 50% in the target."""
    from sklearn.datasets import load_breast_cancer

    check_figure(args.plot)
    page, why_not = _page(args)
    data = load_breast_cancer()
    malignant = data.target == 0
    s = simulate.shift_labels(data.data, malignant, 0.2, 0.5, random_state=args.random_state)
    witness = WitnessShift(0.2, **estimator_settings(args))
    truth = float(s.target_labels.mean())
    if page is None:
        estimate = witness.fit(s.X, s.y, shared=s.ids).estimate(s.target)
    else:
        names, labeled = tuple(map(str, data.feature_names)), s.y == 1
        unlabeled, positive = (
            Table(name, s.X[rows], names, {"tumour": s.ids[rows]})
            for name, rows in (("unlabeled", ~labeled), ("positive", labeled))
        )
        options = InputOptions.from_arguments(shared="tumour", stream=False)
        problem = load_problem(
            positive=positive, unlabeled=unlabeled, target=Table("target", s.target, names), options=options
        )
        found = diagnose_target(problem, witness)
        estimate = found.estimate
        write(found, page, title=_TITLE, command=shlex.join(args.typed))
    write_figure(args.plot, lambda: plots.displays_of(estimate)["mixture"].plot().ax_)
    if args.json:
        print_json({**estimate.to_dict(), "truth": truth})
        if page:
            print(f"priorshift: report: {page}", file=sys.stderr)
        return
    print(f"Breast-cancer data, {s.X.shape[1]} features.")
    print(f"source: {len(s.positive)} tumours known to be malignant, {len(s.unlabeled)} unlabelled ones, 20% malignant")
    print(f"target: {len(s.target)} unlabelled tumours of a new population")
    print_result(estimate)
    print(f"truth in the target sample: {truth:.3f}")
    if args.plot:
        print(f"picture: {args.plot}")
    if page or why_not:
        print(f"report: {page} (open it in a browser)" if page else f"report: none, since {why_not}")
    print(_NEXT)


def _page(args: argparse.Namespace) -> tuple[str | None, str]:
    """Where the page is written; None, and why, where nobody asked for one and it cannot be."""
    if args.no_report or (args.json and args.report is None):
        return None, ""
    try:
        check_page("--report", args.report or _PAGE)
    except InputError as error:
        if args.report is not None:
            raise
        return None, str(error).removeprefix("--report ")
    return args.report or _PAGE, ""
