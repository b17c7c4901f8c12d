"""nnPU: a classifier from positives and unlabelled rows, by the non-negative risk of Kiryo et al. (2017).

The risk of a classifier g needs no negatives: (1−π)E_N[ℓ(−g)] = E_U[ℓ(−g)] − πE_P[ℓ(−g)].
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from priorshift.arrays import Floats
from priorshift.base import PUClassifier
from priorshift.errors import FewPositivesWarning
from priorshift.methods.network import Risk, Split, check_training, import_torch, train, training_prior
from priorshift.problem import Source
from priorshift.scores.calibration import calibrate
from priorshift.source_prior import LEAST_PRIOR
from priorshift.warning_records import warn


class NNPUClassifier(PUClassifier):
    """Classifier trained on labelled positives and unlabelled rows.

    Each of `folds` networks is trained without one fold of the rows, which stops its training and whose outputs
    calibrate the probabilities; together they predict by their mean output.

    Parameters
    ----------
    source_prior : float, estimator or None
        π, the share of positives in the source population: a known number, or an estimator with ``fit(X, y)`` and
        ``prior_``. Default None, which is :class:`KM2`.
    loss : {"sigmoid", "logistic"}
        ℓ(z) = 1/(1 + exp(z)), as in the original, or log(1 + exp(−z)).
    hidden : tuple of int
        Sizes of the hidden layers, each with batch normalisation and ReLU; ``()`` is a linear model.
    folds : int
        Number of networks.
    scenario : {"case-control", "censoring"}
        As in :class:`TCPU`.
    standardize : bool
        Scale every column by the mean and spread of the population sample.
    batch_size : int
        Rows in a step of Adam.
    learning_rate, weight_decay : float
        Parameters of Adam.
    max_epochs : int
        Largest number of epochs.
    patience : int
        Epochs without a smaller held-out risk after which training stops.
    device : str
        Torch device, such as "cpu" or "cuda".
    verbose : bool
        Show progress in a terminal.
    random_state : int, Generator or None
        Seed of the folds, the networks' initial weights and the batches.

    Attributes
    ----------
    prior_ : float
        π, given or estimated; probabilities are those of the source population with this prior.
    classes_ : ndarray of shape (2,)
        The two values of y, which may be text; the larger one means positive. Predictions use them too.
    calibration_ : Calibration
        Log odds of P(Y=1|x) as a function of the networks' mean output g(x).
    held_out_risk_ : list of ndarray
        Held-out risk of each network after each epoch.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    The sigmoid loss only finds the side of ½; the outputs of either loss are calibrated to probabilities.

    References
    ----------
    Kiryo, Niu, du Plessis and Sugiyama (2017). Positive-unlabeled learning with non-negative risk estimator. NeurIPS.
    The calibration: Lancaster and Imbens (1996). Case-control studies with contaminated controls. Journal of
    Econometrics 71.

    Examples
    --------
    >>> from priorshift import NNPUClassifier, simulate
    >>> s = simulate.gaussian(source_prior=0.5, target_prior=0.5, random_state=0)
    >>> classifier = NNPUClassifier(source_prior=0.5, random_state=0).fit(s.X, s.y)
    >>> accuracy = (classifier.predict(s.target) == s.target_labels).mean()
    >>> bool(accuracy > 0.92)  # the best possible is 0.943
    True
    """

    predicts_positive = True  # for ShiftedClassifier: predict_proba is P(Y=1|x), not P(labelled|x)

    def __init__(
        self,
        source_prior: Any = None,
        *,
        loss: Literal["sigmoid", "logistic"] = "sigmoid",
        hidden: tuple[int, ...] = (100, 100),
        folds: int = 4,
        scenario: Literal["case-control", "censoring"] = "case-control",
        standardize: bool = True,
        batch_size: int = 200,
        learning_rate: float = 1e-2,
        weight_decay: float = 5e-3,
        max_epochs: int = 200,
        patience: int = 20,
        device: str = "cpu",
        verbose: bool = False,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.source_prior = source_prior
        self.loss = loss
        self.hidden = hidden
        self.folds = folds
        self.scenario = scenario
        self.standardize = standardize
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.max_epochs = max_epochs
        self.patience = patience
        self.device = device
        self.verbose = verbose
        self.random_state = random_state

    def _fit(self, source: Source, rng: np.random.Generator) -> None:
        """Train one network without each fold, and calibrate probabilities on the held-out outputs."""
        torch = import_torch()
        rows = source.rows[:]
        self.prior_ = training_prior(self, source, LEAST_PRIOR)
        folds = min(self.folds, *source.sizes)
        fold_of_row = source.deal_folds(folds, rng)  # numbers from 0 to folds − 1
        risk = non_negative(torch, self.prior_, self.loss)
        networks, risk_curves = [], []
        P_outputs, U_outputs = np.empty(len(source.positive)), np.empty(len(source.population))  # each row held out
        for k in range(folds):
            split = Split.from_source(rows, source, fold_of_row == k)
            network, risk_by_epoch = train(risk, split, self, rng, f"nnPU {k + 1}/{folds}")
            P_outputs[fold_of_row[source.positive] == k] = network(split.held_positive)
            U_outputs[fold_of_row[source.population] == k] = network(split.held_unlabeled)
            networks.append(network)
            risk_curves.append(np.array(risk_by_epoch))
        self.calibration_ = calibrate(P_outputs, U_outputs, self.prior_)
        warn_of_few(len(source.positive))
        self.held_out_risk_, self._networks = risk_curves, tuple(networks)

    def decision_function(self, X: Any) -> Floats:
        """Compute the log odds of being positive in the source population.

        Parameters
        ----------
        X : array-like or data frame of shape (rows, features)
            With the columns of the source.

        Returns
        -------
        ndarray of shape (rows,)
            Above 0 where positive is the likelier class.
        """
        rows = self._read_rows(X).rows[:]
        return self.calibration_(np.mean([network(rows) for network in self._networks], axis=0))

    def predict_proba(self, X: Any) -> Floats:
        """Compute the posterior in the source population, whose prior is `prior_`.

        Parameters
        ----------
        X : array-like or data frame of shape (rows, features)
            With the columns of the source.

        Returns
        -------
        ndarray of shape (rows, 2)
            P(Y=0|x) and P(Y=1|x).
        """
        p = expit(self.decision_function(X))
        return np.stack([1 - p, p], axis=1)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the likelier class in the source population; see :class:`ShiftedClassifier` for a target.

        Parameters
        ----------
        X : array-like or data frame of shape (rows, features)
            With the columns of the source.

        Returns
        -------
        ndarray of shape (rows,)
            Values of `classes_`.
        """
        is_positive = self.decision_function(X) > 0
        return np.asarray(self.classes_[is_positive.astype(int)])

    def _check_parameters(self) -> None:
        """Raise InputError for a setting that cannot be used; also checks the settings of the training."""
        super()._check_parameters()
        check_training(self)


def warn_of_few(positives: int) -> None:
    """Warn where probabilities are calibrated on fewer than 10 positives."""
    if positives < 10:
        warn(
            f"Probabilities are calibrated on {positives} positive rows; treat them as a guess, and label at least 10.",
            FewPositivesWarning,
        )


def non_negative(torch: Any, prior: float, loss: str) -> Risk:
    """Return nnPU's risk as a function of outputs, for a prior π and the loss "sigmoid" or "logistic" (`Risk`).

    It returns the positive risk πE_P[ℓ(g)] and the negative risk E_U[ℓ(−g)] − πE_P[ℓ(−g)] = (1−π)E_N[ℓ(−g)] ≥ 0.
    """

    def ell(z: Any) -> Any:
        """Compute the loss ℓ(z): 1/(1 + exp(z)) or log(1 + exp(−z))."""
        return torch.sigmoid(-z) if loss == "sigmoid" else torch.nn.functional.softplus(-z)

    def risk(positive: Any, unlabeled: Any) -> tuple[Any, Any]:
        """Compute the positive and the negative risk from outputs at positive and at unlabelled rows."""
        return prior * ell(positive).mean(), ell(-unlabeled).mean() - prior * ell(-positive).mean()

    return risk
