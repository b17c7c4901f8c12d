"""
"My interval is wide: what now?"
================================

There are sixty labelled positives, 800 unlabelled rows and 600 target rows, and π, the
source prior, is unknown. The interval for π′, the target prior, is half as wide as [0,
1]. Would more data help, and of which sample? Or something else? On this page, the
library predicts the effect of each remedy, and we compare the prediction with the
result. The truth is π = 0.3 and π′ = 0.5.
"""

# %%
# The wide interval
# -----------------
# The problem is hard because the classes overlap, and a warning says so.
import warnings

import matplotlib.pyplot as plt
import numpy as np
from scipy import stats

import priorshift as ps

rng = np.random.default_rng(0)
SOURCE_PRIOR, TRUTH = 0.3, 0.5


def rows(number, share):
    positive = rng.random(number) < share
    return rng.normal(size=(number, 6)) + 0.55 * positive[:, None], positive


positive, _ = rows(60, 1.0)
unlabeled, classes_of_source = rows(800, SOURCE_PRIOR)
target, classes_of_target = rows(600, TRUTH)
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    found = ps.diagnose(positive, unlabeled, target, random_state=0)
print(found.estimate)
for warning in said:
    print(f"{warning.category.__name__}: {warning.message}")
print(found.verdict)

# %%
# Why is it wide?
# ---------------
# ``planning`` shows which sources of error make up the width, and predicts the effect
# of more rows.
plan = found.planning
print(plan)
print(plan.required(0.15))
print(ps.plots.displays_of(found)["planning"].plot().description)

# %%
# Five sixths of the variance are not sampling error but the uncertainty of π, which the
# tables leave open: where classes overlap, a population with fewer positives and
# different negatives looks the same. More rows therefore help little, and ten times the
# target, the cheapest option, helps hardly at all. ``next_steps`` lists what to do, the
# most useful first:
for step in found.next_steps:
    print("-", step)

# %%
# Each remedy, tried
# ------------------
# New rows are drawn from the same populations. The audited rows are the first hundred;
# the rows are in random order, so these are a random sample.
more_positive = np.vstack([positive, rows(9 * len(positive), 1.0)[0]])
more_target = np.vstack([target, rows(9 * len(target), TRUTH)[0]])
looked_up_source = np.where(np.arange(len(unlabeled)) < 100, classes_of_source, np.nan)
looked_up_target = np.where(np.arange(len(target)) < 100, classes_of_target, np.nan)
remedies = {
    "nothing": {},
    "10 × target": {"target": more_target},
    "10 × positives": {"positive": more_positive},
    "both": {"positive": more_positive, "target": more_target},
    "range of π": {"source_prior": (0.25, 0.35)},
    "survey of π": {"source_prior": stats.beta(30.5, 70.5)},  # 30 of 100 were positive
    "source audited": {"audit": {"unlabeled": looked_up_source}},
    "target audited": {"audit": {"target": looked_up_target}},
    "wrong π": {"source_prior": 0.1},
}
foreseen = {
    "nothing": plan.expected_width,
    "10 × target": plan.predict(target=6000),
    "10 × positives": plan.predict(positive=600),
    "both": plan.predict(positive=600, target=6000),
    "source audited": plan.predict_audit(unlabeled=100),
    "target audited": plan.predict_audit(target=100),
}
base = {"positive": positive, "unlabeled": unlabeled, "target": target}
tried = {}
for name, change in remedies.items():
    with warnings.catch_warnings():
        # shown above
        warnings.simplefilter("ignore", ps.errors.WeakSeparationWarning)
        tried[name] = ps.estimate_prior(**(base | change), random_state=0)
    ends = tried[name].interval
    before = f", predicted {foreseen[name]:.2f}" if name in foreseen else ""
    print(
        f"{name:<15} {ends.low:.2f} to {ends.high:.2f}, width {ends.width:.2f}{before}"
    )

# %%
fig, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
ps.plots.series(tried, ax)
ax.axhline(TRUTH, color=ps.plots.ORANGE, linestyle="--", label="truth")
ax.legend(frameon=False, fontsize="small", ncols=3)
ax.set_xlabel("remedy")
plt.show()

# %%
# - **More target rows** help least, although people usually add them first.
# - **More positives** help more than expected: they improve the score, and with it the
#   information about π.
# - **Knowledge of π** halves the width at little cost: a range, the counts of a survey,
#   or a hundred audited source rows, which also serve all later targets.
# - **A hundred audited target rows** help most, and also check label shift. Each new
#   target needs its own.
# - **A wrong number for π** also gives a narrow interval, but a wrong one. If you know
#   only a range, pass the range.
#
# This is one draw. Another draw gives other intervals, and about one in twenty misses
# the truth.
