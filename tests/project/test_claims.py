"""What the README and the pages of docs claim is what the committed figures say."""

import csv
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import priorshift as ps

ROOT = Path(__file__).parents[2]


sys.path.insert(0, str(ROOT))

from experiments.command_line import DOCUMENTS, RESULTS, main
from experiments.compare import page
from experiments.document_tables import table_names
from experiments.error_tables import published, summary
from experiments.grids import EXPERIMENTS
from experiments.studies import TRIALS


def test_tables_and_figures_that_documents_quote_are_those_of_the_lines(capsys):
    assert main(["docs", "--check"]) == 0
    pages = "".join(path.read_text(encoding="utf-8") for path in DOCUMENTS if path.parent.name == "docs")
    quoted = set(re.findall("<!-- table: (\\S+) -->", pages))
    elsewhere = {"falls", "source_prior"}  # in the README, and told by a test below
    assert quoted == set(table_names()) - elsewhere and (ROOT / "README.md").read_text().count("<!-- table: ") == 2


def test_the_comparison_is_that_of_the_lines():
    assert page(RESULTS) == (ROOT / "experiments" / "COMPARISON.md").read_text(encoding="utf-8")


def column(lines, name):
    return np.array([float(line[name]) for line in lines if line.get(name) not in (None, "")])


@pytest.fixture(scope="module")
def coverage():
    return TRIALS["coverage"].lines(RESULTS)


def test_the_study_is_whole(coverage):
    assert len(coverage) == 3 * 6 * 2 * 2
    assert set(column(coverage, "repetitions")) == {500}


def test_the_default_interval_covers_in_every_setting(coverage):
    values = column(coverage, "coverage")
    assert values.min() >= 0.92
    assert 0.94 <= values.mean() <= 0.97


def test_the_bounds_never_undercover(coverage):
    for bound in ("paper-bound", "sharp-bound"):
        assert column(coverage, f"coverage_{bound}").min() >= 0.95
    assert (column(coverage, "width_sharp-bound") <= column(coverage, "width_paper-bound")).all()


def test_the_plug_in_is_biased_and_undercovers_with_few_positives(coverage):
    few = [line for line in coverage if (line["source_prior"], line["target_prior"], line["rows"]) == (0.1, 0.8, 200)]
    assert len(few) == 2
    for line in few:
        assert line["bias_plug-in"] < -0.1 and line["coverage_plug-in"] < 0.4
        assert abs(line["bias"]) < 0.03 and line["coverage"] >= 0.92


def test_the_caveat_of_km2_is_what_the_study_found():
    lines = TRIALS["coverage_km2"].lines(RESULTS)
    assert len(lines) == 2 * 2 * 3 * 6
    bias = column(lines, "source_prior_bias")
    low, high = (float(x.replace("−", "-")) for x in re.search(r"by (\S+) to (\S+) on", ps.KM2.caveat).groups())
    assert low == pytest.approx(bias.min(), abs=0.011)
    assert high == pytest.approx(bias.max(), abs=0.011)


def test_km2_is_as_fast_and_as_exact_as_it_is_meant_to_be():
    with (ROOT / "benchmarks" / "results" / "km.csv").open() as file:
        lines = list(csv.DictReader(file))
    for rows, least in (("500", 40), ("1000", 100), ("2000", 200)):
        some = [line for line in lines if line["rows"] == rows]
        assert len(some) > 0
        assert column(some, "ratio").mean() >= least
        assert column(some, "off_tight_solve").max() < 0.003
    largest = next(line for line in lines if line["rows"] == "10000")
    assert float(largest["seconds"]) < 30
    assert float(largest["peak_megabytes"]) < 2500


def test_km2_on_real_draws_is_about_where_another_implementation_is():
    lines = TRIALS["source_prior"].lines(RESULTS)
    assert len(lines) == 63
    error = np.abs(column(lines, "KM2") - column(lines, "source_prior")).mean()
    assert error == pytest.approx(0.074, abs=0.01)  # other draws of the same data: each has an error of about 0.05


def test_readme_shows_what_the_demo_prints(capsys):
    from priorshift.cli import main

    assert main(["demo"]) == 0
    shown = (ROOT / "README.md").read_text()
    for line in capsys.readouterr().out.splitlines():
        assert line in shown


