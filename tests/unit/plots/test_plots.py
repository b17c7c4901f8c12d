import sys
import warnings
from dataclasses import replace
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

import priorshift as ps
from priorshift import plots
from priorshift.errors import InputError
from priorshift.plots.curves import DistanceDisplay, LevelSetsDisplay, ObjectiveDisplay
from priorshift.plots.samples import MixtureDisplay, ScoresDisplay
from priorshift.plots.sensitivity import SensitivityDisplay
from priorshift.plots.shift import DriversDisplay, LabelShiftDisplay
from priorshift.plots.targets import SeriesDisplay
from priorshift.scores import scored_source
from priorshift.scores.cross_fitting import ModelScore


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
    with pytest.raises(InputError, match="no estimate"):
        plots.objective(empty)


def test_without_matplotlib_the_message_says_what_to_install(estimate, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(InputError, match=r"priorshift\[plot\]"):
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
    with pytest.raises(InputError, match=r"objective"):
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
    for owner, function in ((scored_source, "scores_by_fold"), (ModelScore, "__call__")):
        real = getattr(owner, function)
        monkeypatch.setattr(owner, function, lambda *args, real=real: scored.append(1) or real(*args))
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
        ("mixture", "{} has no p-values .*WitnessShift"),
        ("level_sets", "{} has no level sets .*DRPU"),
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


@pytest.fixture(scope="module")
def witnessed(drawn_by):
    return drawn_by["mixture"][1]


def texts(ax):
    return [text.get_text() for text in ax.texts]


def test_scores_are_drawn_one_below_the_other_in_the_same_cells(witnessed):
    display = ScoresDisplay.from_estimate(witnessed).plot()
    *drawn, explained = [patch.get_data() for patch in display.ax_.patches]
    samples = display.positive, display.population, display.target
    tallest = max(sample.max() for sample in (*samples, display.explained))
    for one, sample in zip(drawn, samples, strict=True):
        np.testing.assert_allclose((one.values - one.baseline) * tallest, sample, atol=1e-12)
        np.testing.assert_array_equal(one.edges, display.edges)
    assert drawn[0].baseline > drawn[1].baseline > drawn[2].baseline
    R = witnessed.negative_ratio
    np.testing.assert_allclose(display.explained, (1 - R) * display.positive + R * display.population, atol=1e-12)
    np.testing.assert_allclose((explained.values - drawn[2].baseline) * tallest, display.explained, atol=1e-12)
    assert texts(display.ax_)[::2] == ["labelled positives", "source population", "target"]
    assert display.figure_ is display.ax_.figure


def test_scores_say_who_lies_right_of_the_middle_of_the_positives(witnessed):
    display = ScoresDisplay.from_estimate(witnessed)
    shares = [display.share_above(sample) for sample in (display.positive, display.population, display.target)]
    assert shares[2] == pytest.approx(display.target[display.middle :].sum())
    assert shares[0] == pytest.approx(0.5, abs=0.2) and shares[1] < shares[2] < shares[0]
    said = [f"{100 * share:.0f}%" for share in shares]
    words = (
        "To the right of the line are {} of the labelled positives, {} of the source population and {} of the target."
    )
    assert words.format(*said) in display.description
    assert texts(display.plot().ax_)[1::2] == [f"{one} →" for one in said]


def test_an_estimate_alone_is_enough_for_its_pictures(drawn_by, sample, estimate):
    names = {name: list(plots.displays_of(found)) for name, (_, found) in drawn_by.items()}
    assert names == {"mixture": ["scores", "mixture"], "level_sets": ["level_sets"]}
    assert isinstance(plots.displays_of(estimate)["objective"], ObjectiveDisplay)
    assert isinstance(plots.displays_of({"a": estimate})["series"], SeriesDisplay)
    with pytest.warns(ps.errors.EstimatedPriorWarning):
        km = ps.KM2LS(random_state=0).fit(sample.X, sample.y).estimate(sample.target)
    distance = plots.displays_of(km)["distance_curve"]
    assert isinstance(distance, DistanceDisplay) and f"{km.value:.3f} by KM2" in distance.description
    nan = float("nan")
    for bare in (
        ps.PriorEstimate(nan, nan, None, nan, 0.2, nan, 0.0, "TCPU", (2, 2, 2)),
        ps.PriorEstimate(0.3, 0.3, None, nan, 0.2, nan, nan, "mine", (2, 2, 2), evidence=7),
    ):
        assert plots.displays_of(bare) == {}


def test_every_public_name_is_imported_when_it_is_used():
    for name in plots.__all__:
        assert callable(getattr(plots, name)) or getattr(plots, name).startswith("#"), name
    assert set(plots.__all__) <= set(dir(plots))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = plots.nothing


@pytest.mark.parametrize("display", [ScoresDisplay, MixtureDisplay, LevelSetsDisplay, DistanceDisplay])
def test_pictures_of_other_methods_are_refused(display, estimate):
    with pytest.raises(InputError, match=r"TCPU .*draw"):
        display.from_estimate(estimate)


def test_the_mixture_ends_at_the_priors_that_it_names(witnessed):
    display = MixtureDisplay.from_estimate(witnessed).plot()
    source, _, target, _ = display.ax_.lines
    assert source.get_ydata()[-1] == pytest.approx(display.source_prior, abs=1e-3)
    assert target.get_ydata()[-1] == pytest.approx(display.target_prior, abs=1e-3)
    assert display.target_prior == pytest.approx(1 - (1 - display.source_prior) * witnessed.negative_ratio)
    for ratio, prior in ((-0.2, 1.0), (7.0, 0.0)):
        assert MixtureDisplay.from_estimate(replace(witnessed, negative_ratio=ratio)).target_prior == prior
    for heights in (display.source, display.target):
        assert heights.mean() == pytest.approx(1)  # a density on [0, 1]
    for number, sample in ((display.source_prior, "source"), (display.target_prior, "target")):
        assert f"{number:.3f} in the {sample}" in display.description
    assert f"uses the source prior {witnessed.source_prior:.3g}." in display.description


def test_an_estimate_that_tells_nothing_is_drawn_without_what_it_would_explain():
    s = ps.simulate.gaussian(0.3, 0.6, 60, 60, random_state=0)
    rng = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ps.errors.PriorShiftWarning)
        shift = ps.WitnessShift(0.3, repeats=1, random_state=0).fit(rng.normal(size=s.X.shape), s.y)
        found = shift.estimate(rng.normal(size=s.target.shape))
    for display in plots.displays_of(replace(found, negative_ratio=float("nan"))).values():
        assert display.plot().ax_ is not None and "nan" not in display.description
    assert ScoresDisplay.from_estimate(replace(found, status="no estimate")).explained is None
    assert ScoresDisplay.from_estimate(replace(found, negative_ratio=1.0, status="ok")).explained is not None


