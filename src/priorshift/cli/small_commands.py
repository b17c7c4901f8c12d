"""The small commands: app, completion, demo, experiment and schema."""

from __future__ import annotations

import argparse
import json
import re
import shlex
import sys
from collections.abc import Callable, Sequence
from importlib import import_module, resources
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from priorshift import plots, simulate
from priorshift.cli import output
from priorshift.cli.inputs import estimator_settings
from priorshift.diagnosis.diagnose import diagnose_target
from priorshift.errors import InputError, MissingExtraError
from priorshift.io.files import PARQUET, TEXT
from priorshift.io.tables import Table
from priorshift.loading import InputOptions, load_problem
from priorshift.methods.witness_shift import WitnessShift
from priorshift.report.page import ENDINGS, write

_CHECKOUT = Path(__file__).resolve().parents[3]  # root of the repository if the package was installed editable
_DEMO_TITLE = "How many of the new tumours are malignant?"
_DEMO_NEXT = """
try next:
  priorshift report --positive P.csv --unlabeled U.csv --target T.csv -o report.html
  priorshift app              # the same in a browser
  priorshift estimate --help  # all options, with examples"""


def run_app(args: argparse.Namespace) -> None:
    """Run `priorshift app`: serve the page until Ctrl-C."""
    if not (find_spec("starlette") and find_spec("uvicorn")):
        raise MissingExtraError('the app needs starlette and uvicorn; run pip install "priorshift[app]".')
    from priorshift.app.serve import serve
    from priorshift.app.uploads import Limits

    if not 0 <= args.port < 65536:
        raise InputError(f"--port {args.port} is not a port; pass a number from 1 to 65535, or remove the option.")
    options = {"rows": args.max_rows, "bytes": args.max_bytes, "seconds": args.time_limit}
    limits = Limits(**{name: value for name, value in options.items() if value is not None})
    address = {"host": args.host, "port": args.port, "exposed": args.expose_to_network}
    serve(limits, _announce, **address, browser=not args.no_browser)
    print("priorshift app has ended; uploaded files are deleted.")


def _announce(address: str) -> None:
    """Print an address of the page, and how to end the app."""
    print(f"priorshift app: {address}")
    print("Open this address in a browser; it works once. Ctrl-C ends the app and deletes uploaded files.", flush=True)


def run_completion(args: argparse.Namespace) -> None:
    """Run `priorshift completion`: print the completion script of a shell."""
    if not find_spec("shtab"):
        raise MissingExtraError('completion needs shtab; run pip install "priorshift[completion]".')
    import shtab

    compressed = tuple(f"{ending}.gz" for ending in TEXT)
    endings = dict.fromkeys(("positive", "unlabeled", "source", "target"), TEXT + compressed + PARQUET)
    endings |= {"plot": output.FIGURES, "page": ENDINGS, "report": ENDINGS}
    for command in args.parser.commands.values():
        for option in command.options:
            if option.metavar == "FILE":  # complete files with the option's endings; by default, all files
                patterns = [f"*{ending}" for ending in endings.get(option.dest, ())]
                option.complete = shtab.glob(*patterns) if patterns else shtab.FILE
    print(shtab.complete(args.parser, args.shell))


def run_demo(args: argparse.Namespace) -> None:
    """Run `priorshift demo` on breast-cancer data, with 20% malignant tumours in the source and 50% in the target."""
    from sklearn.datasets import load_breast_cancer

    output.check_figure(args.plot)
    page, reason = _demo_page(args)
    data = load_breast_cancer()
    simulated = simulate.shift_labels(data.data, data.target == 0, 0.2, 0.5, random_state=args.random_state)
    witness = WitnessShift(0.2, **estimator_settings(args))
    truth = float(simulated.target_labels.mean())
    if page is None:
        estimate = witness.fit(simulated.X, simulated.y, shared=simulated.ids).estimate(simulated.target)
    else:
        names = tuple(map(str, data.feature_names))
        problem = load_problem(
            positive=Table("positive", simulated.positive, names, {"tumour": simulated.positive_ids}),
            unlabeled=Table("unlabeled", simulated.unlabeled, names, {"tumour": simulated.unlabeled_ids}),
            target=Table("target", simulated.target, names),
            options=InputOptions.from_arguments(shared="tumour", stream=False),
        )
        diagnosis = diagnose_target(problem, witness)
        estimate = diagnosis.estimate
        write(diagnosis, page, title=_DEMO_TITLE, command=shlex.join(args.typed))
    if args.plot:
        output.write_figure(args.plot, plots.displays_of(estimate)["mixture"].plot().ax_)
    if args.json:
        output.print_json({**estimate.to_dict(), "truth": truth})
        if page:
            output.print_note(f"report: {page}")
        return
    print(f"Breast-cancer data, {simulated.X.shape[1]} features.")
    n_positive, n_unlabeled, n_target = len(simulated.positive), len(simulated.unlabeled), len(simulated.target)
    print(f"source: {n_positive} tumours known to be malignant, {n_unlabeled} unlabelled, 20% malignant")
    print(f"target: {n_target} unlabelled tumours of a new population")
    output.print_result(estimate)
    print(f"truth in the target sample: {truth:.3f}")
    if args.plot:
        print(f"figure: {args.plot}")
    if page or reason:
        print(f"report: {output.describe_report(page) if page else f'none ({reason})'}")
    print(_DEMO_NEXT)


def _demo_page(args: argparse.Namespace) -> tuple[str | None, str]:
    """Return the path of the demo's report and "", or None and why there is no report ("" if none is wanted).

    A report that was named by --report but cannot be written raises InputError; the default one is left out.
    """
    if args.no_report or (args.json and args.report is None):
        return None, ""
    page = args.report or "demo.html"
    try:
        output.check_report("--report", page)
    except InputError as error:
        if args.report is not None:
            raise
        return None, str(error).removeprefix("--report ")
    return page, ""


def run_experiment(args: argparse.Namespace) -> int:
    """Run `priorshift experiment`: the experiments of the checkout that the package was installed from.

    Nothing is imported from the working directory or its parents, which may belong to somebody else.
    """
    if not all((_CHECKOUT / part).exists() for part in ("pyproject.toml", "experiments/grids.py", "src/priorshift")):
        raise InputError(
            "the experiments are part of the repository and not of the installed package; clone it, install it from "
            "there (pip install --editable .) and run this again."
        )
    sys.path.insert(0, str(_CHECKOUT))
    main: Callable[[Sequence[str]], int] = import_module("experiments.command_line").main
    return main([word for word in args.rest if word != "--"])


def run_schema(args: argparse.Namespace) -> None:
    """Run `priorshift schema`: print the JSON Schema of a command's output."""
    output.print_json(schema(args.name), indent=2)


def schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema of a command's output, with the schemas that it refers to among its definitions ($defs).

    `name` is that of the command.
    """
    schemas: dict[str, Any] = {}
    unread = {name}
    while unread:  # read the schema and, in turn, all that it refers to
        schema_name = unread.pop()
        text = (resources.files("priorshift") / "schemas" / f"{schema_name}.json").read_text(encoding="utf-8")
        schemas[schema_name] = json.loads(text)
        references = re.findall(r'"\$ref": *"urn:priorshift:schema:(\w+)', text)
        unread |= set(references) - schemas.keys()
    result: dict[str, Any] = schemas.pop(name)
    for schema_name in sorted(schemas):
        result.setdefault("$defs", {})[schema_name] = schemas[schema_name]
    return result
