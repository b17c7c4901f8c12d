"""
Three hospitals that share no data
==================================

Hospital A has confirmed cases and a sample of all its patients. Hospitals B and C want
to know how common the disease is among theirs, together. No patient's row may leave any
of the houses. They exchange files instead: A sends a score model, B and C send counts
back.

Patients are simulated; the folder below stands for what goes over the wire.
"""

# %%
# Each house has its own rows
# ---------------------------
import tempfile
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import priorshift as ps
from priorshift.experimental import release
from priorshift.sketch import Histogram, ScoreModel

rng = np.random.default_rng(0)


def patients(number, share):
    ill = rng.random(number) < share
    table = pd.DataFrame({
        "age": rng.normal(55 + 8 * ill, 14).round(),
        "crp": np.exp(rng.normal(1.2 + 1.3 * ill, 0.8)).round(1),
        "fever": rng.normal(37 + 0.8 * ill, 0.7).round(1),
        "oxygen": np.clip(rng.normal(97 - 2.5 * ill, 1.8), 70, 100).round(1),
        "came_by": np.where(rng.random(number) < 0.3 + 0.3 * ill, "ambulance", "foot"),
    })  # fmt: skip
    return table, ill


cases, everybody = patients(800, 1.0)[0], patients(4000, 0.1)[0]  # of A
(rows_of_b, ill_b), (rows_of_c, ill_c) = patients(3000, 0.18), patients(2000, 0.30)
truth = np.concatenate([ill_b, ill_c]).mean()

# %%
# A: fit a score model, send its file
# -----------------------------------
# The model holds no rows. It does tell means and spreads of A's columns, and the scores
# of its cases: whoever knows a case's row could find out that it is among them. The
# page on sharing without rows says in full what each file reveals.
folder = tempfile.TemporaryDirectory()
wire = Path(folder.name)
ScoreModel.fit(cases, everybody, random_state=0).save(wire / "model.score")

# %%
# B and C: count, send counts
# ---------------------------
# How many rows rank where among A's cases, in 200 bins and five repetitions. Nothing of
# single columns.
model = ScoreModel.load(wire / "model.score")  # each loads its own copy
Histogram.from_sample(rows_of_b, model).save(wire / "b.histogram")
Histogram.from_sample(rows_of_c, model).save(wire / "c.histogram")
for name, sample in (("cases", cases), ("everybody", everybody)):
    Histogram.from_sample(sample, model).save(wire / f"{name}.histogram")  # A's own
for file in sorted(wire.iterdir()):
    print(f"{file.name:<20} {file.stat().st_size / 1000:>6.0f} kB")

# %%
# Anyone: the answer
# ------------------
# Counts of B and C add up to those of both. Beside it stands what nobody could compute:
# the same from one table of all rows.
P, U, B, C = (
    Histogram.load(wire / f"{name}.histogram")
    for name in ("cases", "everybody", "b", "c")
)
folder.cleanup()
shared = ps.estimate_prior(P, U, B.merge(C), source_prior=0.1)

together = pd.concat([rows_of_b, rows_of_c])
pooled = ps.estimate_prior(
    P, U, Histogram.from_sample(together, model), source_prior=0.1
)
in_one_place = ps.estimate_prior(
    cases, everybody, together, source_prior=0.1, random_state=0
)
print(f"by files: {shared}\npooled: {pooled}\nrows in one place: {in_one_place}")
print(f"truth: {truth:.3f}")
equal = (shared.value, shared.interval) == (pooled.value, pooled.interval)
print(f"by files and pooled are equal to the last digit: {equal}")

# %%
# The answer by files is, to the last digit, the one that a table of all rows gives with
# the same model. (Rows in one place make other folds for the score, hence the small
# difference to the plain call.)
#
# With noise
# ----------
# Counts are no rows, but they are no anonymisation either: who knows all patients of B
# but one could tell where that one ranks. ``release`` adds noise, so that nobody can
# tell from the file whether any one patient was there; (ε, δ) says how surely. The
# answer knows of the noise, and the interval includes it.
#
# The noise comes from the operating system. The seeds here are so that this page can be
# built again: a seed that others know takes the noise off.
private = {}
for epsilon in (3, 1, 0.3, 0.1):
    b, c = (
        release(part, epsilon, 1e-6, random_state=k) for k, part in enumerate((B, C))
    )
    private[epsilon] = ps.estimate_prior(P, U, b.merge(c), source_prior=0.1)
    print(f"ε = {epsilon}: {private[epsilon]}")

# %%
answers = {"all rows": in_one_place, "files": shared}
answers |= {f"ε = {epsilon}": answer for epsilon, answer in private.items()}
ax = ps.plots.series(answers)
ax.axhline(truth, color=ps.plots.ORANGE, linestyle="--", label=f"truth {truth:.3f}")
ax.legend(frameon=False, fontsize="small", loc="upper left")
ax.set(xlabel="what was shared", ylabel="ill patients in B and C", ylim=(0.15, 0.32))
plt.show()

# %%
# **What to take home.** Sharing without rows costs nothing in precision, and ε = 1
# hardly anything at 5000 rows. A small house pays more, since the noise does not shrink
# with it:
few = Histogram.from_sample(rows_of_c[:150], model)
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    alone = {}
    for epsilon in (1, 0.3):
        noisy = release(few, epsilon, 1e-6, random_state=9)
        alone[epsilon] = ps.estimate_prior(P, U, noisy, source_prior=0.1)
    open_counts = ps.estimate_prior(P, U, few, source_prior=0.1)
print(f"150 patients of C, no noise: {open_counts}")
for epsilon, answer in alone.items():
    print(f"150 patients of C, ε = {epsilon}: {answer}")
for warning in said:
    print(f"{warning.category.__name__}: {warning.message}")
print(f"truth of C: {ill_c.mean():.3f}")

# %%
# And the model itself is not private: it tells of A's cases. To protect A as well, fit
# it to public rows. What no file can tell is whether the disease looks the same in B as
# in A, since ``ps.diagnose`` needs the rows of both: let B look up the classes of a
# hundred of its own patients, and compare.
