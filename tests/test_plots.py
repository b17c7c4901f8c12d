import sys

import matplotlib
import numpy as np
import pytest

import priorshift as ps
from priorshift import plots
from priorshift.errors import InputError

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
@pytest.mark.parametrize("method", [ps.KM2LS(), ps.MixtureShift(random_state=0)])
def test_the_objective_is_tcpus_alone(method):
    s = ps.simulate.gaussian(0.3, 0.6, 100, 100, random_state=0)
    with pytest.raises(InputError, match="has no objective to draw"):
        ps.plots.objective(method.fit(s.X, s.y).estimate(s.target))
