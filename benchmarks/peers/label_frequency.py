"""From the label frequency of one sample to the share of positives among its unlabelled rows."""

from __future__ import annotations


def unlabeled_share(c: float, labeled: int, unlabeled: int) -> float:
    """m labelled rows are the share c of all positives, so m(1−c)/c positives are among the n unlabelled ones."""
    return labeled * (1 - c) / (c * unlabeled)