def test_a_series_says_its_numbers_and_stays_in_its_order(estimate):
    second = replace(estimate, value=0.25, interval=None)
    display = SeriesDisplay.from_estimates({"b": estimate, "a": second}).plot()
    assert display.names == ("b", "a") and not display.is_dated
    assert repr(display) == "<SeriesDisplay: The targets side by side>"
    low, high = estimate.interval.low, estimate.interval.high
    assert f"b {estimate.value:.3f} ({low:.3f} to {high:.3f}), a 0.250. They lie between" in display.description
    intervals, source = display.ax_.collections  # in rows; the source prior is marked in each row
    assert [one[:, 0].tolist() for one in intervals.get_segments()] == [[low, high]]
    assert [one[0, 0] for one in source.get_segments()] == [estimate.source_prior] * 2
    dated = SeriesDisplay.from_estimates({"2024-02": estimate, "2024-01": second})
    assert dated.names == ("2024-01", "2024-02") and dated.values[0] == 0.25
    many = SeriesDisplay.from_estimates({f"hospital of the town {k}": second for k in range(40)}).plot()
    labels = [text.get_text() for text in many.ax_.get_yticklabels() if text.get_text()]
    assert len(labels) == len(set(labels)) == 20 and "and 34 more" in many.description
    with pytest.raises(InputError, match="no estimate"):
        SeriesDisplay.from_estimates({})


def test_level_sets_of_an_estimate_are_those_of_its_estimator(drawn_by):
    drpu, found = drawn_by["level_sets"]
    display = LevelSetsDisplay.from_estimate(found)
    assert display.target.prior == found.value and display.source.prior == drpu.source_prior_
    assert display.least_share == drpu.least_share_
    for number in (found.value, drpu.source_prior_):
        assert f"{number:.3f}" in display.description


