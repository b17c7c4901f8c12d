"""Pictures of the parts of a diagnosis: what they draw, and the numbers that their texts say."""

import numpy as np
import pytest

import priorshift as ps
from priorshift import plots
from priorshift.plots.functions import PARTS
from priorshift.plots.sensitivity import IdentificationDisplay, PlanningDisplay, SensitivityDisplay, VariantsDisplay
from priorshift.plots.shift import LabelShiftDisplay, ShiftDisplay


@pytest.fixture(scope="module")
def found():
    s = ps.simulate.gaussian(0.3, 0.6, 300, 300, shared=False, random_state=0)
    return ps.diagnose(s.positive, s.unlabeled, s.target, source_prior=(0.25, 0.35), random_state=0)


def line(ax, label):
    return next(one for one in ax.get_lines() if one.get_label() == label)


def band_of(patch, ax):
    box = patch.get_extents().transformed(ax.transData.inverted())
    return box.x0, box.x1


def test_the_ratio_stands_beside_no_shift(found):
    display, test = ShiftDisplay.from_diagnosis(found).plot(), found.shift_test
    assert [float(one.get_xdata()[0]) for one in display.ax_.lines] == [1.0, test.ratio]
    [segment] = display.ax_.collections[0].get_segments()
    np.testing.assert_allclose(segment[:, 0], (test.interval.low, test.interval.high))
    for number in (test.ratio, test.interval.low, test.interval.high):
        assert f"{number:.3f}" in display.description


def test_columns_that_stand_out_are_hatched_and_named(found):
    display = LabelShiftDisplay.from_diagnosis(found)
    display.is_significant = (True, *display.is_significant[1:])
    display.plot()
    bars = sorted(display.ax_.patches, key=lambda bar: -bar.get_y())  # from the top
    assert [bar.get_width() for bar in bars] == list(display.moved)
    assert [bool(bar.get_hatch()) for bar in bars] == list(display.is_significant)
    first, p = found.label_shift_test.columns[0], found.label_shift_test.p_value
    assert f"{first.name} {first.moved:+.2f}" in display.description and f"p = {p:.2g}" in display.description
    assert f"More than chance: {first.name}" in display.description
    words = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert set(words) == {"more than chance", "95% by chance"}


def test_what_is_known_of_the_source_prior(found):
    display, known = IdentificationDisplay.from_diagnosis(found).plot(), found.identification
    ax = display.ax_
    np.testing.assert_allclose(ax.collections[0].get_segments()[0][:, 0], known.range_from_tables)
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), list(known.estimators.values()))
    assert band_of(ax.patches[0], ax) == pytest.approx((0.25, 0.35)) and line(ax, "given: 0.3").get_xdata()[0] == 0.3
    assert "The given source prior is 0.3 (0.25 to 0.35)." in display.description
    assert f"KM2 {known.estimators['KM2']:.3f}" in display.description
    alone = IdentificationDisplay(known.range_from_tables, known.estimators, None, None).plot()
    assert not alone.ax_.patches and "given" not in alone.description


def test_the_target_prior_over_assumed_source_priors(found):
    display, points = SensitivityDisplay.from_diagnosis(found).plot(), found.sensitivity.source_priors
    drawn = line(display.ax_, "target prior")
    np.testing.assert_array_equal(drawn.get_xdata(), [p.source_prior for p in points])
    np.testing.assert_array_equal(drawn.get_ydata(), [p.value for p in points])
    [band] = [c for c in display.ax_.collections if c.get_label() == "95% interval"]
    heights = band.get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == pytest.approx((min(p.low for p in points), max(p.high for p in points)))
    first, last = points[0], points[-1]
    assert f"{first.value:.3f} at {first.source_prior:.2g}, " in display.description
    assert display.description.endswith(f"(in use), {last.value:.3f} at {last.source_prior:.2g}.")
    display.threshold = 0.5
    assert line(display.plot().ax_, "threshold: 0.5") and "threshold is 0.5" in display.description


def test_variants_that_differ_have_another_marker(found):
    display = VariantsDisplay.from_diagnosis(found)
    display.is_significant = (True, *(False for _ in display.is_significant[1:]))
    ax = display.plot().ax_
    clear, chance = line(ax, "more than chance"), line(ax, "with one choice changed")
    assert clear.get_marker() != chance.get_marker()
    assert list(clear.get_xdata()) == [display.values[0]] and len(chance.get_xdata()) == len(display.names) - 1
    places = dict(zip(ax.get_yticks() - 0.5, [t.get_text() for t in ax.get_yticklabels()], strict=True))
    assert places[clear.get_ydata()[0]] == display.names[0]
    assert band_of(ax.patches[0], ax) == pytest.approx(display.interval)
    assert f"More than chance: {display.names[0]}." in display.description


def test_widths_with_more_rows(found):
    display, plan = PlanningDisplay.from_diagnosis(found).plot(), found.planning
    together = line(display.ax_, "all three").get_ydata()
    assert together[1] == plan.expected_width and together[2] == plan.doubled["all"]
    for name in ("positive", "unlabeled", "target"):
        assert display.widths[name][2] == plan.doubled[name]
    styles = {(one.get_marker(), one.get_linestyle()) for one in display.ax_.lines}
    assert len(styles) == 4  # told apart without colours
    assert f"expected to be {plan.expected_width:.3g} wide" in display.description
    nothing = PlanningDisplay(display.factors, display.widths, np.full(5, np.nan))
    assert nothing.description == "Nothing can be planned from these tables."
    assert [text.get_text() for text in nothing.plot().ax_.texts] == [nothing.description] and not display.ax_.texts


def test_every_part_can_stand_in_a_page(found):
    for name, display in PARTS.items():
        if name != "drivers":
            assert plots.svg(display.from_diagnosis(found), name=name).startswith("<svg ")
