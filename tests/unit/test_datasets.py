import os

import numpy as np
import pytest

from priorshift import datasets
from priorshift.errors import InputError

FOLDER = os.environ.get("PRIORSHIFT_DATA")  # of the papers' data sets


def write(folder, name="Diabetes", **arrays):
    np.savez(folder / f"{name}.npz", **arrays)


def test_collinear_columns_leave_the_first():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 100))
    X = np.stack(
        [a, b, 2 * a + 1, -a, np.ones(100)], axis=1
    )  # the opposite of a column is kept, as in the paper's code
    assert datasets.not_collinear(X).tolist() == [0, 1, 3, 4]
    assert datasets.not_collinear(X[:, :1]).tolist() == [0]


def test_columns_that_tell_the_class_are_found():
    rng = np.random.default_rng(0)
    y = rng.random(400) < 0.5
    X = rng.normal(size=(400, 12))
    X[:, 7] += 2 * y
    X[:, 3] = np.abs(X[:, 3]) * np.where(y, 3, 1)
    assert datasets.most_informative(X, y, count=2).tolist() == [3, 7]
    assert len(datasets.most_informative(X, y)) == 12


def test_classes():
    assert datasets.most_common_class(np.array([3, 1, 1, 2])).tolist() == [False, True, True, False]
    assert datasets.most_common_class(np.array([3, 1, 2])).tolist() == [False, True, False]  # of equals, the first
    assert datasets.most_common_class(np.array([0, 1, 0])).tolist() == [False, True, False]  # of two, the larger


def test_a_table_from_a_folder(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 3)), np.repeat([2, 5, 7], [10, 25, 15])
    write(tmp_path, X=X, y_raw=y)
    monkeypatch.setenv("PRIORSHIFT_DATA", str(tmp_path))
    data = datasets.load_table("Diabetes")
    np.testing.assert_array_equal(data.X, X)
    assert data.y.sum() == 25 and data.X_target is None
    assert data.origin == "Diabetes.npz in PRIORSHIFT_DATA"


def test_images_say_what_their_features_are(tmp_path, monkeypatch):
    part = {"X_train": np.ones((4, 2)), "y_train": [0, 1, 1, 0], "X_test": np.zeros((2, 2)), "y_test": [1, 0]}
    monkeypatch.setenv("PRIORSHIFT_DATA", str(tmp_path))
    write(tmp_path, "CIFAR10_resnet18ft", **part)
    stand_in = datasets.load_images("CIFAR")
    assert stand_in.origin == "resnet18ft features, a stand-in for the paper's ResNet18 (CIFAR10_resnet18ft.npz)"
    assert stand_in.y.tolist() == [False, True, True, False] and stand_in.y_target.tolist() == [True, False]
    write(tmp_path, "CIFAR10_resnet18", **part)
    assert datasets.load_images("CIFAR").origin == "ResNet18 (ImageNet) features (CIFAR10_resnet18.npz)"


def test_openml_is_asked_where_there_is_no_folder(monkeypatch):
    class Found:
        data, target = np.arange(12.0).reshape(6, 2) ** 2, np.array(["a", "b", "a", "c", "a", "b"])

    asked = []
    monkeypatch.delenv("PRIORSHIFT_DATA", raising=False)
    monkeypatch.setattr("sklearn.datasets.fetch_openml", lambda **named: asked.append(named) or Found)
    data = datasets.load_table("Yeast")
    assert asked[0]["data_id"] == 181 and data.origin == "OpenML 181"
    assert data.y.tolist() == [True, False, True, False, True, False]


def test_without_a_network_three_ways_are_named(monkeypatch):
    def broken(**named):
        raise OSError("no route")

    monkeypatch.delenv("PRIORSHIFT_DATA", raising=False)
    monkeypatch.setattr("sklearn.datasets.fetch_openml", broken)
    with pytest.raises(InputError, match=r"Vehicle.*PRIORSHIFT_DATA"):
        datasets.load_table("Vehicle")
    with pytest.raises(InputError, match=r"Fashion.*experiments features"):
        datasets.load_images("Fashion")


def test_folders_and_names_that_are_wrong(tmp_path, monkeypatch):
    with pytest.raises(InputError, match=r"'Iris'.*'Diabetes'"):
        datasets.load_table("Iris")
    with pytest.raises(InputError, match=r"'Faces'.*'MNIST'"):
        datasets.load_images("Faces")
    monkeypatch.setenv("PRIORSHIFT_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match=r"PRIORSHIFT_DATA.*folder"):
        datasets.load_table("Diabetes")
    monkeypatch.setenv("PRIORSHIFT_DATA", str(tmp_path))
    write(tmp_path, X=np.ones((3, 2)))
    with pytest.raises(InputError, match=r"Diabetes\.npz"):
        datasets.load_table("Diabetes")


@pytest.mark.skipif(not FOLDER, reason="PRIORSHIFT_DATA names no folder of data sets")
@pytest.mark.parametrize(("name", "rows", "features", "share"), [
    ("Diabetes", 768, 8, 0.349), ("Spambase", 4601, 30, 0.394), ("Segment", 2310, 15, 0.143), ("Waveform", 5000, 30, 0.338),
    ("Vehicle", 846, 14, 0.258), ("Yeast", 1484, 8, 0.312), ("Banknote", 1372, 4, 0.445),
])  # fmt: skip
def test_the_papers_tables(name, rows, features, share):
    data = datasets.load_table(name)
    assert data.X.shape == (rows, features) and data.y.mean() == pytest.approx(share, abs=5e-4)