def test_drivers_are_drawn_from_the_most_important_down():
    drivers = [
        ("age", None, 1.2, 0.6),
        ("region", "north", -0.4, 0.3),
        *((f"x{k}", None, 0.1, 0.01) for k in range(20)),
    ]
    names = ("name", "level", "difference", "importance")
    found = SimpleNamespace(drivers=tuple(SimpleNamespace(**dict(zip(names, one, strict=True))) for one in drivers))
    display = DriversDisplay.from_diagnosis(found).plot()
    assert display.names[:3] == ("age", "region (north)", "x0") and len(display.names) == 12
    bars = {round(bar.get_y() + bar.get_height() / 2): bar for bar in display.ax_.patches}
    assert [bars[11 - k].get_width() for k in range(12)] == pytest.approx([100 * share for share in display.importance])
    assert bars[11].get_hatch() != bars[10].get_hatch()  # higher and lower, told apart without colours
    labels = dict(zip(display.ax_.get_yticks(), [t.get_text() for t in display.ax_.get_yticklabels()], strict=True))
    assert labels[11.5] == "age" and labels[10.5] == "region (north)"
    assert "age 60% (+1.20), region (north) 30% (−0.40)" in display.description
    assert "No column" in DriversDisplay((), (), ()).plot().description


def test_names_are_shown_whole_or_short_and_never_as_mathematics():
    display = LabelShiftDisplay(("a$b$c", "y" * 99), (0.1, -0.2), (True, False), float("nan")).plot()
    display.figure_.canvas.draw()
    labels = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert labels[0] == r"a\$b\$c" and len(labels[1]) == 36
    assert "a$b$c +0.10" in display.description and "not tested" in display.description


def test_rare_classes_fill_the_axis_and_are_said_with_enough_digits(estimate):
    rare = replace(estimate, value=0.0031, interval=ps.Interval(0.0024, 0.0039, 0.95, "delta"))
    rare = replace(rare, source_prior=0.002)
    display = SeriesDisplay.from_estimates({"a": rare, "b": rare}).plot()
    assert 0.0039 < display.ax_.get_xlim()[1] < 0.006
    assert "a 0.0031 (0.0024 to 0.0039)" in display.description
    often = SeriesDisplay.from_estimates({"a": rare, "b": estimate}).plot()
    assert often.ax_.get_xlim() == (0, 1)
    none = replace(estimate, value=float("nan"), interval=None)
    assert SeriesDisplay.from_estimates({"a": none}).plot().description == (
        f"Target prior of each target: a none. The source prior is {none.source_prior:.3g}."
    )


def test_source_prior_and_threshold_are_drawn_beside_the_targets(estimate):
    months = {"2024-01": estimate, "2024-02": estimate}
    display = SeriesDisplay.from_estimates(months, threshold=0.4).plot()
    lines = {line.get_label(): line.get_ydata()[0] for line in display.ax_.get_lines()}
    assert lines[f"source prior {estimate.source_prior:.3g}"] == estimate.source_prior and lines["threshold 0.4"] == 0.4
    assert display.description.endswith("The threshold is 0.4.") and "0.4" not in display.caption
    strata = SeriesDisplay.from_estimates({"a": estimate, "b": replace(estimate, source_prior=0.9)})
    assert "source prior" not in strata.description  # each has its own


def test_bars_of_drift_have_a_band_of_chance():
    display = LabelShiftDisplay(("a", "b"), (0.3, -0.1), (True, False), 0.01, (0.2, 0.15)).plot()
    [band] = [one for one in display.ax_.collections if one.get_label() == "95% by chance"]
    assert [one[:, 0].tolist() for one in band.get_segments()] == [[-0.2, 0.2], [-0.15, 0.15]]
    assert "light band" in display.caption and "0.3" not in display.caption


def test_the_axis_of_source_priors_shows_the_plausible_ones():
    priors = np.array([0.01, 0.02, 0.1, 0.5, 0.9])
    values = 1 - (1 - priors) * 0.95
    curve = priors, values, values - 0.01, values + 0.01
    known = SensitivityDisplay(*curve, 0.02, None, 0.95, (0.02, 0.02)).plot()
    assert known.ax_.get_xlim() == pytest.approx((0.01, 0.03))
    low, high = known.ax_.get_ylim()
    assert low < 0.02 and 0.08 < high < 0.12  # no shift, and the upper end of the interval
    threshold = SensitivityDisplay(*curve, 0.02, 0.4, 0.95, (0.02, 0.04)).plot()
    assert threshold.ax_.get_xlim() == pytest.approx((0.01, 0.06)) and threshold.ax_.get_ylim()[1] > 0.4


def test_numbers_in_words_have_the_minus_of_axes_and_no_negative_zero():
    display = LabelShiftDisplay(("a", "b"), (-0.2, -0.0001), (False, False), 0.5)
    assert "a −0.20, b +0.00." in display.description


def test_a_picture_never_says_that_a_p_value_is_0():
    display = LabelShiftDisplay(("a",), (0.2,), (False,), 1e-9).plot()
    assert "Test of label shift: p < 0.0001." in display.description
    assert display.ax_.get_legend().get_title().get_text() == "label shift: p < 0.0001"


