"""Calibrated posteriors of several classes, from the density ratios of the samples.

A density ratio w_k = f_k/f_U of a sample to the source cannot exceed 1/π_k, which a model of the ratios alone does not
know, so that posteriors from them are not calibrated. Here the posteriors q_j = π_j f_j/f_U of the source are modelled:
a multinomial logistic regression on their logarithms from the ratios, fitted by the likelihood of the sample that each
row belongs to. With W_sj the share of class j in sample s, the density of sample s is proportional to

    v_s = Σ_j W_sj q_j/π_j,

which is 1 for the source, and a row belongs to sample s with probability v_s/Σ v, where all samples have equal weight.
Without a rest, there is no source; then q are posteriors where all classes are equally common.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax

from priorshift.arrays import Floats

_LEAST_SHARE = 1e-3  # of a class in the source, and of a posterior that has a logarithm: an estimate may be 0
_PENALTY = 1e-3  # on the difference of the coefficients from the identity
_MOST_ROWS = 5000  # of each sample to which the regression is fitted


@dataclass(frozen=True, eq=False)
class ClassPosteriors:
    """Multinomial logistic regression of classes on the logarithms of their uncalibrated posteriors."""

    priors: Floats  # shares π of the classes to which the posteriors q refer, shape (classes,)
    has_rest: bool
    coefficients: Floats  # shape (classes + 1, classes); the last line is the constant

    @classmethod
    def fit(
        cls, ratios: Sequence[Floats], masses: Sequence[Floats], composition: Floats, *, has_rest: bool
    ) -> ClassPosteriors:
        """Fit the regression to the cross-fitted density ratios of the rows of each sample.

        `ratios` are those of the samples to the last one, shape (rows, samples − 1), `masses` those of the rows, and
        `composition` is W, shape (samples, classes).
        """
        classes = composition.shape[1]
        priors = np.full(classes, 1 / classes)
        if has_rest:
            priors = np.maximum(composition[-1], _LEAST_SHARE)
            priors = priors / priors.sum()
        start = cls(priors, has_rest, np.vstack([np.eye(classes), np.zeros(classes)]))
        steps = [-(-len(sample) // _MOST_ROWS) for sample in ratios]
        X = np.concatenate([start._features(sample[::step]) for sample, step in zip(ratios, steps, strict=True)])
        chosen = [mass[::step] / mass[::step].sum() for mass, step in zip(masses, steps, strict=True)]
        label = np.repeat(np.arange(len(ratios)), [len(mass) for mass in chosen])
        weight = np.concatenate(chosen) / len(ratios)
        M = composition / priors

        def loss(parameters: Floats) -> tuple[float, Floats]:
            """Return the penalised negative log-likelihood of the samples of all rows, and its gradient."""
            B = parameters.reshape(classes + 1, classes)
            q = np.exp(log_softmax(X @ B, axis=1))
            v = np.maximum(q @ M.T, 1e-300)  # densities of the samples
            own, total = v[np.arange(len(label)), label], v.sum(axis=1)
            # ∂ log v_s/∂(XB)_j = q_j (M_sj/v_s − 1)
            by_class = q * (M[label] / own[:, None] - (M.sum(axis=0) / total[:, None]))
            away = B - start.coefficients
            value = -weight @ np.log(own / total) + _PENALTY / 2 * float((away**2).sum())
            return float(value), (-X.T @ (weight[:, None] * by_class) + _PENALTY * away).ravel()

        first = start.coefficients.ravel()
        found = minimize(loss, first, jac=True, method="L-BFGS-B", options={"maxiter": 300, "gtol": 1e-7})
        return cls(priors, has_rest, found.x.reshape(classes + 1, classes))

    def densities(self, ratios: Floats) -> Floats:
        """Return the density of each class at rows with these ratios, up to a factor of the row."""
        log_q = log_softmax(self._features(ratios) @ self.coefficients, axis=1)
        return np.asarray(np.exp(log_q) / self.priors)

    def _features(self, ratios: Floats) -> Floats:
        """Return the logarithms of uncalibrated posteriors, and a constant."""
        q = ratios * self.priors[:-1] if self.has_rest else ratios
        # π_0 f_0/f_U = 1 − Σ π_k w_k; without a rest the last class is the base of the ratios
        last = np.maximum(1 - q.sum(axis=1), 0.0) if self.has_rest else np.ones(len(q))
        q = np.column_stack([q, last])
        q = np.maximum(q / q.sum(axis=1, keepdims=True), _LEAST_SHARE)
        return np.column_stack([np.log(q), np.ones(len(q))])
