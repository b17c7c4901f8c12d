"""
Three subtypes in a new hospital
================================

An old hospital has confirmed cases of three subtypes of a disease, and a sample of all
its patients, most of whom have none of the three. A new hospital has sent measurements
without diagnoses. How common is each subtype there, and may the numbers be published?

The rows are simulated: ten measurements for each patient, so that the truth is known.
"""

# %%
# The tables
# ----------
# There is one table for each subtype, one of all patients of the old hospital, and one
# of the new. From years of follow-up the shares of the subtypes in the old hospital are
# known. In the new hospital A is rarer, and C is much more common.
import matplotlib.pyplot as plt
import numpy as np

import priorshift as ps

old = {"subtype A": 0.30, "subtype B": 0.20, "subtype C": 0.05}
new = {"subtype A": 0.10, "subtype B": 0.20, "subtype C": 0.60}
tables = ps.simulate.gaussian_classes(
    old, new, n_class=200, n_source=2000, n_target=2000, random_state=0
)
for name, rows in tables.classes.items():
    print(f"{name}: {len(rows)} confirmed cases")
print(f"{len(tables.unlabeled)} patients of the old hospital")
print(f"{len(tables.target)} patients of the new one")

# %%
# All subtypes together
# ---------------------
# The classes are a mapping of names to tables. The result is a mapping as well.
samples = tables.classes, tables.unlabeled, tables.target
shares = ps.estimate_prior(*samples, source_prior=old, random_state=0)
print(shares)

# %%
# The numbers of patients that were drawn:
for name in shares:
    truth = float((tables.target_labels == name).mean())
    print(f"{name}: {truth:.3f} of the rows, estimated {shares[name].value:.3f}")

# %%
ps.plots.class_shares(shares)
plt.show()

# %%
# One subtype after the other is wrong
# ------------------------------------
# For subtype A alone, B, C and all other patients are "negatives", which must look the
# same in both hospitals. They do not: far more of them have subtype C. The last word of
# each line says whether the interval contains the truth.
covered = {}
for name in old:
    alone = ps.estimate_prior(
        tables.classes[name], *samples[1:], source_prior=old[name], random_state=0
    )
    covered[name] = new[name] in alone.interval
    print(f"{name} alone: {alone.value:.3f}, truth {new[name]}: {covered[name]}")

# %%
# May the numbers be published?
# -----------------------------
# The diagnosis tests whether the mixture of the samples explains the new patients, and
# says which subtypes are hard to distinguish.
settings = {"source_prior": old, "random_state": 0}
checked = ps.diagnose(*samples, **settings)
print(checked.verdict)

# %%
# A strain that the old hospital has never seen
# ---------------------------------------------
# Suppose that a tenth of the new patients has a new strain. No table contains it, so
# that its share cannot be estimated, and it distorts all others. The diagnosis says so.
rng = np.random.default_rng(0)
strain = rng.normal(size=(220, 10)) + 3 * np.eye(10)[0]
mixed = np.concatenate([tables.target, strain])
warned = ps.diagnose(*samples[:2], mixed, **settings)
print(warned.verdict)

# %%
# **Conclusion.** Estimate classes together whenever more than one may have changed, and
# test for a new one. What the tables cannot show is a class that changed its appearance
# so that it looks like another.