def test_what_is_impossible_is_said_as_none(witnessed):
    far = ScoresDisplay.from_estimate(replace(witnessed, negative_ratio=9.0))
    assert far.share_above(far.explained) >= 0
    empty = np.zeros_like(far.positive)
    none = ScoresDisplay(far.edges, far.positive, far.population, far.target, empty)
    assert "none of the target would be there" in none.description and "-" not in far.description


@pytest.mark.parametrize(
    ("values", "turn"),
    [((0.1, 0.2, 0.3), "rises"), ((0.3, 0.2, 0.1), "falls"), ((0.2, 0.1, 0.2), "changes"), ((0.2,) * 3, "does not")],
)
def test_sensitivity_says_which_way_it_goes(values, turn):
    values = np.array(values)
    display = SensitivityDisplay(np.array([0, 0.5, 1]), values, values, values, 0.5, None, 0.95)
    assert f"The target prior {turn}" in display.description


def test_what_is_of_another_kind_is_refused_in_a_sentence(estimate):
    for display in (ScoresDisplay, MixtureDisplay, ObjectiveDisplay, LevelSetsDisplay, DistanceDisplay):
        with pytest.raises(InputError, match=r"estimate.*NoneType"):
            display.from_estimate(None)
    with pytest.raises(InputError, match=r"diagnosis.*NoneType"):
        plots.displays_of(None)
    for wrong in (estimate, {"a": 0.3}, [estimate]):
        with pytest.raises(InputError, match=r"mapping"):
            SeriesDisplay.from_estimates(wrong)


@pytest.fixture(scope="module")
def class_priors():
    shares = {"a": 0.2, "b": 0.3}
    s = ps.simulate.gaussian_classes(shares, {"a": 0.5, "b": 0.1}, n_source=400, n_target=400, random_state=0)
    return ps.MulticlassShift(shares, random_state=0).fit(s.X, s.y).estimate(s.target)


def test_shares_of_classes_are_drawn_with_intervals_and_source(class_priors):
    display = ps.plots.displays_of(class_priors)["shares"]
    ax = display.plot().ax_
    points = {line.get_label(): line.get_xdata() for line in ax.lines}
    np.testing.assert_allclose(points["target"], [estimate.value for estimate in class_priors.values()])
    np.testing.assert_allclose(points["source"], [0.2, 0.3, 0.5])
    for name, estimate in class_priors.items():
        assert f"{name} {estimate.value:.3f} ({estimate.interval.low:.3f} to" in display.description


def test_the_joint_region_of_three_classes_is_drawn_in_a_triangle(class_priors):
    display = ps.plots.displays_of(class_priors)["simplex"]
    ax = display.plot().ax_
    assert [text.get_text() for text in ax.texts] == ["a", "b", "rest"]
    is_inside = display.p_values >= 0.05
    lows, highs = display.points[is_inside].min(axis=0), display.points[is_inside].max(axis=0)
    for k, estimate in enumerate(class_priors.values()):  # the region is somewhat larger than single intervals
        assert lows[k] < estimate.interval.low and highs[k] > estimate.interval.high
        assert highs[k] - lows[k] < 1.7 * estimate.interval.width
    best = display.points[np.argmax(display.p_values)]
    assert np.abs(best - [estimate.raw for estimate in class_priors.values()]).max() < 0.02
    outside = display.points[~is_inside]
    assert not any(class_priors.contains({"a": a, "b": b}) for a, b, _ in outside[::97].tolist())
    assert 0.001 < display.region_share < 0.2 and "takes 5% of all possible shares" in display.description


def test_the_region_of_precise_estimates_has_many_points():
    shares, rows = {"a": 0.2, "b": 0.3}, {"n_class": 4000, "n_source": 8000, "n_target": 8000}
    s = ps.simulate.gaussian_classes(shares, {"a": 0.5, "b": 0.02}, **rows, dimension=2, random_state=0)
    shift = ps.MulticlassShift(shares, repeats=1, random_state=0)
    display = ps.plots.displays_of(shift.fit(s.X, s.y).estimate(s.target))["simplex"]
    assert (display.p_values >= 0.05).sum() > 50 and display.region_share < 0.01


def test_a_triangle_needs_three_classes():
    shares = dict.fromkeys("abc", 0.2)
    s = ps.simulate.gaussian_classes(shares, shares, n_class=50, n_source=200, n_target=200, random_state=0)
    found = ps.MulticlassShift(shares, random_state=0).fit(s.X, s.y).estimate(s.target)
    assert set(ps.plots.displays_of(found)) == {"shares"}
    with pytest.raises(InputError, match="three corners"):
        ps.plots.simplex(found)