@pytest.fixture(scope="module")
def decisions():
    return TRIALS["classifier"].lines(RESULTS)


def test_nnpu_is_within_two_hundredths_of_the_best_possible(decisions):
    lines = [line for line in decisions if line["population"] == "source" and line["dataset"] == "Synthetic"]
    assert len(lines) == 15
    for line in lines:
        assert line["nnPU"] > line["best"] - 0.02


def test_adapted_decisions_are_never_worse_beyond_noise_and_the_printed_rule_is(decisions):
    cells = {}
    for line in decisions:
        if line["population"] == "target":
            cells.setdefault((line["dataset"], line["source_prior"], line["target_prior"]), []).append(line)
    assert len(cells) == 8 * 3 * 4
    assert {len(lines) for lines in cells.values()} == {5}
    for (dataset, source, target), lines in cells.items():
        plain, adapted, printed = (column(lines, name) for name in ("nnPU", "adapted", "as_printed"))
        gain = adapted - plain
        noise = max(gain.std(ddof=1) / np.sqrt(len(gain)), 0.003)  # five draws; a row is 0.001 to 0.003
        assert gain.mean() > -3 * noise
        # on real data a small shift moves few rows: there the two rules differ by noise
        if abs(source - target) >= (0.05 if dataset == "Synthetic" else 0.3):
            assert printed.mean() < adapted.mean()


@pytest.fixture(scope="module")
def study():
    """Mean errors by experiment and method, and the cells behind them."""
    return {
        name: EXPERIMENTS[name].table(RESULTS) for name in ("uci", "disjoint", "keel", "unseen", "high", "synthetic")
    }


def mean_error(rows, method, **wanted):
    some = [
        row["mean_abs_error"] for row in rows if row["method"] == method and all(row[k] == v for k, v in wanted.items())
    ]
    assert len(some) > 0
    return float(np.mean(some))


def test_tcpu_is_the_papers_on_its_own_tables(study):
    tcpu = next(entry for entry in summary(study["uci"]) if entry["method"] == "TCPU")
    assert (tcpu["cells"], tcpu["repetitions"]) == (84, 20)
    assert tcpu["mean_abs_error"] == pytest.approx(0.0622, abs=0.010)
    assert tcpu["near_as_sd"] >= 70 and tcpu["near_as_standard_error"] >= 80


def test_the_published_spread_is_that_of_a_standard_error(study):
    """The median ratio to the mean: a standard deviation of absolute errors would have about 0.7, the mean of 20 runs 0.16."""
    cells = [row for row in study["uci"] if row["method"] == "TCPU"]
    assert len(cells) == 84
    theirs, ours = (
        np.median([row[spread] / row[mean] for row in cells])
        for spread, mean in (("published_sd", "published"), ("sd", "mean_abs_error"))
    )
    assert 0.5 < ours < 0.9 and abs(theirs - ours / np.sqrt(20)) < 0.1 < abs(theirs - ours)


def test_drpu_beats_its_published_figures(study):
    assert mean_error(study["uci"], "DRPU") < 0.2007
    assert mean_error(study["synthetic"], "DRPU", label_frequency=0.5) <= 0.08


def test_the_default_beats_the_paper(study):
    known = published()
    rows = [row for row in study["uci"] if row["method"] == "Witness"]
    assert len(rows) == 84 and {row["repetitions"] for row in rows} == {20}
    assert mean_error(study["uci"], "Witness") <= 0.042
    names = ("dataset", "label_frequency", "source_prior", "target_prior")
    assert sum(row["mean_abs_error"] < known[(*(row[n] for n in names), "TCPU")][0] for row in rows) >= 60
    for dataset in {row["dataset"] for row in rows}:
        ours, theirs = (mean_error(study["uci"], method, dataset=dataset) for method in ("Witness", "TCPU"))
        assert ours < theirs + 0.01
    assert mean_error(study["disjoint"], "Witness") < 0.8 * mean_error(study["disjoint"], "TCPU")


