"""The peers of the source-prior benchmark: own-written ones find easy shares, and the tables are of the committed lines."""

import json
import math
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

import benchmarks.peers.timed as timed
from benchmarks.peers import PEERS, Peer, alphamax, bbe, dedpul, pulscar, tice
from benchmarks.peers.draws import GAUSSIANS, Draw, grid
from benchmarks.peers.label_frequency import unlabeled_share
from benchmarks.peers.tables import tables
from experiments.store import read_lines

from priorshift.datasets import OPENML

RESULTS = ROOT / "benchmarks" / "results" / "peers.jsonl"
OWN = {
    "DEDPUL, network": 0.03,  # two standard errors of a share of 1000 positives in 2000 rows, and the kernels' blur
    "DEDPUL, trees": 0.03,
    "AlphaMax": 0.03,  # two steps of its grid of 0.01, where lines of ten points round the elbow off, and one of noise
    "PULSCAR": 0.03,
    "BBE": 0.05,  # half of the rows: two standard errors are 0.035, and it takes the least of many ratios
    "TIcE": 0.12,  # c is a bound, below L/T by its term under the root, about 0.05 in parts of a thousand rows
}


def apart(prior, rows=2000, labels=1000, seed=0):
    """Two columns, the classes five standard deviations apart in each: no overlap that matters."""
    rng = np.random.default_rng(seed)
    k = round(prior * rows)
    classes = np.repeat([1, 1, 0], [labels, k, rows - k])
    return rng.normal(size=(len(classes), 2)) + 5 * classes[:, None], np.repeat([1, 0], [labels, rows])


def loaded(peer):
    if not PEERS[peer].installed:
        pytest.skip(f"{peer} needs {PEERS[peer].package}")
    return PEERS[peer].load()


@pytest.mark.parametrize("prior", [0.2, 0.5])
@pytest.mark.parametrize("peer", OWN)
def test_an_own_written_peer_finds_the_share_where_classes_are_apart(peer, prior):
    assert loaded(peer)(*apart(prior), 0) == pytest.approx(prior, abs=OWN[peer])


@pytest.mark.parametrize("peer", [peer for peer in PEERS if peer not in OWN])
def test_every_other_peer_gives_a_share(peer):
    """Installed ones are not ours to judge, and ours have tests of their own."""
    assert 0 <= loaded(peer)(*apart(0.3, 400, 200), 0) <= 1


@pytest.mark.parametrize("peer", PEERS)
def test_the_same_seed_gives_the_same_answer(peer):
    X, y = apart(0.3, 200, 100)
    assert loaded(peer)(X, y, 1) == loaded(peer)(X, y, 1)


def test_bbe_on_counted_scores():
    """Nine of ten negatives below all positives, the tenth above: the ratio is least where P is still whole."""
    of_P = np.linspace(0.5, 0.9, 1000)
    of_U = np.concatenate([of_P, np.linspace(0.0, 0.4, 900), np.full(100, 0.95)])
    assert bbe.prior_of_scores(of_P, of_U) == pytest.approx((1000 + 100) / 2000, abs=0.002)


def test_pulscar_on_scores_of_two_beta_densities():
    """It takes the least of noisy ratios, so it lies below: by the noise of 400 rows in some twenty bins, up to 0.06."""
    rng = np.random.default_rng(0)
    of_P, of_positives, of_negatives = rng.beta(8, 2, 1000), rng.beta(8, 2, 400), rng.beta(1, 12, 1600)
    found = pulscar.prior_of_scores(of_P, np.concatenate([of_positives, of_negatives]))
    assert found == pytest.approx(0.2, abs=0.06)


def test_dedpul_on_exact_ratios():
    """f_P/f_U is 1/π on U's positives and 0 on its negatives: EM must end at π."""
    assert dedpul.prior_of_ratios(np.repeat([0.0, 1 / 0.3], [700, 300])) == pytest.approx(0.3, abs=1e-4)


@pytest.mark.filterwarnings("ignore:Values in x were outside bounds:RuntimeWarning")  # by SLSQP of old scipy
def test_alphamax_likelihood_is_that_of_a_general_solver():
    rng = np.random.default_rng(0)
    p, w = rng.dirichlet(np.ones(5)), rng.dirichlet(np.ones(5))
    for alpha in (0.1, 0.5, 0.9):

        def loss(b, alpha=alpha):
            return -(w @ np.log(alpha * p + w - b) + p @ np.log(b / alpha))

        whole = {"type": "eq", "fun": lambda b, alpha=alpha: b.sum() - alpha}
        bounds = [(1e-9, share) for share in w]
        found = minimize(loss, alpha * w, bounds=bounds, constraints=whole, options={"ftol": 1e-12, "maxiter": 500})
        assert alphamax.likelihood(alpha, p, w) == pytest.approx(-found.fun, abs=1e-5)


def test_tice_bound_of_the_label_frequency_in_one_part():
    """Without columns that tell rows apart the bound is the share of labels."""
    y = np.repeat([1, 0], [300, 700])
    assert tice.label_frequency(np.zeros((1000, 3)), y, 0) == pytest.approx(0.3, abs=0.02)


def test_share_from_the_label_frequency():
    """100 labelled are a quarter of 400 positives: 300 of them are among 1000 unlabelled rows."""
    assert unlabeled_share(0.25, 100, 1000) == pytest.approx(0.3)


@pytest.mark.parametrize("dataset", GAUSSIANS)
def test_a_draw_has_its_share_and_its_labels(dataset):
    X, y, share = Draw(dataset, 0.05, 25, 3).rows()
    again, *_ = Draw(dataset, 0.05, 25, 3).rows()
    other, *_ = Draw(dataset, 0.05, 25, 4).rows()
    assert (share, y.sum(), len(y)) == (0.05, 25, 1025)
    assert np.array_equal(X, again) and not np.array_equal(X, other)
    assert np.allclose(X[y == 0].mean(axis=0), 0) and np.allclose(X[y == 0].std(axis=0), 1)


