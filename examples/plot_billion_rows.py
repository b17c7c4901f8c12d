"""
A billion rows, by counts
=========================

Rows come from a log that nobody can hold in memory: a generator, a queue, a folder of
files. The default method needs two things of them: a score, fitted to some rows, and
for each sample a count of how many of its rows rank where. Counts add up, so a billion
rows take as much memory as a thousand.

Here it is a few hundred thousand rows from a generator, so that this page can be built;
what a billion would take is worked out at the end from the rate that is measured.
"""

# %%
# A stream
# --------
# Batches of 20,000 rows with ten columns, made when they are asked for and forgotten
# after.
import time
import tracemalloc

import matplotlib.pyplot as plt
import numpy as np

import priorshift as ps
from priorshift.sketch import Histogram, ScoreModel, Sketch

SOURCE_PRIOR, TARGET_PRIOR = 0.05, 0.08
BATCH = 20_000


def stream(batches, share, seed):
    for batch in range(batches):
        rng = np.random.default_rng([seed, batch])
        positive = rng.random(BATCH) < share
        yield rng.normal(size=(BATCH, 10)) + 0.6 * positive[:, None]


positive = next(stream(1, 1.0, seed=0))[:5000]

# %%
# The score, once
# ---------------
# It is fitted to the positives and to the first batch of the unlabelled stream; 20,000
# rows are enough for its two hundred coefficients. All rows are counted with it.
model = ScoreModel.fit(positive, next(stream(1, SOURCE_PRIOR, seed=1)), random_state=0)
P = Histogram.from_sample(positive, model)
U = Histogram.from_sample(stream(6, SOURCE_PRIOR, seed=1), model)
print(model, P, U, sep="\n")

# %%
# The target, as it comes
# -----------------------
# ``growing`` yields the counts of all rows so far, and an answer can be had at any
# moment. Beside each answer we note how much memory Python and NumPy held at most.
tracemalloc.start()
began = time.perf_counter()
answers, peaks = [], []
for T in Histogram.checkpoints(stream(10, TARGET_PRIOR, seed=2), model):
    answers.append(ps.estimate_prior(P, U, T, source_prior=SOURCE_PRIOR))
    peaks.append(tracemalloc.get_traced_memory()[1] / 1e6)
    tracemalloc.reset_peak()
seconds = time.perf_counter() - began
tracemalloc.stop()
rows = np.array([answer.sizes[2] for answer in answers])
for k in (0, 2, 4, 9):
    print(f"{rows[k]:>7,} rows, {peaks[k]:.0f} MB: {answers[k]}")

# %%
# Memory is that of a few batches, and does not grow. The interval narrows, but not for
# ever: the target's part of the error goes to zero, that of the source stays; the plan
# below says how much each is worth.
ends = np.array([(answer.interval.low, answer.interval.high) for answer in answers])
values = [answer.value for answer in answers]
fig, (left, right) = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
left.fill_between(rows, *ends.T, color=ps.plots.BLUE, alpha=0.2, label="95% interval")
left.plot(rows, values, "o-", color=ps.plots.BLUE, markersize=4, label="estimate")
left.axhline(TARGET_PRIOR, color=ps.plots.ORANGE, linestyle="--", label="truth")
left.set(xlabel="rows of the target", ylabel="target prior")
left.legend(frameon=False, fontsize="small")
right.plot(rows, peaks, "o-", color=ps.plots.BLUE, markersize=4)
right.set(xlabel="rows of the target", ylabel="memory in MB", ylim=(0, 25))
for ax in (left, right):
    ax.set_xticks([50_000, 100_000, 150_000, 200_000], ["50,000", "", "150,000", ""])

# %%
# Where the source is in memory or in files it is one call, which fits the score by
# itself. The target may be a stream; the source, which is read twice, may not.
source = next(stream(1, SOURCE_PRIOR, seed=1))
direct = ps.estimate_prior(
    positive,
    source,
    stream(3, TARGET_PRIOR, seed=2),
    source_prior=SOURCE_PRIOR,
    random_state=0,
)
print(direct)

# %%
# The paper's method, by sketches
# -------------------------------
# What counts are for the default, a sketch is for TCPU: the mean and the second moment
# of random features of the rows. It streams and merges alike. Its features are a kernel
# of their own, so the answer is consistent with any number of them.
sketch_u = Sketch.from_sample(
    stream(3, SOURCE_PRIOR, seed=1), features=128, random_state=0
)
sketch_p = Sketch.from_sample(positive, like=sketch_u)
sketch_t = Sketch.from_sample(stream(4, TARGET_PRIOR, seed=2), like=sketch_u)
sketched = ps.estimate_prior(
    sketch_p, sketch_u, sketch_t, method="tcpu", source_prior=SOURCE_PRIOR
)
print(sketched)

# %%
# A plan for a billion
# --------------------
# Rows are independent pieces of work, so time is rows over rate, and machines divide
# it: each counts its part, and the counts are merged. (The rate includes drawing the
# rows, and that every allocation was watched.)
rate = rows[-1] / seconds
hours = 1e9 / rate / 3600
print(f"{rate:,.0f} rows a second here: a billion in {hours:.1f} hours,")
print(f"or in {hours * 6:.0f} minutes on ten such machines")

# %%
# Is it worth it? ``planning`` tells before the rows are read, from a pilot of 3000 of
# each:
first = [
    positive,
    next(stream(1, SOURCE_PRIOR, seed=1)),
    next(stream(1, TARGET_PRIOR, seed=2)),
]
pilot = ps.diagnose(
    *(table[:3000] for table in first), source_prior=SOURCE_PRIOR, random_state=0
)
for unlabeled in (len(U), 10**9):
    for target in (len(T), 10**9):
        foreseen = pilot.planning.predict(
            positive=len(P), unlabeled=unlabeled, target=target
        )
        print(f"U of {unlabeled:>13,} rows, T of {target:>13,}: width {foreseen:.4f}")
print(f"measured with {len(U):,} and {len(T):,}: {answers[-1].interval.width:.4f}")
plt.show()

# %%
# **What to take home.** Memory is no reason to subsample, and a billion rows are no
# reason to believe: an interval may be tiny around a wrong number. Suppose that the π
# of 0.05, which we take as known, were 0.06.
sure = foreseen  # with a billion rows of both
off = 0.01 * answers[-1].negative_ratio
here = answers[-1].interval.width
print(f"off by {off:.4f}: {off / here:.1f} widths here, {off / sure:.0f} at a billion")
