"""Files of sketches: what is written is what is read, and whatever else a file holds is refused with one sentence."""

import hashlib
import json
import os
import tracemalloc

import numpy as np
import pytest

from priorshift.errors import InputError
from priorshift.io.files import is_saved
from priorshift.sketch import container

HEADER = {"rows": 12, "names": ["a", "é", "\ud800"], "nested": {"share": 0.1, "none": None, "yes": True}}


def arrays():
    rng = np.random.default_rng(0)
    return {
        "mean": rng.normal(size=7),
        "moment": rng.normal(size=(7, 7)),
        "counts": np.arange(5) - 2,
        "total": np.array(0.1),
    }


@pytest.fixture
def path(tmp_path):
    container.write(tmp_path / "a.sketch", "sketch", HEADER, arrays())
    return tmp_path / "a.sketch"


def taken_apart(content):
    """The parts of a file, read by hand as the module's first lines describe them."""
    length = int.from_bytes(content[16:24], "little")
    return json.loads(content[24 : 24 + length]), content[24 + length : -32]


def container_bytes(about, numbers, *, length=None, text=None):
    """A file with a checksum that fits, whatever stands in it."""
    text = json.dumps(about).encode() if text is None else text
    content = b"priorshift file\n" + (len(text) if length is None else length).to_bytes(8, "little") + text + numbers
    return content + hashlib.sha256(content).digest()


def refusal(path, content, kinds=("sketch",)):
    """The one sentence about a file, which takes little memory to find out."""
    path.write_bytes(content)
    tracemalloc.start()
    try:
        with pytest.raises(InputError) as caught:
            container.read(path, kinds)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    said = str(caught.value)
    assert said.startswith(str(path)) and said.endswith(".") and "\n" not in said and len(said) < 400
    assert peak < 10 * len(content) + (1 << 20)
    return said


def test_what_is_written_is_read_again_bit_for_bit(path):
    contents = container.read(path, ["histogram", "sketch"])
    assert (contents.kind, contents.header) == ("sketch", HEADER)
    assert list(contents.arrays) == list(arrays())
    for name, array in arrays().items():
        read = contents.arrays[name]
        assert read.dtype == (np.int64 if name == "counts" else np.float64)
        assert read.shape == array.shape and read.dtype.isnative and read.flags.writeable
        np.testing.assert_array_equal(read, array)


def test_brackets_in_names_are_no_depth(tmp_path):
    header = {"columns": ['[{"\\' * 50, "\\[" * 50, '"[' * 50], "deep": nested(25)}
    container.write(tmp_path / "a.sketch", "sketch", header, {})
    assert container.read(tmp_path / "a.sketch", ["sketch"]).header == header


def test_extreme_floats_empty_arrays_and_other_types_are_kept(tmp_path):
    kept = {
        "ends": np.array([5e-324, -0.0, np.finfo(float).max, np.pi]), "none": np.empty((0, 3)), "large": np.array([-(2**63), 2**63 - 1]),
        "single": np.array([1.5], np.float32), "mask": np.array([True, False]), "turned": np.arange(6.0).reshape(2, 3).T, "big": np.array([1.0], ">f8"),
    }  # fmt: skip
    container.write(tmp_path / "a", "sketch", {"x": 1e-300}, kept)
    contents = container.read(tmp_path / "a", ["sketch"])
    assert contents.header == {"x": 1e-300}
    for name, array in kept.items():
        np.testing.assert_array_equal(contents.arrays[name], array)
    assert np.signbit(contents.arrays["ends"][1])


def test_a_file_is_what_its_description_says(path):
    content = path.read_bytes()
    about, numbers = taken_apart(content)
    assert content[:16] == b"priorshift file\n"
    assert content[-32:] == hashlib.sha256(content[:-32]).digest()
    assert int.from_bytes(content[16:24], "little") % 8 == 0
    assert about.keys() == {"format", "kind", "priorshift", "header", "arrays"} and about["format"] == 2
    assert about["arrays"][2] == {"name": "counts", "dtype": "<i8", "shape": [5]}
    start = 8 * (7 + 49)
    np.testing.assert_array_equal(np.frombuffer(numbers, "<f8")[:7], arrays()["mean"])
    np.testing.assert_array_equal(np.frombuffer(numbers[start : start + 40], "<i8"), arrays()["counts"])
    assert container_bytes(about, numbers, text=content[24 : -32 - len(numbers)]) == content


