"""
A classifier that follows the season
====================================

A clinic trains a classifier in April: fever, cough, aches, days since the first
symptom; is it influenza? In April one visitor in five has it. In February it is more
than one in two, in July one in thirty. The symptoms are the same, yet the classifier of
April is wrong in both, in opposite ways: it takes influenza for as common as it was.

``ShiftedClassifier`` is trained once and adapted every month, without a single new
diagnosis. Visits are simulated.
"""

# %%
# Training, once
# --------------
# From 400 confirmed cases and 2000 visits of April, of which nobody noted what they
# were. That April has 20% is known from the laboratory. The classifier is any of
# scikit-learn's; it learns who is *labelled*, and what it says is made a probability of
# the class.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

import priorshift as ps

rng = np.random.default_rng(0)


def visits(number, share, mildness=0.0):
    ill = rng.random(number) < share
    noise = rng.normal(size=(number, 4))
    strength = (1 - mildness) * ill
    table = pd.DataFrame({
        "fever": 37.2 + 0.7 * noise[:, 0] + 1.1 * strength,
        "cough": np.clip(3 + 2 * noise[:, 1] + 2 * ill, 0, 10),
        "aches": np.clip(2.5 + 2 * noise[:, 2] + 2 * strength, 0, 10),
        "days_since_onset": np.exp(0.8 + 0.6 * noise[:, 3] - 0.4 * ill),
    })  # fmt: skip
    return table, ill


confirmed, april = visits(400, share=1.0)[0], visits(2000, share=0.2)[0]
X = pd.concat([confirmed, april], ignore_index=True)
y = np.repeat([1, 0], [len(confirmed), len(april)])
classifier = ps.ShiftedClassifier(
    LogisticRegression(), ps.WitnessShift(0.2), random_state=0
).fit(X, y)

# %%
# One year
# --------
# A missed case costs five times as much as a false alarm, so a visitor is treated where
# the probability is above 1/6. Each month the same visitors are decided on three times:
# as in April, adapted to the month, and by one who knows the share.
WORTH = 5
MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun",
          "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]  # fmt: skip
DECIDED = ["as in April", "adapted", "share known"]
SHARES = [0.55, 0.60, 0.40, 0.20, 0.08, 0.04, 0.03, 0.03, 0.06, 0.12, 0.25, 0.45]


def decided(aimed, table, ill):
    probability = aimed.predict_proba(table)[:, 1]
    treated = probability > 1 / (1 + WORTH)
    return {
        "accuracy": ((probability > 0.5) == ill).mean(),
        "cost": (WORTH * (ill & ~treated).sum() + (treated & ~ill).sum()) / len(ill),
    }


def of_month(share, mildness=0.0):
    table, ill = visits(2000, share, mildness)
    decisions = {
        "share known": decided(classifier.adapt_to(share), table, ill),
        "as in April": decided(classifier.adapt_to(0.2), table, ill),
        "adapted": decided(classifier.adapt(table), table, ill),
    }
    return table, classifier.estimate_, decisions


tables, estimates, costs, accuracies = {}, {}, {}, {}
for month, share in zip(MONTHS, SHARES, strict=True):
    tables[month], estimates[month], decisions = of_month(share)
    costs[month] = {who: by["cost"] for who, by in decisions.items()}
    accuracies[month] = {who: by["accuracy"] for who, by in decisions.items()}
costs, accuracies = (pd.DataFrame(each).T[DECIDED] for each in (costs, accuracies))
print("cost of a visit", costs.round(3).to_string(), sep="\n")
print("over the year", costs.mean().round(3).to_string(), sep="\n")
print("accuracy over the year", accuracies.mean().round(3).to_string(), sep="\n")

# %%
held = sum(
    share in estimates[month].interval
    for month, share in zip(MONTHS, SHARES, strict=True)
)
print(f"{held} of 12 intervals hold the share")

fig, (upper, lower) = plt.subplots(
    2, 1, figsize=(6.4, 5.4), sharex=True, layout="constrained"
)
ps.plots.series(estimates, upper)
upper.plot(SHARES, "D", color=ps.plots.ORANGE, markersize=4, zorder=0, label="truth")
upper.legend(frameon=False, fontsize="small", ncols=3, loc="upper center")
upper.set_xlabel("")
styles = [
    {"color": ps.plots.GREY, "marker": "s", "linestyle": ":"},
    {"color": ps.plots.BLUE, "marker": "o"},
    {"color": ps.plots.ORANGE, "marker": "D", "linestyle": "--"},
]
for who, style in zip(DECIDED, styles, strict=True):
    lower.plot(costs[who].to_numpy(), **style, markersize=4, linewidth=1, label=who)
lower.set(ylabel="cost of a visit", xlabel="month", ylim=(0, None))
_ = lower.legend(frameon=False, fontsize="small", ncols=3, loc="lower center")

# %%
# Adapting takes a fifth off the year's cost, and hardly anything is left for one who
# knows the share. The gain comes from the months that are far from April. In April
# itself, and in November, there is nothing to gain, and the estimate's error may cost a
# trifle.
#
# A new strain
# ------------
# Next December there is as much influenza as in this one, but half as much fever and
# aches. The odds of a visitor do not change by those of the share alone, and no
# adaptation of the share mends that.
mild, of_mild, decisions = of_month(SHARES[-1], mildness=0.5)
print(of_mild, f"truth {SHARES[-1]}", sep="\n")
for who, by in decisions.items():
    print(f"accuracy, {who}: {by['accuracy']:.3f}")

# %%
# The estimate is too low, since mild cases look healthy, and accuracy is gone. So ask
# before adapting:
found = ps.diagnose(confirmed, april, mild, source_prior=0.2, random_state=0)
as_ever = ps.diagnose(confirmed, april, tables["Dec"], source_prior=0.2, random_state=0)
print(f"this December: {as_ever.verdict.answer}")
print(f"next December: {found.verdict}")
print(ps.plots.displays_of(found)["label_shift_test"].plot().description)
plt.show()

# %%
# "No" is right, though what it names is not what changed: mild cases are taken for
# healthy, and beside a share that is too low it is cough that looks too frequent. The
# test sees that something does not fit; what it is, you find out.
#
# **What to take home.** Adapting costs nothing and helps where the share moves. It
# knows nothing of symptoms that change: run ``ps.diagnose`` beside it, and train again
# when it says no.
