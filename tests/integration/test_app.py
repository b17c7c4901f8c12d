"""The app: who may ask, what it takes on, what becomes of jobs, and that nothing is left behind."""

import asyncio
import csv
import errno
import gzip
import http.client
import io
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
import zipfile
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import quote

import numpy as np
import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytest.importorskip("jinja2")

import httpx
import pandas as pd
from starlette.exceptions import HTTPException

import priorshift as ps
from priorshift.app import connections
from priorshift.app import queue as worker
from priorshift.app import routes as example
from priorshift.app.access import AccessMiddleware, Keys
from priorshift.app.fields import show_field
from priorshift.app.jobs import Order, look, run
from priorshift.app.queue import TaskQueue
from priorshift.app.routes import PUBLIC, Site
from priorshift.app.serve import private_folder
from priorshift.app.settings import PHRASES, ROLES, Settings
from priorshift.app.uploads import Limits, Upload, Uploads, display_name
from priorshift.cli import main
from priorshift.cli.inputs import estimator_settings
from priorshift.diagnosis.diagnose import diagnose_targets
from priorshift.errors import InputError
from priorshift.io.files import atomic_write

pytestmark = pytest.mark.filterwarnings("ignore::priorshift.errors.PriorShiftWarning")
HOST = "127.0.0.1:8000"
KEYS = Keys(8000)
FOLDER, COOKIE = KEYS.folder, {"Cookie": KEYS.cookie}
OURS = {"Origin": f"http://{HOST}", "Host": HOST, **COOKIE}
LIMITS = Limits(rows=5000, bytes=3_000_000, files=24, waiting=3, results=2, silence=0.5, all_bytes=8_000_000)
HEADERS = (
    "content-security-policy", "x-content-type-options", "referrer-policy", "cache-control",
    "cross-origin-opener-policy", "cross-origin-resource-policy",
)  # fmt: skip


def tables(rows=250, seed=0):
    """Positives, unlabelled rows and a target with a category, gaps, ids and months."""
    s = ps.simulate.gaussian(0.3, 0.6, rows, rows, dimension=3, distance=2.0, shared=False, random_state=seed)
    rng, made = np.random.default_rng(seed), []
    for k, X in enumerate((s.positive, s.unlabeled, s.target)):
        frame = pd.DataFrame(X, columns=["age", "dose", "score"])
        frame["ward"] = np.where(frame["age"] + rng.normal(size=len(frame)) > 0, "north", "south")
        frame.loc[rng.random(len(frame)) < 0.05, "dose"] = np.nan
        frame["patient"] = np.arange(len(frame)) + 10_000 * k
        made.append(frame)
    made[2]["month"] = rng.permutation(np.resize(["jan", "feb"], rows))
    return made


def texts(frames):
    return {role: frame.to_csv(index=False).encode() for role, frame in zip(ROLES, frames, strict=True)}


class Direct:
    """Requests to an application, without a server."""

    def __init__(self, app):
        self.app = app

    def request(self, method, path, **named):
        async def answer():
            transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url=f"http://{HOST}") as client:
                return await client.request(method, path, **named)

        return asyncio.run(answer())


async def in_pieces(pieces):
    for piece in pieces:
        yield piece


class Client:
    """What the page does, without a page."""

    def __init__(self, client):
        self.http = client

    def put(self, role, content, name="t.csv", **named):
        path = f"/{FOLDER}/files?role={role}&name={quote(name)}"
        return self.http.request("PUT", path, content=content, headers=OURS, **named)

    def ask(self, method, path, **named):
        return self.http.request(method, f"/{FOLDER}/{path}", headers=OURS, **named)

    def wait(self, task, until=("done", "failed", "cancelled"), seconds=300):
        end = time.monotonic() + seconds
        while (story := self.ask("GET", f"tasks/{task}").json())["state"] not in until:
            assert time.monotonic() < end, story
            time.sleep(0.02)
        return story

    def bring(self, contents, names=None):
        made = {
            role: self.put(role, content, (names or {}).get(role, f"{role}.csv")) for role, content in contents.items()
        }
        assert {answer.status_code for answer in made.values()} == {201}, [answer.text for answer in made.values()]
        looks = {role: self.wait(answer.json()["task"]) for role, answer in made.items()}
        assert {look["state"] for look in looks.values()} == {"done"}, looks
        return {role: answer.json()["id"] for role, answer in made.items()}

    def begin(self, files, settings=None, kind="run"):
        return self.ask("POST", "tasks", json={"kind": kind, "files": files, "settings": settings or {}})

    def run(self, files, settings=None, kind="run"):
        answer = self.begin(files, settings, kind)
        assert answer.status_code == 201, answer.text
        return self.wait(answer.json()["id"])

    def result(self, story, name):
        answer = self.ask("GET", f"tasks/{story['id']}/{name}")
        assert answer.status_code == 200
        return answer


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("app")
    made = Site(folder, LIMITS)
    yield made
    made.tasks.close()


@pytest.fixture(scope="module")
def client(site):
    app = AccessMiddleware(site.application(), KEYS, [HOST, "localhost:8000"], public=PUBLIC)
    return Client(Direct(app))


@pytest.fixture
def brought(client):
    return client.bring(texts([frame.drop(columns=["month"], errors="ignore") for frame in tables()]))


KNOWN = {"prior": {"value": 0.3}, "drop": ["patient"]}


# who may ask


