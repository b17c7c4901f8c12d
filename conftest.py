"""Where torch, Triton for a GPU, or Dask is not installed, what needs it is left out."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("torch") else ["src/priorshift/nnpu.py"]
collect_ignore += [] if find_spec("triton") else ["src/priorshift/embedding/fused.py"]
collect_ignore += [] if find_spec("dask") else ["src/priorshift/distributed"]
