"""The command line. (argparse: it is enough, everybody has it, and it needs no dependency.)

Results go to stdout, in JSON with ``--json``; warnings go to stderr. Wrong use ends with one sentence and
exit code 2, and leaves no file half written.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from priorshift import __version__, intervals, kernels, simulate
from priorshift.adapt import ShiftedClassifier, shifted_threshold
from priorshift.cli_tables import add_tables, read_tables, told_of_shared
from priorshift.decisions import check_names, check_output, write_decisions
from priorshift.drpu import DRPU
from priorshift.errors import InputError, PriorShiftWarning
from priorshift.estimate import METHODS, estimate_from_tables, join_source
from priorshift.km_ls import KM2LS
from priorshift.mixture_shift import MixtureShift
from priorshift.nnpu import NNPUClassifier
from priorshift.parameters import check_prior
from priorshift.tcpu import TCPU

# settings that not every method has, with what they are when nobody sets them
_UNSET = {
    "source_prior": None,
    "scenario": "case-control",
    "kernel": "gaussian",
    "bandwidth": "dimension",
    "statistic": "unbiased",
    "interval": "delta",
}
_PICTURES = (".png", ".svg", ".pdf")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit code is 0, or 2 for wrong use or unusable data."""
    parser = _parser()
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["experiment"]:  # has a command line of its own, with its own --help
        given[1:] = ["--", *given[1:]]
    args = parser.parse_args(given)
    try:
        with _warnings_as_sentences():
            return args.run(args) or 0
    except InputError as error:
        return _fail(str(error))
    except BrokenPipeError:  # whoever read our output has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        return _fail(f"{error.filename or 'a file'} cannot be used ({error.strerror or error}).")
    except MemoryError:
        return _fail("the data do not fit into memory; use fewer rows.")
    except KeyboardInterrupt:
        return _fail("interrupted; nothing was written.", 130)


def _fail(message: str, code: int = 2) -> int:
    print(f"priorshift: {message}", file=sys.stderr)
    return code


