"""How assumptions came out, each in a word or two, and in a tone."""

from __future__ import annotations

from math import isnan

from priorshift.diagnosis.diagnosis import Diagnosis
from priorshift.diagnosis.verdict import DOUBTED, REFUTED

Status = tuple[str, str]  # its tone, as of a verdict, and its words


def label_shift_status(found: Diagnosis, p_value: float) -> Status:
    """Say whether label shift stands.

    Parameters
    ----------
    found : Diagnosis
        With its test.
    p_value : float
        Of the test, adjusted where there are several targets.

    Returns
    -------
    tone, words : str
    """
    if isnan(p_value):
        return "care", "could not be tested"
    if p_value <= REFUTED:
        return "no", "refuted"
    if p_value <= DOUBTED or found.label_shift_test.surely_named:
        return "care", "in doubt"
    return "yes", "not contradicted"


def apart_status(found: Diagnosis) -> Status:
    """Say whether positives can be told from the population.

    Parameters
    ----------
    found : Diagnosis
        With its identification.

    Returns
    -------
    tone, words : str
    """
    return ("no", "does not hold") if found.identification.level == "nothing" else ("yes", "holds")


def prior_status(found: Diagnosis) -> Status:
    """Say what is known of the source prior.

    Parameters
    ----------
    found : Diagnosis
        With its identification.

    Returns
    -------
    tone, words : str
    """
    told = found.identification
    if told.contradicted:
        return "no", "contradicted by the tables"
    if told.level == "ratio" or (told.level == "nothing" and not told.given):
        return "care", "left open"
    if told.level == "nothing":
        return "open", "not to be checked"
    if not told.given:
        return "yes", "told by the tables"
    low, high = (told.source_prior,) * 2 if told.source_prior_by == "given" else told.source_prior_range
    if high < told.told_range[0] or low > told.told_range[1]:
        return "care", "not contradicted, but outside of what the tables alone leave"
    return "yes", "agrees with the tables"


def rows_status(found: Diagnosis) -> Status:
    """Say by whom it is known that rows were drawn at random.

    Parameters
    ----------
    found : Diagnosis
        With its settings.

    Returns
    -------
    tone, words : str
    """
    told = {"weights", "groups", "shared", "scenario"} & set(found.settings)
    return "open", "as you told" if told else "taken for granted"
