"""Where torch is not installed, the examples that train with it are left out."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("torch") else ["src/priorshift/nnpu.py"]