def test_a_known_prior_makes_the_witness_better_than_tcpu_on_every_set(study):
    """The mean of the possible priors errs less than their clipped estimate, which can be averaged."""
    for name, most in (("uci", 0.028), ("disjoint", 0.036), ("keel", 0.75 * mean_error(study["keel"], "TCPU-true"))):
        assert mean_error(study[name], "Witness-true") <= most
    lines = [line for line in EXPERIMENTS["uci"].lines(RESULTS) if line["method"] == "Witness-true"]
    assert np.mean([abs(line["mean"] - line["target_prior"]) for line in lines]) <= 0.027
    for name in ("uci", "disjoint", "keel"):
        for dataset in {row["dataset"] for row in study[name]}:
            ours, theirs = (mean_error(study[name], m, dataset=dataset) for m in ("Witness-true", "TCPU-true"))
            assert ours < theirs + 0.005


def test_intervals_hold_with_few_positives():
    """480 intervals for each number of positives, of which three standard errors are 3%."""
    lines = TRIALS["few_positives"].lines(RESULTS)
    for m in (20, 50, 200):
        assert np.mean([line["coverage"] for line in lines if line["positives"] == m]) >= 0.92


def test_a_new_class_is_reported_and_rarely_without_one():
    """2200 draws without a new class, of which three standard errors are 1.4%, and 50 or 60 in each cell with one."""
    lines = TRIALS["new_class"].lines(RESULTS)
    without = [line for line in lines if line["share"] == 0]
    for test in ("new_class", "label_shift"):
        assert np.average([line[test] for line in without], weights=[x["repetitions"] for x in without]) <= 0.06
        assert max(line[test] for line in without) <= 0.12  # 100 or 120 draws: three standard errors are 6%
    large = [x for x in lines if (x["data"], x["rows"], x["labeled"], x["share"]) == ("gaussian", 2000, 200, 0.1)]
    assert len(large) == 3 and all(line["new_class"] >= 0.9 for line in large)
    assert np.mean([line["bound_above_share"] for line in lines if line["share"]]) <= 0.05


def test_the_default_beats_tcpu_on_further_sets(study):
    assert sum(row["method"] == "Witness" for row in study["unseen"]) == 13 * 3 * 4
    assert mean_error(study["unseen"], "Witness") < mean_error(study["unseen"], "TCPU")
    assert mean_error(study["keel"], "Witness") < 0.7 * mean_error(study["keel"], "TCPU")
    assert mean_error(study["high"], "Witness") < 0.8 * mean_error(study["high"], "TCPU")


def test_the_bandwidth_of_least_variance_errs_less_and_its_interval_survives_the_choice():
    """A few thousand estimates each, of which several rest on one source: a share of 95 % is known to 1 %."""
    lines = TRIALS["bandwidth"].lines(RESULTS)
    synthetic = [line for line in lines if line["dataset"] == "Synthetic"]
    uci, random, exact = (
        [x for x in lines if x["dataset"] != "Synthetic" and x["drawn"] == d] for d in ("paper", "random", "exact")
    )
    assert len(synthetic) == 2 * 10 * 7 and len(uci) == len(random) == len(exact) == 84
    for some in (uci, random, exact, *([x for x in synthetic if x["rows"] == n] for n in (200, 2000))):
        error, before = column(some, "error").mean(), column(some, "error_dimension").mean()
        assert error < before and column(some, "width").mean() < column(some, "width_dimension").mean()
        covered = column(some, "coverage").mean()
        assert covered >= 0.94 and abs(covered - column(some, "coverage_dimension").mean()) <= 0.01
    apart = [line for line in synthetic if line["source_prior"] < 0.8]
    assert 0.94 <= column(apart, "coverage").mean() <= 0.97
    for rule in ("", "_dimension"):  # exact shares are what makes intervals hold too often
        assert column(exact, f"coverage{rule}").mean() >= column(random, f"coverage{rule}").mean() + 0.01
    guide = " ".join((ROOT / "docs" / "methods.md").read_text(encoding="utf-8").split())
    said = re.search(r'errs by (\S+)% less than "dimension" over the UCI cells', guide).group(1)
    assert int(said) == round(100 * (1 - column(uci, "error").mean() / column(uci, "error_dimension").mean()))
    plug_in = re.search(r"makes larger \((\S+)\s+instead of (\S+) over the UCI cells", guide).groups()
    names = ("error_plug-in", "error_dimension_plug-in")
    assert plug_in == tuple(f"{column(uci, name).mean():.4f}" for name in names)
    assert column(uci, "error_witness").mean() < column(uci, "error").mean()
    near = [line for line in synthetic if line["source_prior"] >= 0.8 and line["rows"] == 200]
    missing = re.search(r"With 200 rows (\d+)% are missing instead of (\d+)%", guide).groups()
    both = re.search(r'there \((\S+), "variance" (\S+)\), and both rest on noise', guide).groups()
    assert missing == tuple(f"{100 * column(near, f'missing{rule}').mean():.0f}" for rule in ("", "_dimension"))
    assert both == tuple(f"{column(near, f'error_both{rule}').mean():.3f}" for rule in ("_dimension", ""))


