"""Options that set up an estimator: those of its class's parameters that a shell has use for, with its defaults."""

from __future__ import annotations

import argparse
import inspect
from contextlib import suppress
from typing import Any

from scipy import stats

from priorshift import kernels
from priorshift.cli.parser import KNOWN, METHOD, OUTPUT, Parser
from priorshift.errors import InputError, MissingExtraError
from priorshift.inference import intervals
from priorshift.io.parameters import CHOICES
from priorshift.methods import registry as methods
from priorshift.methods.drpu import DRPU
from priorshift.methods.network import import_torch


def number(text: str) -> float:
    """A number of the command line, or a sentence."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None


def _prior(text: str) -> float | tuple[float, float]:
    """A number, or a range of two; a dash can also stand in an exponent."""
    with suppress(ValueError):
        return float(text)
    for dash in (k for k, letter in enumerate(text) if letter == "-"):
        with suppress(ValueError):
            return float(text[:dash]), float(text[dash + 1 :])
    raise argparse.ArgumentTypeError(f"{text!r} is neither a number such as 0.2 nor a range such as 0.1-0.2")


def _survey(text: str) -> Any:
    """What a survey tells of a share, by Jeffreys' prior."""
    with suppress(ValueError):
        positives, rows = (int(count) for count in text.split("/"))
        if 0 <= positives <= rows > 0:
            return stats.beta(positives + 0.5, rows - positives + 0.5)
    raise argparse.ArgumentTypeError(
        f"{text!r} is no survey; pass the positives found and the rows looked at, such as 37/250"
    )


def bandwidth(text: str) -> str | float:
    """A number, or the name of a rule, which is checked where it is used."""
    with suppress(ValueError):
        return float(text)
    return text


_SOURCE_PRIOR: dict[str, Any] = {"metavar": "PRIOR", "type": _prior,
    "help": "share of positives in the source population, if it is known: a number, or a range such as 0.1-0.2; "
    "otherwise it is estimated"}  # fmt: skip
_COUNTS: dict[str, Any] = {"metavar": "POSITIVES/ROWS", "dest": "source_prior", "type": _survey,
    "help": "instead of --source-prior, what a survey of the source population found, such as 37/250, whose error the "
    "interval then includes; for witness and tcpu"}  # fmt: skip
_SETTINGS: dict[str, dict[str, Any]] = {
    "scenario": {"choices": CHOICES["scenario"],
        "help": "case-control: unlabelled rows are a sample of the whole population; "
        "censoring: they are its rest after some positives were labelled"},
    "kernel": {"choices": kernels.KERNELS, "help": "what measures how alike two rows are"},
    "bandwidth": {"metavar": "WIDTH", "type": bandwidth,
        "help": "of the kernel: a number; for tcpu also 'dimension', 'median' or 'variance', for km2-ls 'search'"},
    "statistic": {"choices": CHOICES["statistic"], "help": "plug-in is the paper's"},
    "interval": {"choices": intervals.METHODS, "help": "how the interval is made"},
}  # fmt: skip
_NAMES = ("source_prior", *_SETTINGS, "standardize", "confidence", "random_state")


def add_options(command: Parser, *, only: str | None = None) -> None:
    """Options of the estimators, or of one method `only`; one that is not given is not in the namespace."""
    known, method = command.group(KNOWN), command.group(METHOD)
    priors = known.add_mutually_exclusive_group()
    priors.add_argument(_option("source_prior"), **_SOURCE_PRIOR, default=argparse.SUPPRESS)
    priors.add_argument("--source-prior-counts", **_COUNTS, default=argparse.SUPPRESS)
    names = methods.names()
    if only is None:
        method.add_argument("--method", choices=names, default=names[0],
                            help="estimator (default: auto, which is witness)")  # fmt: skip
    for name, settings in _SETTINGS.items():
        words = settings["help"]
        takers = [method for method in methods.METHODS if name in method.options]
        if only is not None and only not in [taker.name for taker in takers]:
            continue
        defaults = {inspect.signature(taker.estimator).parameters[name].default for taker in takers} - {None}
        if defaults:
            words += f" (default: {' or '.join(sorted(defaults))})"
        if len(takers) == 1:
            words += f"; of --method {takers[0].name}"
        place = known if name == "scenario" else method
        place.add_argument(_option(name), **settings | {"help": words}, default=argparse.SUPPRESS)
    method.add_argument("--no-standardize", dest="standardize", action="store_false", default=argparse.SUPPRESS,
                        help="do not scale columns by the source's mean and spread")  # fmt: skip


def add_output(command: Parser, *, picture: bool = False) -> None:
    """Options of what is shown, and how sure and how repeatable it is."""
    how, add = command.group(METHOD).add_argument, command.group(OUTPUT).add_argument
    how("--confidence", metavar="LEVEL", type=number, default=argparse.SUPPRESS,
        help="of the interval (default: 0.95)")  # fmt: skip
    how("--random-state", "--seed", metavar="SEED", type=int, default=0,
        help="decides everything random (default: 0)")  # fmt: skip
    add("--json", action="store_true", help="print the result as JSON, which priorshift schema explains")
    if picture:
        add("--plot", metavar="FILE", help="write a picture of the estimate (.png, .svg or .pdf)")


def given(args: argparse.Namespace) -> dict[str, Any]:
    """The settings of an estimator that the user gave."""
    return {name: getattr(args, name) for name in _NAMES if hasattr(args, name)}


def make_estimator(args: argparse.Namespace, optional: tuple[str, ...] = ()) -> tuple[methods.Method, Any]:
    """The method and its estimator; settings that it has no use for are refused, unless they are `optional`."""
    settings = given(args)
    method = methods.choose(args.method)
    for name in method.missing(settings):
        if name not in optional:
            raise InputError(_refusal(name, args.method))
        del settings[name]
    estimator = method.estimator(**settings)
    if isinstance(estimator, DRPU):
        check_torch(f"--method {method.name}", "use another method")
    return method, estimator


def check_torch(option: str, otherwise: str) -> None:
    """Refuse what cannot be trained before any work, in the shell's terms."""
    try:
        import_torch()
    except MissingExtraError:
        raise MissingExtraError(
            f'{option} needs torch, which is not installed; run pip install "priorshift[torch]", or {otherwise}.'
        ) from None


def _refusal(name: str, method: str) -> str:
    """Of an option that the method does not have; where none was named, who has it."""
    option = _option(name)
    if method != "auto":
        return f"{option} has no meaning for --method {method}; leave it out."
    takers = " or ".join(taker.name for taker in methods.METHODS if name in taker.options)
    return f"{option} belongs to --method {takers}; add it, or leave {option} out."


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
