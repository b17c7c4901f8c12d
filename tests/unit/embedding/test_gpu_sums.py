"""Kernel sums by torch: plain tiles anywhere, the GPU's own kernel where there is a GPU."""

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import priorshift as ps
from priorshift.embedding import gpu_sums as devices
from priorshift.embedding.gpu_sums import choose_device, gpu_kernel_sums, gpu_weighted_kernel_sums
from priorshift.embedding.samples import sum_over_rows
from priorshift.embedding.tiles import kernel_sums, weighted_kernel_sums
from priorshift.errors import InputError
from priorshift.io.scaling import Rows
from priorshift.kernels import Energy, FromFunction, Gaussian, Laplace

torch = pytest.importorskip("torch")
gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
KERNELS = [Gaussian(2.0), Laplace(4.0), Energy()]


def rows(n, p, rng, shift=0.0):
    return Rows(rng.normal(size=(n, p)) + shift, np.zeros(p), np.ones(p), None)


def check(kernel, X, Y, weights, device, error):
    made = gpu_kernel_sums(kernel, X, Y, weights=weights, device=device)
    told = kernel_sums(kernel, X, Y, weights=weights)
    for one, other in zip(made, told, strict=True):
        assert one.dtype == np.float64
        np.testing.assert_allclose(one, other, rtol=error)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("weighted", [False, True])
def test_tiles_are_those_of_the_cpu(kernel, weighted):
    rng = np.random.default_rng(0)
    X, Y = rows(300, 4, rng), rows(170, 4, rng, 0.5)
    weights = (rng.random(300) + 0.5, rng.random(170) + 0.5) if weighted else (None, None)
    check(kernel, X, Y, weights, "cpu", 1e-12)
    check(kernel, X, None, (weights[0], weights[0]), "cpu", 1e-12)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=gpu)])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("weighted", [False, True])
def test_sums_of_replicates_are_those_of_the_cpu(kernel, weighted, device, monkeypatch):
    monkeypatch.setattr("priorshift.embedding.gpu_sums._TILE_VALUES", 100**2)  # several tiles
    rng = np.random.default_rng(0)
    X, Y = rows(300, 4, rng), rows(170, 4, rng, 0.5)
    W, V = rng.poisson(1, (300, 7)).astype(np.uint8), rng.poisson(1, (170, 7)).astype(np.uint8)
    weights = (rng.random(300) + 0.5, rng.random(170) + 0.5) if weighted else (None, None)
    made = gpu_weighted_kernel_sums(kernel, X, W, Y, V, weights=weights, device=device)
    np.testing.assert_allclose(made, weighted_kernel_sums(kernel, X, W, Y, V, weights=weights), rtol=1e-11)
    both = (weights[0], weights[0])
    made = gpu_weighted_kernel_sums(kernel, X, W, weights=both, device=device)
    np.testing.assert_allclose(made, weighted_kernel_sums(kernel, X, W, weights=both), rtol=1e-11)


@gpu
@pytest.mark.parametrize("embedding", ["exact", "random-features"])
def test_a_bootstrap_on_a_gpu_is_that_of_the_cpu(embedding):
    s = ps.simulate.gaussian(0.2, 0.6, 400, 300, random_state=0)
    found = [
        ps.TCPU(0.2, embedding=embedding, features=256, interval="bootstrap", device=device, random_state=0)
        .fit(s.X, s.y, shared=s.ids)
        .estimate(s.target)
        for device in ("cpu", "cuda")
    ]
    assert found[0].interval.low == pytest.approx(found[1].interval.low, rel=1e-5)
    assert found[0].interval.high == pytest.approx(found[1].interval.high, rel=1e-5)


@gpu
def test_tensors_of_a_gpu_are_read():
    s = ps.simulate.gaussian(0.2, 0.6, 400, 300, random_state=0)
    X, T = torch.as_tensor(s.X, device="cuda"), torch.as_tensor(s.target, device="cuda")
    found = ps.TCPU(0.2, device="cuda").fit(X, s.y, shared=s.ids).estimate(T)
    assert found.value == pytest.approx(ps.TCPU(0.2).fit(s.X, s.y, shared=s.ids).estimate(s.target).value, rel=1e-5)


