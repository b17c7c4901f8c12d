"""Type names of the arrays that the library passes around."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Index = NDArray[np.intp]  # positions of rows
Folds = NDArray[np.int16]  # fold of each row, or of each observation
Mask = NDArray[np.bool_]  # a truth value for each row
Pairs = NDArray[np.intp]  # shape (pairs, 2): positions of two rows
NO_PAIRS: Pairs = np.empty((0, 2), dtype=np.intp)
