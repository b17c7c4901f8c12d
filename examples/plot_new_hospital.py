"""
Prevalence in a new hospital
============================

Of the lumps that the old hospital examines, 20% are malignant: that is known from
years of follow-up. A new hospital has sent its measurements, and nobody has looked at a
single one of its slides. How many of its tumours are malignant, and may the number be
published?

The tables are scikit-learn's breast-cancer data: thirty measurements of cell nuclei for
each tumour. The shift is made by us, so that the truth is known.
"""

# %%
# Three tables
# ------------
# ``positive`` holds tumours of the old hospital that are known to be malignant,
# ``unlabeled`` a sample of all its tumours, ``target`` those of the new one. Some of
# the known tumours stand in the sample too; the column ``tumour`` says which, and
# ``shared`` below names it.
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
truth = drawn.target_labels.mean()  # which no estimator sees

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
# ``ps.estimate_prior`` would give the number alone. ``ps.diagnose`` takes the same
# tables and asks what an editor asks as well; it prints as a page with the answer on
# top.
told = {"source_prior": 0.2, "shared": "tumour", "random_state": 0}
found = ps.diagnose(positive, unlabeled, target, **told)
print(found)

# %%
estimate = found.estimate
print(f"estimate {estimate.value:.3f}, truth {truth:.3f}")
print(f"the interval holds the truth: {truth in estimate.interval}")

# %%
# The verdict is yes. What it rests on can be seen: under label shift the target (below)
# is a mixture of the positives (above) and the old population (middle) in *every*
# function of the rows, here in how much a row looks like a positive.
print(ps.plots.displays_of(estimate)["scores"].plot().description)

# %%
# Were the 20% wrong, the answer would move along this line; the ratio of the shares of
# negatives, R, would not.
print(ps.plots.displays_of(found)["sensitivity"].plot().description)

# %%
# And these columns tell malignant tumours from the others:
print(ps.plots.displays_of(found)["drivers"].plot().description)

# %%
# A page to forward
# -----------------
# One HTML file with all of this in plain words, which needs no network.
with tempfile.TemporaryDirectory() as folder:
    page = Path(folder) / "new-hospital.html"
    found.report(page, title="How many of the new tumours are malignant?")
    page_size = page.stat().st_size
print(f"{page.name}: {page_size / 1000:.0f} kB")

# %%
# What if the new hospital has another microscope?
# ------------------------------------------------
# All of this holds if a malignant tumour of the new hospital looks like one of the old,
# and a benign one too. Suppose the new microscope shows everything larger, and nobody
# told us: lengths by 10%, or by 20%.
LENGTHS = [name for name in measured if "radius" in name or "perimeter" in name]
AREAS = [name for name in measured if "area" in name]


def seen_larger(by):
    seen = target.copy()
    seen[LENGTHS] *= by
    seen[AREAS] *= by**2
    return seen


checked = {
    "same microscope": found,
    "lengths × 1.1": ps.diagnose(positive, unlabeled, seen_larger(1.1), **told),
    "lengths × 1.2": ps.diagnose(positive, unlabeled, seen_larger(1.2), **told),
}
for name, each in checked.items():
    print(f"{name}: {each.estimate.value:.3f}, truth {truth:.3f}")
    print(each.verdict, end="\n\n")

# %%
# Large nuclei are what malignant tumours have, so the estimate rises. At 20% the
# interval misses the truth, but the verdict is "no", and names columns to look at. At
# 10% the estimate is off as well and nothing is said: the change looks too much like
# more malignant tumours for 216 rows to tell the two apart.
answers = {name: each.estimate for name, each in checked.items()}
ax = ps.plots.series(answers)
ax.axhline(truth, color=ps.plots.ORANGE, linestyle="--", label=f"truth {truth:.2f}")
for at, each in enumerate(checked.values()):
    ax.text(at, 0.1, f"verdict: {each.verdict.answer}", ha="center")
ax.legend(frameon=False, fontsize="small", ncols=3, loc="upper left")
ax.set(xlabel="the new hospital", ylabel="share of malignant tumours")
plt.show()

# %%
# **What to take home.** Give the interval, not the number. "Yes" says that nothing in
# the tables speaks against the answer; it is no proof. Ask how the new rows were
# measured, or look up the classes of a hundred of them.
