"""The paper's experiments, made with the library as a user would make them: ``python -m experiments list``."""
