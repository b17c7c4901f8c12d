"""The bundled example as a user would have it: three files, and what is known of them."""

from __future__ import annotations

import csv
import io
from typing import Any

import numpy as np

from priorshift import simulate
from priorshift.app.settings import ROLES

SOURCE_PRIOR, TARGET_PRIOR, ID = 0.2, 0.5, "tumour"
SETTINGS: dict[str, Any] = {"prior": {"value": SOURCE_PRIOR}, "shared": ID}


def files() -> dict[str, str]:
    """Breast-cancer data by role, as the demo has it: 20% malignant in the old population, 50% in the new one."""
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    s = simulate.shift_labels(data.data, data.target == 0, SOURCE_PRIOR, TARGET_PRIOR, random_state=0)
    names = [str(name) for name in data.feature_names]
    first = 1 + max(s.ids)
    ids = s.positive_ids, s.unlabeled_ids, np.arange(first, first + len(s.target))
    made = {}
    for role, rows, numbers in zip(ROLES, (s.positive, s.unlabeled, s.target), ids, strict=True):
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([ID, *names])
        writer.writerows(
            [int(number), *(f"{cell:.6g}" for cell in row)] for number, row in zip(numbers, rows, strict=True)
        )
        made[role] = text.getvalue()
    return made
