"""Diagnosis: whether an estimate can be trusted, what could be wrong with it, and what would help."""