@pytest.mark.parametrize(
    ("high", "dtype", "size"), [(255, "|u1", 1), (256, "<u2", 2), (65536, "<u4", 4), (2**32, "<i8", 8)]
)
def test_integers_take_the_smallest_type_that_holds_them(tmp_path, high, dtype, size):
    numbers = np.array([[0, high], [7, 1]])
    container.write(tmp_path / "a", "sketch", {}, {"x": numbers})
    about, stored = taken_apart((tmp_path / "a").read_bytes())
    assert about["arrays"][0]["dtype"] == dtype and len(stored) == 4 * size
    read = container.read(tmp_path / "a", ["sketch"]).arrays["x"]
    assert read.dtype == np.int64
    np.testing.assert_array_equal(read, numbers)


def test_the_same_contents_make_the_same_bytes(path, tmp_path):
    container.write(tmp_path / "b", "sketch", HEADER, arrays())
    assert (tmp_path / "b").read_bytes() == path.read_bytes()


def test_a_file_that_is_cut_off_anywhere_is_refused(path):
    content = path.read_bytes()
    rng = np.random.default_rng(1)
    for end in {
        1,
        15,
        16,
        17,
        23,
        24,
        25,
        55,
        56,
        len(content) - 33,
        len(content) - 32,
        len(content) - 1,
        *rng.integers(1, len(content), 40),
    }:
        assert "damaged or was changed" in refusal(path, content[:end]) or end < 16
    assert "damaged or was changed" in refusal(path, content + b"\0")
    assert "damaged or was changed" in refusal(path, content + content)


def test_every_flipped_byte_is_noticed(path):
    content = path.read_bytes()
    rng = np.random.default_rng(2)
    for at in {*range(24), 24, 30, len(content) - 1, *rng.integers(24, len(content), 80)}:
        changed = bytearray(content)
        changed[at] ^= 1 << int(rng.integers(8))
        said = refusal(path, bytes(changed))
        assert "is damaged or was changed" in said or (at < 16 and "is not a file that priorshift saved" in said)


def test_swapped_sections_are_noticed(path):
    content = path.read_bytes()
    about, numbers = taken_apart(content)
    for changed in (
        content[:24] + numbers + content[24 : -32 - len(numbers)] + content[-32:],
        content[-32:] + content[:-32],
        content[:16] + content[-32:] + content[16:-32],
        content[:-32] + content[-16:] + content[-32:-16],
    ):
        refusal(path, changed)
    swapped = dict(about, arrays=about["arrays"][::-1])
    assert "damaged or was changed" in refusal(
        path, content[:24] + json.dumps(swapped).encode() + numbers + content[-32:]
    )


def change_array(**fields):
    return lambda about: about["arrays"][0].update(fields)


CHANGES = {
    "huge shape": change_array(shape=[10**15]),
    "shape beyond any machine": change_array(shape=[2**63, 2**63]),
    "product that wraps around to the right size": change_array(shape=[2**61 + 7]),
    "nothing times a lot": change_array(shape=[0, 10**18]),
    "negative shape": change_array(shape=[-7]),
    "two negative axes": change_array(shape=[-7, -1]),
    "shape of a float": change_array(shape=[7.0]),
    "shape of truth": change_array(shape=[True] * 7),
    "shape of text": change_array(shape="7"),
    "no shape": change_array(shape=None),
    "many axes": change_array(shape=[7] + [1] * 100),
    "one row less": change_array(shape=[6]),
    "one row more": change_array(shape=[8]),
    "another type": change_array(dtype="<f4"),
    "objects": change_array(dtype="|O"),
    "type that is a list": change_array(dtype=["<f8"]),
    "big-endian": change_array(dtype=">f8"),
    "name that is a number": change_array(name=7),
    "field besides": change_array(offset=0),
    "array that is none": lambda about: about["arrays"].__setitem__(0, None),
    "same name twice": change_array(name="counts"),
    "arrays that are none": lambda about: about.update(arrays=None),
    "arrays that are an object": lambda about: about.update(arrays={}),
    "no arrays": lambda about: about.update(arrays=[]),
    "kind that is a number": lambda about: about.update(kind=1),
    "version that is a list": lambda about: about.update(priorshift=[]),
    "header that is a list": lambda about: about.update(header=[]),
    "format 0": lambda about: about.update(format=0),
    "format of text": lambda about: about.update(format="1"),
    "format of truth": lambda about: about.update(format=True),
    "no format": lambda about: about.pop("format"),
    "key besides": lambda about: about.update(more=1),
    "no header": lambda about: about.pop("header"),
    "deep nesting": lambda about: about["header"].update(x=nested(40)),
}


