"""
When the answer is no
=====================

Stork's bill (*Erodium cicutarium*) is a plant from Europe that spreads in the deserts
of Arizona. Suppose that collectors recorded where they found it in the winters of 1989
to 1995, and that nobody recorded where it was absent. In what share of places does it
grow from 1996 to 2002?

The data are real. In every winter, the `Portal Project
<https://doi.org/10.1101/332783>`__ counts the plants in 384 permanent quadrats, half a
metre wide. So the answer is known, and we hide it. The library says that its estimate
cannot be trusted, and it is right. The second half of this page is about what to do
then.
"""

# %%
# Presence-only records from a complete survey
# --------------------------------------------
# The file ``data/portal_winter_plants.csv.gz`` of the gallery has the counts of the 16
# most common plants, one row for each visit of a quadrat. (The data are in the public
# domain; ``data/SOURCES.md`` describes how the file was made.)
#
# The positives are visits at which the plant was found, in a random half of the old
# survey. The unlabelled sample is drawn from the other half. This is the best case for
# presence-only records: collectors usually go where they expect a plant. The columns
# are the counts of all *other* plants, which indicate the habitat.
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import priorshift as ps

survey = pd.read_csv("data/portal_winter_plants.csv.gz")
VISIT = ["year", "plot", "quadrat"]
PLANTS = list(survey.columns.drop(VISIT))
old, new = survey[survey["year"] <= 1995], survey[survey["year"] > 1995]


def habitat(visits, plant):
    counts = visits[PLANTS].drop(columns=plant)
    return np.log1p(counts).assign(site=100 * visits["plot"] + visits["quadrat"])


