"""Small summaries of samples that can be merged, saved and shared: estimates of any size without the rows."""

from priorshift.sketch.container import load
from priorshift.sketch.histogram import Histogram
from priorshift.sketch.score_model import ScoreModel
from priorshift.sketch.sketch import Sketch

__all__ = ["Histogram", "ScoreModel", "Sketch", "load"]
