"""Experimental features that may still change: private releases, and exact kernel sums on a cluster."""

from priorshift.distributed.exact import kernel_sums
from priorshift.sketch.private import release

__all__ = ["kernel_sums", "release"]
