"""
Prevalence in a new hospital
============================

In the old hospital, 20% of the examined tumours are malignant; this is known from years
of follow-up. A new hospital has sent its measurements, but no diagnoses. What share of
its tumours is malignant, and may the number be published?

The tables are scikit-learn's breast-cancer data: thirty measurements of cell nuclei for
each tumour. The shift is simulated, so that the truth is known.
"""

# %%
# Three tables
# ------------
# ``positive`` contains tumours of the old hospital that are known to be malignant,
# ``unlabeled`` a sample of all its tumours, and ``target`` those of the new hospital.
# Some of the known tumours are also in the sample. The column ``tumour`` identifies
# them, and ``shared`` below names this column.
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.datasets import load_breast_cancer

import priorshift as ps

data = load_breast_cancer(as_frame=True)
malignant = data.target.to_numpy() == 0
drawn = ps.simulate.shift_labels(
    data.data.to_numpy(), malignant, source_prior=0.2, target_prior=0.5, random_state=0
)
truth = drawn.target_labels.mean()  # not used by any estimator

measured = data.data.columns
positive, unlabeled, target = (
    pd.DataFrame(rows, columns=measured)
    for rows in (drawn.positive, drawn.unlabeled, drawn.target)
)
positive["tumour"], unlabeled["tumour"] = drawn.positive_ids, drawn.unlabeled_ids
print(f"{len(positive)} known to be malignant, {len(unlabeled)} unlabelled")
print(f"{len(target)} of the new hospital")

# %%
# The answer, and whether to believe it
# -------------------------------------
# ``ps.estimate_prior`` would return only the estimate. ``ps.diagnose`` takes the same
# tables and also checks the assumptions. It prints as a page that starts with the
# verdict.
settings = {"source_prior": 0.2, "shared": "tumour", "random_state": 0}
found = ps.diagnose(positive, unlabeled, target, **settings)
print(found)

# %%
estimate = found.estimate
print(f"estimate {estimate.value:.3f}, truth {truth:.3f}")
print(f"the interval covers the truth: {truth in estimate.interval}")

# %%
# The verdict is yes. The picture shows the evidence. Under label shift the target
# (below) is a mixture of the positives (above) and the old population (middle) in
# *every* function of the rows. Here the function is the score, which measures how much
# a row looks like a positive.
print(ps.plots.displays_of(estimate)["scores"].plot().description)

# %%
# If the 20% were wrong, the estimate would move along this line. The ratio of the
# shares of negatives, R, would not change.
print(ps.plots.displays_of(found)["sensitivity"].plot().description)

# %%
# These columns separate malignant tumours from the others:
print(ps.plots.displays_of(found)["drivers"].plot().description)

# %%
# A report for others
# -------------------
# The report is one HTML file with all of this in plain words. It needs no network.
with tempfile.TemporaryDirectory() as folder:
    page = Path(folder) / "new-hospital.html"
    found.report(page, title="How many of the new tumours are malignant?")
    page_size = page.stat().st_size
print(f"{page.name}: {page_size / 1000:.0f} kB")

# %%
# What if the new hospital has another microscope?
# ------------------------------------------------
# The estimate assumes that malignant tumours look the same in both hospitals, and that
# benign ones do too. Suppose that the new microscope shows everything larger, lengths
# by 10% or by 20%, and that we do not know it.
LENGTHS = [name for name in measured if "radius" in name or "perimeter" in name]
AREAS = [name for name in measured if "area" in name]


def seen_larger(by):
    seen = target.copy()
    seen[LENGTHS] *= by
    seen[AREAS] *= by**2
    return seen


checked = {
    "same microscope": found,
    "lengths × 1.1": ps.diagnose(positive, unlabeled, seen_larger(1.1), **settings),
    "lengths × 1.2": ps.diagnose(positive, unlabeled, seen_larger(1.2), **settings),
}
for name, each in checked.items():
    print(f"{name}: {each.estimate.value:.3f}, truth {truth:.3f}")
    print(each.verdict, end="\n\n")

# %%
# Malignant tumours have large nuclei, so the estimate rises. At 20% the interval misses
# the truth, but the verdict is "no" and names columns to check. At 10% the estimate is
# also too high, but the verdict is "yes": with 216 rows, the change cannot be
# distinguished from a larger share of malignant tumours.
answers = {name: each.estimate for name, each in checked.items()}
ax = ps.plots.series(answers)
ax.axhline(truth, color=ps.plots.ORANGE, linestyle="--", label=f"truth {truth:.2f}")
for at, each in enumerate(checked.values()):
    ax.text(at, 0.1, f"verdict: {each.verdict.answer}", ha="center")
ax.legend(frameon=False, fontsize="small", ncols=3, loc="upper left")
ax.set(xlabel="the new hospital", ylabel="share of malignant tumours")
plt.show()

# %%
# **Conclusion.** Report the interval, not only the number. "Yes" means that nothing in
# the tables contradicts the estimate; it is not a proof. Ask how the new rows were
# measured, or look up the classes of a hundred of them.