def test_the_witness_is_near_its_limit_and_covers():
    lines = TRIALS["known"].lines(RESULTS)
    assert len(lines) == 72
    for rows, above in ((200, 1.2), (2000, 1.06)):  # of 500 repetitions
        some = [line for line in lines if line["rows"] == rows]
        error, limit, tcpu, covered = (
            column(some, name) for name in ("error", "error_limit", "error_tcpu", "coverage")
        )
        assert error.mean() <= above * limit.mean() and error.mean() < tcpu.mean()
        assert covered.min() >= 0.91 and 0.94 <= covered.mean() <= 0.97


def test_the_defaults_interval_covers_with_an_unknown_prior():
    lines = TRIALS["coverage_unknown"].lines(RESULTS)
    for rows in (200, 2000, 20_000):
        values = column([line for line in lines if line["rows"] == rows], "coverage")
        assert len(values) >= 12 and values.mean() >= 0.93


def test_hard_problems_get_values_and_verdicts_that_hold():
    lines = TRIALS["hard"].lines(RESULTS)
    assert len(lines) == 200 and all(0 <= line["value"] <= 1 for line in lines)
    assert not any(line["other_warnings"] for line in lines)
    verdicts = {line["verdict"] for line in lines}
    assert verdicts >= {"estimate", "few positives", "nothing"}
    for verdict in verdicts:
        holds = [line["holds"] for line in lines if line["verdict"] == verdict]
        assert np.mean(holds) >= 0.95


def test_the_comparison_says_what_has_no_lines_yet(tmp_path):
    for name in ("synthetic", "uci", "images", "size", "violation", "prior", "tau"):
        lines = (RESULTS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
        rest = [line for line in lines if '"method":"DRPU"' not in line]
        assert rest
        (tmp_path / f"{name}.jsonl").write_text("".join(rest), encoding="utf-8")
    text = page(tmp_path)
    assert text.count('Not available yet: `make study NAME="uci images size" METHODS=DRPU` computes the lines.') == 2
    assert "nan" not in text and "0 of 0" not in text


def test_many_targets_keep_their_word_where_the_source_prior_is_known():
    """With n draws a share of 95 % is known to √(0.05·0.95/n): three of these are allowed for."""
    for line in TRIALS["months"].lines(RESULTS):
        slack = 3 * np.sqrt(0.05 * 0.95 / line["repetitions"])
        assert line["coverage_band"] >= 0.95 - slack and line["width_differences"] < line["width_as_if_independent"]
        assert line["level_pairs"] <= 0.05 + slack
        if line["prior_known"]:
            assert 0.93 <= line["coverage_differences"] <= 0.97
            assert line["level_equality"] <= 0.05 + slack
        else:
            assert line["coverage_differences"] >= 0.93


def test_the_prior_of_all_strata_is_covered():
    lines = TRIALS["strata"].lines(RESULTS)
    assert [line["coverage"] >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / line["repetitions"]) for line in lines] == [True] * 3


def test_labels_and_tables_together_are_hardly_ever_worse_than_the_better_of_them():
    """One comparison in 40 would exceed two standard errors by chance, were both just as good as the better."""
    lines = TRIALS["audits"].lines(RESULTS)
    near = column(lines, "excess") <= 2 * column(lines, "excess_standard_error")
    assert len(lines) == 144 and near.mean() >= 0.95
    covers = column(lines, "both_coverage")  # thirty draws each: three standard errors of one cell are 0.12
    assert covers.mean() >= 0.94 and covers.min() >= 0.83