WRONG = COOKIE["Cookie"][:-1] + "~"
REFUSED = {
    "no folder": ("GET", "/", COOKIE),
    "wrong folder": ("GET", f"/{FOLDER[:-1]}~/", COOKIE),
    "folder cut": ("GET", f"/{FOLDER[:-1]}/", COOKIE),
    "no key": ("GET", f"/{'t' * 43}/", COOKIE),
    "no cookie": ("GET", f"/{FOLDER}/about", {}),
    "no cookie, to write": ("POST", f"/{FOLDER}/example", {"Origin": f"http://{HOST}"}),
    "no cookie, to write the page": ("PUT", f"/{FOLDER}/", {"Origin": f"http://{HOST}"}),
    "wrong cookie": ("GET", f"/{FOLDER}/about", {"Cookie": WRONG}),
    "empty cookies": ("GET", f"/{FOLDER}/about", {"Cookie": ";; ;=;"}),
    "cookie of another app": ("GET", f"/{FOLDER}/about", {"Cookie": Keys(8001).cookie}),
    "cookie by another name": ("GET", f"/{FOLDER}/about", {"Cookie": COOKIE["Cookie"].replace("8000", "8001")}),
    "another host": ("GET", f"/{FOLDER}/", {"Host": "evil.example:8000", **COOKIE}),
    "another port": ("GET", f"/{FOLDER}/", {"Host": "127.0.0.1:8001", **COOKIE}),
    "another address": ("GET", f"/{FOLDER}/", {"Host": "192.168.0.7:8000", **COOKIE}),
    "another origin": ("POST", f"/{FOLDER}/example", {"Origin": "http://evil.example", **COOKIE}),
    "another port of this machine": ("POST", f"/{FOLDER}/example", {"Origin": "http://127.0.0.1:9999", **COOKIE}),
    "no origin": ("POST", f"/{FOLDER}/example", COOKIE),
    "origin of a sandbox": ("POST", f"/{FOLDER}/example", {"Origin": "null", **COOKIE}),
    "origin by another name": ("POST", f"/{FOLDER}/example", {"Origin": "http://localhost:8000", **COOKIE}),
    "encrypted origin": ("POST", f"/{FOLDER}/example", {"Origin": f"https://{HOST}", **COOKIE}),
    "fetched by another site": ("GET", f"/{FOLDER}/about", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", **COOKIE}),
    "fetched by a neighbour": ("GET", f"/{FOLDER}/about", {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors", **COOKIE}),
    "fetched by two sites": (
        "GET", f"/{FOLDER}/about",
        [("Sec-Fetch-Site", "same-origin"), ("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "cors"), *COOKIE.items()],
    ),
    "read by another origin": ("GET", f"/{FOLDER}/about", {"Origin": "http://evil.example", **COOKIE}),
    "sent by another site": ("DELETE", f"/{FOLDER}/files/x", {"Sec-Fetch-Site": "cross-site", **OURS}),
    "asked before": ("OPTIONS", f"/{FOLDER}/files", {"Origin": "http://evil.example", "Access-Control-Request-Method": "PUT", **COOKIE}),
}  # fmt: skip


@pytest.mark.parametrize("why", REFUSED)
def test_who_may_not_ask_is_refused(client, why):
    method, path, headers = REFUSED[why]
    answer = client.http.request(method, path, headers=headers)
    assert answer.status_code == 403 and answer.text.count(".") == 1 and FOLDER not in answer.text
    assert answer.headers["connection"] == "close" and "set-cookie" not in answer.headers
    assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize("headers", [
    {}, {"Host": "localhost:8000"}, {"Host": "LOCALHOST:8000"}, {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"},
    {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"}, {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"},
    {"Cookie": f"priorshift-8000=of another server; {COOKIE['Cookie']};x"},
])  # fmt: skip
def test_who_has_the_cookie_may_look(client, headers):
    assert client.http.request("GET", f"/{FOLDER}/about", headers={**COOKIE, **headers}).status_code == 200
    # the page itself: a browser does not send the cookie when another page led to it
    assert client.http.request("GET", f"/{FOLDER}/", headers=headers).status_code == 200


@pytest.mark.parametrize("path", ["about/", "tasks/", "example/", "fields/"])
def test_an_address_with_a_slash_too_many_is_unknown_and_not_redirected(client, path):
    answer = client.ask("GET", path)
    assert answer.status_code in (404, 405) and "location" not in answer.headers


def test_a_key_is_exchanged_once_for_a_cookie_that_browsers_send_only_to_the_app(client):
    used = []
    key = KEYS.add(lambda: used.append(True))
    foreign = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}
    for method, path, headers in (("HEAD", f"/{key}/", {}), ("GET", f"/{key}/about", {}), ("GET", f"/{key}/", foreign)):
        assert client.http.request(method, path, headers=headers).status_code == 403 and not used
    answer = client.http.request(
        "GET", f"/{key}/", headers={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    )
    assert (answer.status_code, answer.headers["location"], used) == (303, f"/{FOLDER}/", [True])
    assert answer.headers["set-cookie"] == f"{KEYS.cookie}; Path=/{FOLDER}/; HttpOnly; SameSite=Strict"
    assert all(name in answer.headers for name in HEADERS) and key not in str(answer.headers)
    again = client.http.request("GET", f"/{key}/")
    assert again.status_code == 403 and "used before" in again.text and used == [True]


def test_two_apps_have_different_cookies_and_folders():
    first, second = Keys(8000), Keys(8001)
    assert first.folder != second.folder and first.cookie.split("=")[0] != second.cookie.split("=")[0]


def test_literal_addresses_are_ours_only_where_the_page_is_exposed(site):
    exposed = Direct(AccessMiddleware(site.application(), KEYS, [HOST], 8000, PUBLIC))
    for host, status in (("192.168.0.7:8000", 200), ("[fe80::1]:8000", 200), ("192.168.0.7:80", 403), ("a.example:8000", 403),
                         ("192.168.0.7", 403), ("", 403), ("[:8000", 403)):  # fmt: skip
        assert exposed.request("GET", f"/{FOLDER}/", headers={"Host": host}).status_code == status, host


def test_every_answer_has_the_headers_and_only_a_key_gives_a_cookie(client, brought):
    story = client.run(brought, KNOWN)
    assert story["state"] == "done", story
    answers = [
        client.ask("GET", path)
        for path in ("", "app.css", "app.js", "ask.js", "about", "nothing", "tasks/x", f"tasks/{story['id']}")
    ]
    answers += [client.result(story, name) for name in ("report", "report.html", "result.json", "decisions.csv")]
    answers += [
        client.ask("POST", "about"),
        client.ask("POST", "tasks", content=b"{"),
        client.put("nobody", b""),
        client.http.request("GET", "/"),
    ]
    assert {answer.status_code for answer in answers} == {200, 400, 403, 404, 405, 410}
    for answer in answers:
        assert all(name in answer.headers for name in HEADERS), answer.url
        assert "set-cookie" not in answer.headers and answer.headers["cache-control"] == "no-store"
    policies = {answer.headers["content-security-policy"] for answer in answers}
    assert len(policies) == 2 and not any("unsafe-eval" in policy for policy in policies)
    page, report = sorted(policies)  # "default-src …" and "sandbox …"
    assert "'unsafe-inline'" not in page and "frame-ancestors 'none'" in page
    assert report.startswith("sandbox allow-same-origin; default-src 'none'") and "script" not in report
    assert client.result(story, "report").headers["content-security-policy"] == report
    assert client.result(story, "report").headers.get("content-disposition") is None
    for name in ("report.html", "result.json", "decisions.csv"):
        assert client.result(story, name).headers["content-disposition"] == f'attachment; filename="{name}"'


def test_an_error_of_ours_is_a_sentence_with_headers(site, client, monkeypatch, capsys):
    monkeypatch.setattr(example, "example_files", lambda: 1 / 0)
    answer = client.ask("POST", "example")
    assert answer.status_code == 500 and "internal error occurred in priorshift" in answer.json()["message"]
    assert all(name in answer.headers for name in HEADERS) and "ZeroDivisionError" in capsys.readouterr().err


def test_the_page_asks_nothing_of_others_and_has_no_code_in_it():
    page = Path(Site.__init__.__code__.co_filename).with_name("page")
    names = {path.name for path in page.iterdir()}
    pages = {"index.html", "watch.html"}
    scripts = {"app.js", "ask.js", "classes.js", "files.js", "known.js", "names.js", "result.js", "watch.js"}
    assert names == {*pages, "app.css", *scripts}
    for name in pages:
        html = (page / name).read_text(encoding="utf-8")
        assert not re.search(r"<style|\sstyle=|\son\w+=|<script>|javascript:", html)
    for name in names:
        assert "//" not in re.sub(
            r"^\s*//.*$|(?<=[;,{]) //.*$", "", (page / name).read_text(encoding="utf-8"), flags=re.M
        ), name
        assert "innerHTML" not in (page / name).read_text(encoding="utf-8")


# what it takes on


def test_a_file_that_is_too_large_is_refused_before_and_while_it_comes(client, site):
    for content in (b"a,b\n" * 1_000_000, in_pieces([b"a,b\n" * 100_000] * 10)):  # with and without a length
        answer = client.put("target", content)
        assert answer.status_code == 413 and "larger than 3,000,000 bytes" in answer.json()["message"]
    assert not any(path.stat().st_size > LIMITS.bytes for path in site.uploads.folder.iterdir())


BAD = {
    "gzip bomb": (lambda: gzip.compress(b"1" * 16_000_000, mtime=0), "t.csv.gz", "has more than 3,000,000 bytes when decompressed"),
    "too many rows": (lambda: b"a,b\n" + b"1,2\n" * 6000, "t.csv", "has more than 5,000 rows"),
    "cut gzip": (lambda: gzip.compress(b"a,b\n1,2\n" * 99, mtime=0)[:-9], "t.csv.gz", "is a damaged gzip file"),
    "empty": (lambda: b"", "t.csv", "is empty"),
    "a header alone": (lambda: b"a,b\n", "t.csv", "no rows"),
    "no Parquet": (lambda: b"a,b\n1,2\n", "t.parquet", "Parquet file"),
    "cut Parquet": (lambda: parquet()[:500], "t.parquet", "is a damaged Parquet file"),
    "a spreadsheet": (lambda: b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(99), "t.xls", "is a spreadsheet"),
    "no workbook": (lambda: b"PK\3\4" + bytes(99), "t.xlsx", "cannot be read as an Excel workbook"),
    "damaged workbook": (lambda: damaged_workbook(), "t.xlsx", "cannot be read as an Excel workbook"),
    "another ending": (lambda: b"a,b\n1,2\n", "t.exe", "ends in '.exe'"),
    "binary": (lambda: bytes(range(256)) * 9, "t.csv", "is a binary file"),
    "ragged": (lambda: b"a,b\n1,2\n1,2,3\n", "t.csv", "3 cells in line 3"),
}  # fmt: skip


def damaged_workbook():
    """Text that cannot be decompressed, in the archive's first part."""
    into = io.BytesIO()
    pd.DataFrame({"a": range(50)}).to_excel(into, index=False, engine="openpyxl")
    content = bytearray(into.getvalue())
    for k in range(len(content) - 1):
        if content[k : k + 2] == b"PK" and content[k + 2 : k + 4] == b"\3\4":
            content[k + 60 : k + 80] = bytes([255]) * 20
    return bytes(content)


def parquet(rows=100, columns=3, cell=0):
    """A constant table: few bytes for many cells."""
    into = io.BytesIO()
    column = np.zeros(rows, dtype=np.int8) if cell == 0 else pd.Categorical([cell] * rows)
    pd.DataFrame({f"c{k}": column for k in range(columns)}).to_parquet(into)
    return into.getvalue()


@pytest.mark.parametrize("why", BAD)
def test_a_bad_file_gets_a_sentence(client, why):
    content, name, sentence = BAD[why]
    story = client.wait(client.put("target", content(), name).json()["task"])
    assert story["state"] == "failed" and sentence in story["message"], story
    assert str(Path("files")) + os.sep not in story["message"]  # no path of ours


def test_many_cells_in_few_bytes_are_refused_before_they_are_read(tmp_path):
    path = tmp_path / "wide.parquet"
    path.write_bytes(parquet(1000, 400))
    with pytest.raises(InputError, match=r"100,000 cells"):
        replace(LIMITS, cells=100_000).check_file(path, "t")
    replace(LIMITS, cells=400_000).check_file(path, "t")


def test_long_cells_that_are_stored_once_are_refused_before_they_fill_the_memory(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet as files

    cells = pyarrow.DictionaryArray.from_arrays(np.zeros(500, dtype=np.int32), ["x" * 100_000])
    files.write_table(pyarrow.table({"a": cells.cast(pyarrow.string()), "b": np.zeros(500)}), tmp_path / "t.parquet")
    assert (tmp_path / "t.parquet").stat().st_size < 100_000
    before = pyarrow.total_allocated_bytes()
    with pytest.raises(InputError, match=r"20,000,000 bytes"):
        replace(LIMITS, bytes=20_000_000).check_file(tmp_path / "t.parquet", "t")
    assert pyarrow.total_allocated_bytes() <= before


def repeated_text(length, rows, **options):
    """A Parquet file with a column of one long text, which is stored once."""
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet as files

    cells = pyarrow.DictionaryArray.from_arrays(np.zeros(rows, dtype=np.int32), ["x" * length])
    into = io.BytesIO()
    files.write_table(pyarrow.table({"a": cells, "b": np.zeros(rows)}), into, compression="zstd", **options)
    return into.getvalue()


def nested(rows=1000):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet as files

    offsets = pyarrow.array(np.arange(0, 10_000 * (rows + 1), 10_000, dtype=np.int32))
    cells = pyarrow.ListArray.from_arrays(offsets, np.zeros(10_000 * rows))
    into = io.BytesIO()
    files.write_table(pyarrow.table({"a": cells, "b": np.zeros(rows)}), into, compression="zstd")
    return into.getvalue()


def far_cells(rows=100_000):
    """An Excel file with one cell in each row, in its last column."""
    into, book = io.BytesIO(), io.BytesIO()
    pd.DataFrame({"a": [1], "b": [2]}).to_excel(book, index=False, engine="openpyxl")
    cells = "".join(f'<row r="{k}"><c r="NTP{k}"><v>1</v></c></row>' for k in range(1, rows + 1))
    names = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    sheet = f'<worksheet xmlns="{names}"><sheetData>{cells}</sheetData></worksheet>'
    with zipfile.ZipFile(book) as old, zipfile.ZipFile(into, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, sheet if name.startswith("xl/worksheets/") else old.read(name))
    return into.getvalue()


def text_cells(rows=21_000, last="ab"):
    row = ",".join(["ab"] * 1000) if last == "ab" else ",".join(["17"] * 1000)
    header = ",".join(f"c{k}" for k in range(1000))
    return gzip.compress("\n".join([header, *[row] * rows, ",".join([last] * 1000)]).encode(), 1, mtime=0)


BOMBS = {
    "text stored once": (lambda: repeated_text(29_000_000, 256), "t.parquet", "500,000,000 bytes"),
    "text stored once, of no declared kind": (
        lambda: repeated_text(29_000_000, 256, store_schema=False), "t.parquet", "500,000,000 bytes",
    ),
    "lists": (nested, "t.parquet", "column 'a' of t holds cells of type list"),
    "many cells of text": (text_cells, "t.csv.gz", "20,000,000 cells that are not all numbers"),
    "many columns": (lambda: (",".join(f"c{k}" for k in range(400_000)) + "\n1" + ",1" * 399_999).encode(), "t.csv", "10,000 columns"),
    "commas": (lambda: b"," * 400_000 + b"\n" + b"," * 400_000, "t.csv", "10,000 columns"),
    "a long line": (lambda: gzip.compress(b"a,b\n" + b"x" * 50_000_000, 1, mtime=0), "t.csv.gz", "10,000,000 bytes in a line"),
    "far cells": (far_cells, "t.xlsx", "20,000,000 cells"),
    "many texts": (lambda: parquet(100_000, 250, "ab"), "t.parquet", "20,000,000 cells that are not all numbers"),
}  # fmt: skip


def test_small_files_that_become_huge_are_refused_with_little_memory(tmp_path):
    """In one process for all of them, as the worker is."""
    pytest.importorskip("resource")
    script = (
        "import json, resource, sys\nfrom pathlib import Path\nfrom priorshift.app import jobs\n"
        "from priorshift.app.uploads import Limits\nfrom priorshift.errors import InputError\n"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\nbefore, said = peak(), {}\n"
        "for path in sys.argv[1:]:\n"
        "    try: Limits().check_file(Path(path), 't')\n"
        "    except InputError as error: said[path] = str(error)\n"
        "print(json.dumps([said, peak() - before]))"
    )
    paths = {}
    for k, (why, (content, name, _)) in enumerate(BOMBS.items()):
        paths[why] = str(tmp_path / f"{k}-{name}")
        Path(paths[why]).write_bytes(content())
        assert Path(paths[why]).stat().st_size < 5_000_000
    run = subprocess.run([sys.executable, "-c", script, *paths.values()], capture_output=True, text=True, check=True)
    said, kibibytes = json.loads(run.stdout)
    for why, (_, _, sentence) in BOMBS.items():
        assert sentence in said.get(paths[why], "accepted"), why
    assert kibibytes < (300 << 10 if sys.platform != "darwin" else 300 << 20)  # bytes on macOS


def test_numbers_may_have_more_cells_than_text(tmp_path):
    limits = replace(LIMITS, text_cells=2000, bytes=10**7)
    path = tmp_path / "t.csv.gz"
    path.write_bytes(text_cells(10, "17"))
    limits.check_file(path, "t")
    path.write_bytes(text_cells(10, "x"))
    with pytest.raises(InputError, match="2,000 cells that are not all numbers"):
        limits.check_file(path, "t")
    path.write_bytes(gzip.compress(b"a;b\n" + b"1;\n" * 3000, mtime=0))  # an empty cell is not a number either
    with pytest.raises(InputError, match="not all numbers"):
        limits.check_file(path, "t")


def test_names_in_quotes_over_several_lines_count_as_columns(tmp_path):
    path = tmp_path / "t.csv"
    names = ",".join(f'"a\n{k}"' for k in range(300))
    path.write_text(f"{names}\n{'1,' * 299}1\n{'2,' * 299}1\n")
    order = Order.from_json({"files": {"target": {"path": str(path), "name": "t.csv"}}, "folder": ""})
    with pytest.raises(InputError, match="200 columns"):
        look(order, replace(LIMITS, columns=200))
    assert len(look(order, replace(LIMITS, columns=300))["columns"]) == 300


@pytest.mark.parametrize(("name", "shown"), [
    ("../../etc/passwd.csv", "passwd.csv"), ("C:\\files\\p.csv", "p.csv"), ("a\0b\n.csv", "ab.csv"), ("", "unnamed"),
    ("..", ".."), ("\u202egnp.csv", "gnp.csv"), ("x" * 300 + ".csv", "x" * 116 + ".csv"),
])  # fmt: skip
def test_names_are_shown_and_never_used(client, site, name, shown):
    assert display_name(name) == shown
    before = set(site.uploads.folder.iterdir())
    answer = client.put("target", b"a,b\n1,2\n3,4\n", name)
    assert answer.json()["name"] == shown
    [path] = set(site.uploads.folder.iterdir()) - before or [None]
    assert path is None or re.fullmatch(r"[0-9a-f]{16}(\.[a-z0-9]+){0,2}", path.name)
    if os.name == "posix" and path is not None:
        assert path.stat().st_mode & 0o777 == 0o600
    client.wait(answer.json()["task"])


def test_an_upload_that_hangs_or_breaks_off_leaves_nothing(site):
    from starlette.requests import ClientDisconnect

    before = set(site.uploads.folder.iterdir())

    async def _hangs():
        yield b"a,b\n"
        await asyncio.sleep(60)

    async def _breaks():
        yield b"a,b\n"
        raise ClientDisconnect

    for pieces, status in ((_hangs(), 408), (_breaks(), 400)):
        with pytest.raises(HTTPException) as refused:
            asyncio.run(site.uploads.receive("t.csv", pieces, 100))
        assert refused.value.status_code == status and "Choose it again" in refused.value.detail
    assert set(site.uploads.folder.iterdir()) == before


def test_old_files_give_way_to_new_ones_but_not_those_of_a_job(tmp_path):
    needed = set()
    uploads = Uploads(tmp_path, replace(LIMITS, files=3, all_bytes=100), lambda: needed)
    kept = [uploads.add_text(f"{k}.csv", "x" * 10) for k in range(3)]
    needed.add(kept[0].id)
    kept.append(uploads.add_text("3.csv", "x" * 10))
    assert uploads[kept[0].id] and uploads[kept[3].id] and len(list(tmp_path.iterdir())) == 3
    with pytest.raises(HTTPException, match="was deleted"):
        uploads[kept[1].id]
    late = uploads.add_text("late.csv", "x" * 10, "closed")
    needed.add(late.id)
    uploads.delete_page("closed")
    needed.remove(late.id)
    uploads.add_text("x.csv", "x" * 10)
    assert not late.path.exists() and uploads[kept[0].id] and uploads[kept[3].id]
    uploads.add_text("4.csv", "x" * 85)
    assert {path.stem for path in tmp_path.iterdir()} >= {kept[0].id} and len(list(tmp_path.iterdir())) == 2
    with pytest.raises(HTTPException, match="no space") as refused:
        uploads.add_text("5.csv", "x" * 95)
    assert refused.value.status_code == 413


SETTINGS = {
    "not an object": ([], "JSON object"),
    "unknown": ({"colour": 1}, "'colour'"),
    "half a prior": ({"prior": {"low": 0.1}}, "not complete"),
    "a prior of 1": ({"prior": {"value": 1}}, "between 0 and 100%, such as 20;"),
    "a prior of 0": ({"prior": {"value": 0}}, "between 0 and 100%, such as 20;"),
    "a range to 1": ({"prior": {"low": 0.3, "high": 1}}, "between 0 and 100%, the lower end first, such as 10 to 30"),
    "a range upside down": ({"prior": {"low": 0.3, "high": 0.1}}, "lower end first"),
    "a survey upside down": ({"prior": {"positives": 9, "rows": 3}}, "not be larger"),
    "text for a number": ({"prior": {"value": "a fifth"}}, "between 0 and 100%, such as 20;"),
    "an empty number": ({"prior": {"value": ""}}, "between 0 and 100%, such as 20;"),
    "half a survey": ({"prior": {"positives": "2,5", "rows": "10"}}, "whole number from 0 on"),
    "no such rule": ({"rule": {"luck": 1}}, "choose one rule"),
    "two rules": ({"rule": {"top": 5, "recall": 0.5}}, "choose one rule"),
    "half a row": ({"rule": {"top": "2.5"}}, "number of rows to decide positive must be a whole number from 1 on"),
    "no cost": ({"rule": {"cost_ratio": "0"}}, "above 0, such as 20"),
    "a recall of 0": ({"rule": {"recall": "0"}}, "between 0 and 100%, such as 90"),
    "no scenario": ({"scenario": "x"}, "choose"),
    "ids where none are": ({"scenario": "censoring", "shared": "id"}, "no row is in both"),
    "a column of two uses": ({"weights": "w", "groups": "w"}, "both"),
    "a dropped id": ({"shared": "i", "drop": ["i"]}, "dropped"),
    "names that are none": ({"drop": "abc"}, "list of names"),
    "a column that is none": ({"by": 3}, "name of a column"),
    "confidence": ({"confidence": 95}, "confidence of the interval must be a number between 0 and 100%, such as 95"),
    "seed": ({"seed": -1}, "whole number"),
    "threshold": ({"threshold": "x"}, "share that matters must be a number between 0 and 100%, such as 10"),
}


@pytest.mark.parametrize("why", SETTINGS)
def test_settings_that_cannot_be_meant_are_refused(why):
    said, sentence = SETTINGS[why]
    with pytest.raises(InputError, match=sentence):
        Settings.from_json(said)


def test_a_range_from_zero_is_an_upper_limit():
    settings = Settings.from_json({"prior": {"low": 0, "high": 0.3}})
    assert settings.source_prior == (0.0, 0.3)


@pytest.mark.parametrize("text", ["4.5", "4,5", "4.5%", "4,5 %", " 4,50%"])
def test_typed_shares_are_percentages_with_either_decimal_mark(text):
    """As the command line's parser reads them with a percent sign."""
    settings = Settings.from_json({"prior": {"value": text}, "threshold": text, "confidence": "97,5"})
    assert settings.source_prior == settings.threshold == 0.045 and settings.confidence == 0.975
    assert settings.entered[0] == "share of the old population: 4.5% = 0.045"
    assert show_field("value", text) == "4.5% = 0.045"


def test_typed_ranges_and_counts():
    for typed in ({"value": "10-20"}, {"value": "10%-20%"}, {"low": "10", "high": "20 %"}):
        assert Settings.from_json({"prior": typed}).prior == (0.1, 0.2)
    assert Settings.from_json({"prior": {"low": "", "high": "12,3"}}).prior == (0.0, 0.123)
    assert Settings.from_json({"prior": {"positives": "3", "rows": "10"}}).prior == {"positives": 3, "rows": 10}
    assert Settings.from_json({"rule": {"cost_ratio": "2,5"}}).rule == {"cost_ratio": 2.5}
    assert Settings.from_json({"rule": {"recall": "100"}}).rule == {"recall": 1.0}


@pytest.mark.parametrize(("field", "text", "words"), [
    ("value", "0.22", "0.22% = 0.0022, about 2 in 1,000. For 22 in 100 write 22."),
    ("value", "0,22%", "0.22% = 0.0022"),
    ("value", "0.005", "0.005% = 5e-05, about 5 in 100,000. For 0.5 in 100 write 0.5."),
    ("value", "10-20", "10% to 20% = 0.1 to 0.2"),
    ("value", "1,000", "The share of positives in the old population must be a number between 0 and 100%, such as 20"),
    ("low", "0", "0% = 0"),
    ("cost_ratio", "2,5", "2.5 false alarms"),
    ("top", "60", ""),
    ("top", "6,5", "The number of rows to decide positive must be a whole number from 1 on."),
    ("colour", "1", ""),
])  # fmt: skip
def test_the_page_shows_how_a_field_is_read(client, field, text, words):
    assert client.ask("GET", "fields", params={field: text}).json()[field].startswith(words)
    assert bool(words) == bool(show_field(field, text))


def test_a_refused_field_is_named(client, brought):
    for settings, field in (({"prior": {"value": "x"}}, "value"), ({"rule": {"top": ""}}, "top")):
        answer = client.begin(brought, settings)
        assert answer.status_code == 422 and answer.json()["field"] == field


def test_refused_settings_are_a_sentence(client, brought):
    answer = client.begin(brought, {"prior": {"value": 2}})
    assert answer.status_code == 422 and answer.json()["message"].startswith(
        "The share of positives in the old population"
    )
    twice = client.begin(brought, {"weights": "age", "by": "age"}).json()["message"]
    assert twice.startswith("The column 'age' is both what distinguishes the new populations and a weight;")
    assert client.begin({**brought, "target": "gone"}).status_code == 410
    assert client.begin({"target": brought["target"]}).status_code == 400
    assert client.ask("POST", "tasks", content=b"x" * 5_000_000).status_code == 413


def test_what_the_page_says_otherwise_is_what_the_library_says():
    package = Path(ps.__file__).parent
    modules = [path for path in package.rglob("*.py") if path.relative_to(package).parts[0] != "app"]
    source = "".join(path.read_text(encoding="utf-8") for path in modules)
    joined = re.sub(r'"\s*\n\s*f?"', "", source)  # sentences in several literals
    for phrase in PHRASES:
        assert phrase in joined, phrase


FOREIGN = re.compile(r"--[a-z]|\w=|\bpass\b|shared|unlabeled(?!\.csv)|skrub|[Ss]ource_prior")  # no word of the page
ODD_NAMES = ["visit date", "a)b], c", "it's", '"', "-x", "plain"]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_the_page_names_no_argument_or_option(client, name):
    """Of a column that names rows, and of one that numbers them."""
    frames = [frame.drop(columns=["month", "patient"], errors="ignore") for frame in tables(60)]
    texted = [frame.assign(**{name: [f"{k} {n}" for n in range(len(frame))]}) for k, frame in enumerate(frames)]
    story = client.run(client.bring(texts(texted)), {}, "columns")
    assert story["state"] == "failed" and not FOREIGN.search(story["message"]), story["message"]
    assert "leave out the column, choose it under “Rows that belong together have the same”" in story["message"]
    numbered = [frame.assign(**{name: 1000 * k + np.arange(len(frame))}) for k, frame in enumerate(frames)]
    odd = client.run(client.bring(texts(numbered)), {}, "columns")["answer"]["odd"]
    assert "; leave it out, or check how it was made." in " ".join(odd)
    assert odd and not [said for said in odd if FOREIGN.search(said)], odd
    dated = [frame.assign(**{name: [f"0{1 + k % 9}/02/2020" for k in range(len(frame))]}) for frame in frames]
    story = client.run(client.bring(texts(dated)), {}, "columns")
    assert story["message"].endswith("; write them as in 2024-03-31.") and not FOREIGN.search(story["message"])
    coded = [frame.assign(**{name: np.where(frame.index % 9 == 1, -9999, frame["age"] / 7)}) for frame in frames]
    odd = client.run(client.bring(texts(coded)), {}, "columns")["answer"]["odd"]
    assert not [said for said in odd if FOREIGN.search(said)], odd


def test_files_that_are_one_and_files_that_are_gone_are_said_in_words_of_the_page(client, site):
    frames = [frame.drop(columns=["month", "patient"], errors="ignore") for frame in tables(60)]
    files = client.bring(texts([frames[1], frames[1], frames[2]]))
    story = client.run(files, {})
    assert story["message"].startswith("The known positives and the old population are the same"), story
    assert not FOREIGN.search(story["message"])
    site.uploads[files["positive"]].path.unlink()
    story = client.run(files, {})
    assert story["message"] == "positive.csv (known positives) is no longer there; choose it again.", story


def test_a_column_of_the_new_population_alone_may_tell_several_apart(client):
    frames = tables(60)
    story = client.run(client.bring(texts(frames)), {}, "columns")
    assert "target.csv (new population) also has 'month'" in story["message"]
    assert story["message"].endswith("under “Several new populations, distinguished by”.")
    frames[1]["ward 2"], frames[2]["month"] = 1, 1
    story = client.run(client.bring(texts(frames)), {}, "columns")
    assert "Several new populations" not in story["message"], story


# what becomes of jobs


def as_files(folder, contents):
    for role, content in contents.items():
        (folder / f"{role}.csv").write_bytes(content)
    return [folder / f"{role}.csv" for role in ROLES]


def test_numbers_and_decisions_are_those_of_python_and_the_shell(client, tmp_path, monkeypatch, capsys):
    contents = texts([frame.drop(columns=["month"], errors="ignore") for frame in tables()])
    paths = as_files(tmp_path, contents)
    settings = {
        "prior": {"positives": 30, "rows": 100},
        "drop": ["patient"],
        "confidence": 0.9,
        "threshold": 0.5,
        "seed": 3,
        "rule": {"top": 40},
    }
    story = client.run(client.bring(contents), settings)
    assert story["state"] == "done" and story["steps"][0]["name"] == "Reading the files"
    told = {key: settings[key] for key in ("confidence", "threshold")}
    prior = Settings.from_json(settings).source_prior
    found = ps.diagnose(*paths, source_prior=prior, drop=["patient"], random_state=3, **told)
    result = client.result(story, "result.json").json()
    assert result == json.loads(json.dumps(found.to_dict()))

    monkeypatch.chdir(tmp_path)
    command, decide = map(shlex.split, story["answer"]["command"].splitlines())
    assert command[0] == "priorshift" and main([*command[1:], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["estimate"] == result["estimate"]
    page = client.result(story, "report.html").text
    assert page == (tmp_path / "report.html").read_text(encoding="utf-8").replace(" --json", "")

    assert decide[:2] == ["priorshift", "adapt"] and main([*decide[1:], "--json"]) == 0
    assert client.result(story, "decisions.csv").text == (tmp_path / "decisions.csv").read_text(encoding="utf-8")
    by_shell, [expected] = json.loads(capsys.readouterr().out), story["answer"]["decisions"]
    assert expected.pop("target") == "" and expected.items() <= by_shell.items()
    assert expected["decided_positive"] == 40 and expected["precision_interval"][0] < expected["precision"]


def test_the_verdict_and_what_was_entered_come_with_the_result(client):
    frames = [frame.drop(columns=["month", "patient"], errors="ignore") for frame in tables()]
    frames[2]["dose"] += 5  # not label shift
    story = client.run(client.bring(texts(frames)), {"prior": {"value": "30"}, "threshold": "4,5"})
    [verdict] = story["answer"]["verdicts"]
    assert verdict["tone"] == "no" and verdict["reasons"] and "% of the new population have it" in verdict["answer"]
    assert story["answer"]["entered"] == [
        "share of the old population: 30% = 0.3", "confidence: 95% = 0.95", "share that matters: 4.5% = 0.045",
    ]  # fmt: skip


def test_the_decisions_on_a_parquet_file_are_written_as_one_by_the_command():
    names = dict(zip(ROLES, ("p.csv", "u.csv", "t.parquet"), strict=True))
    command = Settings.from_json({"rule": {"recall": "90"}}).command(names, "adapt")
    assert command.endswith("--recall 0.9 --classifier logistic -o decisions.parquet")


def test_several_targets_by_a_column_are_decided_each_by_its_own_share(client, tmp_path):
    contents = texts(tables())
    settings = {"prior": {"value": 0.3}, "by": "month", "shared": "patient"}
    story = client.run(client.bring(contents), settings)
    assert story["state"] == "done", story
    found = diagnose_targets(
        *as_files(tmp_path, contents), by="month", source_prior=0.3, shared="patient", random_state=0
    )
    result = client.result(story, "result.json").json()
    assert result == json.loads(json.dumps(found.to_dict()))
    rows = list(csv.DictReader(io.StringIO(client.result(story, "decisions.csv").text)))
    assert [row["patient"] for row in rows] == [
        row["patient"] for row in csv.DictReader(io.StringIO(contents["target"].decode()))
    ]
    for month in ("jan", "feb"):
        mine = [float(row["posterior"]) for row in rows if row["month"] == month]
        assert np.mean(mine) == pytest.approx(found[month].estimate.value, abs=0.1)


def test_parquet_and_gzip_come_in_and_decisions_go_out_as_text(client):
    frames = [frame.drop(columns=["month"], errors="ignore") for frame in tables()]
    contents, names = texts(frames), {"positive": "p.csv.gz", "target": "t.parquet"}
    contents["positive"] = gzip.compress(contents["positive"], mtime=0)
    into = io.BytesIO()
    frames[2].assign(note="=1+1").to_parquet(into)
    contents["target"] = into.getvalue()
    files = client.bring(contents, names)
    refused = client.run(files, KNOWN, "columns")
    assert refused["state"] == "failed" and "t.parquet (new population) also has 'note'" in refused["message"]
    settings = KNOWN | {"drop": ["patient", "note"]}
    uses = {column["name"]: column["use"] for column in client.run(files, settings, "columns")["answer"]["columns"]}
    assert uses == dict.fromkeys(["age", "dose", "score", "ward"], "feature") | dict.fromkeys(
        ["patient", "note"], "dropped"
    )
    story = client.run(files, settings)
    rows = list(csv.DictReader(io.StringIO(client.result(story, "decisions.csv").text)))
    assert len(rows) == len(frames[2]) and {row["note"] for row in rows} == {"'=1+1"}
    assert [float(row["age"]) for row in rows] == pytest.approx(frames[2]["age"])


def test_excel_comes_in_and_decisions_go_out_as_text(client):
    frames = [frame.drop(columns=["month"], errors="ignore") for frame in tables()]
    contents, names = {}, {}
    for role, frame in zip(("positive", "unlabeled", "target"), frames, strict=True):
        into = io.BytesIO()
        frame.to_excel(into, index=False, engine="openpyxl")
        contents[role], names[role] = into.getvalue(), f"{role}.xlsx"
    story = client.run(client.bring(contents, names), KNOWN | {"drop": ["patient"]})
    assert story["state"] == "done", story
    rows = list(csv.DictReader(io.StringIO(client.result(story, "decisions.csv").text)))
    assert [float(row["age"]) for row in rows] == pytest.approx(frames[2]["age"])
    assert {row["decision"] for row in rows} == {"0", "1"}


def test_a_target_with_our_columns_is_reported_without_decisions(client):
    contents = texts([frame.drop(columns=["month"], errors="ignore").assign(decision=1.0) for frame in tables()])
    story = client.run(client.bring(contents), KNOWN | {"drop": ["patient", "decision"]})
    assert story["state"] == "done" and story["answer"]["files"] == ["report.html", "result.json"]
    assert "has a column 'decision' already" in story["answer"]["undecided"]
    assert client.ask("GET", f"tasks/{story['id']}/decisions.csv").status_code == 404


def test_decisions_on_a_number_that_is_doubted_come_with_a_word(client):
    frames = [frame[["age", "score"]] for frame in tables()]
    good = client.run(client.bring(texts(frames)), {"prior": {"value": 0.3}})
    frames[2] = frames[2] + 3  # no mixture of the source's classes
    bad = client.run(client.bring(texts(frames)), {"prior": {"value": 0.3}})
    month = np.resize(["jan", "feb"], len(frames[2]))
    several = client.run(
        client.bring(texts([*frames[:2], frames[2].assign(m=month)])), {"prior": {"value": 0.3}, "by": "m"}
    )
    verdicts = [client.result(story, "result.json").json()["verdict"]["answer"] for story in (good, bad)]
    assert verdicts[0] != "no" and good["answer"]["doubted"] is None
    assert verdicts[1] == "no" and bad["answer"]["doubted"].startswith("The report advises against")
    assert "of 2 of the 2 new populations" in several["answer"]["doubted"]


def test_a_killed_worker_is_a_sentence_and_the_next_job_runs(client, site, brought):
    task = client.begin(brought).json()["id"]
    assert client.wait(task, ("running",))["state"] == "running"
    assert client.ask("DELETE", f"files/{brought['target']}").status_code == 409
    os.kill(site.tasks.worker.process.pid, signal.SIGKILL)
    story = client.wait(task)
    assert story["state"] == "failed" and "ended from outside" in story["message"]
    assert client.ask("GET", f"tasks/{task}/report").status_code == 404

    task, other = (client.begin(brought, KNOWN).json()["id"] for _ in range(2))
    assert client.wait(task, ("running",))["state"] == "running"
    until = time.monotonic() + 30
    while site.tasks.worker is None and time.monotonic() < until:  # the killed worker is being replaced
        time.sleep(0.01)
    before = site.tasks.worker.process.pid
    client.ask("DELETE", f"tasks/{task}")
    assert client.wait(task)["state"] == "cancelled"
    assert client.wait(other)["state"] == "done" and site.tasks.worker.process.pid != before


class Idle:
    """In place of a worker, one that says what it is told to."""

    answers, asked, made = [], [], []

    def __init__(self, limits):
        self.made.append(self)
        self.alive, self.said = True, [{"ready": True}]
        self.process = SimpleNamespace(is_alive=lambda: self.alive)

    def send(self, order):
        self.asked.append(order["kind"])
        self.said += self.answers.pop(0) if self.answers else []

    def receive(self, seconds):
        if self.said:
            return self.said.pop(0)
        time.sleep(min(seconds, 0.02))
        return None

    def kill(self):
        self.alive = False


@pytest.fixture
def queue(tmp_path, monkeypatch):
    monkeypatch.setattr("priorshift.app.queue.Worker", Idle)
    monkeypatch.setattr(Idle, "answers", [])
    monkeypatch.setattr(Idle, "asked", [])
    monkeypatch.setattr(Idle, "made", [])
    made = []

    def _queue(**limits):
        made.append(TaskQueue(tmp_path, replace(LIMITS, **limits)))
        return made[-1]

    yield _queue
    for one in made:
        one.close()


def until(condition, seconds=10):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def needs(key):
    return {"target": Upload(key, "t.csv", Path("t.csv"))}


def test_jobs_wait_for_their_turn_and_looks_go_first(queue):
    tasks = queue()
    first = tasks.add("run", needs("a"), {})
    until(lambda: first.state == "running")
    second, third, look = tasks.add("run", {}, {}), tasks.add("run", {}, {}), tasks.add("look", needs("b"), {})
    assert [tasks.status(task.id)["ahead"] for task in (first, look, second, third)] == [0, 1, 2, 3]
    assert tasks.in_use == {"a", "b"}
    tasks.add("run", {}, {})
    with pytest.raises(HTTPException, match="waiting") as refused:
        tasks.add("run", {}, {})
    assert refused.value.status_code == 503
    tasks.cancel(second.id)
    assert tasks.status(second.id)["state"] == "cancelled" and tasks.status(third.id)["ahead"] == 2
    tasks.cancel(first.id)
    until(lambda: look.state == "running")
    assert first.state == "cancelled" and not first.folder.exists() and Idle.asked == ["run", "look"]
    with pytest.raises(HTTPException, match="no longer known"):
        tasks.status("x")


def test_jobs_and_files_of_a_page_that_was_closed_are_given_up(client, site, brought):
    """Those of another page are not, nor is a result that may be open elsewhere."""
    frames = texts([frame.drop(columns=["month"], errors="ignore") for frame in tables()])

    def ask(page, method, path, **named):
        return client.http.request(method, f"/{FOLDER}/{path}", headers=OURS | {"X-Page": page}, **named)

    files, looks = {}, []
    for role, content in frames.items():
        answer = ask("a" * 32, "PUT", f"files?role={role}&name=t.csv", content=content).json()
        files[role] = answer["id"]
        looks.append(answer["task"])
    assert [client.wait(look)["state"] for look in looks] == ["done"] * 3
    order = {"kind": "run", "files": files, "settings": KNOWN}
    done = client.wait(ask("a" * 32, "POST", "tasks", json=order).json()["id"])
    first, second = (ask("a" * 32, "POST", "tasks", json=order).json()["id"] for _ in range(2))
    other = client.begin(brought, KNOWN).json()["id"]
    assert client.wait(first, ("running",))["state"] == "running"
    foreign = OURS | {"Origin": "http://evil.example"}
    assert client.http.request("DELETE", f"/{FOLDER}/pages/{'a' * 32}", headers=foreign).status_code == 403
    assert ask("", "DELETE", f"pages/{'b' * 32}").status_code == 204
    assert {client.ask("GET", f"tasks/{key}").json()["state"] for key in (first, second)} == {"running", "waiting"}
    assert ask("", "DELETE", f"pages/{'a' * 32}").status_code == 204
    assert [client.wait(key)["state"] for key in (first, second)] == ["cancelled"] * 2
    assert client.wait(other)["state"] == "done" and client.result(done, "report.html").status_code == 200
    assert ask("", "DELETE", f"pages/{'a' * 32}").status_code == 204
    assert client.begin(files).status_code == 410 and client.begin(brought).status_code == 201


@pytest.mark.parametrize("error", [OSError("too many processes"), RuntimeError("can't start new thread")])
def test_a_job_fails_with_a_sentence_while_no_worker_can_be_started(queue, monkeypatch, error):
    from priorshift.app import queue as module

    def refuse(limits):
        raise error

    monkeypatch.setattr(module, "Worker", refuse)
    tasks = queue()
    refused = tasks.add("run", {}, {})
    until(lambda: refused.state == "failed")
    assert "cannot be started" in refused.message
    monkeypatch.setattr(module, "Worker", Idle)
    later = tasks.add("run", {}, {})
    until(lambda: later.state == "running")  # the queue has gone on


def test_a_job_that_takes_too_long_is_ended(queue):
    tasks = queue(seconds=0.2)
    story = tasks.add("run", {}, {})
    until(lambda: story.state == "failed")
    assert "longer than 0.2 seconds" in story.message and not story.folder.exists()
    Idle.answers.append([{"answer": {}}])
    after = tasks.add("run", {}, {})
    until(lambda: after.state == "done")


def test_what_memory_does_not_hold_and_what_we_did_wrong_are_sentences(capsys):
    said = []
    pipe = SimpleNamespace(send_bytes=lambda content: said.append(json.loads(content)))
    asked = {"kind": "run", "files": {"target": {"path": "/x/1.csv", "name": "t.csv"}}, "folder": ""}
    wrongs = {MemoryError(): False, ZeroDivisionError(): True, InputError("target (/x/1.csv) is odd; mend it."): True}
    for wrong, goes_on in wrongs.items():
        work = SimpleNamespace(Order=Order, ORDERS={}, STEPS={}, WORK={"run": lambda *_, wrong=wrong: raising(wrong)})
        assert worker._answer(pipe, asked, LIMITS, work) is goes_on
    assert "more memory than this app may use" in said[0]["error"] and said[0]["exits"]
    assert "(ZeroDivisionError)" in said[1]["error"] and "Traceback" in capsys.readouterr().err
    assert said[2]["error"] == "This file is odd; mend it."


def raising(error):
    raise error


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_a_sentence_without_a_path(client, site, monkeypatch, capsys, tmp_path, number):
    full = OSError(number, os.strerror(number), str(tmp_path / "secret"))
    said = []
    pipe = SimpleNamespace(send_bytes=lambda content: said.append(json.loads(content)))
    asked = {"kind": "run", "files": {}, "folder": str(tmp_path)}

    def write_in_one_piece(*_):
        with atomic_write(tmp_path / "report.html"):
            raise full

    for work in (lambda *_: raising(full), write_in_one_piece):
        jobs = SimpleNamespace(Order=Order, ORDERS={}, STEPS={}, WORK={"run": work})
        assert worker._answer(pipe, asked, LIMITS, jobs)
    assert said[0]["error"].startswith("There is no space left on the disk")
    assert said[1]["error"] == f"Cannot write report.html: {os.strerror(number)}. No file was changed."

    stored = set(site.uploads.folder.iterdir())
    monkeypatch.setattr("priorshift.app.uploads.new_file", lambda path: raising(full))
    for answer in (client.ask("POST", "example"), client.put("target", b"a,b\n1,2\n")):
        assert answer.status_code == 507 and "Free some disk space" in answer.json()["message"]
        assert str(tmp_path) not in answer.text and "priorshift" not in answer.text
    assert not [file for file in site.uploads._files.values() if not file.complete]
    assert set(site.uploads.folder.iterdir()) <= stored and not capsys.readouterr().err
    monkeypatch.undo()
    files = client.bring(texts([frame.drop(columns=["month"], errors="ignore") for frame in tables(30)]))
    monkeypatch.setattr("pathlib.Path.mkdir", lambda *_, **__: raising(full))
    answer = client.begin(files, KNOWN)
    assert answer.status_code == 507 and str(tmp_path) not in answer.text and not capsys.readouterr().err


@pytest.mark.parametrize("number", [10**400, -(10**400)], ids=["positive", "negative"])
def test_whole_numbers_of_hundreds_of_digits_are_refused_in_a_sentence(client, brought, number):
    priors = [
        {"value": number},
        {"low": 0, "high": number},
        {"low": number, "high": 0.5},
        {"positives": 1, "rows": number},
    ]
    rules = [{name: number} for name in ("cost_ratio", "top", "precision", "recall")]
    asked = [{"prior": prior} for prior in priors] + [{"rule": rule} for rule in rules]
    for settings in (*asked, {"seed": number}, {"confidence": number}, {"threshold": number}):
        answer = client.begin(brought, settings)
        assert answer.status_code == 422 and "must be" in answer.json()["message"], settings


def test_a_worker_that_ran_out_of_memory_is_replaced(queue):
    tasks = queue()
    Idle.answers += [[{"error": "too much", "exits": True}], [{"answer": {}}]]
    first, second = tasks.add("run", {}, {}), tasks.add("run", {}, {})
    until(lambda: second.state == "done")
    assert first.message == "too much" and len(Idle.made) == 2


def test_old_results_are_dropped(queue):
    tasks = queue(results=2)
    Idle.answers += [[{"answer": {"k": k}}] for k in range(4)]
    made = []
    for _ in range(4):
        made.append(tasks.add("run", {}, {}))
        until(lambda: made[-1].state == "done")
    tasks.add("look", {}, {})
    assert [task.folder.exists() for task in made] == [False, False, True, True]
    assert tasks.status(made[3].id)["answer"] == {"k": 3}
    with pytest.raises(HTTPException, match="no longer known"):
        tasks.status(made[0].id)


def test_memory_of_the_worker_is_held_to_its_limit(tmp_path):
    """In a process of its own, as the worker is, that can still make threads and multiply matrices."""
    pytest.importorskip("resource")
    if not sys.platform.startswith("linux"):
        pytest.skip("the limit on data counts arrays on Linux")
    script = (
        "import numpy as np; from priorshift.app.queue import _limit_memory; _limit_memory(400 << 20)\n"
        "a = np.ones((1000, 1000)); a @ a\n"
        "try: np.ones(1 << 27); print('none')\n"
        "except MemoryError: print('limited')"
    )
    made = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert made.stdout.strip() == "limited"


# a server of its own


@contextmanager
def running(folder, *options, browser=False, environment=(), before=""):
    """The command, with `folder` for temporary files; the code `before` is run first."""
    words = ["app", *([] if browser else ["--no-browser"]), *options]
    code = f"{before}\nimport sys; from priorshift.cli import main; sys.exit(main({words!r}))"
    environment = {**os.environ, "TMPDIR": str(folder), "OMP_NUM_THREADS": "1", **dict(environment)}
    process = subprocess.Popen(
        [sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        address = re.search(r"http://(127\.0\.0\.1:\d+)/(\S{43})/", process.stdout.readline())
        assert address, process.stderr.read()
        yield process, address[1], opened(*address.groups())
    finally:
        process.kill()
        process.communicate()


def opened(host, key):
    """The folder and the cookie for a key."""
    connection = connected(host)
    try:
        connection.request("GET", f"/{key}/")
        answer = connection.getresponse()
        assert answer.status == 303, answer.read()
        return answer.headers["Location"].strip("/"), answer.headers["Set-Cookie"].partition(";")[0]
    finally:
        connection.close()


def connected(host):
    return http.client.HTTPConnection(host, timeout=30)


def put(host, token, content, name="t.csv", headers=()):
    connection = connected(host)
    try:
        path = f"/{token[0]}/files?role=target&name={quote(name)}"
        connection.request("PUT", path, content, {"Origin": f"http://{host}", "Cookie": token[1], **dict(headers)})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def asked(host, token, path):
    connection = connected(host)
    try:
        connection.request("GET", f"/{token[0]}/{path}", headers={"Cookie": token[1]})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def children(pid):
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(words[1]) == pid:
            found.append(int(status.parent.name))
    return found


def gone(pids, seconds=15):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not any(Path(f"/proc/{pid}").exists() for pid in pids):
            return True
        time.sleep(0.05)
    return False


def resident(pid):
    """Bytes that a process has in memory."""
    return 1024 * int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1])


on_linux = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes under /proc")


def ended(process, number, folder):
    """Whether a signal ends it with one sentence, and leaves neither files nor processes."""
    below = children(process.pid)
    process.send_signal(number)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 0 and "deleted" in out and not err, err
    assert not list(folder.iterdir()) and gone(below)


@on_linux
def test_nothing_is_left_by_a_killed_server_after_the_next_start_nor_by_one_that_ends(tmp_path):
    with running(tmp_path) as (process, host, token):
        assert put(host, token, b"a,b\n1,2\n3,4\n")[0] == 201
        [folder] = tmp_path.glob("priorshift-app-*")
        assert folder.stat().st_mode & 0o777 == 0o700 and list((folder / "files").iterdir())
        until(lambda: children(process.pid), 30)
        below = children(process.pid)
        process.kill()
        process.wait()
    assert gone(below) and folder.exists()
    with running(tmp_path, "--max-rows", "10") as (process, host, token):
        assert not folder.exists() and len(list(tmp_path.iterdir())) == 1
        assert put(host, token, b"a,b\n1,2\n3,4\n")[0] == 201
        ended(process, signal.SIGTERM, tmp_path)


@on_linux
def test_it_goes_on_in_silence_when_all_its_processes_are_killed(tmp_path):
    with running(tmp_path) as (process, host, token):
        assert put(host, token, b"a,b\n1,2\n3,4\n")[0] == 201
        until(lambda: len(children(process.pid)) >= 2, 30)
        below = children(process.pid)
        for pid in below:
            os.kill(pid, signal.SIGKILL)
        _, answer = put(host, token, b"a,b\n1,2\n3,4\n")
        until(lambda: json.loads(asked(host, token, f"tasks/{answer['task']}")[1])["state"] in ("done", "failed"), 60)
        _, answer = put(host, token, b"a,b\n1,2\n3,4\n")
        until(lambda: json.loads(asked(host, token, f"tasks/{answer['task']}")[1])["state"] == "done", 60)
        ended(process, signal.SIGTERM, tmp_path)


def test_a_folder_whose_owner_lives_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with private_folder() as first:
        (first / "rows").write_text("1")
        with private_folder() as second:
            assert first.exists() and second != first
        assert (first / "rows").exists() and not second.exists()
    assert not list(tmp_path.iterdir())
    stranger = tmp_path / "priorshift-app-link"
    stranger.symlink_to(tmp_path.parent, target_is_directory=True)
    with private_folder():
        assert stranger.exists()


@on_linux
def test_fifty_uploads_at_once_leave_it_answering(tmp_path):
    """Good, bad, huge, cut, packed to burst, of wrong kinds, with odd names, and some that hang or lie about their size."""
    bomb = gzip.compress(bytes(60_000_000), mtime=0)
    contents = [
        (b"a,b\n1,2\n3,4\n", "good.csv"), (b"", "empty.csv"), (bomb, "bomb.csv.gz"), (bomb[:-99], "../cut.csv.gz"),
        (b"x" * 6_000_000, "huge.csv"), (bytes(range(256)) * 99, "bytes.csv"), (b"PK\3\4" + bytes(99), "a\0b.xlsx"),
        (b"PAR1" + bytes(99), "t.parquet"), (b'{"a": 1}', "t.json"), ("ä,ö\n1,2\n".encode("utf-16"), "utf16.csv"),
    ]  # fmt: skip
    with running(tmp_path, "--max-bytes", "5000000", "--max-rows", "1000") as (process, host, token):
        asked(host, token, "")
        before, statuses = resident(process.pid), []

        def bring(k):
            content, name = contents[k % len(contents)]
            if k % 10 == 9:  # says that more will come than does, and hangs
                line = socket.create_connection(host.split(":"), timeout=30)
                path = f"/{token[0]}/files?role=target&name=hangs.csv"
                head = f"PUT {path} HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\nCookie: {token[1]}\r\n"
                line.sendall(f"{head}Content-Length: 4000000\r\n\r\na,b".encode())
                time.sleep(1)
                line.close()
                statuses.append(400)
                return
            try:
                statuses.append(put(host, token, content, name)[0])
            except (ConnectionError, http.client.HTTPException):  # refused while it was still sending
                statuses.append(413)

        threads = [threading.Thread(target=bring, args=[k]) for k in range(50)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            assert asked(host, token, "about")[0] == 200
            time.sleep(0.1)
        assert len(statuses) == 50 and set(statuses) <= {201, 400, 413, 503} and statuses.count(201) >= 10
        assert resident(process.pid) - before < 100e6
        [folder] = tmp_path.glob("priorshift-app-*")
        assert len(list((folder / "files").iterdir())) <= Limits().files

        _, answer = put(host, token, b"a,b\n1,2\n3,4\n")
        end = time.monotonic() + 60
        while (story := json.loads(asked(host, token, f"tasks/{answer['task']}")[1]))["state"] in (
            "waiting",
            "running",
        ):
            assert time.monotonic() < end
            time.sleep(0.1)
        assert story["answer"]["rows"] == 2 and story["answer"]["columns"][0]["name"] == "a"
        assert not list(tmp_path.parent.glob("cut.csv*")) and asked(host, ("x" * 43, token[1]), "")[0] == 403
        ended(process, signal.SIGINT, tmp_path)


@on_linux
def test_no_key_is_in_a_command_line_and_the_redirect_file_is_private_and_used_once(tmp_path):
    """A browser that is a script: it reports what it was started with, and follows the file as a browser does."""
    script = tmp_path / "browser"
    script.write_text(
        f"#!{sys.executable}\nimport sys\nopen({str(tmp_path / 'started')!r}, 'a').write(sys.argv[1] + '\\n')\n"
    )
    script.chmod(0o700)
    folder = tmp_path / "folder"
    folder.mkdir()
    environment = {"BROWSER": f"{script} %s", "DISPLAY": ":99"}
    with running(folder, browser=True, environment=environment) as (process, host, token):
        until(lambda: (tmp_path / "started").exists() and (tmp_path / "started").read_text().endswith("\n"), 30)
        started = (tmp_path / "started").read_text().strip()
        assert started.startswith("file://"), started
        file = Path(started.removeprefix("file://"))
        assert file.stat().st_mode & 0o777 == 0o600 and file.parent.stat().st_mode & 0o777 == 0o700
        key = re.search(rf'content="0; url=http://{host}/([\w-]{{43}})/"', file.read_text())[1]
        assert opened(host, key) == token and not file.exists()
        assert asked(host, token, "about")[0] == 200
        assert key not in started and token[0] not in started
        following = re.search(r"/(\S{43})/", "".join(process.stdout.readline() for _ in range(3)))[1]
        assert opened(host, following) == token  # the first address that was printed is used, so there is another one
        ended(process, signal.SIGTERM, folder)


@on_linux
def test_the_redirect_file_goes_when_the_app_ends(tmp_path):
    with running(tmp_path, browser=True, environment={"BROWSER": "true %s", "DISPLAY": ":99"}) as (process, _, _):
        until(lambda: list(tmp_path.glob("*/open.html")), 30)
        ended(process, signal.SIGTERM, tmp_path)


FEW_FILES = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))"


@on_linux
def test_idle_and_slow_connections_do_not_keep_the_user_from_the_app(tmp_path):
    """More connections than the process may open files: some say nothing, some half a head, some ask without a key."""
    said = (b"", b"GET / HTTP/1.1\r\nHost: ", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    with running(tmp_path, before=FEW_FILES) as (process, host, token):
        lines = []
        try:
            for k in range(400):
                lines.append(socket.create_connection(host.split(":"), timeout=10))
                with suppress(ConnectionError):
                    lines[-1].sendall(said[k % 3])
            start = time.monotonic()
            assert asked(host, token, "about")[0] == 200 and put(host, token, b"a,b\n1,2\n3,4\n")[0] == 201
            assert time.monotonic() - start < 5
            assert len(list(Path(f"/proc/{process.pid}/fd").iterdir())) < 150
        finally:
            for line in lines:
                line.close()
        ended(process, signal.SIGTERM, tmp_path)  # which has said nothing on stderr


@on_linux
def test_a_head_must_come_in_time_and_a_used_connection_is_kept(tmp_path):
    hasty = "from priorshift.app import connections; connections._HEAD_SECONDS = 0.5"
    with running(tmp_path, before=hasty) as (_, host, token):
        used = connected(host)
        silent, slow = (socket.create_connection(host.split(":"), timeout=10) for _ in range(2))
        for _ in range(2):
            used.request("GET", f"/{token[0]}/about", headers={"Cookie": token[1]})
            assert used.getresponse().read() and used.sock is not None
            with suppress(ConnectionError):
                for letter in b"GET /ab":  # a byte now and then does not extend the deadline
                    slow.sendall(bytes([letter]))
                    time.sleep(0.1)
        for line in (silent, slow):
            with suppress(ConnectionError):
                assert line.recv(1) == b""
            line.close()
        used.sock.sendall(b"GET /half")
        assert used.sock.recv(1) == b""
        used.close()


@on_linux
def test_a_body_that_is_no_http_closes_the_connection_without_a_traceback(tmp_path):
    with running(tmp_path) as (process, host, token):
        head = f"GET /{token[0]}/about HTTP/1.1\r\nHost: {host}\r\nCookie: {token[1]}\r\nTransfer-Encoding: chunked\r\n\r\n"
        with socket.create_connection(host.split(":"), timeout=10) as together:
            together.sendall(head.encode() + b"no chunk\r\n")
            assert b" 400 " in together.recv(100)
        with socket.create_connection(host.split(":"), timeout=10) as later:
            later.sendall(head.encode())
            assert b" 200 " in later.recv(1000)
            later.sendall(b"no chunk\r\n")
            with suppress(ConnectionError):
                while later.recv(1000):  # until it is closed
                    pass
        assert asked(host, token, "about")[0] == 200
        ended(process, signal.SIGTERM, tmp_path)  # which has said nothing on stderr


def test_exhausted_files_are_no_traceback(caplog):
    loop = asyncio.new_event_loop()
    try:
        connections.ignore_exhaustion(loop, {"message": "accept", "exception": OSError(24, "Too many open files")})
        assert not caplog.records
        connections.ignore_exhaustion(loop, {"message": "other", "exception": OSError(5, "Input/output error")})
        assert len(caplog.records) == 1
    finally:
        loop.close()


@pytest.mark.parametrize(("options", "sentence"), [
    (["--host", "0.0.0.0"], "would let other machines reach this page"),
    (["--host", "::1"], "--expose-to-network"),
    (["--port", "70000"], "is not a port"),
    (["--max-rows", "0"], "is not a whole number from 1 on"),
])  # fmt: skip
def test_the_command_refuses(options, sentence, capsys):
    try:
        code = main(["app", "--no-browser", *options])
    except SystemExit as stop:  # argparse's own
        code = stop.code
    assert code == 2 and sentence in capsys.readouterr().err


def test_a_port_that_is_taken_is_a_sentence(capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert main(["app", "--no-browser", "--port", str(taken.getsockname()[1])]) == 2
    assert "Correct --host or --port" in capsys.readouterr().err


def test_without_the_extra_it_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert main(["app", "--no-browser"]) == 2
    assert 'pip install "priorshift[app]"' in capsys.readouterr().err


def test_settings_survive_the_shell(monkeypatch):
    """Each setting is in the command, and the command's parser reads it as the page meant it."""
    from priorshift.cli import inputs
    from priorshift.cli.parser import parser

    said = {
        "prior": {"low": 0.05, "high": 1e-1}, "shared": "a b", "weights": "$w", "groups": "g'", "audit": "-a", "by": "m;n",
        "drop": ["--x", "y"], "confidence": 0.8, "threshold": 0.25, "seed": 7,
    }  # fmt: skip
    settings = Settings.from_json(said)
    names = dict(zip(ROLES, ("p.csv", "u 2.csv", "t.csv"), strict=True))
    args = parser().parse_args(shlex.split(settings.command(names))[1:])
    assert (args.positive, args.unlabeled, args.target) == ("p.csv", "u 2.csv", ["t.csv"])
    assert inputs.estimator_settings(args) == {"source_prior": (0.05, 0.1), "confidence": 0.8, "random_state": 7}
    loaded = {}
    monkeypatch.setattr(inputs, "load_problem", lambda **how: loaded.update(how) or SimpleNamespace(kind="counts"))
    inputs.read_problem(args)
    by_shell, by_page = loaded["options"], settings.input_options()
    assert vars(by_shell.columns) == vars(by_page.columns)
    assert (by_shell.by, by_shell.drop) == (by_page.by, by_page.drop) == ("m;n", ("--x", "y"))
    assert args.threshold == 0.25
    censored = Settings.from_json({"scenario": "censoring", "prior": {"positives": 3, "rows": 10}})
    args = parser().parse_args(shlex.split(censored.command(names))[1:])
    assert (
        args.scenario == "censoring" and estimator_settings(args)["source_prior"].mean() == censored.source_prior.mean()
    )
    identical = Settings.from_json({"shared": {"identical": True}})
    assert parser().parse_args(shlex.split(identical.command(names))[1:]).identical_rows


@pytest.mark.filterwarnings("ignore::priorshift.errors.PriorShiftWarning")
@pytest.mark.parametrize("by", [None, "month"])
def test_a_report_names_files_as_the_user_does(tmp_path, by):
    """Warnings of the tables are reasons of the verdict, and name the files."""
    rng = np.random.default_rng(0)
    (tmp_path / "results").mkdir()
    rows = {"positive": rng.normal(2, 1, (40, 2)), "unlabeled": rng.normal(size=(80, 2))}
    rows["target"] = rows["unlabeled"]  # the same rows as two populations
    files = {}
    for role, values in rows.items():
        frame = pd.DataFrame(values, columns=["age", "dose"])
        if by and role == "target":
            frame[by] = np.resize(["may", "june"], len(frame))
        frame.to_csv(tmp_path / f"0123-{role}.csv", index=False)
        files[role] = {"path": str(tmp_path / f"0123-{role}.csv"), "name": f"my {role}.csv"}
    settings = {"prior": {"value": 0.3}, "by": by}
    order = Order.from_json({"files": files, "settings": settings, "folder": str(tmp_path / "results")})
    run(order, Limits())
    for name in ("report.html", "result.json"):
        text = (tmp_path / "results" / name).read_text(encoding="utf-8")
        assert str(tmp_path) not in text and "0123-" not in text
        assert "are also in my unlabeled.csv (old population)" in text


NO_OBJECTS = {
    "deep list": "[" * 200_000, "deep object": '{"a":' * 200_000, "list": "[]", "null": "null", "half": "{", "empty": "",
}  # fmt: skip


@pytest.mark.parametrize("body", NO_OBJECTS.values(), ids=NO_OBJECTS)
def test_what_is_no_json_object_is_refused_in_a_sentence(client, body):
    answer = client.ask("POST", "tasks", content=body.encode())
    assert (answer.status_code, answer.json()["message"]) == (
        400, "The request is not a JSON object. Reload the page.",
    )  # fmt: skip
