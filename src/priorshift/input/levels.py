"""The levels of a category: each a column of 0 and 1, the rare ones together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from priorshift.arrays import Floats, Mask
from priorshift.input.mixed import Cells

MISSING = "(missing)"  # the level of a cell without value
RARE = "(rare)"


@dataclass(frozen=True)
class Levels:
    """Levels with a column of their own, and rare ones, which share one with all that were never seen.

    Where no level is rare there is no such column, and a level that was never seen is 0 everywhere.

    Examples
    --------
    >>> import numpy as np
    >>> from priorshift.input.levels import Levels
    >>> levels = Levels.of(np.array(["a", "b", "a", None], dtype=object), 2)
    >>> levels
    Levels(kept=('a',), rares=2, rare=('(missing)', 'b'))
    >>> levels.encode(np.array(["a", "b", "new"], dtype=object))
    array([[1., 0.],
           [0., 1.],
           [0., 1.]])
    """

    kept: tuple[str, ...]
    rares: int
    rare: tuple[str, ...] = ()  # their names, where they are known

    @classmethod
    def of(cls, cells: Cells, least: int) -> Levels:
        """From a column of text; a level of fewer than `least` rows is rare."""
        levels, counts = np.unique(named(cells), return_counts=True)
        rare = tuple(levels[counts < least].tolist())
        return cls(tuple(levels[counts >= least].tolist()), len(rare), rare)

    @property
    def known(self) -> tuple[str, ...]:
        """All that were seen, in the order of the alphabet."""
        return tuple(sorted((*self.kept, *self.rare)))

    @property
    def names(self) -> tuple[str, ...]:
        """Of the columns."""
        return (*self.kept, RARE) if self.rares else self.kept

    def __str__(self) -> str:
        kept, rare = len(self.kept), self.rares
        together = f" and {rare} rare one{'s' * (rare != 1)} together" * bool(rare)
        return f"{kept} level{'s' * (kept != 1)}{together}"

    def is_new(self, cells: Cells) -> Mask:
        """Which cells of a column of text hold a level that was never seen."""
        known = frozenset(self.known)
        return np.array([level not in known for level in named(cells)], dtype=bool)

    def encode(self, cells: Cells) -> Floats:
        """The columns of 0 and 1."""
        place = {level: k for k, level in enumerate(self.kept)}
        together = len(self.kept)
        made = np.zeros((len(cells), together + 1))
        made[np.arange(len(cells)), [place.get(level, together) for level in named(cells)]] = 1
        return made[:, : len(self.names)]


def named(cells: Cells) -> Cells:
    """A column of text whose missing cells are a level like any other."""
    return np.array([MISSING if cell is None else cell for cell in cells], dtype=object)