class _Parser(argparse.ArgumentParser):
    """An argument parser that reports wrong use in one sentence, like everything else."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"priorshift: {message} (see {self.prog} --help).\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="priorshift",
        description="Estimate how common the positive class is in a new, unlabelled population.",
        epilog="Try 'priorshift demo'.",
    )
    parser.add_argument("--version", action="version", version=f"priorshift {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    demo = commands.add_parser("demo", help="estimate on bundled data with a made shift, and compare with the truth")
    demo.set_defaults(run=_demo)
    estimate = commands.add_parser(
        "estimate",
        help="estimate the target prior from your tables",
        description="Estimate the share of positives in the target population.",
        epilog="Tables are CSV, TSV or Parquet files with the same numeric columns.",
    )
    estimate.set_defaults(run=_estimate)
    adapt = commands.add_parser(
        "adapt",
        help="classify the rows of the target by a classifier that fits its prior",
        description="Write the target's table with two more columns: the posterior probability of being positive in "
        "the target population, and the decision (1: positive).",
        epilog="Tables are CSV, TSV or Parquet files with the same numeric columns.",
    )
    adapt.set_defaults(run=_adapt)
    adapt.add_argument("--output", metavar="FILE", required=True, help="the table to write, of the target's kind")
    adapt.add_argument("--classifier", choices=("nnpu", "logistic"), default="nnpu",
        help="nnpu (default) needs the extra torch; logistic is linear and needs nothing")  # fmt: skip
    adapt.add_argument(
        "--target-prior", metavar="PRIOR", type=_number, help="share of positives in the target, if it is known"
    )
    experiment = commands.add_parser(
        "experiment", help="run, tabulate and draw the paper's experiments (in the repository)", add_help=False
    )
    experiment.add_argument("rest", nargs=argparse.REMAINDER)
    experiment.set_defaults(run=_experiment)
    for command in (estimate, adapt):
        add_tables(command)
        _add_estimator(command.add_argument)
    for command in (demo, estimate, adapt):
        command.add_argument(
            "--confidence", metavar="LEVEL", type=_number, default=0.95, help="of the interval (default: 0.95)"
        )
        command.add_argument(
            "--random-state", metavar="SEED", type=int, default=0, help="decides everything random (default: 0)"
        )
        command.add_argument("--json", action="store_true", help="print the result as JSON")
    for command in (demo, estimate):
        command.add_argument("--plot", metavar="FILE", help="write a picture of the estimate (.png, .svg or .pdf)")
    return parser


def _add_estimator(add: Callable[..., Any]) -> None:
    """Options of the estimators."""
    add(
        "--source-prior",
        metavar="PRIOR",
        type=_number,
        help="share of positives in the source population, if it is known; otherwise it is estimated",
    )
    add("--scenario", choices=("case-control", "censoring"), default=_UNSET["scenario"],
        help="case-control (default): unlabelled rows are a sample of the whole population; "
        "censoring: they are its rest after some positives were labelled")  # fmt: skip
    add("--no-standardize", action="store_true", help="do not scale columns by the source's mean and spread")
    add(
        "--method",
        choices=METHODS,
        default="auto",
        help="estimator (default: auto, which is tcpu with a known source prior and mixture without)",
    )
    add("--kernel", choices=kernels.KERNELS, default=_UNSET["kernel"])
    add("--bandwidth", default=_UNSET["bandwidth"], help="a number, 'dimension' (default) or 'median'")
    add("--statistic", choices=("unbiased", "plug-in"), default=_UNSET["statistic"], help="plug-in is the paper's")
    add(
        "--interval",
        choices=intervals.METHODS,
        default=_UNSET["interval"],
        help="how the interval is made (default: delta)",
    )


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None


def _demo(args: argparse.Namespace) -> None:
    """Breast-cancer data: tumours, 20 % malignant in the source, 50 % in the target."""
    from sklearn.datasets import load_breast_cancer

    _check_picture(args.plot)
    data = load_breast_cancer()
    malignant = data.target == 0
    s = simulate.shift_labels(data.data, malignant, 0.2, 0.5, random_state=args.random_state)
    tcpu = TCPU(0.2, standardize=True, confidence=args.confidence, random_state=args.random_state)
    estimate = tcpu.fit(s.X, s.y, shared=s.ids).estimate(s.target)
    truth = float(s.target_labels.mean())
    _picture(args.plot, lambda plots: plots.objective(estimate, truth=truth))
    if args.json:
        _json({**estimate.to_dict(), "truth": truth})
        return
    print(f"Breast-cancer data, {s.X.shape[1]} features.")
    print(f"source: {len(s.positive)} tumours known to be malignant, {len(s.unlabeled)} unlabelled ones, 20% malignant")
    print(f"target: {len(s.target)} unlabelled tumours of a new population")
    print(estimate)
    print(f"truth in the target sample: {truth:.3f}")
    if args.plot:
        print(f"picture: {args.plot}")


def _estimate(args: argparse.Namespace) -> None:
    _check_picture(args.plot)
    estimator = _estimator(args)
    tables = read_tables(args)
    estimate = estimate_from_tables(estimator, *tables, shared=told_of_shared(args))
    if args.method == "km2-ls":
        _picture(args.plot, lambda plots: plots.distance_curve(estimator.prior_estimator_))
    elif args.method == "drpu":
        _picture(args.plot, lambda plots: plots.level_sets(estimator, tables[2]))
    elif args.method == "mixture":
        _picture(args.plot, lambda plots: plots.mixture(estimator, tables[2]))
    else:
        _picture(args.plot, lambda plots: plots.objective(estimate))
    if args.json:
        _json(estimate.to_dict())
    else:
        print(estimate)


def _adapt(args: argparse.Namespace) -> None:
    check_output(args.output, args.target, (args.target, args.positive, args.unlabeled, args.source))
    known, scale = args.source_prior, not args.no_standardize
    if known is not None:
        check_prior(known)
    if args.target_prior is not None:
        shifted_threshold(0.5, args.target_prior)  # refused before the work rather than after it
    if args.method == "km2-ls":
        args.source_prior = None  # it has no use for it, but the classifier has
    classifier: Any = make_pipeline(StandardScaler(with_mean=scale, with_std=scale), LogisticRegression(max_iter=1000))
    if args.classifier == "nnpu":
        classifier = NNPUClassifier(known, scenario=args.scenario, standardize=scale)
    shifted = ShiftedClassifier(classifier, _estimator(args), source_prior=known, random_state=args.random_state)
    unlabeled, positive, target = read_tables(args)
    check_names([*(target.columns or ()), *target.dropped], args.target)
    X, y, told = join_source(unlabeled, positive, told_of_shared(args), ask=args.scenario == "case-control")
    shifted.fit(X, y, **told)
    if args.target_prior is None:
        shifted.adapt(target)
    else:
        shifted.adapt_to(args.target_prior)
    p = shifted.predict_proba(target)[:, 1]
    positive_decision = shifted.predict(target) == 1
    write_decisions(args.output, args.target, p, positive_decision)
    said = {
        "target_prior": shifted.target_prior_,
        "source_prior": shifted.source_prior_,
        "threshold": shifted.threshold_,
        "decided_positive": float(positive_decision.mean()),
        "output": args.output,
    }
    if args.json:
        _json({**said, "estimate": shifted.estimate_ and shifted.estimate_.to_dict()})
        return
    print(shifted.estimate_ or f"target prior {shifted.target_prior_:.3f} (given)")
    print(f"threshold on the source posterior: {shifted.threshold_:.3f}")
    print(f"decided positive: {int(positive_decision.sum())} of {len(p)} rows; written to {args.output}")


def _experiment(args: argparse.Namespace) -> int:
    """The experiments are no part of the package: they import it as a user would."""
    here = Path.cwd()
    for root in (here, *here.parents, Path(__file__).parents[2]):
        if (root / "experiments" / "grids.py").exists():
            break
    else:
        raise InputError(
            "the experiments are part of the repository and not of the installed package; clone it and run this inside."
        )
    sys.path.insert(0, str(root))
    main: Callable[[Sequence[str]], int] = importlib.import_module("experiments.__main__").main
    return main([word for word in args.rest if word != "--"])


def _estimator(args: argparse.Namespace) -> Any:
    bandwidth: str | float = args.bandwidth
    with suppress(ValueError):
        bandwidth = float(args.bandwidth)
    same = {
        "standardize": not args.no_standardize,
        "confidence": args.confidence,
        "random_state": args.random_state,
    }
    kernel = ("kernel", "bandwidth", "statistic", "interval")
    if args.method == "auto":  # as estimate_prior; an option of TCPU asks for TCPU
        asked = args.source_prior is not None or any(getattr(args, option) != _UNSET[option] for option in kernel)
        args.method = "tcpu" if asked else "mixture"
    unused = {"km2-ls": tuple(_UNSET), "drpu": kernel, "mixture": kernel}
    for option in unused.get(args.method, ()):
        if getattr(args, option) != _UNSET[option]:
            raise InputError(f"--{option.replace('_', '-')} has no meaning for --method {args.method}; leave it out.")
    if args.method == "km2-ls":
        return KM2LS(**same)
    if args.method in ("drpu", "mixture"):
        return {"drpu": DRPU, "mixture": MixtureShift}[args.method](args.source_prior, scenario=args.scenario, **same)
    return TCPU(
        args.source_prior,
        kernel=args.kernel,
        bandwidth=bandwidth,
        statistic=args.statistic,
        scenario=args.scenario,
        interval=args.interval,
        **same,
    )


def _json(result: dict[str, Any]) -> None:
    print(json.dumps(result, ensure_ascii=False, allow_nan=False))


def _check_picture(path: str | None) -> None:
    """Before any work: can the picture be written at all?"""
    if path is None:
        return
    if Path(path).suffix.lower() not in _PICTURES:
        raise InputError(f"--plot {path} must end in {', '.join(_PICTURES)}; name the picture so.")
    if not Path(path).absolute().parent.is_dir():
        raise InputError(f"--plot {path} lies in a folder that does not exist; make it first.")
    if Path(path).is_dir():
        raise InputError(f"--plot {path} is a folder; name a file.")
    try:
        import matplotlib
    except ImportError:
        raise InputError('--plot needs matplotlib; run pip install "priorshift[plot]".') from None
    matplotlib.use("agg")


def _picture(path: str | None, draw: Callable[[Any], Any]) -> None:
    """Draw into a temporary file beside the wanted one, then rename: all of it or nothing."""
    if path is None:
        return
    from priorshift import plots

    figure = draw(plots).figure
    with tempfile.TemporaryDirectory(dir=Path(path).absolute().parent) as folder:
        drawn = Path(folder) / Path(path).name
        figure.savefig(drawn, dpi=150)
        os.replace(drawn, path)


@contextmanager
def _warnings_as_sentences() -> Iterator[None]:
    """The library's warnings as sentences on stderr, without the line of code that Python adds."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", PriorShiftWarning)
        usual = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *rest: Any, **named: Any) -> None:
            if issubclass(category, PriorShiftWarning):
                print(f"priorshift: warning: {message}", file=sys.stderr)
            else:
                usual(message, category, *rest, **named)

        warnings.showwarning = show
        yield
