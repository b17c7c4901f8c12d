"""
A billion rows, by counts
=========================

The rows come from a log that does not fit into memory: a generator, a queue, a folder
of files. The default method needs a score, fitted to some of the rows, and a histogram
of each sample: the number of rows in each range of ranks. Histograms add up, so a
billion rows take as much memory as a thousand.

This page uses a few hundred thousand rows from a generator, so that it can be built
quickly. The last section extrapolates the measured rate to a billion rows.
"""

# %%
# A stream
# --------
# The stream yields batches of 20,000 rows with ten columns. Each batch is generated on
# demand and discarded after use.
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
# The score is fitted to the positives and to the first batch of the unlabelled stream.
# 20,000 rows are enough for its two hundred coefficients. All rows are counted with it.
model = ScoreModel.fit(positive, next(stream(1, SOURCE_PRIOR, seed=1)), random_state=0)
P = Histogram.from_sample(positive, model)
U = Histogram.from_sample(stream(6, SOURCE_PRIOR, seed=1), model)
print(model, P, U, sep="\n")

# %%
# The target, as it comes
# -----------------------
# ``Histogram.checkpoints`` yields the counts of all rows so far, so an estimate is
# available at any moment. For each estimate we record the peak memory of Python and
# NumPy.
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
# Memory is that of a few batches and does not grow. The interval narrows, but not to
# zero: the target's part of the error shrinks, that of the source remains. The plan
# below shows the size of each part.
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
# If the source is in memory or in files, one call is enough; it also fits the score.
# The target may be a stream. The source may not, because it is read twice.
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
# A sketch does for TCPU what a histogram does for the default: it stores the mean and
# the second moment of random features of the rows, and it can be streamed and merged.
# The features are a kernel themselves, so the estimate is consistent for any number of
# them.
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
# Rows can be processed independently, so the time is the number of rows divided by the
# rate. Several machines divide the work: each counts its part, and the counts are
# merged. (The measured rate includes drawing the rows and tracing memory.)
rate = rows[-1] / seconds
hours = 1e9 / rate / 3600
print(f"{rate:,.0f} rows a second here: a billion in {hours:.1f} hours,")
print(f"or in {hours * 6:.0f} minutes on ten such machines")

# %%
# ``planning`` predicts the width before the rows are read, from a pilot with 3000 rows
# of each sample:
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
# **Conclusion.** Memory is no reason to subsample. But many rows do not make an
# estimate right: the interval can be tiny around a wrong value. Suppose that π, the
# source prior that we treat as known to be 0.05, were 0.06.
sure = foreseen  # with a billion rows of both
off = 0.01 * answers[-1].negative_ratio
here = answers[-1].interval.width
print(f"error {off:.4f}: {off / here:.1f} widths here, {off / sure:.0f} at a billion")