METHODS_WITH_INTERVALS = ("witness", "unknown", "tcpu", "bootstrap")


@pytest.mark.parametrize(("size", "correlation"), [(5, 0.5), (5, 0.9), (12, 0.5), (12, 0.9)])
def test_intervals_cover_where_rows_come_in_groups(size, correlation):
    """Over eight cells of thirty draws each; three standard errors of such a mean are 0.042."""
    lines = [x for x in TRIALS["clusters"].lines(RESULTS) if (x["size"], x["correlation"]) == (size, correlation)]
    for method in METHODS_WITH_INTERVALS:
        assert np.mean([line[f"coverage_{method}"] for line in lines]) >= 0.95 - 0.042
    for method in ("ignored", "tcpu_ignored"):
        assert np.mean([line[f"coverage_{method}"] for line in lines]) < 0.9


def test_weights_undo_unequal_probabilities():
    lines = TRIALS["weighted"].lines(RESULTS)
    for method in ("witness", "tcpu"):
        bias = np.array([line[f"bias_{method}"] for line in lines])
        error = np.array([line[f"sd_{method}"] for line in lines]) / np.sqrt([line["repetitions"] for line in lines])
        assert (np.abs(bias) < 0.005 + 3.5 * error).all()
        assert 0.92 <= np.mean([line[f"coverage_{method}"] for line in lines]) <= 0.98
    assert np.mean([abs(line["bias_plain"]) for line in lines]) > 0.05


@pytest.mark.parametrize("name", ["error", "error_unknown"])
def test_the_built_in_encoding_is_no_worse_than_the_better_of_the_others(name):
    lines = TRIALS["mixed"].lines(RESULTS)
    own, others = (
        [np.mean([line[name] for line in lines if line["encoding"] == encoding]) for encoding in some]
        for some in (("built-in",), ("skrub", "numbers"))
    )
    assert own[0] <= min(others) + 0.005


def test_a_fifth_of_the_cells_missing_costs_less_than_a_third_where_the_source_prior_is_known():
    complete, missing = (
        [line for line in TRIALS["missing"].lines(RESULTS) if line["missing"] == share] for share in (0.0, 0.2)
    )
    error = [np.mean([line["error"] for line in lines]) for lines in (complete, missing)]
    assert error[1] < 4 / 3 * error[0]
    assert np.mean([line["coverage"] for line in missing]) >= 0.92


def test_widths_that_a_pilot_foresees_are_those_that_come_out():
    lines = TRIALS["planning"].lines(RESULTS)
    known = np.array([line["ratio"] for line in lines if line["known"]])
    tables = np.array(
        [line["ratio"] for line in lines if line["known"] and line["dataset"] in ("Waveform", "Spambase")]
    )
    for ratio in (known, tables):
        assert np.mean(np.abs(ratio - 1) <= 0.15) > 0.9 and ratio.mean() == pytest.approx(1, abs=0.03)
    unknown = np.array([line["ratio"] for line in lines if not line["known"]])
    assert np.median(np.abs(unknown - 1)) < 0.15


def test_three_hundred_positives_are_nearly_enough_and_a_thousand_where_it_is_harder():
    """Over 320 intervals of each number of positives, of which three standard errors are 3.7%."""
    lines = TRIALS["positives"].lines(RESULTS)

    def over_most(m, *, known, mostly_positive):
        width = {
            number: np.mean(
                [
                    x["width"]
                    for x in lines
                    if (x["positives"], x["known"], x["source_prior"] > 0.5) == (number, known, mostly_positive)
                ]
            )
            for number in (m, 3000)
        }
        return width[m] / width[3000]

    for known in (True, False):
        for m in (20, 50, 100, 300, 1000, 3000):
            covered = [x["coverage"] for x in lines if (x["positives"], x["known"]) == (m, known)]
            assert len(covered) == 32 and np.mean(covered) >= 0.95 - 0.037
    assert over_most(20, known=True, mostly_positive=False) > 5
    assert over_most(300, known=True, mostly_positive=False) < 1.3
    for known, mostly_positive in ((True, True), (False, False), (False, True)):
        few, enough = (over_most(m, known=known, mostly_positive=mostly_positive) for m in (300, 1000))
        assert few > 1.6 and enough < 1.5


