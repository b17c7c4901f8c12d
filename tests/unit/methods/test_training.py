import sys
from types import SimpleNamespace

import numpy as np
import pytest

import priorshift as ps
from priorshift.errors import InputError, MissingExtraError
from priorshift.methods.network import Split, _build, _to_network, check_training, import_torch, train

HOW = dict(hidden=(8, 8), batch_size=20, learning_rate=1e-2, weight_decay=0.0, max_epochs=5, patience=5, device="cpu")


def split(rng, n=60):
    return Split(*(rng.normal(size=(n, 3)) + shift for shift in (1, 0, 1, 0)))


def simple_risk(positive, unlabeled):
    return (positive - 1).square().mean(), unlabeled.square().mean()


def test_folded_network_is_the_trained_one():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    net = _build(torch, 3, SimpleNamespace(**HOW), rng)
    X = torch.as_tensor(rng.normal(size=(50, 3)), dtype=torch.float32)
    net.train()
    for _ in range(3):
        net(X)  # moves the running moments of the batch normalisation
    net.eval()
    with torch.no_grad():
        np.testing.assert_allclose(_to_network(torch, net)(X.numpy()), net(X)[:, 0].numpy(), rtol=1e-4, atol=1e-5)


def test_training_keeps_the_best_epoch_and_touches_no_global_state():
    torch = pytest.importorskip("torch")
    state, numpy_state = torch.get_rng_state(), np.random.get_state()[1].copy()
    rows = split(np.random.default_rng(0))
    net, curve = train(simple_risk, rows, SimpleNamespace(**HOW), np.random.default_rng(1), "x")
    out = net(rows.held_positive), net(rows.held_unlabeled)
    assert min(curve) == pytest.approx(((out[0] - 1) ** 2).mean() + (out[1] ** 2).mean(), rel=1e-4)
    assert min(curve) < curve[0]
    again, _ = train(simple_risk, rows, SimpleNamespace(**HOW), np.random.default_rng(1), "x")
    np.testing.assert_array_equal(net(rows.positive), again(rows.positive))
    assert torch.equal(state, torch.get_rng_state()) and (numpy_state == np.random.get_state()[1]).all()


def test_a_negative_doubtful_part_is_undone_not_followed():
    """The doubtful part, −mean of the squares, is always negative: steps must drive the outputs to zero."""
    pytest.importorskip("torch")
    rows = split(np.random.default_rng(0))

    def risk(positive, unlabeled):
        return 0 * positive.mean(), -(unlabeled**2).mean() - 1e-6

    how = SimpleNamespace(**{**HOW, "max_epochs": 60, "patience": 60})
    # the held-out risk, sure + max(doubtful, 0), is 0 throughout: the first epoch is kept, so look at the steps
    seen = []

    def watched(positive, unlabeled):
        seen.append(float((unlabeled.detach() ** 2).mean()))
        return risk(positive, unlabeled)

    train(watched, rows, how, np.random.default_rng(1), "x")
    assert np.mean(seen[-10:]) < 0.1 * np.mean(seen[:10])


def test_an_early_stop_waits_for_patience():
    pytest.importorskip("torch")
    calls = iter(range(10_000))

    def worse(positive, unlabeled):
        return 0 * positive.mean() + float(next(calls)), 0 * unlabeled.mean()

    _, curve = train(
        worse,
        split(np.random.default_rng(0)),
        SimpleNamespace(**{**HOW, "max_epochs": 50}),
        np.random.default_rng(0),
        "x",
    )
    assert len(curve) == 1 + HOW["patience"]


