import sys
import warnings

import matplotlib
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

import priorshift as ps
from priorshift import plots
from priorshift.errors import InputError
from priorshift.scores.cross_fitting import ModelScore, Repetition

matplotlib.use("agg")
import matplotlib.pyplot as plt


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


@pytest.fixture
def estimate():
    s = ps.simulate.gaussian(0.2, 0.6, 300, 300, random_state=0)
    return ps.TCPU(0.2).fit(s.X, s.y, shared=s.ids).estimate(s.target)


def test_objective_curve_has_its_minimum_at_the_estimate(estimate):
    _, ax = plt.subplots()
    assert plots.objective(estimate, ax, truth=0.6) is ax
    gamma, curve = ax.lines[0].get_data()
    assert gamma[np.argmin(curve)] == pytest.approx(estimate.value, abs=1 / 400)
    assert ax.lines[1].get_xdata()[0] == estimate.value
    assert ax.lines[2].get_xdata()[0] == 0.6
    band = ax.patches[0].get_extents().transformed(ax.transData.inverted())
    assert (band.x0, band.x1) == pytest.approx((estimate.interval.low, estimate.interval.high))
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert f"{estimate.value:.3f}" in legend[0] and "truth 0.600" in legend[1]


def test_objective_without_axes_makes_a_figure(estimate):
    assert plots.objective(estimate).figure is not None


@pytest.mark.parametrize("features", [1, 2, 10])
def test_label_shift_picture_shows_every_row(features):
    s = ps.simulate.gaussian(0.2, 0.8, 300, 300, dimension=features, random_state=0)
    left, right = plots.label_shift(s.positive, s.unlabeled, s.target)
    assert [len(c.get_offsets()) for c in left.collections] == [len(s.unlabeled), len(s.positive)]
    assert len(right.collections[0].get_offsets()) == 300
    if features == 2:
        np.testing.assert_allclose(right.collections[0].get_offsets(), s.target)


def test_label_shift_picture_is_drawn_on_given_axes_and_thins_large_samples():
    s = ps.simulate.gaussian(0.2, 0.8, 300, 20_000, random_state=0)
    _, axes = plt.subplots(1, 2)
    assert plots.label_shift(s.positive, s.unlabeled, s.target, axes) is axes
    assert 2000 < len(axes[1].collections[0].get_offsets()) < 6000


def test_nothing_to_draw_is_said():
    nan = float("nan")
    empty = ps.PriorEstimate(nan, nan, None, nan, 0.2, nan, 0.0, "TCPU", (2, 2, 2))
    with pytest.raises(InputError, match="there is no estimate to draw: the separation is not positive"):
        plots.objective(empty)


def test_without_matplotlib_the_message_says_what_to_install(estimate, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(InputError, match=r'pictures need matplotlib; run pip install "priorshift\[plot\]"'):
        plots.objective(estimate)


def test_without_matplotlib_the_command_says_so_before_any_work(monkeypatch, capsys, tmp_path):
    from priorshift.cli import main

    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["demo", "--plot", str(tmp_path / "p.png")]) == 2
    assert 'pip install "priorshift[plot]"' in capsys.readouterr().err


def test_distance_curve_shows_both_thresholds_and_the_estimate():
    s = ps.simulate.gaussian(0.3, 0.6, 200, 10, random_state=0)
    km2 = ps.KM2().fit(s.X, s.y)
    _, ax = plt.subplots()
    assert plots.distance_curve(km2, ax, prior=[0.1, 0.3, 0.5]) is ax
    np.testing.assert_allclose(ax.lines[0].get_xdata(), [0.1, 0.3, 0.5])
    assert ax.lines[1].get_xdata()[0] == km2.prior_
    right = ax.figure.axes[1]
    levels = {line.get_label(): line.get_ydata()[0] for line in right.lines[1:]}
    assert levels == {f"threshold of {rule}": slope for rule, slope in km2.thresholds_.items()}


@pytest.mark.filterwarnings("ignore::priorshift.errors.PriorShiftWarning")
@pytest.mark.parametrize("method", [ps.KM2LS(), ps.WitnessShift(random_state=0)])
def test_the_objective_is_tcpus_alone(method):
    s = ps.simulate.gaussian(0.3, 0.6, 100, 100, random_state=0)
    with pytest.raises(InputError, match="has no objective to draw"):
        ps.plots.objective(method.fit(s.X, s.y).estimate(s.target))


@pytest.fixture(scope="module")
def sample():
    return ps.simulate.gaussian(0.2, 0.6, 300, 200, random_state=0)


@pytest.fixture(scope="module")
def drawn_by(sample):
    """An estimator with the picture of its estimates, fitted, and an estimate."""
    made = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ps.errors.PriorShiftWarning)
        for name, estimator in {
            "mixture": ps.WitnessShift(repeats=2, random_state=0),
            "level_sets": ps.DRPU(model=LogisticRegression(), random_state=0),
        }.items():
            fitted = estimator.fit(sample.X, sample.y, shared=sample.ids)
            made[name] = fitted, fitted.estimate(sample.target)
    return made


def shapes(ax):
    lines = [line.get_xydata() for line in ax.lines]
    return lines, [patch.get_data().values for patch in ax.patches], [t.get_text() for t in ax.get_legend().get_texts()]


@pytest.mark.filterwarnings("ignore::priorshift.errors.PriorShiftWarning")
@pytest.mark.parametrize("picture", ["mixture", "level_sets"])
def test_an_estimate_is_drawn_without_scoring_its_rows_again(picture, drawn_by, sample, monkeypatch):
    estimator, estimate = drawn_by[picture]
    scored = []
    for cls in (Repetition, ModelScore):
        method = "target" if cls is Repetition else "__call__"
        real = getattr(cls, method)
        monkeypatch.setattr(cls, method, lambda *args, real=real: scored.append(1) or real(*args))
    draw = getattr(plots, picture)
    by_estimate = shapes(draw(estimator, estimate))
    assert not scored
    by_rows = shapes(draw(estimator, sample.target))
    assert scored  # what is counted is what scores
    source_alone = shapes(draw(estimator))
    assert len(by_estimate[0]) == len(by_rows[0]) > len(source_alone[0])
    for part in (0, 1):
        for one, two in zip(by_estimate[part], by_rows[part], strict=True):
            np.testing.assert_array_equal(one, two)
    assert by_estimate[2] == by_rows[2] and any(text.startswith("target") for text in by_rows[2])


@pytest.mark.parametrize(
    ("picture", "message"),
    [
        ("mixture", "an estimate by {} has no p-values to draw; pass one by WitnessShift"),
        ("level_sets", "an estimate by {} has no level sets to draw; pass one by DRPU"),
    ],
)
def test_an_estimate_of_another_method_is_refused(picture, message, drawn_by, estimate):
    fitted = drawn_by[picture][0]
    others = [estimate, *(made[1] for name, made in drawn_by.items() if name != picture)]
    assert [other.method for other in others] == ["TCPU", "DRPU" if picture == "mixture" else "Witness"]
    for other in others:
        with pytest.raises(InputError, match=message.format(other.method)):
            getattr(plots, picture)(fitted, other)


@pytest.mark.parametrize(
    ("picture", "estimator"),
    [("mixture", ps.WitnessShift()), ("level_sets", ps.DRPU()), ("distance_curve", ps.KM2())],
)
def test_an_estimator_without_a_fit_cannot_be_drawn(picture, estimator):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        getattr(plots, picture)(estimator)