def nested(depth):
    made = []
    for _ in range(depth):
        made = [made]
    return made


@pytest.mark.parametrize("change", CHANGES)
def test_a_header_that_cannot_be_is_refused_though_its_checksum_fits(change, path):
    about, numbers = taken_apart(path.read_bytes())
    CHANGES[change](about)
    assert "damaged or was changed" in refusal(path, container_bytes(about, numbers))


def texts():
    """Headers that are no header, by what is wrong with them."""
    good = json.dumps({"format": 2, "kind": "sketch", "priorshift": "1", "header": {}, "arrays": []})
    return {
        "not JSON": b"{" * 8,
        "empty": b"",
        "not UTF-8": good.replace('"1"', '"?"').encode().replace(b"?", b"\xff"),
        "a list": b"[]",
        "a number": b"1",
        "NaN": good.replace("{}", '{"x": NaN}').encode(),
        "minus infinity": good.replace("{}", '{"x": -Infinity}').encode(),
        "a number too large": good.replace("{}", '{"x": 1e999}').encode(),
        "a key twice": good.replace("{}", '{"x": 1, "x": 2}').encode(),
        "very deep": good.replace("{}", '{"x": ' + "[" * 100_000 + "]" * 100_000 + "}").encode(),
        "very deep objects": good.replace("{}", '{"x":' * 30_000 + "1" + "}" * 30_000).encode(),
        "a string without an end": b'"' + b'\\"' * 100_000 + b"\\",
        "a whole number of many digits": good.replace("{}", '{"x": ' + "9" * 5000 + "}").encode(),
        "more after it": good.encode() + b"{}",
        "a byte order mark": b"\xef\xbb\xbf" + good.encode(),
        "UTF-16": good.encode("utf-16"),
    }


@pytest.mark.parametrize("which", texts())
def test_text_that_is_no_header_is_refused_though_its_checksum_fits(which, path):
    assert "is damaged or was changed (its header" in refusal(path, container_bytes(None, b"", text=texts()[which]))


@pytest.mark.parametrize("length", [0, 1, 10**6, 2**31, 2**63 - 1, 2**64 - 1])
def test_a_header_of_another_length_than_it_says_is_refused(length, path):
    about, numbers = taken_apart(path.read_bytes())
    assert "damaged or was changed" in refusal(path, container_bytes(about, numbers, length=length))


def test_headers_of_too_many_bytes_are_refused(path, monkeypatch):
    about, numbers = taken_apart(path.read_bytes())
    monkeypatch.setattr(container, "_MAX_HEADER_BYTES", 100)
    assert "its header has" in refusal(path, container_bytes(about, numbers))


@pytest.mark.parametrize(
    "value",
    [
        "[]",
        "{}",
        '{"a":1}',
        "[[[[[[[]]]]]]]",
        '{"":{"":{}}}',
        '"ab"',
        "999",
        "1.5",
        '"\\u00e9"',
        '"😀"',
        "keys",
        "arrays",
    ],
)
def test_headers_of_values_that_take_far_more_memory_than_their_text_are_refused(value, path):
    many = range(100_000)
    if value == "keys":
        text = "{" + ",".join(f'"{k}":{k}' for k in many) + "}"
    elif value == "arrays":
        forms = [{"name": str(k), "dtype": "<f8", "shape": [0]} for k in many]
        text = json.dumps({"format": 2, "kind": "sketch", "priorshift": "1", "header": {}, "arrays": forms})
    else:
        text = f"[{','.join(value for _ in many)}]"
    assert "its header" in refusal(path, container_bytes(None, b"", text=text.encode()))


def test_headers_of_many_columns_and_files_are_read(path):
    about, _ = taken_apart(path.read_bytes())
    columns = [{"name": f"x{k}", "kind": "number", "missing": 0.0, "median": k / 7, "gaps": False} for k in range(3000)]
    files = [[f"/data/2025/part-{k:05d}.parquet", 10**8 + k, 1763294784123456789 + k] for k in range(20_000)]
    for header, numbers in ((columns, 8 * len(columns)), (files, 0)):  # a column has eight frequencies at least
        about["arrays"] = [{"name": "x", "dtype": "<f8", "shape": [numbers]}]
        path.write_bytes(container_bytes(about | {"header": {"many": header}}, bytes(8 * numbers)))
        assert container.read(path, ["sketch"]).header["many"] == header


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_refused_in_both_directions(bad, path, tmp_path):
    about, numbers = taken_apart(path.read_bytes())
    changed = np.frombuffer(numbers, "<f8").copy()
    changed[10] = bad
    assert "its array 'moment' holds a number that is not finite" in refusal(
        path, container_bytes(about, changed.tobytes())
    )
    with pytest.raises(InputError, match=r"'mean'.*not finite"):
        container.write(tmp_path / "b", "sketch", {}, {"mean": np.array([1.0, bad])})
    assert not (tmp_path / "b").exists()


