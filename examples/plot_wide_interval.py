"""
"My interval is wide: what now?"
================================

Sixty labelled positives, 800 unlabelled rows, 600 rows of the target, and nobody knows
π. The answer is an interval that is half as wide as all there is. More data? Of which
kind? Or something else? Here each remedy is foreseen by the library, then really tried,
and set beside the truth: π = 0.3 and π′ = 0.5.
"""

# %%
# The wide interval
# -----------------
# The classes overlap, which is what makes it hard, and a warning says so.
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
# ``planning`` takes the width apart, and foresees what more rows would do.
plan = found.planning
print(plan)
print(plan.required(0.15))
print(ps.plots.displays_of(found)["planning"].plot().description)

# %%
# Five sixths of the variance are not chance in the rows but π, which the tables leave
# open: where classes overlap, a population with fewer positives and other negatives
# looks the same. So rows buy little, and ten times the target, the cheapest to have,
# buys next to nothing. ``next_steps`` says what to do in the order of use:
for step in found.next_steps:
    print("-", step)

# %%
# Each remedy, tried
# ------------------
# New rows are drawn from the same populations. Looked-up rows are the first hundred;
# rows are in random order, so these are rows drawn at random.
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
    before = f", foreseen {foreseen[name]:.2f}" if name in foreseen else ""
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
# - **More of the target** helps least, though it is what people add first.
# - **More positives** help more than they seem to: they sharpen the score, and with it
#   what the tables tell of π.
# - **A word about π** halves the width at the price of a telephone call: a range, a
#   survey's counts, or a hundred source rows looked up, which serve all later targets
#   too.
# - **A hundred target rows looked up** help most, and check label shift besides. They
#   are needed anew for each target.
# - **A wrong number for π** gives a narrow interval as well. It is the one remedy that
#   makes the answer worse: pass a range if you have a range.
#
# This is one draw: another has other intervals, and one in twenty misses the truth.
