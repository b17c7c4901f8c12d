"""
Presence-only ecology
=====================

Volunteers report where they saw a grouse; nobody reports where there was none. Beside
these presence records there are background sites, whose forest, height and climate are
known from maps, but not whether grouse live there. A neighbouring region has no records
at all. In how much of it do grouse live?

Sites are simulated, so that the truth is known.
"""

# %%
# Case-control, and what is known
# -------------------------------
# Records and background are two separate samples: the scenario is case-control, the
# default. (One list of sites of which some were visited and found occupied would be
# ``scenario="censoring"``.)
#
# Presence records cannot tell the share of occupied sites in their own region, π: where
# occupied and other sites look alike in places, the tables only bound it. Ecologists
# who know the region say "between 20 and 30 percent", and that is what we pass. (It is
# 25% in truth.)
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import priorshift as ps

rng = np.random.default_rng(0)


def sites(number, share):
    lives = rng.random(number) < share
    noise = rng.normal(size=(number, 5))
    height = 500 + 250 * lives + 200 * noise[:, 0]
    table = pd.DataFrame({
        "forest": np.clip(0.35 + 0.25 * lives + 0.18 * noise[:, 1], 0, 1),
        "height": height,
        "rain": 700 + 200 * lives + 150 * noise[:, 2],
        "temperature": 11 - 0.004 * (height - 500) - 0.8 * lives + 1.2 * noise[:, 3],
        "km_to_road": np.exp(0.3 + 0.7 * lives + 0.8 * noise[:, 4]),
    })  # fmt: skip
    return table, lives


# %%
# Survey weights
# --------------
# People go where roads are, and grouse do not. Volunteers and field teams reach a site
# near a road with certainty, and one far away in one of ten cases. As long as that
# probability is known, its inverse is a weight: what the site stands for.


def reached(table):
    chance = 0.1 + 0.9 * np.exp(-table["km_to_road"] / 2.5)
    return table.assign(weight=1 / chance)[rng.random(len(table)) < chance]


presence = reached(sites(1500, share=1.0)[0])
background = reached(sites(6000, share=0.25)[0])
neighbour, lives = sites(2000, share=0.45)  # by a grid on the map: every site alike
truth = lives.mean()

known = {"source_prior": (0.2, 0.3), "random_state": 0}
weighted = ps.estimate_prior(presence, background, neighbour, weights="weight", **known)
unweighted = ps.estimate_prior(
    presence, background, neighbour, drop=["weight"], **known
)
print(f"truth: {truth:.3f}\nwith weights: {weighted}\nwithout: {unweighted}")

# %%
# Without weights the background seems to have fewer grouse than it has, the neighbour
# more beside it, and the interval knows nothing of that. With weights it holds.
#
# The interval is as wide as it is because π is a range: it holds for each π in it. What
# needs no π is R, the share of sites without grouse in the neighbour's region over that
# at home.
found = ps.diagnose(presence, background, neighbour, weights="weight", **known)
ratio = found.shift_test
true_ratio = (1 - truth) / (1 - 0.25)
print(found.verdict)
ends = ratio.interval
print(f"R = {ratio.ratio:.3f} ({ends.low:.3f} to {ends.high:.3f})")
print(f"R in truth: {true_ratio:.3f}")

# %%
ax = found.plot("sensitivity")
ax.plot(0.25, truth, "D", color="black", label="truth")
_ = ax.legend(loc="lower right", frameon=False, fontsize="small")

# %%
# What label shift means here, and when it fails
# ----------------------------------------------
# It means: occupied sites look alike in both regions, unoccupied sites too, and only
# the mixture differs. That is an assumption about *habitat*, and ecology has two ways
# to break it.
#
# **The climate moved.** Every site of the neighbour is one degree warmer. Neither class
# looks as it did at home.
warmer = neighbour.assign(temperature=neighbour["temperature"] + 1.0)
found_warmer = ps.diagnose(presence, background, warmer, weights="weight", **known)
print(found_warmer.verdict)
moved = [column.name for column in found_warmer.label_shift_test.moved_columns]
print("columns that moved:", *moved)

# %%
print(ps.plots.displays_of(found_warmer)["label_shift_test"].plot().description)

# %%
# **The grouse are gone.** Hunting has emptied half of the occupied sites; forest and
# rain stay as they were. Now there are unoccupied sites that look like occupied ones,
# and of these there were none at home.
left = lives & (rng.random(len(lives)) < 0.5)
print(f"estimate {found.estimate.value:.3f}, verdict: {found.verdict.answer}")
print(f"occupied in truth: {left.mean():.3f}")

# %%
# The table is the same, cell by cell, so the answer is the same too, and far off. No
# test on these columns can see it: what is estimated is the share of sites that *look*
# occupied, suitable habitat. Only a visit tells the two apart. A hundred sites of the
# grid, drawn at random and visited, contradict the tables, and a warning says so; what
# was seen then counts alone.
visited = np.full(len(neighbour), np.nan)
drawn = rng.choice(len(neighbour), 100, replace=False)
visited[drawn] = left[drawn]
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    audited = ps.diagnose(
        presence, background, neighbour,
        weights="weight", audit={"target": visited}, **known,
    )  # fmt: skip
for warning in said:
    print(f"{warning.category.__name__}: {warning.message}")
print(audited.estimate)
print(audited.verdict)

# %%
# All answers beside the truth. (The interval of the warmer region still holds it, at
# its very end.)
answers = {
    "label shift": weighted,
    "no weights": unweighted,
    "1° warmer": found_warmer.estimate,
    "half are gone": found.estimate,
    "100 visited": audited.estimate,
}
truths = [truth, truth, truth, left.mean(), left.mean()]
ax = ps.plots.series(answers)
ax.plot(truths, "D", color=ps.plots.ORANGE, zorder=0, label="truth")
ax.legend(frameon=False, fontsize="small", ncols=3, loc="upper left")
ax.set(xlabel="", ylabel="share of sites with grouse")
plt.show()

# %%
# **What to take home.** Weight what was sampled unevenly. Publish R, or the band over
# π. And say what is counted: sites that look as occupied sites look at home.