def test_which_device_is_meant(monkeypatch):
    assert choose_device("cpu", KERNELS[0], 10**6) == "cpu"
    assert choose_device("auto", KERNELS[0], 100) == "cpu"
    monkeypatch.setattr(devices, "version", lambda name: "2.13.0")  # as if built for GPUs
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert choose_device("auto", KERNELS[0], 10**6) == "cpu"
    with pytest.raises(InputError, match="no GPU"):
        choose_device("cuda", KERNELS[0], 100)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert choose_device("auto", KERNELS[0], 10**6) == "cuda"
    own = FromFunction(lambda X, Y: X @ Y.T)
    assert choose_device("auto", own, 10**6) == "cpu"
    with pytest.raises(InputError, match="use device='cpu'"):
        choose_device("cuda", own, 100)


@pytest.mark.parametrize("device", ["gpu", 1, None])
def test_what_is_no_device(device):
    s = ps.simulate.gaussian(0.2, 0.6, 100, 100, random_state=0)
    with pytest.raises(InputError, match="device is"):
        ps.TCPU(0.2, device=device).fit(s.X, s.y, shared=s.ids)


def test_a_torch_without_gpu_is_not_imported_to_ask(monkeypatch):
    asked = []
    made = ModuleType("torch")
    made.__spec__ = ModuleSpec("torch", None)
    made.cuda = SimpleNamespace(is_available=lambda: asked.append(1) or True)
    monkeypatch.setitem(sys.modules, "torch", made)
    for build, meant in (("2.13.0+cpu", "cpu"), ("2.13.0+cu130", "cuda")):
        monkeypatch.setattr(devices, "version", lambda name, build=build: build)
        assert devices.resolve_device("auto", worthwhile=True) == meant
    assert asked == [1]


def test_the_estimate_says_where_it_was_computed():
    s = ps.simulate.gaussian(0.2, 0.6, 100, 100, random_state=0)
    found = ps.TCPU(0.2).fit(s.X, s.y, shared=s.ids).estimate(s.target)
    assert found.details["device"] == "cpu"


@gpu
@pytest.mark.parametrize("p", [1, 3, 10, 11, 14, 15, 20, 21, 30, 31, 42, 43, 62, 63, 128, 300])
@pytest.mark.parametrize("weighted", [False, True])
def test_fused_sums_are_exact_to_six_digits(p, weighted):
    rng = np.random.default_rng(p)
    X, Y = rows(3001, p, rng), rows(1777, p, rng, 0.3)
    weights = (rng.random(3001) + 0.1, rng.random(1777) + 0.1) if weighted else (None, None)
    kernel = Gaussian(np.sqrt(p / 2))
    check(kernel, X, Y, weights, "cuda", 1e-6)
    check(kernel, X, None, (weights[0], weights[0]), "cuda", 1e-6)


@gpu
@pytest.mark.parametrize("kernel", KERNELS)
def test_tiles_of_the_gpu(kernel):
    rng = np.random.default_rng(0)
    check(kernel, rows(900, 5, rng), rows(500, 5, rng), (None, None), "cuda", 1e-6)


@gpu
@pytest.mark.parametrize("spread", [30.0, 1e6])
def test_rows_that_are_far_out_and_narrow_kernels(spread):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(2000, 4))
    values[:20] = spread * rng.normal(size=(20, 4))
    values[10:20] = values[:10]  # far out, and neighbours
    X = Rows(values, np.zeros(4), np.ones(4), None)
    check(Gaussian(1.5), X, None, (None, None), "cuda", 1e-6)
    check(Gaussian(1.5), X, rows(700, 4, rng), (None, None), "cuda", 1e-6)
    check(Gaussian(0.01), X, rows(700, 4, rng), (None, None), "cuda", 1e-6)
    weights = (np.r_[np.zeros(5), np.ones(1995)], None)
    check(Gaussian(1.5), X, rows(700, 4, rng), weights, "cuda", 1e-6)


