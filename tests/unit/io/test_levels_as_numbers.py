"""Levels that look like numbers or truth values, in tables that have no other levels."""

from datetime import time

import numpy as np
import pandas as pd
import pytest

import priorshift as ps
from priorshift.errors import InputError

# levels, and their shares among positives and negatives of the source; the target lacks the last level
LEVELS = {
    "truth values": (["TRUE", "FALSE", "unknown"], [0.78, 0.19, 0.03], [0.19, 0.78, 0.03]),
    "with a rare level": (["TRUE", "FALSE", "refused"], [0.79, 0.2, 0.01], [0.2, 0.79, 0.01]),
    "decimal commas": (["0,5", "1", "2", "max"], [0.5, 0.2, 0.2, 0.1], [0.1, 0.2, 0.6, 0.1]),
    "leading zeros": (["01", "02", "other"], [0.7, 0.2, 0.1], [0.2, 0.7, 0.1]),
}


def table(rng, rows, share, levels, shares):
    """Draw rows whose positives have one number and one level in common."""
    positive = rng.random(rows) < share
    level = [rng.choice(len(levels), p=np.divide(p, np.sum(p))) for p in (shares[1 - k] for k in positive.astype(int))]
    return pd.DataFrame({"x": (rng.normal(size=rows) + positive).round(4), "f": np.array(levels)[level]})


def files(folder, levels, positive, negative):
    """Write three tables as CSV with decimal commas; return them as data frames and as paths."""
    rng = np.random.default_rng(0)
    without = [np.append(shares[:-1], 0) for shares in (positive, negative)]
    frames = {
        "positive": table(rng, 300, 1.0, levels, (positive, negative)),
        "unlabeled": table(rng, 800, 0.2, levels, (positive, negative)),
        "target": table(rng, 800, 0.6, levels, without),
    }
    for name, frame in frames.items():
        frame.to_csv(folder / f"{name}.csv", index=False, sep=";", decimal=",")
    return frames, {name: folder / f"{name}.csv" for name in frames}


@pytest.mark.parametrize("kind", LEVELS)
def test_files_and_streams_give_what_data_frames_give(tmp_path, kind):
    frames, paths = files(tmp_path, *LEVELS[kind])
    expected = ps.estimate_prior(**frames, source_prior=0.2, random_state=0)
    read = ps.estimate_prior(**paths, source_prior=0.2, random_state=0)
    assert read.value == pytest.approx(expected.value, abs=0.02)  # the folds of rows are others
    streamed = ps.estimate_prior(**paths, source_prior=0.2, stream=True, random_state=0)
    assert streamed.value == pytest.approx(expected.value, abs=0.03)
    assert 0.6 in read.interval and 0.6 in streamed.interval


@pytest.mark.parametrize("kind", LEVELS)
def test_a_monitor_reads_levels_of_later_files(tmp_path, kind):
    frames, paths = files(tmp_path, *LEVELS[kind])
    points = []
    for tables in (frames, paths):
        monitor = ps.Monitor(source_prior=0.2).fit_samples(tables["positive"], tables["unlabeled"])
        points.append(monitor.update(tables["target"], name="a"))
    assert points[1].value == pytest.approx(points[0].value, abs=0.02)


@pytest.mark.parametrize("kind", LEVELS)
def test_an_encoder_gives_each_row_of_a_file_its_level(tmp_path, kind):
    frames, paths = files(tmp_path, *LEVELS[kind])
    of_frames, of_files = (ps.TableEncoder().fit(tables["unlabeled"]) for tables in (frames, paths))
    np.testing.assert_array_equal(of_files.transform(paths["target"]), of_frames.transform(frames["target"]))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("levels", "target", "match"),
    [
        (["none", "1", "3+"], ["none", "1"], "no value in some cells, which may be 'none'"),
        (["1", "1.0", "x"], ["1", "1.0"], r"a number, which may be '1' or '1\.0'"),
        (["TRUE", "1", "x"], ["TRUE", "TRUE"], "a number, which may be '1' or 'TRUE'"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_levels_that_cannot_be_told_apart_are_refused(tmp_path, levels, target, match, stream):
    rng = np.random.default_rng(0)
    for name, values in (("positive", levels), ("unlabeled", levels), ("target", target)):
        frame = pd.DataFrame({"f": values * 40, "x": rng.normal(size=40 * len(values)) + (name == "positive")})
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    paths = {name: tmp_path / f"{name}.csv" for name in ("positive", "unlabeled", "target")}
    with pytest.raises(InputError, match=rf"{match}.*\(--category f\)"):
        ps.estimate_prior(**paths, source_prior=0.2, stream=stream)
    if not stream:
        ps.estimate_prior(**paths, source_prior=0.2, columns={"f": "category"})


@pytest.mark.parametrize("kind", ["workbook", "data frame", "text in the source"])
def test_times_are_the_levels_that_they_are_next_to_a_word(tmp_path, kind):
    """A column of times alone is one of numbers, but the source's has a word too."""
    rng = np.random.default_rng(0)
    frames = {}
    for name, rows, share, has_word in (("p", 300, 1.0, True), ("u", 800, 0.2, True), ("t", 800, 0.6, False)):
        positive = rng.random(rows) < share
        early = rng.random(rows) < np.where(positive, 0.8, 0.2)
        start = np.where(early, time(8), time(16, 30)).astype(object)
        start[(rng.random(rows) < 0.1) & has_word] = "unknown"
        frames[name] = pd.DataFrame({"x": rng.normal(size=rows) + positive, "start": start})
    tables = frames
    if kind == "workbook":
        tables = {name: tmp_path / f"{name}.xlsx" for name in frames}
        for name, frame in frames.items():
            frame.to_excel(tables[name], index=False)
    elif kind == "text in the source":
        tables = {name: frames[name].assign(start=frames[name].start.astype(str)) for name in "pu"} | {"t": frames["t"]}
    for stream in (False, True):
        estimate = ps.estimate_prior(*tables.values(), source_prior=0.2, random_state=0, stream=stream)
        assert 0.6 in estimate.interval and estimate.interval.high - estimate.interval.low < 0.15
    encoder = ps.TableEncoder().fit(tables["u"])
    shares = encoder.transform(tables["t"]).mean(axis=0)[1:]  # of the levels 08:00:00, 16:30:00 and unknown
    assert shares[:2].sum() == 1 and shares[2] == 0


def test_positives_that_lack_a_level_are_joined_with_the_others(tmp_path):
    """They are read as numbers, and become the levels of the unlabelled rows."""
    frames, paths = files(tmp_path, *LEVELS["truth values"])
    for name, tables in (("frame", frames), ("file", paths)):
        positive = frames["positive"][frames["positive"].f != "unknown"]
        positive.to_csv(tmp_path / "p.csv", index=False, sep=";", decimal=",")
        first = positive if name == "frame" else tmp_path / "p.csv"
        diagnosed = ps.estimate_prior(first, tables["unlabeled"], tables["target"], source_prior=0.2, random_state=0)
        assert 0.6 in diagnosed.interval
        assert "3 levels" in str(diagnosed.details["columns"])
