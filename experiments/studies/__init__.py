"""All studies by their names: the paper's grids, and the library's own measurements, a module each."""

from experiments.grids import EXPERIMENTS
from experiments.studies import (
    audits,
    bandwidth,
    classifier,
    clusters,
    coverage,
    coverage_km2,
    coverage_unknown,
    drifted,
    features,
    fit_rows,
    hard,
    km_size,
    knowledge,
    known,
    missing,
    mixed,
    months,
    planning,
    power,
    rare,
    released,
    seeds,
    sketches,
    source_prior,
    strata,
    type_one,
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
        bandwidth,
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
        planning,
        type_one,
        power,
        drifted,
        seeds,
        fit_rows,
        features,
        sketches,
        released,
        km_size,
    )
}
STUDIES: dict[str, Study] = {**EXPERIMENTS, **TRIALS}
