"""
Presence-only ecology
=====================

Volunteers report where they saw a grouse; nobody reports where there was none. In
addition to these presence records there are background sites. Their forest, height and
climate are known from maps, but not whether grouse live there. A neighbouring region
has no records at all. In what share of its sites do grouse live?

The sites are simulated, so that the truth is known.
"""

# %%
# The scenario and the source prior
# ---------------------------------
# Records and background are two separate samples, so the scenario is case-control, the
# default. (One list of sites, some of which were visited and found occupied, would be
# ``scenario="censoring"``.)
#
# Presence records do not determine π, the share of occupied sites in their own region.
# Where some occupied sites look like unoccupied ones, the tables only give an upper
# bound. Ecologists who know the region say "between 20 and 30 percent", and we pass
# this range. (The truth is 25%.)
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
# People go where roads are, and grouse do not. Volunteers and field teams reach every
# site at a road, but only one in ten far from roads. If this probability is known, its
# inverse is the weight of the site.


def reached(table):
    chance = 0.1 + 0.9 * np.exp(-table["km_to_road"] / 2.5)
    return table.assign(weight=1 / chance)[rng.random(len(table)) < chance]


presence = reached(sites(1500, share=1.0)[0])
background = reached(sites(6000, share=0.25)[0])
neighbour, lives = sites(2000, share=0.45)  # a grid on the map: equal weights
truth = lives.mean()

known = {"source_prior": (0.2, 0.3), "random_state": 0}
weighted = ps.estimate_prior(presence, background, neighbour, weights="weight", **known)
unweighted = ps.estimate_prior(
    presence, background, neighbour, drop=["weight"], **known
)
print(f"truth: {truth:.3f}\nwith weights: {weighted}\nwithout: {unweighted}")

# %%
# Without weights, the background seems to have fewer grouse than it has. The neighbour
# then seems to have more, and the interval misses the truth without any sign of a
# problem. With weights, the interval covers the truth.
#
# The interval is wide because π is a range: it is valid for each π in the range. R does
# not need π. It is the share of sites without grouse in the neighbouring region divided
# by that at home.
found = ps.diagnose(presence, background, neighbour, weights="weight", **known)
ratio = found.shift_test
true_ratio = (1 - truth) / (1 - 0.25)
print(found.verdict)
ends = ratio.interval
print(f"R = {ratio.ratio:.3f} ({ends.low:.3f} to {ends.high:.3f})")
print(f"true R: {true_ratio:.3f}")

# %%
ax = found.plot("sensitivity")
ax.plot(0.25, truth, "D", color="black", label="truth")
_ = ax.legend(loc="lower right", frameon=False, fontsize="small")

# %%
# What label shift means here, and when it fails
# ----------------------------------------------
# Label shift means that occupied sites look the same in both regions, that unoccupied
# sites do too, and that only their proportions differ. This is an assumption about
# *habitat*. It can be violated in two ways.
#
# **The climate changed.** Every site of the neighbour is one degree warmer, so neither
# class looks as at home.
warmer = neighbour.assign(temperature=neighbour["temperature"] + 1.0)
found_warmer = ps.diagnose(presence, background, warmer, weights="weight", **known)
print(found_warmer.verdict)
moved = [column.name for column in found_warmer.label_shift_test.moved_columns]
print("columns that moved:", *moved)

# %%
print(ps.plots.displays_of(found_warmer)["label_shift_test"].plot().description)

# %%
# **The grouse are gone.** Hunting has emptied half of the occupied sites, while forest
# and rain are unchanged. Now there are unoccupied sites that look like occupied ones,
# which did not exist at home.
left = lives & (rng.random(len(lives)) < 0.5)
print(f"estimate {found.estimate.value:.3f}, verdict: {found.verdict.answer}")
print(f"truly occupied: {left.mean():.3f}")

# %%
# The table of the neighbour has not changed, so the estimate has not changed either,
# and it is far off. No test on these columns can detect this: the estimate is the share
# of sites that *look* occupied, that is, of suitable habitat. Only visits can
# distinguish the two. A hundred sites of the grid, drawn at random and visited,
# contradict the tables. A warning says so, and the estimate then uses only the visits.
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
# The last figure compares all estimates with the truth. (The interval for the warmer
# region still covers it, just inside its end.)
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
# **Conclusion.** Use weights if sites were sampled unevenly. Publish R, or π′ over the
# range of π. State what is counted: sites that look like occupied sites at home.
# For real records, see :ref:`sphx_glr_gallery_plot_desert_survey.py`.