@gpu
def test_several_chunks_and_the_same_answer_each_time(monkeypatch):
    from priorshift.embedding import triton_sums

    rng = np.random.default_rng(0)
    X, Y = rows(5000, 10, rng), rows(3000, 10, rng)
    whole = gpu_kernel_sums(Gaussian(2.0), X, Y)
    again = gpu_kernel_sums(Gaussian(2.0), X, Y)
    assert all((a == b).all() for a, b in zip(whole, again, strict=True))
    monkeypatch.setattr(triton_sums, "_CHUNKS", ((0, 1024),))
    for one, other in zip(gpu_kernel_sums(Gaussian(2.0), X, Y), whole, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)
    np.testing.assert_allclose(gpu_kernel_sums(Gaussian(2.0), X)[0], kernel_sums(Gaussian(2.0), X)[0], rtol=1e-6)


@gpu
@pytest.mark.parametrize("tensor", [False, True])
def test_the_estimate_is_that_of_the_cpu(tensor):
    s = ps.simulate.gaussian(0.2, 0.6, 3000, 3000, random_state=0)
    X, T = (torch.as_tensor(x, device="cuda") for x in (s.X, s.target)) if tensor else (s.X, s.target)
    made = ps.TCPU(0.2, device="cuda").fit(X, s.y, shared=s.ids).estimate(T)
    told = ps.TCPU(0.2, device="cpu").fit(s.X, s.y, shared=s.ids).estimate(s.target)
    assert made.details["device"] == "cuda"
    assert made.raw == pytest.approx(told.raw, abs=1e-5) and made.standard_error == pytest.approx(
        told.standard_error, rel=1e-4
    )


@gpu
def test_scores_on_a_gpu_are_those_of_the_cpu():
    s = ps.simulate.gaussian(0.2, 0.6, 4000, 3000, shared=False, random_state=0)
    on_cpu, on_gpu = (ps.WitnessShift(0.2, device=d, random_state=0).fit(s.X, s.y) for d in ("cpu", "cuda"))
    np.testing.assert_allclose(
        on_gpu.scored_.repetitions[0].population, on_cpu.scored_.repetitions[0].population, atol=1e-11
    )
    assert on_gpu.estimate(s.target).value == pytest.approx(on_cpu.estimate(s.target).value, rel=1e-6)
    model = ps.sketch.ScoreModel.fit(s.positive, s.unlabeled, use_km2=False)
    made = [ps.sketch.Histogram.from_sample(s.target, model, device=device) for device in ("cpu", "cuda")]
    assert np.abs(made[0].counted.counts - made[1].counted.counts).sum() <= 4  # a rank may move by rounding


@gpu
def test_random_features_on_a_gpu_are_those_of_the_cpu():
    s = ps.simulate.gaussian(0.2, 0.6, 3000, 3000, random_state=0)
    made, told = (
        ps.TCPU(0.2, device=device, embedding="random-features").fit(s.X, s.y, shared=s.ids).estimate(s.target)
        for device in ("cuda", "cpu")
    )
    assert made.details["device"] == "cuda" and made.details["embedding"] == "512 random features"
    assert made.raw == pytest.approx(told.raw, abs=1e-10)
    assert made.standard_error == pytest.approx(told.standard_error, rel=1e-9)


@pytest.mark.parametrize("outlier", [0.0, 1e6])
def test_kernel_values_of_close_rows_are_exact_wherever_they_lie(outlier):
    """By a product of matrices, or by differences where rows lie so far out that a product would lose them."""
    rng = np.random.default_rng(0)
    X = torch.as_tensor(rng.normal(size=(30, 4)))
    X[:10] += outlier
    Y = X[:20] + 1e-3
    values = devices._kernel_values(torch, Gaussian(0.5), X, Y).numpy()
    squares = ((X.numpy()[:, None] - Y.numpy()) ** 2).sum(axis=2)
    np.testing.assert_allclose(values, np.exp(-squares / (2 * 0.5**2)), atol=1e-9)


@pytest.mark.parametrize("power", [1, 2])
def test_sums_over_rows_are_those_of_the_cpu(power):
    rng = np.random.default_rng(0)
    values, counts = rng.normal(size=50), rng.poisson(1, size=(50, 7)).astype(np.uint8)
    expected = values @ counts.astype(float) ** power
    np.testing.assert_allclose(sum_over_rows(values, counts, power), expected)
    np.testing.assert_allclose(devices.gpu_sum_over_rows(values, devices.counts_to_gpu(counts, "cpu"), power), expected)
