"""The same answers from rows that lie on many machines, by Dask (the extra ``dask``).

A sample may be a Dask DataFrame, Array or Bag, or a list of Delayed tables. Each part is summed up where it is, and
only the summaries travel: they are merged up a tree, so that no machine ever sees more than a few of them. Tasks are
pure, and nothing is held by one worker alone: one that is lost costs its part of the work, and changes no answer.
"""

from priorshift.distributed.estimate import estimate_prior
from priorshift.distributed.exact import kernel_sums
from priorshift.distributed.reduction import reduce_parts
from priorshift.distributed.summaries import histogram, sketch

__all__ = ["estimate_prior", "histogram", "kernel_sums", "reduce_parts", "sketch"]
