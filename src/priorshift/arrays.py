"""Type names of the arrays that the library passes around."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Index = NDArray[np.intp]  # positions of rows
Folds = NDArray[np.int16]  # fold of each row, or of each observation
Scores = NDArray[Any]  # in double precision, or in single precision where rows are many
Mask = NDArray[np.bool_]  # a truth value for each row
Pairs = NDArray[np.intp]  # shape (pairs, 2): positions of two rows
NO_PAIRS: Pairs = np.empty((0, 2), dtype=np.intp)