TESTS_OF_A_DIAGNOSIS = ("shift", "kernel", "score", "label_shift")


@pytest.mark.parametrize("test", TESTS_OF_A_DIAGNOSIS)
def test_tests_of_a_diagnosis_reject_what_is_true_one_time_in_twenty(test):
    """Each cell is 500 draws, of which three standard errors are 2.9%; a cell above that is drawn again."""
    lines = [line for line in TRIALS["type_one"].lines(RESULTS) if test in line]
    assert all(line["repetitions"] == 500 and line["draws"] in (500, 1000) for line in lines)
    for synthetic in (True, False):
        share = np.array([line[test] for line in lines if (line["dataset"] == "Synthetic") == synthetic])
        assert 0.035 <= share.mean() <= 0.06 and share.max() <= 0.05 + 0.029


def test_with_few_distinct_rows_label_shift_is_rejected_one_time_in_twenty():
    """Each line is 2000 draws, of which three standard errors are 1.5%."""
    lines = TRIALS["few_values_level"].lines(RESULTS)
    assert len(lines) == 8 and all(line["repetitions"] == 2000 for line in lines)
    assert all(0.03 <= line["rejected"] <= 0.07 for line in lines)


def test_moved_positives_are_seen_at_half_a_standard_deviation():
    lines = [x for x in TRIALS["power"].lines(RESULTS) if x["rows"] == 2000 and x["violation"] == 0.5]
    assert min(line["label_shift"] for line in lines) >= 0.8


def test_the_column_that_drifted_is_named_and_no_other():
    for line in TRIALS["drifted"].lines(RESULTS):
        assert line["others_named"] <= 0.07
        if line["rows"] == 2000 and line["drift"] > 0:
            assert line["named_first"] >= 0.9


# ---- any size


def test_a_score_fitted_to_twenty_thousand_rows_is_as_good_as_one_of_more():
    lines = TRIALS["fit_rows"].lines(RESULTS)
    some = [line["over_most"] for line in lines if line["fit_rows"] == 20_000]
    assert len(some) == len(lines) / 6 and max(some) < 1.09 and np.mean(some) < 1.02


def test_random_features_cost_little():
    lines = [line for line in TRIALS["features"].lines(RESULTS) if line["source_prior"] <= 0.8]
    of = {D: [line["over_exact"] for line in lines if line["features"] == D] for D in (128, 512, 4096)}
    assert max(of[512]) < 1.06 and max(of[4096]) < 1.02
    assert np.mean(of[128]) > np.mean(of[512]) > np.mean(of[4096])


def test_intervals_without_rows_cover_as_those_from_rows_do():
    lines = TRIALS["sketches"].lines(RESULTS)
    for method, rows in (("sketch", "tcpu"), ("histogram", "rows")):
        covered, of_rows = column(lines, f"coverage_{method}"), column(lines, f"coverage_{rows}")
        assert covered.mean() >= 0.94 and covered.mean() >= of_rows.mean() - 0.01
        assert covered.min() >= 0.9  # of 50 or 100 draws


def test_private_intervals_cover_and_widen():
    lines = TRIALS["released"].lines(RESULTS)
    assert column(lines, "coverage").min() >= 0.94


def test_km2_talks_no_high_prior_down_and_few_labels_are_covered():
    """With 25 positives KM2's limit means 40% less error from π = 0.5 on, and an eighth more below."""
    lines = [line for line in TRIALS["few_labels"].lines(RESULTS) if line["labels"] == 25]
    high, low = (
        [np.mean([x[f"error_{rule}"] for x in lines if (x["source_prior"] > 0.3) is above])
         for rule in ("asked", "believed")] for above in (True, False)
    )  # fmt: skip
    assert high[0] / high[1] == pytest.approx(0.6, abs=0.04) and low[0] / low[1] == pytest.approx(1.125, abs=0.03)
    assert np.mean([x["coverage_asked"] for x in lines]) >= 0.95


