"""The paper's data sets with their preprocessing.

Files are read from the folder in the environment variable PRIORSHIFT_DATA; tables that are not there come from OpenML,
features of images from ``python -m experiments features``.
"""

from __future__ import annotations

import os
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from priorshift.arrays import Floats
from priorshift.errors import InputError
from priorshift.io.parameters import check_choice

__all__ = ["load_images", "load_table"]

OPENML = {  # OpenML's number of each table
    "Diabetes": 37, "Spambase": 44, "Segment": 36, "Waveform": 60, "Vehicle": 54, "Yeast": 181, "Banknote": 1462,
}  # fmt: skip
IMAGES = ("MNIST", "CIFAR", "Fashion")
_FILES = {"Waveform": "Waveform-5000", "Banknote": "Banknote-authentication", "CIFAR": "CIFAR10"}  # else the name


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows and their class; images come in two parts, tables in one.

    Attributes
    ----------
    name : str
    X, y : ndarray
        Unscaled features, and True for positives. For images, the training part.
    X_target, y_target : ndarray or None
        The test part of images.
    origin : str
        Kind and origin of the features, to be shown with every result.
    classes : ndarray or None
        Original classes of the rows of `X`, if there are more than two.

    Examples
    --------
    >>> import numpy as np
    >>> from priorshift.datasets import Dataset
    >>> data = Dataset("Toy", np.eye(4), np.array([True, False, False, True]), None, None, "made up")
    >>> data.X.shape, float(data.y.mean())
    ((4, 4), 0.5)
    """

    name: str
    X: Floats
    y: NDArray[np.bool_]
    X_target: Floats | None
    y_target: NDArray[np.bool_] | None
    origin: str
    classes: NDArray[Any] | None = None


def load_table(name: str) -> Dataset:
    """Load one of the paper's seven UCI tables, after its two filters and with two classes.

    Parameters
    ----------
    name : {"Diabetes", "Spambase", "Segment", "Waveform", "Vehicle", "Yeast", "Banknote"}

    Returns
    -------
    Dataset

    Examples
    --------
    >>> from priorshift.datasets import load_table
    >>> load_table("Iris")
    Traceback (most recent call last):
        ...
    priorshift.errors.InputError: name is 'Iris', but it must be one of 'Diabetes', 'Spambase', 'Segment',
    'Waveform', 'Vehicle', 'Yeast', 'Banknote'.
    """
    check_choice("name", name, tuple(OPENML))
    path = _find(f"{_FILES.get(name, name)}.npz")
    if path is not None:
        stored = _read(path, ("X", "y_raw"))
        X, classes, origin = stored["X"], stored["y_raw"], f"{path.name} in PRIORSHIFT_DATA"
    else:
        X, classes = _openml(name)
        origin = f"OpenML {OPENML[name]}"
    y = most_common_class(classes)
    X = X[:, not_collinear(X)]
    X = X[:, most_informative(X, y)]
    return Dataset(name, X, y, None, None, origin, classes)


def load_images(name: str, features: str = "resnet18ft") -> Dataset:
    """Load thirty network features of one of the paper's three image sets.

    The paper uses the 30 of 512 ResNet18 features (ImageNet weights, average pool) that are most correlated with the
    class. ``PRIORSHIFT_DATA/NAME_resnet18.npz`` is that, as ``python -m experiments features`` writes it; other files
    of the kind ``NAME_{features}.npz`` are stand-ins, and `origin` says so.

    Parameters
    ----------
    name : {"MNIST", "CIFAR", "Fashion"}
    features : str
        Features to use where the paper's own are not available.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> from priorshift.datasets import load_images
    >>> load_images("ImageNet")
    Traceback (most recent call last):
        ...
    priorshift.errors.InputError: name is 'ImageNet', but it must be one of 'MNIST', 'CIFAR', 'Fashion'.
    """
    check_choice("name", name, IMAGES)
    stem = _FILES.get(name, name)
    papers_own = _find(f"{stem}_resnet18.npz")
    path = papers_own or _find(f"{stem}_{features}.npz")
    if path is None:
        raise InputError(_not_found(name, f"{stem}_resnet18.npz", "run 'python -m experiments features'"))
    kind = "ResNet18 (ImageNet) features" if papers_own else f"{features} features, a stand-in for the paper's ResNet18"
    stored = _read(path, ("X_train", "y_train", "X_test", "y_test"), optional=("label_train",))
    y, y_target = stored["y_train"] == 1, stored["y_test"] == 1
    classes = stored.get("label_train")
    return Dataset(name, stored["X_train"], y, stored["X_test"], y_target, f"{kind} ({path.name})", classes)


def most_common_class(classes: NDArray[Any]) -> NDArray[np.bool_]:
    """Return a mask of the positives: the larger of two values, else the most common class (the first of ties)."""
    values, counts = np.unique(classes, return_counts=True)
    if len(values) == 2:
        return np.asarray(classes == values[1])
    return np.asarray(classes == values[np.argmax(counts)])


def not_collinear(X: Floats, limit: float = 0.95) -> NDArray[np.intp]:
    """Return the positions of the columns whose correlation with every earlier column is below `limit`."""
    with np.errstate(invalid="ignore", divide="ignore"):  # constant columns have no correlation: NaN, below any limit
        correlation = np.atleast_2d(np.corrcoef(X, rowvar=False))
    is_redundant = np.triu(correlation >= limit, 1).any(axis=0)  # above the diagonal the row is the earlier column
    return np.flatnonzero(~is_redundant)


def most_informative(X: Floats, y: NDArray[np.bool_], count: int = 30) -> NDArray[np.intp]:
    """Return the sorted positions of the `count` columns with the highest mutual information with the class."""
    from sklearn.feature_selection import mutual_info_classif

    if X.shape[1] <= count:
        return np.arange(X.shape[1])
    information = mutual_info_classif(X, y.astype(int), random_state=0)
    return np.sort(np.argsort(-information, kind="stable")[:count])


def _find(file: str) -> Path | None:
    """Return the path of a file in the folder PRIORSHIFT_DATA; None if that is not set or does not have the file."""
    folder = os.environ.get("PRIORSHIFT_DATA")
    if not folder:
        return None
    if not Path(folder).is_dir():
        raise InputError(f"PRIORSHIFT_DATA is {folder!r}, but it must be the folder of the data sets.")
    path = Path(folder) / file
    return path if path.exists() else None


def _read(path: Path, keys: tuple[str, ...], optional: tuple[str, ...] = ()) -> Any:
    """Return some arrays of an .npz file by their names; those whose names begin with X are converted to floats.

    Arrays with `optional` names may be missing.
    """
    try:
        stored = np.load(path, allow_pickle=False)
        keys = (*keys, *(key for key in optional if key in stored))
        return {key: stored[key].astype(float) if key.startswith("X") else stored[key] for key in keys}
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        raise InputError(
            f"{path} is not a data set: an .npz file with the arrays {', '.join(keys)} is expected; get it again."
        ) from None


def _openml(name: str) -> tuple[Floats, NDArray[Any]]:
    """Download a table from OpenML; return its features and its classes as integers."""
    from sklearn.datasets import fetch_openml

    try:
        table = fetch_openml(data_id=OPENML[name], as_frame=False, parser="liac-arff")
    except Exception as error:  # any error of a network
        raise InputError(_not_found(name, f"{_FILES.get(name, name)}.npz", "connect to OpenML")) from error
    return np.asarray(table.data, dtype=float), np.unique(table.target, return_inverse=True)[1]


def _not_found(name: str, file: str, online: str) -> str:
    """Return the message for a data set whose file was not found; `online` is another way to get it."""
    return f"{name} was not found. Set PRIORSHIFT_DATA to a folder with {file}, or {online}, or use simulated data."