def samples(plant, source=old, target=new, rows=600):
    source, target = (each.sample(frac=1, random_state=0) for each in (source, target))
    first, second = source[: len(source) // 2], source[len(source) // 2 :]
    found = first[first[plant] > 0][:300]
    drawn = [found, second[:rows], target[:rows]]
    tables = [habitat(visits, plant) for visits in drawn]
    return tables, drawn[2][plant].to_numpy() > 0


# %%
# One plant
# ---------
# We even pass the true share of the old survey as source prior, so that it cannot be
# the reason if something goes wrong. Visits of the same quadrat in different winters
# are not independent, which ``groups`` accounts for.
stork = "Erodium cicutarium"
share = (old[stork] > 0).mean()
known = {"source_prior": share, "groups": "site", "random_state": 0}
tables, grows = samples(stork)
diagnosis = ps.diagnose(*tables, **known)
print(f"old survey: {share:.3f}, new survey: {grows.mean():.3f}")
print(f"estimate: {diagnosis.estimate}")
print(diagnosis.verdict)

# %%
# The plant grows in about twice as many quadrats as before. The estimate says that it
# has almost disappeared, with an interval that does not contain the truth. Without the
# verdict, somebody would have published this.
#
# The first reason is the decisive one: label shift does not hold. It would mean that
# quadrats with stork's bill have the same other plants as before, and that quadrats
# without it do too. But the whole community changed. The shares of quadrats with each
# plant show that nearly all others became less common:
means = pd.DataFrame({
    "old": (old[PLANTS] > 0).mean(),
    "new": (new[PLANTS] > 0).mean(),
})  # fmt: skip
print(means.round(2).to_string())

# %%
# Not an unlucky choice
# ---------------------
# The same with the three other plants that come first, each with its true source prior:


def check(plant, source=old, target=new):
    tables, grows = samples(plant, source, target)
    settings = known | {"source_prior": (source[plant] > 0).mean()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the verdict includes what they say
        found = ps.diagnose(*tables, **settings)
    ends = found.estimate.interval
    return {
        "source": settings["source_prior"],
        "target": grows.mean(),
        "estimate": found.estimate.value,
        "low": ends.low,
        "high": ends.high,
        "verdict": found.verdict.answer,
    }


def summary(rows):
    table = pd.DataFrame(rows).T.infer_objects()
    error = (table["estimate"] - table["target"]).abs()
    holds = table["target"].between(table["low"], table["high"])
    print(table.round(2).to_string())
    print(f"refused: {(table['verdict'] == 'no').sum()} of {len(table)}")
    print(f"errors: {error.mean():.2f} on average, {error.max():.2f} at most")
    print(f"intervals that contain the truth: {holds.sum()} of {len(table)}")
    return table.assign(error=error, holds=holds)


later = summary({plant: check(plant) for plant in PLANTS[:4] if plant != stork})

# %%
# All are refused. One of the refused intervals contains the truth, but without the
# truth nobody could say which.
#
# What does not help
# ------------------
# Several remedies help against *other* problems. None of them helps against a change of
# the classes, and the verdict remains no:
#
# * to state a bound instead of a value of π, which helps if π is in doubt;
# * to record only whether the other plants occur, since counts depend on rain;
# * to report only the ratio R of the shares of quadrats *without* the plant. R does not
#   need π, but it needs label shift as much as π′ does.
occurs = [(table > 0).assign(site=table["site"]) for table in tables]
tried = {"π known": diagnosis}
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    tried["π at most 0.3"] = ps.diagnose(*tables, **known | {"source_prior": (0, 0.3)})
    tried["no counts"] = ps.diagnose(*occurs, **known)
for name, each in tried.items():
    ends = each.estimate.interval
    print(f"{name}: {each.verdict.answer}, {ends.low:.3f} to {ends.high:.3f}")
ratio = diagnosis.shift_test
true_ratio = (1 - grows.mean()) / (1 - share)
print(f"R = {ratio.ratio:.2f} ({ratio.interval.low:.2f} to {ratio.interval.high:.2f})")
print(f"true R: {true_ratio:.2f}")

# %%
# What helps: visit a few places
# ------------------------------
# A random sample of 80 of the 600 target quadrats is visited, and the plant is found or
# not found. ``audit`` takes one value for each row of the target: NaN where nobody
# looked. The audit contradicts the tables, a warning says so, and the estimate then
# uses only the audit, with an interval that does not need label shift.
visited = np.full(len(grows), np.nan)
drawn = np.random.default_rng(0).choice(len(grows), 80, replace=False)
visited[drawn] = grows[drawn]
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    audited = ps.estimate_prior(*tables, audit={"target": visited}, **known)
for warning in said:
    print(f"{warning.category.__name__}: {warning.message}")
print(audited)
print(f"truth: {grows.mean():.3f}")

# %%
# The interval contains the truth. This is a number to publish, as what it is: the
# result of visiting 80 random quadrats. The presence records contribute nothing to it.
# (A diagnosis with this audit answers "with care", because records and audit disagree.)
#
# What helps: a narrower question
# -------------------------------
# Records can answer questions about places that are like their own. Now both samples
# are from the years of the records, and from the same plots. Records and background
# come from the quadrats of the two inner rows of each plot. How common are the plants
# in the two *outer* rows? (Every second plant, to save time.)
outer = old["quadrat"].floordiv(10).isin([1, 7])
near = summary(
    {plant: check(plant, old[~outer], old[outer]) for plant in PLANTS[1:8:2]}
)

# %%
# Three of four verdicts are "with care", and every interval contains the truth. The
# refused one is a shrub that the other plants do not indicate, so its interval is 0 to
# 1. The intervals are wide, and the shares hardly differ between rows: these are the
# questions that such records can answer.
shown = {name: each.estimate for name, each in tried.items()}
ax = ps.plots.series(shown | {"80 visited": audited})
ax.axhline(grows.mean(), color=ps.plots.ORANGE, zorder=0, label="truth")
ax.legend(frameon=False, fontsize="small", ncols=3, loc="upper left")
ax.set(xlabel="", ylabel="share of quadrats with stork's bill", ylim=(0, 0.7))
plt.show()

# %%
# The split of the years, the species and the columns were chosen after trials, in which
# all of 12 species were refused in every variant. If whole plots instead of quadrats
# are the groups, the verdicts on the later years stay the same, and two of five
# narrower questions are refused as well.
#
# **Conclusion.** These records of one period do not determine how common a species is
# in another, because its surroundings changed as well. If the verdict is no because the
# columns moved, more records or another prior do not help. Visit a few random places in
# the new period, find columns that are related to the species in the same way in both
# periods, or ask about places and years that are like those of the records.
