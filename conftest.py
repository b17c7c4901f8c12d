"""Where an extra (torch, Triton for a GPU, Dask, the report, the app) is not installed, what needs it is left out."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("torch") else ["src/priorshift/nnpu.py"]
collect_ignore += [] if find_spec("triton") else ["src/priorshift/embedding/fused.py"]
collect_ignore += [] if find_spec("dask") else ["src/priorshift/distributed"]
collect_ignore += [] if find_spec("jinja2") else ["src/priorshift/report"]
collect_ignore += [] if find_spec("starlette") else ["src/priorshift/app"]
