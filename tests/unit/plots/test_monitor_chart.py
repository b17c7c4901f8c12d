"""The picture of a monitor: what is drawn of each batch, of alarms, and of very many batches."""

from dataclasses import replace
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest

from priorshift import Interval, MonitorPoint, plots
from priorshift.errors import InputError
from priorshift.monitoring import Alarm
from priorshift.plots.batches import BatchesDisplay
from priorshift.plots.display import write_picture


def points(count, share=0.1, names="2026-11-{:02d}", series=""):
    made = []
    for k in range(count):
        value = share + 0.01 * (k % 3 - 1)
        intervals = [Interval(value - w, value + w, 0.95, "witness") for w in (0.03, 0.06)]
        made.append(MonitorPoint(names.format(k + 1), 100, value, *intervals, series=series))
    return made


def monitor(batches, level=None):
    model = SimpleNamespace(prior=SimpleNamespace(value=0.1))
    return SimpleNamespace(points=batches, level=level, model_=model)


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_each_batch_has_its_estimate_and_both_intervals():
    batches = points(5)
    [ax] = plots.monitor(monitor(batches, level=(0.05, 0.2)))
    np.testing.assert_allclose(ax.lines[0].get_ydata(), [point.value for point in batches])
    all_time, interval = (np.array([line[:, 1] for line in part.get_segments()]) for part in ax.collections[:2])
    np.testing.assert_allclose(interval, [(point.interval.low, point.interval.high) for point in batches])
    np.testing.assert_allclose(all_time, [(point.all_time.low, point.all_time.high) for point in batches])
    assert legend(ax) == ["all time, 95%", "95% interval", "estimate", "reference", "level"]
    heights = [line.get_ydata()[0] for line in ax.lines[1:]]
    assert heights == [0.1, 0.05, 0.2]  # reference and both levels


def test_a_change_is_marked_and_starts_a_new_reference():
    batches = points(4) + [replace(p, name=f"2026-12-{k + 1:02d}") for k, p in enumerate(points(3, 0.3))]
    batches[5] = replace(batches[5], alarms=(Alarm("change", "…", since="2026-12-01"),))
    display = BatchesDisplay.from_monitor(monitor(batches))
    [panel] = display.panels
    assert [(mark.batch, mark.since) for mark in panel.alarms] == [(5, 4)]
    first, second = panel.references
    assert first == (0, 4, 0.1) and second == (4, 6, pytest.approx(0.3))
    [ax] = display.plot().ax_
    assert legend(ax)[-2:] == ["since", "change alarm"]
    assert "change at 2026-12-02" in display.description


def test_an_alarm_that_persists_is_marked_once_and_its_batches_are_shaded():
    broken = (Alarm("assumption", "…", since="2026-11-02"),)
    batches = [p if k == 0 else replace(p, alarms=broken) for k, p in enumerate(points(4))]
    display = BatchesDisplay.from_monitor(batches)
    assert [mark.rule for mark in display.panels[0].alarms] == ["assumption"]
    [ax] = display.plot().ax_
    assert legend(ax)[-2:] == ["do not trust", "assumption alarm"]
    [span] = ax.patches
    assert span.get_width() == 2  # days


def test_late_batches_are_in_the_order_of_their_times():
    late = [replace(p, name=name, time=time) for p, name, time in zip(
        points(3), "abc", ["2026-11-03T00:00+01:00", "2026-11-01T00:00Z", "2026-11-02"], strict=True)]  # fmt: skip
    late[2] = replace(late[2], time="2026-11-02T00:00")
    [panel] = BatchesDisplay.from_monitor(late).panels
    assert [point.name for point in panel.points] == ["b", "c", "a"]
    assert panel.positions[2] == np.datetime64("2026-11-02T23:00")
    [unordered] = BatchesDisplay.from_monitor([replace(p, time=None) for p in late]).panels
    assert [point.name for point in unordered.points] == ["a", "b", "c"]


def test_batches_without_rows_leave_a_gap():
    batches = points(3)
    batches[1] = MonitorPoint(batches[1].name, 0, status="empty")
    [ax] = plots.monitor(batches)
    assert np.isnan(ax.lines[0].get_ydata()[1])
    assert "reference" not in legend(ax)  # points alone do not know it
    assert "No alarm" in BatchesDisplay.from_monitor(batches).description


def test_the_first_batches_are_the_reference():
    batches = [replace(point, status="reference") for point in points(3, 0.2)] + points(3, 0.5, "2026-12-{:02d}")
    assert BatchesDisplay.from_monitor(batches).panels[0].references == [(0, 5, pytest.approx(0.2))]


def test_thousands_of_batches_are_averaged_into_bands_and_stay_small():
    batches = points(5000, names="batch {}")
    batches[3333] = replace(batches[3333], alarms=(Alarm("level", "…"),))
    display = BatchesDisplay.from_monitor(batches)
    [ax] = display.plot().ax_
    assert len(ax.lines[0].get_xdata()) <= 400
    np.testing.assert_allclose(ax.lines[0].get_ydata(), 0.1, atol=0.002)  # the means of 13 batches
    assert ax.lines[-1].get_xdata() == [3333]
    assert sum(len(label.get_text()) for label in ax.get_xticklabels()) <= 40
    assert len(plots.svg(display, name="chart")) < 100_000


def test_series_have_a_panel_each_and_those_with_alarms_come_first():
    batches = [point for k in range(20) for point in points(2, series=f"region {k}")]
    batches[-1] = replace(batches[-1], alarms=(Alarm("level", "…"),))
    display = BatchesDisplay.from_monitor(batches)
    assert len(display.panels) == 12 and display.panels[0].name == "region 19"
    assert "8 more series" in display.caption
    assert len(plots.monitor(batches, series=["region 3", "region 4"])) == 2
    with pytest.raises(InputError, match="region 0"):
        plots.monitor(batches, series="nowhere")
    with pytest.raises(InputError, match="Axes"):
        plots.monitor(batches, plt.figure().subplots())


@pytest.mark.parametrize(("argument", "keyword"), [([], "update"), (3, "Monitor"), (["a"], "Monitor")])
def test_what_cannot_be_drawn_is_refused(argument, keyword):
    with pytest.raises((InputError, TypeError), match=keyword):
        plots.monitor(argument)


def test_pictures_are_written_by_their_ending(tmp_path):
    display = BatchesDisplay.from_monitor(points(3))
    for ending, start in ((".svg", b"<svg"), (".png", b"\x89PNG")):
        write_picture(display, tmp_path / f"chart{ending}")
        assert (tmp_path / f"chart{ending}").read_bytes().startswith(start)
    with pytest.raises(InputError, match=r"\.svg"):
        write_picture(display, tmp_path / "chart.bmp")
    assert len(list(tmp_path.iterdir())) == 2
