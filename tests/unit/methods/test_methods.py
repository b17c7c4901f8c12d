"""A new estimator is one class and one line in the table: both doors know it, with its own options and picture."""

import csv
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import priorshift as ps
from priorshift.base import TargetPriorEstimator
from priorshift.cli import main
from priorshift.cli.options import OPTIONS
from priorshift.errors import InputError
from priorshift.io.parameters import check_settings
from priorshift.methods import registry as methods
from priorshift.methods.registry import Method
from priorshift.problem import Source, Target


class Toy(TargetPriorEstimator):
    """The share of target rows whose first column, scaled, lies nearer to the positives' mean than to the population's."""

    label = "Toy method"

    def __init__(self, *, confidence=0.9, scenario="case-control", standardize=True, random_state=None):
        self.confidence = confidence
        self.scenario = scenario
        self.standardize = standardize
        self.random_state = random_state

    def _check_parameters(self):
        check_settings({"confidence": self.confidence})

    def _fit(self, source, rng):
        first = source.rows[:][:, 0]
        self.middle_ = (first[source.positive].mean() + first[source.population].mean()) / 2
        self._sizes = source.sizes

    def _estimate(self, target):
        share = float((target.rows[:][:, 0] > self.middle_).mean())
        nan = float("nan")
        return ps.PriorEstimate(
            value=share, raw=share, interval=ps.Interval(0.0, 1.0, self.confidence, "none"), standard_error=nan,
            source_prior=nan, negative_ratio=nan, separation=nan, method=self.label,
            sizes=(*self._sizes, len(target)), evidence=self.middle_,
        )  # fmt: skip


@pytest.fixture(autouse=True)
def _toy(monkeypatch):
    """One line in the table."""
    monkeypatch.setattr(methods, "METHODS", (*methods.METHODS, methods.Method("toy", Toy)))
    monkeypatch.setitem(OPTIONS["--method"], "choices", methods.names())


@pytest.fixture(scope="module")
def sample():
    return ps.simulate.gaussian(0.2, 0.6, 200, 100, dimension=2, shared=False, random_state=0)


@pytest.fixture
def files(sample, tmp_path):
    arguments = []
    for name in ("positive", "unlabeled", "target"):
        with (tmp_path / f"{name}.csv").open("w", newline="") as file:
            csv.writer(file).writerows(["ab", *getattr(sample, name).tolist()])
        arguments += [f"--{name}", str(tmp_path / f"{name}.csv")]
    return arguments


def by_hand(sample):
    mean = sample.positive[:, 0].mean() / 2 + sample.unlabeled[:, 0].mean() / 2
    return (sample.target[:, 0] > mean).mean()


def test_the_function_knows_it(sample):
    tables = sample.positive, sample.unlabeled, sample.target
    found = ps.estimate_prior(*tables, method="toy")
    assert (found.value, found.method, found.interval.confidence) == (by_hand(sample), "Toy method", 0.9)
    assert ps.estimate_prior(*tables, method="toy", confidence=0.5).interval.confidence == 0.5
    with pytest.raises(InputError, match=r"'toy'.*source_prior"):
        ps.estimate_prior(*tables, method="toy", source_prior=0.2)
    with pytest.raises(InputError, match=r"'tay'.*'drpu', 'toy'"):
        ps.estimate_prior(*tables, method="tay")


def test_the_command_knows_it_and_says_that_it_has_no_picture(files, sample, tmp_path, capsys):
    command = ["estimate", *files, "--method", "toy", "--confidence", "0.7", "--json"]
    assert main(command) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["value"], said["method"], said["interval"]["confidence"]) == (by_hand(sample), "Toy method", 0.7)
    assert said["source_prior"] is None and "evidence" not in said
    assert main([*command, "--plot", str(tmp_path / "toy.png")]) == 2 and not (tmp_path / "toy.png").exists()
    assert "--plot" in capsys.readouterr().err


def test_its_options_are_the_parameters_of_its_class(files, capsys):
    assert methods.METHODS[-1].options == ("confidence", "scenario", "standardize", "random_state")
    assert methods.METHODS[-1].estimator.label == "Toy method"
    for option, value in (("--kernel", "laplace"), ("--source-prior", "0.2"), ("--interval", "delta")):
        assert main(["estimate", *files, "--method", "toy", option, value]) == 2
        assert capsys.readouterr().err == f"priorshift: {option} does not apply to --method toy; remove it.\n"
    assert main(["estimate", *files, "--method", "toy", "--no-standardize", "--scenario", "censoring"]) == 0
    assert capsys.readouterr().out.startswith("no estimate of the target prior, 90% interval")


def test_help_names_it_and_nothing_chooses_it_by_itself(capsys):
    with pytest.raises(SystemExit):
        main(["estimate", "--help"])
    assert "{auto,witness,tcpu,km2-ls,drpu,toy}" in capsys.readouterr().out
    assert methods.choose("auto").name == "witness"


def test_every_method_of_the_table_can_be_called_by_its_name(sample):
    assert len(methods.METHODS) >= 5 and np.unique([method.name for method in methods.METHODS]).size == len(
        methods.METHODS
    )
    for method in methods.METHODS:
        assert methods.choose(method.name) is method
        assert issubclass(method.estimator, TargetPriorEstimator) and method.estimator.label
        assert {"confidence", "random_state"} <= set(method.options)


def test_the_estimator_of_contributing_is_one_file_and_one_line(monkeypatch):
    text = (Path(__file__).parents[3] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    names: dict = {"np": np, "Any": Any, "plots": ps.plots}
    names |= {"TargetPriorEstimator": TargetPriorEstimator, "Source": Source, "Target": Target}
    names |= {"PriorEstimate": ps.PriorEstimate, "Method": Method}
    exec(re.search(r"```python\n(.*?)```", text, re.DOTALL)[1], names)
    line = eval(re.search(r"`(Method\(.*?\))`\. Then", text, re.DOTALL)[1], names)
    monkeypatch.setattr(methods, "METHODS", (*methods.METHODS, line))
    s = ps.simulate.gaussian(0.2, 0.6, 100, 50, shared=False, random_state=0)
    estimate = ps.estimate_prior(s.positive, s.unlabeled, s.target, method="half-way", source_prior=0.2)
    assert (estimate.value, estimate.method, estimate.sizes[2]) == (0.6, "Half-way", 50)
    assert len(next(iter(ps.plots.displays_of(estimate).values())).plot().ax_.lines) > 0