def test_sizes_take_the_time_and_memory_that_the_page_says():
    text = (ROOT / "benchmarks" / "results" / "any_size.jsonl").read_text(encoding="utf-8")
    lines = [json.loads(line) for line in text.splitlines()]
    most = {10_000: 1, 100_000: 2, 1_000_000: 5}
    in_memory = [x for x in lines if x["task"] == "in memory"]
    assert all(x["seconds"] <= most[x["rows"]] and x["peak_mb"] <= 600 for x in in_memory)
    streamed = [x for x in lines if x["task"].startswith("Parquet")]
    assert len(streamed) == 6 and all(x["peak_mb"] < 1000 and x["low"] <= 0.6 <= x["high"] for x in streamed)
    ratios = {x["task"]: x["ratio"] for x in lines if x["task"].startswith("plan")}
    assert all(ratio <= 12 for ratio in ratios.values())  # time grows with the rows, and what is fixed is small:
    assert all(x["fixed_seconds"] <= 2 for x in lines if x["task"].startswith("plan"))
    page = (ROOT / "docs" / "any-size.md").read_text(encoding="utf-8")
    for x in streamed:
        assert f"{x['seconds']:.0f} s, {x['peak_mb']} MB" in page
    for x in in_memory:
        size = f", {x['peak_mb']} MB" if x["rows"] == 1_000_000 else ""
        assert f"{x['seconds']:.1f} s{size} |" in page
    (further,) = (x["seconds"] for x in lines if x["task"] == "a further target")
    assert f"A further target of a million rows takes {further:.1f} s" in page


