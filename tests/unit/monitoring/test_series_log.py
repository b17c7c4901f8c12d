"""The log of a monitor: what it reads of its own lines."""

import json

import pytest

import priorshift as ps
from priorshift.errors import InputError
from priorshift.monitoring.outputs import SeriesLog, _log_values

NAMES = ["monday", "", 'a "quoted" name', "back\\slash", "Größe", ', "time": ', '", "digest": "x', "tab\t"]


def line(series, name, digest="0f"):
    values = _log_values(ps.MonitorPoint(name, 3, series=series, digest=digest)) | {"replaced": False}
    return json.dumps(values, ensure_ascii=False) + "\n"


def test_every_name_is_read_as_it_was_written(tmp_path):
    path = tmp_path / "series.jsonl"
    path.write_text("".join(line(series, name) for series in NAMES for name in NAMES), encoding="utf-8")
    assert SeriesLog.read(path).digests == {(series, name): "0f" for series in NAMES for name in NAMES}


def test_of_a_replaced_batch_the_last_line_counts_and_lines_may_be_formatted_in_another_way(tmp_path):
    path = tmp_path / "series.jsonl"
    compact = json.dumps(json.loads(line("", "tuesday", "02")), separators=(",", ":")) + "\n"
    path.write_text(line("", "monday", "00") + line("", "monday", "01") + compact, encoding="utf-8")
    assert SeriesLog.read(path).digests == {("", "monday"): "01", ("", "tuesday"): "02"}


@pytest.mark.parametrize("content", ["name,share\n", "{}\n", "[1]\n", line("", "monday")[:-3] + "\n"])
def test_other_files_are_refused(content, tmp_path):
    path = tmp_path / "series.jsonl"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match="not a log"):
        SeriesLog.read(path)


@pytest.mark.parametrize("series", NAMES)
def test_a_line_may_be_torn_anywhere(series, tmp_path):
    path, whole = tmp_path / "series.jsonl", line(series, "monday").encode()
    for end in range(len(whole)):
        path.write_bytes(line("", "sunday").encode() + whole[:end])
        log = SeriesLog.read(path)
        assert log.is_torn == (end > 0)
        assert set(log.digests) == {("", "sunday")}


@pytest.mark.parametrize("rest", ['{"series": "my catalogue", "items": [1, 2]}', '{"series": "a"}', '{"name": "a"}'])
def test_another_file_without_a_line_feed_is_refused(rest, tmp_path):
    path = tmp_path / "catalogue.json"
    path.write_text(rest, encoding="utf-8")
    with pytest.raises(InputError, match="not a log"):
        SeriesLog.read(path)
