"""Several classes from sketches: exact problems, a slow computation from rows, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest

import priorshift as ps
from priorshift.errors import ApproximationWarning, InputError
from priorshift.inference.affine_mixture import AffineMixture, SampleValues
from priorshift.inference.joint_mixtures import JointMixtures
from priorshift.sketch import Histogram, ScoreModel, Sketch

SOURCE, TARGET = {"a": 0.2, "b": 0.3}, {"a": 0.5, "b": 0.1}
S = ps.simulate.gaussian_classes(SOURCE, TARGET, n_class=60, n_source=150, n_target=120, dimension=3, random_state=0)
U = Sketch.from_sample(S.unlabeled, features=32)
CLASSES = {name: Sketch.from_sample(X, like=U) for name, X in S.classes.items()}
T = Sketch.from_sample(S.target, like=U)


@pytest.mark.parametrize("rest", [True, False], ids=["a rest", "no rest"])
@pytest.mark.parametrize("classes", [2, 3])
def test_exact_problems_have_their_answer(classes, rest):
    """U and T have the points of all classes, with weights that make them exact mixtures of the classes."""
    rng = np.random.default_rng(classes)
    number = classes + rest
    points = [rng.normal(size=(40, 4)) + 1.5 * rng.normal(size=4) for _ in range(number)]
    own = [rng.dirichlet(5 * np.ones(40)) for _ in range(number)]
    pi, shares = rng.dirichlet(3 * np.ones(number)), rng.dirichlet(3 * np.ones(number))
    stacked = np.concatenate(points)
    in_source, in_target = (
        np.concatenate([share * w for share, w in zip(mixture, own, strict=True)]) for mixture in (pi, shares)
    )
    u = Sketch.from_sample(stacked, weights=in_source)
    t = Sketch.from_sample(stacked, like=u, weights=in_target)
    sketches = {f"c{k}": Sketch.from_sample(points[k], like=u, weights=own[k]) for k in range(classes)}
    priors = {f"c{k}": float(pi[k]) for k in range(classes)} if rest else None
    shift = ps.MulticlassShift(priors, method="tcpu", statistic="plug-in", rest=rest)
    found = ps.estimate_prior(sketches, u if rest else None, t, method=shift)
    np.testing.assert_allclose([estimate.raw for estimate in found.values()], shares, atol=1e-10)
    assert found.contains(dict(zip(found, shares, strict=True)))
    assert sum(estimate.value for estimate in found.values()) == pytest.approx(1, abs=1e-12)


def slow_mixture(tables, members, target, first=10_000):
    """The mixture from the random features of all rows, in which no row is compared with itself.

    `members` are the tables that each sample consists of; rows of the target are numbered from `first` on.
    """
    reader, features = U.design.reader, U.design.features
    all_rows = np.concatenate([reader(X, "rows") for X in tables])
    z = features.map(all_rows, features.buffer(len(all_rows))).copy()
    start = np.cumsum([0, *map(len, tables)])
    rows = [np.concatenate([np.arange(start[p], start[p + 1]) for p in parts]) for parts in members]

    def means_at(points, numbers):
        """Return the mean embedding of each sample at points, which are the rows `numbers` of the source."""
        kernel = points @ z.T
        kernel[np.arange(len(points)), numbers] = np.where(numbers < 0, kernel[np.arange(len(points)), numbers], 0)
        columns = []
        for sample in rows:
            others = len(sample) - np.isin(numbers, sample)
            columns.append(kernel[:, sample].sum(axis=1) / others)
        return np.stack(columns, axis=1)

    def values(points, numbers, first):
        mu = means_at(points, numbers)
        n = len(points)
        observation = np.where(numbers < 0, first + np.arange(n), numbers)
        return SampleValues(mu[:, :-1] - mu[:, -1:], np.full(n, 1 / n), observation, float(n))

    samples = [values(z[sample], sample, 0) for sample in rows]
    target_rows = reader(target, "rows")
    points = features.map(target_rows, features.buffer(len(target_rows))).copy()
    return AffineMixture.from_values(samples, values(points, np.full(len(points), -1), first), keep_influence=True)


@pytest.mark.parametrize("case", ["case-control", "censoring", "no rest"])
def test_sketches_give_what_all_pairs_of_rows_give(case):
    tables = [*S.classes.values()] if case == "no rest" else [*S.classes.values(), S.unlabeled]
    members = [[p] for p in range(len(tables))]
    if case == "censoring":
        members[-1] = [0, 1, 2]
    expected = slow_mixture(tables, members, S.target)
    if case == "no rest":
        found = ps.estimate_prior(CLASSES, None, T, method="tcpu", rest=False)
    else:
        found = ps.estimate_prior(CLASSES, U, T, method="tcpu", source_prior=SOURCE, scenario=case)
    mixture = found.mixture
    np.testing.assert_allclose(list(found.coefficients.values()), expected.coefficients, atol=1e-10)
    np.testing.assert_allclose(mixture.covariance, expected.covariance, rtol=1e-8)
    np.testing.assert_allclose(mixture.sizes, expected.sizes)
    assert found["a"].sizes == (60, expected.sizes[-2], 120)
    assert found.band["a"].low <= found["a"].interval.low < found["a"].value < found["a"].interval.high


def test_sketches_are_for_tcpu_and_auto_says_so():
    with pytest.warns(ApproximationWarning, match="'tcpu'"):
        auto = ps.estimate_prior(CLASSES, U, T, source_prior=SOURCE)
    named = ps.estimate_prior(CLASSES, U, T, source_prior=SOURCE, method="tcpu")
    assert auto.to_dict() == named.to_dict() and auto["a"].method == "TCPU"
    assert auto["a"].details["bandwidth"] == pytest.approx(U.design.features.bandwidth)


def test_a_table_is_sketched_like_the_sketches(tmp_path):
    CLASSES["b"].save(tmp_path / "b.sketch")
    mixed = {"a": S.classes["a"], "b": tmp_path / "b.sketch"}
    found = ps.estimate_prior(mixed, U, S.target, source_prior=SOURCE, method="tcpu")
    expected = ps.estimate_prior(CLASSES, U, T, source_prior=SOURCE, method="tcpu")
    assert found["a"].raw == pytest.approx(expected["a"].raw, rel=1e-9)


def test_sketches_have_the_other_settings_of_classes():
    known = ps.estimate_prior(CLASSES, U, T, source_prior=SOURCE, method="tcpu")
    in_range = {"a": (0.1, 0.3), "b": 0.3}
    wide = ps.estimate_prior(CLASSES, U, T, source_prior=in_range, method="tcpu")
    assert wide["a"].interval.width > known["a"].interval.width
    wrong = ps.estimate_prior(CLASSES, U, T, source_prior=SOURCE, method="tcpu", label_error=0.1, confidence=0.8)
    b = known.coefficients
    assert wrong["a"].raw == pytest.approx(0.9 * b["a"] + 0.2 * b["source"]) and wrong.confidence == 0.8


PRIVATE = replace(T, moments=replace(T.moments, noise=1.0))
HISTOGRAM = Histogram.from_sample(S.target, ScoreModel.fit(S.classes["a"], S.unlabeled, use_km2=False, repeats=1))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"source_prior": None}, "source prior of 'a'"),
        ({"source_prior": {"a": 0.2}}, "source prior of 'b'"),
        ({"method": "witness"}, "'tcpu'"),
        ({"method": ps.MulticlassShift(SOURCE, method="tcpu", kernel="laplace"), "source_prior": None}, "kernel was"),
        ({"drop": ["x"]}, "drop was fixed"),
        ({"weights": {"target": np.ones(120)}}, "name of a column"),
        ({"weights": "w"}, "have their own"),
        ({"groups": "g"}, "groups"),
        ({"target": PRIVATE}, "private"),
        ({"target": HISTOGRAM}, "histogram"),
        ({"target": Sketch.from_sample(S.target)}, "two designs"),
    ],
)
def test_what_sketches_of_classes_cannot_do_is_refused(changes, message):
    arguments = {"positive": CLASSES, "unlabeled": U, "target": T, "source_prior": SOURCE, "method": "tcpu", **changes}
    with pytest.raises(InputError, match=message):
        ps.estimate_prior(**arguments)


def test_targets_have_the_error_of_the_source_in_common():
    halves = {"x": S.target[:60], "y": S.target[60:]}
    sketches = {name: Sketch.from_sample(rows, like=U) for name, rows in halves.items()}
    found = ps.estimate_priors(CLASSES, U, sketches, source_prior=SOURCE, method="tcpu")
    alone = ps.estimate_prior(CLASSES, U, sketches["y"], source_prior=SOURCE, method="tcpu")
    assert found["y"].to_dict() == alone.to_dict()
    assert ps.estimate_priors(CLASSES, U, halves, source_prior=SOURCE, method="tcpu")["x"].to_dict() == (
        found["x"].to_dict()
    )
    # the same functions from rows, whose joint error is the sum of products over the observations of the source
    mixtures = [
        slow_mixture([*S.classes.values(), S.unlabeled], [[0], [1], [2]], rows, 1000 * (k + 1))
        for k, rows in enumerate(halves.values())
    ]
    expected = JointMixtures.from_mixtures(mixtures)
    np.testing.assert_allclose(found.joint.covariance, expected.covariance, rtol=1e-7)
    assert found.equality_test().p_value == pytest.approx(expected.equality().p_value, rel=1e-6)


def test_several_targets_of_streams_need_rows():
    with pytest.raises(InputError, match="memory"):
        ps.estimate_priors(S.classes, iter([S.unlabeled]), {"x": S.target, "y": S.target}, source_prior=SOURCE)