def test_draws_are_distinct_and_many_enough():
    draws = list(grid())
    assert len(set(draws)) == len(draws)
    assert min(Counter((d.dataset, d.source_prior) for d in draws).values()) >= 2
    assert sum(d.dataset in OPENML for d in draws) >= 70


def test_what_a_peer_raises_is_a_failure_and_a_slow_one_is_ended(monkeypatch):
    def _raise(X, y, seed):
        raise ValueError("no thanks")

    monkeypatch.setattr(Peer, "load", lambda self: _raise)
    assert timed.answer("KM2", None, None, 0)["failure"] == "ValueError: no thanks"
    monkeypatch.setattr(Peer, "load", lambda self: lambda X, y, seed: math.nan)
    assert timed.answer("KM2", None, None, 0)["failure"] == "not a number"
    monkeypatch.setattr(Peer, "load", lambda self: lambda X, y, seed: 1.7)
    assert timed.answer("KM2", None, None, 0)["value"] == 1.0
    worker, start = timed.TimedWorker(limit=0.0), time.monotonic()
    try:
        line = worker.ask(Draw("Gaussians, apart", 0.2, 200, 0), "MixturePrior")
    finally:
        worker.stop()
    assert (line["value"], line["failure"], line["positives"]) == (None, "more than 0 s", 200)
    assert time.monotonic() - start < 60


def test_a_run_makes_what_is_missing_and_nothing_twice(tmp_path):
    main = _script()
    path = tmp_path / "peers.jsonl"
    asked = ["run", "--results", str(path), "--sets", "Gaussians, apart", "--draws", "1", "--peers"]
    main([*asked, "KM2"])
    first = path.read_bytes()
    main([*asked, "KM2"])
    assert path.read_bytes() == first
    assert len(read_lines(path)) == 12 and all(line["value"] is not None for line in read_lines(path))


def test_the_table_is_made_from_the_committed_lines(capsys):
    _script()(["table"])
    printed = capsys.readouterr().out
    lines = read_lines(RESULTS)
    assert printed == tables(lines)
    uci = [line for line in lines if line["dataset"] in OPENML]
    ours = [abs(line["value"] - line["share"]) for line in uci if line["peer"] == "MixturePrior"]
    row = next(text for text in printed.splitlines() if text.startswith("| MixturePrior"))
    assert f"| {np.mean(ours):.3f} |" in row and f"| {max(ours):.2f} |" in row
    assert f"{len(ours)} draws" in printed.splitlines()[0]


def test_the_table_counts_failures():
    line = {"dataset": "Yeast", "source_prior": 0.2, "labels": 200, "seed": 0, "peer": "KM2", "share": 0.2}
    made = tables([
        line | {"value": 0.3, "seconds": 1.0},
        line | {"seed": 1, "value": None, "seconds": None},
        line | {"peer": "KM1", "value": None, "seconds": None},
    ])  # fmt: skip
    assert "| KM2 | 0.100 | +0.100 | 0.10 | 1.00 | 50% |" in made
    assert "| KM1 | – | – | – | – | 100% |" in made


def test_every_committed_draw_was_given_to_every_peer():
    lines = read_lines(RESULTS)
    keys = [json.dumps([line[k] for k in ("dataset", "source_prior", "labels", "seed", "peer")]) for line in lines]
    assert len(set(keys)) == len(keys)
    asked = {json.dumps([d.dataset, d.source_prior, d.labels, d.seed, peer]) for d in grid() for peer in PEERS}
    assert set(keys) == asked


def test_the_page_says_what_the_lines_do():
    """Of real data: the errors of each peer beside ours, with the standard error of the difference."""
    errors = {}
    for line in read_lines(RESULTS):
        if line["dataset"] not in GAUSSIANS:
            key = tuple(line[name] for name in ("dataset", "source_prior", "labels", "seed"))
            off = 1.0 if line["value"] is None else abs(line["value"] - line["share"])
            errors.setdefault(line["peer"], {})[key] = off
    page = " ".join((ROOT / "docs" / "peers.md").read_text(encoding="utf-8").split())
    ours = errors["MixturePrior"]
    assert len(ours) == 120 and min(errors, key=lambda peer: np.mean(list(errors[peer].values()))) == "MixturePrior"
    assert f"smallest mean error, {np.mean(list(ours.values())):.3f}" in page
    said = {
        "DEDPUL, network": "DEDPUL with a network has {:.3f} more (a standard error is {:.3f})",
        "BBE": "BBE {:.3f} ({:.3f})",
        "AlphaMax": "AlphaMax {:.3f} ({:.3f})",
    }
    for peer, words in said.items():
        more = np.array([errors[peer][key] - ours[key] for key in ours])
        assert words.format(more.mean(), more.std(ddof=1) / np.sqrt(len(more))) in page
    high = {peer: np.mean([off for key, off in found.items() if key[1] > 0.5]) for peer, found in errors.items()}
    assert (
        f"its error of {high['MixturePrior']:.3f} is larger than that of DEDPUL ({high['DEDPUL, network']:.3f})" in page
    )
    assert f"and BBE ({high['BBE']:.3f})" in page


def _script():
    """benchmarks/peers.py, which shares its name with the folder beside it."""
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location("peers_script", ROOT / "benchmarks" / "peers.py")
    script = module_from_spec(spec)
    spec.loader.exec_module(script)
    return script.main
