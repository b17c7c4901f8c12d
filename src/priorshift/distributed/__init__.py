"""Sketches and histograms of samples that are distributed over many machines, by Dask (extra ``dask``).

A sample may be a Dask DataFrame, Array or Bag, or a list of Delayed tables. Each part is summarised where it is, and
only the summaries travel: they are merged up a tree, so that no machine ever holds more than a few of them. Tasks are
pure and no worker holds anything alone: a lost worker costs its part of the work, and changes no result.
"""

from priorshift.distributed.summaries import histogram, sketch

__all__ = ["histogram", "sketch"]