def test_km2_is_as_fast_on_real_tables_as_the_page_says():
    with (ROOT / "benchmarks" / "results" / "km_tables.csv").open(encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    new, old = (max(float(line[f"{tree}_seconds"]) for line in lines) for tree in ("new", "old"))
    assert new <= 5
    page = " ".join((ROOT / "docs" / "any-size.md").read_text(encoding="utf-8").split())
    assert f"on {len(lines)} problems of 4,000 rows from real tables it then takes at most {new:.1f} s" in page
    assert f"where it took up to {old:.0f} s before" in page


def test_routes_win_where_the_page_says():
    with (ROOT / "benchmarks" / "results" / "routes.csv").open(encoding="utf-8") as file:
        lines = {(int(x["columns"]), int(x["rows"]), x["route"]): x for x in csv.DictReader(file)}
    page = (ROOT / "docs" / "any-size.md").read_text(encoding="utf-8")
    for columns in (10, 30):
        for rows in (1000, 64_000):
            exact, single, sketched = (
                lines[columns, rows, route] for route in ("all pairs", "all pairs, float32", "512 random features")
            )
            assert (float(sketched["seconds"]) < float(single["seconds"])) == (rows > 16_000)
            assert float(sketched["standard_error"]) == pytest.approx(float(exact["standard_error"]), rel=0.03)
            cells = " | ".join(f"{float(x['seconds']):.3f} s" for x in (exact, single, sketched))
            assert f"| {rows:,} | {columns} | {cells} |" in page


def test_the_gpu_is_as_fast_as_the_page_says():
    text = (ROOT / "benchmarks" / "results" / "cuda.jsonl").read_text(encoding="utf-8")
    lines = [json.loads(line) for line in text.splitlines()]
    sums = {x["features"]: x for x in lines if x["task"] == "row and column sums"}
    assert all(sums[p]["pairs_per_second"] >= least for p, least in {10: 2.5e12, 30: 1.8e12, 128: 4.5e11}.items())
    assert sums[512]["over_tiled_torch"] >= 5 and all(x["error"] < 1e-6 for x in sums.values())
    page = " ".join((ROOT / "docs" / "any-size.md").read_text(encoding="utf-8").split())
    (million,) = (x["seconds"] for x in lines if x["task"] == "sums of a million by a million")
    assert f"On an H200 a million rows by a million take {million:.2f} s" in page
    assert f"{sums[10]['pairs_per_second'] / 1e12:.1f}·10¹² pairs a second" in page
    bootstrap, histogram = (
        next(x["ratio"] for x in lines if x["task"] == task)
        for task in ("TCPU with 500 bootstrap replicates", "a histogram of scores")
    )
    assert f"rows are {bootstrap:.0f} times as fast" in page and f"rows is {histogram:.0f} times as fast" in page


def test_many_machines_are_as_fast_as_the_page_says():
    with (ROOT / "benchmarks" / "results" / "many_machines.csv").open(encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    page = " ".join((ROOT / "docs" / "any-size.md").read_text(encoding="utf-8").split())
    assert len(lines) == 3 and all(float(x["speed_up"]) > 1.2 and f"{x['speed_up']} times" in page for x in lines)


def test_a_monitor_raises_few_false_alarms_and_is_not_asleep():
    lines = TRIALS["monitor_quiet"].lines(RESULTS)
    levels, others = ([line for line in lines if (line["rule"] == "level") == is_level] for is_level in (True, False))
    assert len(levels) == 10 and all(line["ever"] <= 0.05 for line in levels)
    assert all(line["ever"] >= 0.005 for line in levels if line["known"])
    assert len(others) == 12
    for line in others:
        alarms = 1000 * line["repetitions"] / (200 * line["multiple"])  # in runs of 1000 batches, run length 200
        assert 1 - 3 / alarms**0.5 < line["multiple"] < 5


def test_a_changed_share_is_not_taken_for_a_violation_of_label_shift_and_a_moved_column_is():
    lines = TRIALS["monitor_power"].lines(RESULTS)
    shares, columns = ([line for line in lines if line["change"] == kind] for kind in ("share", "column"))
    assert len(shares) == 16 and all(line["alarms"] <= 1 for line in shares)
    assert len(columns) == 8 and all(line["found"] >= 0.9 for line in columns)
    assert all(line["delay"] <= 20 for line in columns if line["share"] == 0.1)


@pytest.mark.xfail(strict=True, reason="of 4 delays one is 20.5 batches")
def test_a_moved_column_is_found_soon_if_the_share_changes_too():
    lines = [line for line in TRIALS["monitor_power"].lines(RESULTS) if line["change"] == "column"]
    assert all(line["delay"] <= 20 for line in lines if line["share"] != 0.1)


def _delays(distance):
    """Return the median delay of a monitor after 20 and after 500 quiet batches, for each size and change."""
    lines = [line for line in TRIALS["monitor_delay"].lines(RESULTS) if line["distance"] == distance]
    found = {(line["rows"], line["change"], line["shift"]): line["ours"] for line in lines}
    assert len(found) == 16
    return [(delay, found[rows, 500, shift]) for (rows, change, shift), delay in found.items() if change == 20]


def test_a_monitor_is_not_slower_after_a_long_quiet_history():
    assert all(late <= 1.25 * early for early, late in _delays(0.6))


@pytest.mark.xfail(strict=True, reason="of 8 pairs of delays one is 3 and 4 batches")
def test_a_monitor_of_separated_classes_is_not_slower_after_a_long_quiet_history():
    assert all(late <= 1.25 * early for early, late in _delays(1.0))


def test_a_monitor_is_almost_as_fast_as_a_chart_of_labels_where_rows_have_most_of_their_information():
    lines = [line for line in TRIALS["monitor_delay"].lines(RESULTS) if line["distance"] == 1.0]
    ratios = [line["ours"] / line["stated"] for line in lines]
    assert len(ratios) == 16 and sum(ratio <= 2.5 for ratio in ratios) >= 15 and max(ratios) < 3


def test_reading_became_faster_without_other_estimates():
    with (ROOT / "benchmarks" / "results" / "compare_trees.csv").open(encoding="utf-8") as file:
        lines = {
            line["call"]: {key: float(line[key]) for key in line if key != "call"} for line in csv.DictReader(file)
        }
    large, small = (lines[f"workbooks, π known, {rows} × 20 cells"] for rows in ("120,000", "30,000"))
    assert max(large["ratio"], small["ratio"]) <= 0.65  # "in about 60 % of the time", estimate included
    assert large["new_seconds"] < 4 * 1.2 * small["new_seconds"]  # four times as many cells
    assert lines["default, π known, 2,500 columns of Parquet"]["ratio"] < 0.2
    assert all(line["ratio"] < 1.1 for line in lines.values())
    for line in lines.values():
        assert abs(line["new_estimate"] - line["old_estimate"]) <= 0.05 * line["standard_error"]
