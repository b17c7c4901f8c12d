"""
Fraud this month, where positives are rare
==========================================

A bank has two tables of last year: transactions with cards that were reported stolen,
and a sample of all transactions, of which 1% were fraud when all complaints had
arrived. This year's complaints arrive with months of delay. How much fraud was there in
each month? Is the increase in autumn real, or chance?

The transactions are simulated. All transactions of a stolen card in a month are fraud,
so frauds come in groups.
"""

# %%
# The tables
# ----------
# The bank has 800 cards of each month, with five transactions each. About eight of
# these cards are stolen.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import priorshift as ps

rng = np.random.default_rng(4)


def transactions(cards, prior, first_card):
    card = np.repeat(np.arange(cards), 5)
    fraud = (rng.random(cards) < prior)[card]
    habit = 0.6 * rng.normal(size=(cards, 3))[card]
    noise, chance = rng.normal(size=(len(card), 3)), rng.random((len(card), 3))
    return pd.DataFrame({
        "amount": np.exp(3.0 + habit[:, 0] + 0.7 * noise[:, 0] + 1.2 * fraud).round(2),
        "hours_ago": np.exp(2.5 + habit[:, 1] + noise[:, 1] - 2.0 * fraud).round(2),
        "km_from_home": np.exp(1.0 + habit[:, 2] + noise[:, 2] + 2.0 * fraud).round(1),
        "paid": np.where(chance[:, 0] < np.where(fraud, 0.85, 0.45), "online", "shop"),
        "abroad": chance[:, 1] < np.where(fraud, 0.5, 0.06),
        "at_night": chance[:, 2] < np.where(fraud, 0.4, 0.08),
        "card": first_card + card,
    })  # fmt: skip


positive = transactions(80, prior=1.0, first_card=1_000_000)
unlabeled = transactions(2400, prior=0.01, first_card=2_000_000)
before_summer = [0.010, 0.009, 0.011, 0.010, 0.012, 0.010]
shares = [*before_summer, 0.013, 0.022, 0.034, 0.028, 0.015, 0.012]
truth = {f"2025-{month:02}": share for month, share in enumerate(shares, start=1)}
target = pd.concat([
    transactions(800, share, 10_000_000 * k).assign(month=month)
    for k, (month, share) in enumerate(truth.items(), start=1)
])  # fmt: skip
print(target.sample(5, random_state=0).to_string(index=False))

# %%
# Twelve months in one call
# -------------------------
# The source is fitted once. ``groups="card"`` says which rows belong together. The
# column ``paid`` contains words and is encoded automatically.
asked = {"by": "month", "source_prior": 0.01, "random_state": 0}
estimates = ps.estimate_priors(positive, unlabeled, target, groups="card", **asked)
print(estimates)

# %%
# "All at once" is a band that contains the true values of all twelve months with 95%
# confidence. Draw this band, because readers of a series look for the most unusual
# month.
ax = ps.plots.series(estimates)
at = np.array(list(truth), dtype="datetime64[D]")
ax.plot(
    at, shares, "D--", color=ps.plots.ORANGE, markersize=4, linewidth=1, label="truth"
)
_ = ax.legend(loc="upper left", frameon=False, fontsize="small")

# %%
# Is the autumn worse?
# --------------------
# All months share the source and its error, most of which cancels in differences.
# Differences are therefore more precise than two separate intervals suggest. The
# adjusted p-value accounts for eleven comparisons.
print(estimates.equality_test())
against_january = estimates.differences("2025-01")
print(against_january)

# %%
# August and September differ significantly from January, and truly so. October, with a
# true share of 2.8%, does not after the adjustment: with 800 cards, such a month is at
# the limit of what can be detected.
#
# How rare positives affect the interval
# --------------------------------------
# January's interval goes from 0 to 1.5%, which looks poor. But suppose that the class
# of every transaction were known. The month is still a sample, with about eight stolen
# cards of 800, and its share has an interval too.
january = estimates["2025-01"].interval
low, high = 800 * january.low, 800 * january.high
print(f"January: {low:.0f} to {high:.0f} of 800 cards, {800 * shares[0]:.0f} truly")
p = np.array(shares)
clairvoyant = np.mean(2 * 1.96 * np.sqrt(p * (1 - p) / 800))
width = np.mean([each.interval.width for each in estimates.values()])
print(f"mean width {width:.4f}; {clairvoyant:.4f} if every class were known")

# %%
# Most of the width is the month's own sampling error, which no method removes. Relative
# to the share, it falls with the square root of the number of *stolen* cards. So report
# counts if positives are rare: "at most 12 of 800 cards" is honest, "0.6%" is not.
#
# What happens if cards are ignored
# ---------------------------------
# Five transactions of one stolen card are one theft, not five. Without ``groups`` they
# count as five.
ignored = ps.estimate_priors(positive, unlabeled, target, drop=["card"], **asked)


def held(answer):
    return sum(truth[month] in answer[month].interval for month in truth)


for name, answer in (("cards as groups", estimates), ("cards ignored", ignored)):
    mean_width = np.mean([each.interval.width for each in answer.values()])
    print(f"{name}: mean width {mean_width:.4f}, {held(answer)} of 12 cover the truth")

# %%
fig, ax = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
for shift, colour, answer in (
    (-0.15, ps.plots.BLUE, estimates),
    (0.15, ps.plots.GREY, ignored),
):
    ends = [(each.interval.low, each.interval.high) for each in answer.values()]
    name = f"cards {'as groups' if answer is estimates else 'ignored'}"
    label = f"{name}: {held(answer)} of 12 cover the truth"
    at = np.arange(12) + shift
    ax.vlines(at, *100 * np.transpose(ends), color=colour, linewidth=3, label=label)
ax.plot(100 * p, "D", color=ps.plots.ORANGE, markersize=5, label="truth")
ax.set(xticks=range(12), xticklabels=[month[-2:] for month in truth], ylim=(0, 5.5))
ax.set(xlabel="month of 2025", ylabel="fraud in percent")
ax.legend(loc="upper left", frameon=False, fontsize="small")
plt.show()

# %%
# **Conclusion.** Ignoring groups gives narrow intervals that are wrong. With rare
# positives, the number of independent *cases* in all three tables determines the
# precision; more transactions of the same cards hardly help.