def test_divergence_and_devices_are_said():
    pytest.importorskip("torch")
    rows = split(np.random.default_rng(0))
    with pytest.raises(InputError, match=r"learning_rate=0\.01"):
        train(lambda p, u: (p.mean() * np.nan, u.mean()), rows, SimpleNamespace(**HOW), np.random.default_rng(0), "x")
    with pytest.raises(InputError, match=r"'nowhere'"):
        train(simple_risk, rows, SimpleNamespace(**{**HOW, "device": "nowhere"}), np.random.default_rng(0), "x")


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("hidden", 300, r"hidden is 300, but it must be the sizes"),
        ("hidden", (0,), "a size in hidden is 0, but it must be a whole number of at least 1"),
        ("batch_size", 1, "batch_size is 1, but it must be a whole number of at least 2"),
        ("max_epochs", 0, "max_epochs is 0"),
        ("patience", 0.5, "patience is 0.5"),
        ("learning_rate", 0.0, "learning_rate is 0.0, but it must be positive"),
        ("weight_decay", -1.0, "weight_decay is -1.0, but it must lie between 0 and 1000"),
        ("learning_rate", np.nan, "learning_rate is nan, but it must be positive"),
        ("weight_decay", np.inf, "weight_decay is inf, but it must lie between 0 and 1000"),
        ("device", 0, "device is 0, but it must be a torch device"),
    ],
)
def test_settings_that_cannot_be_used(setting, value, message):
    with pytest.raises(InputError, match=message):
        check_training(SimpleNamespace(**{**HOW, setting: value}))


def test_without_torch_a_sentence_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"priorshift\[torch\]"):
        import_torch()


def test_weight_decay_shrinks_the_weights():
    pytest.importorskip("torch")
    rows = split(np.random.default_rng(0))

    def no_gradient(positive, unlabeled):
        return (unlabeled.detach() ** 2).mean() + 0 * positive.mean(), 0 * unlabeled.mean()

    curves = []
    for decay in (0.0, 1.0):
        how = SimpleNamespace(**{**HOW, "hidden": (), "weight_decay": decay, "max_epochs": 20, "patience": 20})
        curves.append(train(no_gradient, rows, how, np.random.default_rng(1), "x")[1])
    assert curves[0][-1] == curves[0][0]
    assert curves[1][-1] < 0.5 * curves[1][0]


def test_networks_and_features_too_large_are_said():
    pytest.importorskip("torch")
    rows = split(np.random.default_rng(0))
    with pytest.raises(MemoryError, match=r"memory"):
        train(simple_risk, rows, SimpleNamespace(**{**HOW, "hidden": (10**12,)}), np.random.default_rng(0), "x")
    huge = Split(rows.positive * 1e9, rows.unlabeled, rows.held_positive, rows.held_unlabeled)
    with pytest.raises(InputError, match=r"standardize=True"):
        train(simple_risk, huge, SimpleNamespace(**HOW), np.random.default_rng(0), "x")
    with pytest.raises(InputError, match=r"'meta'"):
        train(simple_risk, rows, SimpleNamespace(**{**HOW, "device": "meta"}), np.random.default_rng(0), "x")


def cuda():
    try:
        import torch
    except ImportError:
        return False
    return torch.cuda.is_available()


@pytest.mark.skipif(not cuda(), reason="no CUDA device")
@pytest.mark.filterwarnings("ignore::priorshift.errors.PriorShiftWarning")
def test_training_on_cuda_is_training_on_the_cpu():
    """The same start and batches; what differs is rounding, which Adam makes visible.

    A bias before batch normalisation has no gradient but rounding, and Adam's steps have the size of the learning rate
    whatever the gradient's; on an H200 held-out risks differed by up to 0.9%.
    """
    rows = split(np.random.default_rng(0))
    on = [
        train(simple_risk, rows, SimpleNamespace(**{**HOW, "device": d}), np.random.default_rng(1), "x")
        for d in ("cpu", "cuda")
    ]
    np.testing.assert_allclose(on[1][1], on[0][1], rtol=0.02)
    s = ps.simulate.gaussian(0.2, 0.6, 1000, 1000, random_state=0)
    drpu = ps.DRPU(0.2, device="cuda", learning_rate=1e-3, max_epochs=20, random_state=0).fit(s.X, s.y, shared=s.ids)
    assert drpu.estimate(s.target).value == pytest.approx(0.6, abs=0.15)
    nnpu = ps.NNPUClassifier(0.2, device="cuda", folds=2, random_state=0).fit(s.X, s.y, shared=s.ids)
    assert (nnpu.predict(s.target) == s.target_labels).mean() > 0.85
