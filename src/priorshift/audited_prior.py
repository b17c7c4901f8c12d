"""What an audit makes of the two priors: of π by unlabelled rows of the source, of π′ by rows of the target."""

from __future__ import annotations

from typing import Any

import numpy as np

from priorshift.audited_belief import AuditedBelief, AuditedSample, put_together
from priorshift.confidence_curve import TabulatedCurve
from priorshift.errors import InputError
from priorshift.prior_knowledge import Between, Distributed, PriorKnowledge
from priorshift.share_distribution import ShareDistribution

_STEPS = np.linspace(0, 1, 201)  # of π′, before they are made finer where it may be
_POINTS = 101  # of a range of π


def check_open(prior: PriorKnowledge) -> Distributed:
    """Refuse what is known of π already, so that an audit of the source cannot inform it.

    Parameters
    ----------
    prior : PriorKnowledge
        What the user says of π.

    Returns
    -------
    Distributed
        The same.
    """
    if isinstance(prior, Distributed):
        return prior
    raise InputError(
        f"an audit of unlabelled rows informs the source prior, which is given already as {prior}; leave one of them "
        "out, or pass what you know of it as a distribution."
    )


def warn_of_source(audited: AuditedBelief, believed: str) -> None:
    """Warn where an audit of the source contradicts what was believed of π.

    Parameters
    ----------
    audited : AuditedBelief
        Both together.
    believed : str
        What tells the belief, with its verb.
    """
    audited.warn(
        "source prior",
        believed,
        "it is wrong, or the labelled positives do not look like those of the unlabelled rows",
    )


def audited_target(sample: AuditedSample, curve: TabulatedCurve, prior: PriorKnowledge | None) -> AuditedBelief:
    """Put an audit of the target together with what the tables tell of π′; a contradiction is warned of.

    Parameters
    ----------
    sample : AuditedSample
        What the audit tells.
    curve : TabulatedCurve
        The confidence distribution of R.
    prior : PriorKnowledge or None
        Of π; None where the tables tell nothing, or not how sure they are.

    Returns
    -------
    AuditedBelief
    """
    audited = put_together(belief_of_target(curve, prior) if prior else None, sample, from_rows=True)
    audited.warn(
        "target prior",
        "the tables tell",
        f"the classes do not look the same in source and target, or the source prior ({prior}) is wrong",
    )
    return audited


def belief_of_target(curve: TabulatedCurve, prior: PriorKnowledge) -> ShareDistribution:
    """Make the confidence distribution of π′ of that of R.

    Parameters
    ----------
    curve : TabulatedCurve
        That of R.
    prior : PriorKnowledge
        Of π; a range is taken as even.

    Returns
    -------
    ShareDistribution
    """
    points: tuple[Any, ...] = (prior.value,)
    if isinstance(prior, Distributed):
        points = prior.points
    elif isinstance(prior, Between):
        points = (np.linspace(prior.low, prior.high, _POINTS),)
    coarse = ShareDistribution(_STEPS, curve.probabilities(_STEPS, *points))
    low, high = coarse.ppf([1e-6, 1 - 1e-6])
    edges = np.unique(np.concatenate([_STEPS, np.linspace(low, high, len(_STEPS))]))
    return ShareDistribution(edges, curve.probabilities(edges, *points))
