"""Samples as a few numbers that merge, travel and are kept in files: the same answers at any size, without the rows."""

from priorshift.sketch.estimation import load
from priorshift.sketch.histogram import Histogram
from priorshift.sketch.score_model import ScoreModel
from priorshift.sketch.sketch import Sketch

__all__ = ["Histogram", "ScoreModel", "Sketch", "load"]
