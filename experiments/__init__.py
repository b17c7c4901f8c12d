"""The paper's experiments and the library's own studies, run with the library: ``python -m experiments list``."""
