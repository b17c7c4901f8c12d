"""The small commands: app, completion, demo, experiment and schema."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Callable, Sequence
from importlib import import_module, resources
from pathlib import Path
from typing import Any

from priorshift import plots, simulate
from priorshift.cli.inputs import estimator_settings
from priorshift.cli.output import FIGURES, check_figure, check_report, print_json, print_result, write_figure
from priorshift.diagnosis.diagnose import diagnose_target
from priorshift.errors import InputError, MissingExtraError
from priorshift.io.files import PARQUET, TEXT
from priorshift.io.tables import Table
from priorshift.loading import InputOptions, load_problem
from priorshift.methods.witness_shift import WitnessShift
from priorshift.report.page import ENDINGS, write

_TABLES = (*TEXT, *(f"{ending}.gz" for ending in TEXT), *PARQUET)
_COMPLETED = {  # endings of the files that an option reads or writes
    **dict.fromkeys(("positive", "unlabeled", "source", "target"), _TABLES),
    "plot": FIGURES,
    "page": ENDINGS,
    "report": ENDINGS,
}
_CHECKOUT = Path(__file__).resolve().parents[3]  # of src/priorshift/cli, where the package was installed editable
_DEMO_PAGE = "demo.html"
_DEMO_TITLE = "How many of the new tumours are malignant?"
_DEMO_NEXT = """
try next:
  priorshift report --positive P.csv --unlabeled U.csv --target T.csv -o report.html
  priorshift app              # the same in a browser
  priorshift estimate --help  # all options, with examples"""
_URN = "urn:priorshift:schema:"


def run_app(args: argparse.Namespace) -> None:
    """Serve the page until it is ended."""
    from priorshift.app.serve import serve
    from priorshift.app.uploads import Limits

    if not 0 <= args.port < 65536:
        raise InputError(f"--port {args.port} is not a port; pass a number from 1 to 65535, or remove the option.")
    given = {"rows": args.max_rows, "bytes": args.max_bytes, "seconds": args.time_limit}
    limits = Limits(**{name: value for name, value in given.items() if value is not None})
    where = {"host": args.host, "port": args.port, "exposed": args.expose_to_network}
    serve(limits, _announce, **where, browser=not args.no_browser)
    print("priorshift app has ended; uploaded files are deleted.")


def _announce(address: str) -> None:
    print(f"priorshift app: {address}")
    print("Open this address in a browser. Ctrl-C ends the app and deletes uploaded files.", flush=True)


def run_completion(args: argparse.Namespace) -> None:
    """Print the completion script of a shell."""
    try:
        import shtab
    except ImportError:
        raise MissingExtraError(
            'completion needs shtab, which is not installed; run pip install "priorshift[completion]".'
        ) from None
    for command in args.parser.commands.values():
        for option in command.options:
            if option.metavar == "FILE":
                endings = _COMPLETED.get(option.dest)
                option.complete = shtab.glob(*(f"*{ending}" for ending in endings)) if endings else shtab.FILE
    print(shtab.complete(args.parser, args.shell))


def run_demo(args: argparse.Namespace) -> None:
    """Estimate on breast-cancer data with 20% malignant tumours in the source and 50% in the target."""
    from sklearn.datasets import load_breast_cancer

    check_figure(args.plot)
    page, reason = _demo_page(args)
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
        diagnosis = diagnose_target(problem, witness)
        estimate = diagnosis.estimate
        write(diagnosis, page, title=_DEMO_TITLE, command=shlex.join(args.typed))
    write_figure(args.plot, lambda: plots.displays_of(estimate)["mixture"].plot().ax_)
    if args.json:
        print_json({**estimate.to_dict(), "truth": truth})
        if page:
            print(f"priorshift: report: {page}", file=sys.stderr)
        return
    print(f"Breast-cancer data, {s.X.shape[1]} features.")
    print(f"source: {len(s.positive)} tumours known to be malignant, {len(s.unlabeled)} unlabelled, 20% malignant")
    print(f"target: {len(s.target)} unlabelled tumours of a new population")
    print_result(estimate)
    print(f"truth in the target sample: {truth:.3f}")
    if args.plot:
        print(f"figure: {args.plot}")
    if page or reason:
        print(f"report: {page} (open it in a browser)" if page else f"report: none ({reason})")
    print(_DEMO_NEXT)


def _demo_page(args: argparse.Namespace) -> tuple[str | None, str]:
    """Return the path of the report; None, and the reason, if none was asked for and it cannot be written."""
    if args.no_report or (args.json and args.report is None):
        return None, ""
    try:
        check_report("--report", args.report or _DEMO_PAGE)
    except InputError as error:
        if args.report is not None:
            raise
        return None, str(error).removeprefix("--report ")
    return args.report or _DEMO_PAGE, ""


def run_experiment(args: argparse.Namespace) -> int:
    """Run the experiments of the checkout that the package was installed from.

    Nothing is imported from the working directory or its parents, which may belong to somebody else.
    """
    if not all((_CHECKOUT / part).exists() for part in ("pyproject.toml", "experiments/grids.py", "src/priorshift")):
        raise InputError(
            "the experiments are part of the repository and not of the installed package; clone it, install it from "
            "there (pip install --editable .) and run this again."
        )
    sys.path.insert(0, str(_CHECKOUT))
    main: Callable[[Sequence[str]], int] = import_module("experiments.__main__").main
    return main([word for word in args.rest if word != "--"])


def run_schema(args: argparse.Namespace) -> None:
    """Print the JSON Schema of a command's output."""
    print(json.dumps(schema(args.name), ensure_ascii=False, indent=2))


def schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema of a command's output, with the schemas that it refers to among its definitions."""
    result = _read_schema(name)
    for other in sorted(_references(result, set())):
        result.setdefault("$defs", {})[other] = _read_schema(other)
    return result


def _read_schema(name: str) -> dict[str, Any]:
    text = (resources.files("priorshift") / "schemas" / f"{name}.json").read_text(encoding="utf-8")
    content: dict[str, Any] = json.loads(text)
    return content


def _references(part: Any, seen: set[str]) -> set[str]:
    """Collect the names of the schemas that a part refers to, directly or through others."""
    if isinstance(part, dict):
        name = str(part.get("$ref", "")).partition("#")[0].removeprefix(_URN)
        if name and name not in seen:
            seen.add(name)
            _references(_read_schema(name), seen)
    for inner in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        _references(inner, seen)
    return seen