def test_another_kind_and_a_newer_format_are_called_that(path):
    assert "holds a sketch, but a histogram or a score model is expected" in refusal(
        path, path.read_bytes(), ["histogram", "score model"]
    )
    about, numbers = taken_apart(path.read_bytes())
    said = refusal(path, container_bytes(dict(about, kind="red\x1b[31m\n"), numbers))
    assert r"holds a 'red\x1b[31m\n', but a sketch is expected" in said
    said = refusal(path, container_bytes(dict(about, format=3, more="new"), numbers))
    assert "is written in format 3" in said and "newer version" in said
    assert "in format 1, which is no longer read" in refusal(path, container_bytes(dict(about, format=1), numbers))
    assert "in format 9999" in refusal(path, container_bytes(dict(about, format=10**4000 - 1), numbers))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "is empty"),
        (b"a,b\n1,2\n", "is not a file that priorshift saved; pass a file that save"),
        (b"PAR1" + b"\0" * 100, "is not a file that priorshift saved: it is a Parquet file"),
        (b"\x80\x04\x95" + b"\0" * 100, "is not a file that priorshift saved"),
        (b"priorshift", "is not a file that priorshift saved"),
    ],
)
def test_other_files_are_refused(content, sentence, tmp_path):
    assert sentence in refusal(tmp_path / "x", content)
    assert not is_saved(tmp_path / "x")


def test_what_is_no_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path, sentence in (
        (tmp_path / "none", "does not exist"), (tmp_path, "is a folder"), (tmp_path / "pipe", "pipe or a device"),
        ("a\0b", "does not exist"), (tmp_path / ("x" * 5000), "cannot be read"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=sentence):
            container.read(path, ["sketch"])
        assert not is_saved(path)


def test_our_files_are_known_by_how_they_begin(path):
    assert is_saved(path) and is_saved(str(path))
    assert not any(is_saved(other) for other in (None, 3, [[1.0]], np.zeros((2, 2)), b"x"))


def test_whatever_is_changed_a_file_with_a_fitting_checksum_is_refused_or_holds_finite_numbers(path):
    rng = np.random.default_rng(3)
    content = path.read_bytes()
    refused = 0
    for _ in range(100):
        body = bytearray(content[:-32])
        for _ in range(int(rng.integers(1, 6))):
            begin, end = np.sort(rng.integers(16, len(body), 2))
            piece = body[begin:end]
            body[begin:end] = (rng.bytes(len(piece)), piece[::-1], b"", piece * 2)[int(rng.integers(4))]
        changed = bytes(body) + hashlib.sha256(body).digest()
        path.write_bytes(changed)
        try:
            contents = container.read(path, ["sketch"])
        except InputError:
            refused += 1
            refusal(path, changed)
        else:  # only numbers were changed
            assert [array.shape for array in contents.arrays.values()] == [array.shape for array in arrays().values()]
            assert all(np.isfinite(array).all() for array in contents.arrays.values())
    assert refused > 80


def test_a_file_takes_the_place_of_another_whole_or_not_at_all(path, tmp_path, monkeypatch):
    before = path.read_bytes()

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(InputError, match=r"a\.sketch.*No space left"):
        container.write(path, "sketch", {}, {})
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["a.sketch"]
    container.write(path, "sketch", {}, {})
    assert container.read(path, ["sketch"]).arrays == {}
    with pytest.raises(InputError, match="Cannot write"):
        container.write(tmp_path / "nowhere" / "a", "sketch", {}, {})


def test_reading_takes_hardly_more_memory_than_the_numbers(tmp_path):
    numbers = np.zeros(1 << 20)
    container.write(tmp_path / "a", "sketch", {}, {"x": numbers})
    tracemalloc.start()
    container.read(tmp_path / "a", ["sketch"])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.5 * numbers.nbytes
