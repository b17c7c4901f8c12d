"""`priorshift demo`: an estimate on bundled data with a made shift, beside the truth."""

from __future__ import annotations

import argparse
from typing import Any

from priorshift import plots, simulate
from priorshift.cli.options import add_output, given
from priorshift.cli.output import check_picture, print_json, write_picture
from priorshift.witness_shift import WitnessShift


def add_command(commands: Any) -> None:
    """Add it to the parser."""
    command = commands.add_parser("demo", help="estimate on bundled data with a made shift, and compare with the truth")
    add_output(command, picture=True)
    command.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> None:
    """Breast-cancer data: tumours, 20 % malignant in the source, 50 % in the target."""
    from sklearn.datasets import load_breast_cancer

    check_picture(args.plot)
    data = load_breast_cancer()
    malignant = data.target == 0
    s = simulate.shift_labels(data.data, malignant, 0.2, 0.5, random_state=args.random_state)
    witness = WitnessShift(0.2, **given(args)).fit(s.X, s.y, shared=s.ids)
    estimate = witness.estimate(s.target)
    truth = float(s.target_labels.mean())
    write_picture(args.plot, lambda: plots.mixture(witness, estimate))
    if args.json:
        print_json({**estimate.to_dict(), "truth": truth})
        return
    print(f"Breast-cancer data, {s.X.shape[1]} features.")
    print(f"source: {len(s.positive)} tumours known to be malignant, {len(s.unlabeled)} unlabelled ones, 20% malignant")
    print(f"target: {len(s.target)} unlabelled tumours of a new population")
    print(estimate)
    print(f"truth in the target sample: {truth:.3f}")
    if args.plot:
        print(f"picture: {args.plot}")
