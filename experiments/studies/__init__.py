"""All studies by their names: the paper's grids, and the library's own measurements, a module each."""

from experiments.grids import EXPERIMENTS
from experiments.studies import (
    audits,
    classifier,
    clusters,
    coverage,
    coverage_km2,
    coverage_unknown,
    hard,
    knowledge,
    known,
    missing,
    mixed,
    months,
    rare,
    source_prior,
    strata,
    weighted,
)
from experiments.study import Study, Trial

TRIALS: dict[str, Trial] = {
    module.TRIAL.name: module.TRIAL
    for module in (
        coverage,
        coverage_km2,
        coverage_unknown,
        hard,
        known,
        rare,
        knowledge,
        source_prior,
        classifier,
        clusters,
        audits,
        weighted,
        mixed,
        missing,
        months,
        strata,
    )
}
STUDIES: dict[str, Study] = {**EXPERIMENTS, **TRIALS}
