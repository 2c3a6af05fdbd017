"""The sentences around the tables of README and docs/results.md follow from the kept rows."""

import json
import sys
from collections import Counter
from functools import cache
from inspect import isabstract
from math import inf
from pathlib import Path
from statistics import mean, stdev

import pytest
import torch

from costscape import NearestNeighbours, TaskMet, methods
from costscape.bench import PROBLEMS
from costscape.bench.catalog import NEIGHBOURS
from costscape.bench.report import read_rows
from costscape.bench.report.number_format import interval
from costscape.bench.report.published_scheduling import COSTS
from costscape.bench.report.summary import summarise
from costscape.bench.search_space import LEAF, OWN, SPREAD
from costscape.methods.weighted import nearest_neighbours
from costscape.methods.weighted.forest_weights import TRIED
from costscape.methods.weighted.residual_saa import RIDGES
from costscape.problems.stock_orders.inventory_recipe import BAKERIES

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))  # scripts import each other
import quality  # noqa: E402

WORDS = [
    "no",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
]
# what has no network to train
PLAIN = ("constant", "proportional", "wsaa", "cme", "decision-forest", "residual-saa")


def text(name):
    return " ".join((ROOT / name).read_text().split())


@pytest.fixture(scope="module")
def rows():
    return [row for row in read_rows(ROOT / "results") if not row["quick"]]


@pytest.fixture(scope="module")
def differences():
    """The difference of df2 to the best cross-fitted opponent, by problem."""
    stretches = [line for line in lines_of(quality.CROSSFITTED) if "origins" not in line.problem]
    return {
        line.problem: line.first.difference
        for line in stretches
        if line.first is not None and line.best is not None
    }


@cache
def all_rows():
    return quality.read()


@cache
def lines_of(part):
    return quality.lines(all_rows(), part)


def line_of(problem, part):
    return next(line for line in lines_of(part) if line.problem == problem)


def test_the_sentence_below_the_table_of_the_readme(differences):
    verdicts = {problem: d.verdict for problem, d in differences.items()}
    d = differences["wind"]
    assert line_of("wind", quality.CROSSFITTED).best.label == "residual-saa-scaled+crossfit"
    shown = interval(d.mean, d.low, d.high)
    wind = f"On wind, where it beats mixtures, it ties with residual SAA ({shown})"
    assert wind in text("README.md")
    counted = Counter(verdicts.values())
    words = [WORDS[counted[verdict]] for verdict in ("tie", "worse")]
    assert (
        "The cross-fitted default is better than the best cross-fitted opponent on the convex "
        "synthetic problem (mixtures tie there), ties with it on {} problems and is worse on {}: "
        "the items 1 to 10, both shortest paths with costs of degree 6 and both with one resource "
        "of 50"
    ).format(*words) in text("README.md")
    convex = differences["synthetic-convex"]
    assert convex.n == 10
    means = []
    for k in (10, 3):
        names = ("df2", f"two-stage-gmm{k}+crossfit")
        pair = [
            row
            for row in quality.of_table(all_rows(), quality.CROSSFITTED)
            if row["problem"] == "synthetic-convex" and row["method"] in names
        ]
        ours, theirs = summarise(pair, quality.OURS)
        assert ours.difference.verdict == "tie"
        means.append(theirs.score.mean)
    means.append(ours.score.mean)
    shown = (
        f"({convex.mean:+.4f} [{convex.low:+.4f}, {convex.high:+.4f}], ten seeds; two mixtures "
        "there, {:.4f} and {:.4f} against {:.4f}, have wider intervals and tie)"
    ).format(*means)
    assert (
        "on one problem, the convex synthetic one {}, ties with it on {} and is worse on {}: the "
        "items 1 to 10, both shortest paths of degree 6 and both of one resource"
    ).format(shown, *words) in text("docs/contest.md")
    assert verdicts.pop("synthetic-convex") == "better"
    others = {p: v for p, v in verdicts.items() if v != "tie"}
    worse = ["inventory-items 1-10", "shortest-path-deg6", "shortest-path-linear-deg6"]
    worse += ["cubic-top1", "cubic-top1-linear"]
    assert others == dict.fromkeys(worse, "worse")


def test_all_tables_name_the_same_best_opponents():
    """`costscape paper table` has all kinds of fits in one table, quality.py has one for each."""
    of_all = {
        (cell.problem, cell.kind): cell.label
        for cell in summarise(all_rows(), quality.OURS)
        if cell.is_best_opponent
    }
    for part in quality.TITLES:
        for line in lines_of(part):
            if line.best is not None:
                assert of_all[line.problem, line.best.kind] == line.best.label, line.problem


def test_the_sentences_on_cross_fitted_residual_saa():
    page, pairs = text("docs/contest.md"), {}
    for problem, best in (
        ("wind", "residual-saa-scaled"),
        ("wind-farm", "two-stage-quantiles"),
        ("inventory", "cme"),
        ("inventory-items 1-10", "residual-saa-knn"),
    ):
        line = line_of(problem, quality.CROSSFITTED)
        assert line.best.label == f"{best}+crossfit"
        pairs[problem] = line.best.score.mean, line.ours["df2"].score.mean
        verdict = "worse" if problem == "inventory-items 1-10" else "tie"
        assert line.first.difference.verdict == verdict
    assert (
        "On wind-farm quantiles have {:.1f}, DF2 {:.1f}, a tie".format(*pairs["wind-farm"]) in page
    )
    words = "have the lowest mean, {:.2f}, and DF2 {:.2f}, a tie. On the items"
    assert words.format(*pairs["inventory"]) in page
    words = "residuals of the nearest rows has {:.2f}, DF2 {:.2f}"
    assert words.format(*pairs["inventory-items 1-10"]) in page
    mixtures = summarise(
        [
            row
            for row in quality.of_table(all_rows(), quality.CROSSFITTED)
            if row["problem"] == "wind" and row["method"].startswith(("df2", "two-stage-gmm"))
        ],
        quality.OURS,
    )
    assert next(cell for cell in mixtures if cell.label == "df2").difference.verdict == "better"
    blend = line_of("inventory-items 1-10", quality.CROSSFITTED).ours["blend"].score.mean
    assert f"and has {blend:.2f} on the items" in page
    folded = summarise(quality.of_table(all_rows(), quality.CROSSFITTED), quality.OURS)
    wind = {cell.label: cell.score.mean for cell in folded if cell.problem == "wind"}
    found = {cell.label: cell.score for cell in folded if cell.problem == "wind, 5 origins"}
    name = "residual-saa-scaled+crossfit"
    words = "with scaled residuals {:.1f}, DF2 {:.1f}, and at its five origins {:.1f}, DF2 {:.1f}."
    means = [wind[name], wind["df2"], found[name].mean, found["df2"].mean]
    assert words.format(*means) in page
    assert f"It ties with a flow forecast, {wind['two-stage-flow+crossfit']:.1f}." in page
    pair = [
        row
        for row in all_rows()
        if row["problem"] == "wind" and row["method"] in ("df2", "two-stage-flow+crossfit")
    ]
    cells = {cell.label: cell for cell in summarise(pair, quality.OURS)}
    assert cells["df2"].difference.verdict == "tie"
    items = "inventory-items 1-10, 5 origins"
    found = {cell.label: cell.score for cell in folded if cell.problem == items}
    knn = found["residual-saa-knn+crossfit"]
    assert knn.n == 10
    words = f"at the five origins of the items {knn.mean:.2f}, DF2 {found['df2'].mean:.2f}"
    assert words in page


def test_the_number_of_opponents_in_the_readme():
    made = {
        one
        for one in vars(methods).values()
        if isinstance(one, type) and issubclass(one, methods.Method)
    }
    final = {one for one in made if not isabstract(one)}
    opponents = final - {methods.DF2, methods.CrossFit, methods.Blend}
    assert f"and {len(opponents)} opponents with one contract" in text("README.md")


def test_half_of_the_networks_were_fitted_on_a_gpu_and_most_other_methods_on_a_cpu(rows):
    on_gpu = Counter((row["method"].startswith(PLAIN), "H200" in row["device"]) for row in rows)
    assert 0.4 < on_gpu[False, True] / (on_gpu[False, True] + on_gpu[False, False]) < 0.6
    assert on_gpu[True, False] > on_gpu[True, True]
    page = text("docs/results.md")
    assert (
        "About half of the networks were fitted on one H200, the others and most other methods on "
        "CPUs"
    ) in page
    assert "each row names its device, versions, data and commit" in page
    for row in rows:
        assert all(row[name] for name in ("device", "versions", "source", "commit"))


def test_every_row_has_a_cost_or_a_refusal(rows):
    assert all(row["cost"] is not None for row in rows if not row["refused"])


def test_the_sentence_on_searches_of_the_contest_page():
    page = text("docs/contest.md")
    tuned = {line.problem: line for line in lines_of(quality.TUNED)}
    assert "one network of DF2 ties with the best opponent on all three problems" in page
    assert {line.first.difference.verdict for line in tuned.values()} == {"tie"}
    best = {problem: line.best.label.removesuffix("+tuned") for problem, line in tuned.items()}
    assert best == {
        "synthetic-convex": "dfl-pe",
        "wind": "two-stage-quantiles",
        "inventory": "residual-saa-knn",
    }
    pairs = {
        p: (x.best.score.mean, x.ours["df2-quick+tuned"].score.mean) for p, x in tuned.items()
    }
    assert all(theirs < ours for theirs, ours in pairs.values())
    words = "DFL with a point forecast on synthetic-convex, {:.4f} against {:.4f}, residual SAA"
    assert words.format(*pairs["synthetic-convex"]) in page
    assert "quantiles have {:.1f} and DF2 {:.1f}".format(*pairs["wind"]) in page
    trials, lowest = Counter(), {}
    for path in (ROOT / "results" / "tuning").glob("*.jsonl"):
        for line in path.read_text().splitlines():
            trial = json.loads(line)
            pair = path.stem, trial["method"]
            trials[pair] += 1
            if trial["trial"] == 0 and not trial["method"].startswith(PLAIN):
                assert trial["made"] > "2026-11-17T21:26"  # since then all have one training
            lowest[pair] = min(lowest.get(pair, (inf, 0)), (trial["cost"], trial["trial"]))
    assert lowest["wind", "df2-quick"] < lowest["wind", "two-stage-quantiles"]
    assert lowest["wind", "df2-quick"][1] == 0  # "its default is its best trial"
    whole = Counter((p, m.startswith(PLAIN)) for (p, m), n in trials.items() if n == 20)
    assert whole == {
        ("wind", False): 16,
        ("wind", True): 8,
        ("synthetic-convex", False): 8,
        ("synthetic-convex", True): 6,
        ("inventory", False): 8,
        ("inventory", True): 4,
    }
    assert (
        "sixteen networks and eight other methods on wind, eight networks and six others on "
        "synthetic-convex, eight networks and four others on inventory"
    ) in page
    assert all(n == 20 for n in trials.values())
    assert "Kept searches have 20 trials for each method" in page


def test_the_sentence_on_the_lists_that_defaults_try(rows):
    page, ridges, wind = text("docs/contest.md"), {}, {}
    for row in rows:
        if row["method"].startswith("residual-saa") and row["chosen"].get("ridge"):
            if "+tuned" not in row["method"]:
                ridges.setdefault(row["problem"], set()).add(row["chosen"]["ridge"])
            if (row["problem"], row["seed"]) == ("wind", 0):
                wind[row["method"]] = row
    assert (max(RIDGES), min(RIDGES)) == (100, 1e-4)
    assert "Of its ridges, 1e-4 to 100, residual SAA takes the largest two in all fits on" in page
    largest = {problem for problem, found in ridges.items() if found <= {10.0, 100.0}}
    assert largest >= {"wind-farm", "vaccine", "cubic-top1", "cubic-top1-linear"}
    plain, tuned = wind["residual-saa"], wind["residual-saa+tuned"]
    ridge = tuned["chosen"]["ridge"]
    pair = f"from {plain['regret']:.1f} to {tuned['regret']:.1f}"
    assert f"found {ridge:.0f} between 10 and 100, which lowers its regret {pair}" in page
    trials = [
        json.loads(line)
        for line in (ROOT / "results" / "tuning" / "inventory.jsonl").read_text().splitlines()
    ]
    first, *others = (t for t in trials if t["method"] == "wsaa-forest")
    best = min(others, key=lambda t: t["cost"])
    less = 1 - best["cost"] / first["cost"]
    words = "the search on inventory took {}, at which a trial costs {:.0%} less"
    assert words.format(best["settings"]["min_leaf"], less).replace("%", " %") in page
    assert min(TRIED) == 5
    assert "Forests try leaves of 5 rows or more" in page


def test_the_sentences_on_problems_of_other_papers(rows, differences):
    page = text("docs/contest.md")

    def by_seed(problem, name):
        found = {}
        for row in rows:
            if row["problem"] == problem and row[name] is not None and not row["changes"]:
                found.setdefault(row["seed"], {})[row["method"]] = row[name]
        return found

    kept, runs = 0, 0
    for degree in (1, 4, 6):
        seeds = by_seed(f"shortest-path-deg{degree}", "gap")
        assert len(seeds) == 5
        for gaps in seeds.values():
            assert gaps["egl"] == gaps["two-stage-pe"]
            kept, runs = kept + (gaps["lodl-pe"] == gaps["two-stage-pe"]), runs + 1
    assert (
        f"EGL keeps the forecast it starts from, and so does LODL in {kept} of {runs} runs" in page
    )
    best = [
        line_of(f"shortest-path-deg{degree}", quality.CROSSFITTED).best.label for degree in (1, 4)
    ]
    assert best == ["residual-saa-scaled+crossfit", "two-stage-quantiles+crossfit"]
    assert "residual SAA at degree 1 and quantiles at degree 4" in page
    gaps = [
        mean(of[method] for of in by_seed("shortest-path-deg6", "gap").values())
        for method in ("two-stage-pe", "dfl-pe", "taskmet")
    ]
    sixth = by_seed("shortest-path-deg6", "gap").values()
    assert all(of["dfl-pe"] < of["two-stage-pe"] for of in sixth)
    words = "At degree 6 DFL and TaskMet gain on it, from {:.3f} to {:.3f} and {:.3f}"
    assert words.format(*gaps) in page
    verdicts = {}
    for degree in (1, 4, 6):
        line = line_of(f"shortest-path-deg{degree}", quality.SINGLE)
        theirs = "residual-saa-scaled" if degree == 1 else "two-stage-quantiles"
        assert line.best.label == theirs
        verdicts[degree] = line.first.difference.verdict
        gaps = [cell.score.mean for cell in (line.ours["df2-quick"], line.best)]
        if degree == 6:
            assert "has {:.3f} against {:.3f} of quantiles".format(*gaps) in page
    assert verdicts == {1: "tie", 4: "tie", 6: "worse"}
    assert {n: differences[f"shortest-path-deg{n}"].verdict for n in (1, 4, 6)} == verdicts
    line = line_of("shortest-path-deg6", quality.CROSSFITTED)
    gaps = [cell.score.mean for cell in (line.ours["df2"], line.best)]
    assert line.best.label == "two-stage-quantiles+crossfit"
    assert "a higher gap than quantiles at degree 6, {:.3f} against {:.3f}".format(*gaps) in page


def test_the_sentences_on_the_task_of_lancers_paper(rows):
    found = {}
    for row in rows:
        if row["problem"] == "shortest-path-linear-deg6":
            found.setdefault(row["method"], {})[row["seed"]] = row["gap"]
    means = {name: mean(gaps.values()) for name, gaps in found.items()}
    start, papers = found["two-stage-pe"], found["lancer-unsigned"]
    assert len(start) == 5
    assert all(papers[seed] < gap for seed, gap in start.items())
    assert found["lancer"] == start  # "keeps the forecast"
    page = text("docs/contest.md")
    pair = means["lancer-unsigned"], means["two-stage-pe"]
    words = "gains on all five seeds, {:.3f} from a least-squares forecast with {:.3f}"
    assert words.format(*pair) in page
    single = {name: gap for name, gap in means.items() if "+crossfit" not in name}
    networks = {n: g for n, g in single.items() if n != "df2" and not n.startswith(PLAIN)}
    first = ["two-stage-flow", "dfl-pe", "df2-quick", "taskmet"]
    assert sorted(networks, key=networks.get)[:4] == first
    words = f"DFL, {means['dfl-pe']:.3f}, and TaskMet, {means['taskmet']:.3f}, gain more"
    assert f"{words}, on all five seeds" in page
    assert all(found[m][seed] < papers[seed] for m in ("dfl-pe", "taskmet") for seed in start)
    energy, normal = found["so-ebm-gmm1"], found["two-stage-gmm1"]
    assert len(energy) == 5
    assert all(gap < normal[seed] for seed, gap in energy.items())
    pair = means["so-ebm-gmm1"], means["two-stage-gmm1"]
    words = "SO-EBM gains on all five seeds, {:.3f} from a Gaussian with {:.3f}."
    assert words.format(*pair) in page
    words = "with linear methods on all five, {:.3f} from {:.3f}"
    assert words.format(*pair) in text("docs/methods/forecasts.md")
    assert f"one network has {means['df2-quick']:.3f}." in page
    flows = means["two-stage-flow"], means["two-stage-flow+crossfit"], means["df2"]
    assert min(single, key=single.get) == "two-stage-flow"
    words = "they have {:.3f}, and cross-fitted {:.3f}, which is better than DF2's default, {:.3f}"
    assert words.format(*flows) in page
    line = line_of("shortest-path-linear-deg6", quality.CROSSFITTED)
    assert line.best.label == "two-stage-flow+crossfit"
    assert line.first.difference.verdict == "worse"
    assert f"Cross-fitted kernel mean embeddings have {means['cme+crossfit']:.3f}" in page


def test_the_sentences_on_scheduling(rows, differences):
    page = text("docs/contest.md")
    line = line_of("scheduling", quality.SINGLE)
    assert "On scheduling one network of DF2 has the lowest mean cost of all single fits" in page
    assert (line.best.label, line.first.difference.verdict) == ("dfl-gmm1", "tie")
    assert line.first.difference.mean < 0
    costs = {}
    for row in rows:
        if row["problem"] == "scheduling" and not row["changes"]:
            costs.setdefault(row["method"], {})[row["seed"]] = row["cost"]
    stayed = [
        r["chosen_epoch"]
        for r in rows
        if r["problem"] == "scheduling" and r["method"] == "so-ebm-gmm1"
    ]
    assert stayed == [0] * 5
    dfl, start = costs["dfl-gmm1"], costs["two-stage-gmm1"]
    assert len(dfl) == 5
    assert all(cost < start[seed] - 0.1 for seed, cost in dfl.items())
    means = [mean(each.values()) for each in (start, dfl)]
    assert "on all five seeds, from {:.2f} to {:.2f} a day".format(*means) in page
    assert costs["so-ebm-gmm1"] == start
    forecasts, energy = text("docs/methods/forecasts.md"), ("scheduling", "so-ebm-gmm1")
    published, theirs = COSTS["so-ebm-gmm1"][0], COSTS["two-stage-gmm1"][0]
    assert mean(start.values()) < published
    assert (
        f"on all five seeds it returns its start. Its paper has {published} from a start of "
        f"{theirs}"
    ) in page
    assert (
        f"all five seeds return the start, {mean(start.values()):.2f} a day; in the paper the "
        f"second stage lowers {theirs} to {published}"
    ) in forecasts
    seconds = [r["fit_seconds"] for r in rows if (r["problem"], r["method"]) == energy]
    assert f"a whole fit to scheduling takes {max(seconds):.0f} s beside others" in forecasts
    assert "DF2's default has the lowest mean, and ties with the Gaussian" in page
    assert line_of("scheduling", quality.CROSSFITTED).best.label == "two-stage-gmm1+crossfit"
    assert differences["scheduling"].verdict == "tie"
    assert differences["scheduling"].mean < 0


def test_the_sentences_on_one_resource_with_one_line(rows):
    page = text("docs/contest.md")
    found = {}
    for row in rows:
        if row["problem"] == "cubic-top1-linear" and row["regret"] is not None:
            searched = any(key in row["changes"] for key in ("rates", "rate"))
            name = (row["method"], "set" if searched else row["changes"].get("spread"))
            found.setdefault(name, {})[row["seed"]] = row["regret"]
    assert all(len(each) == 5 for (name, _), each in found.items() if name != "residual-saa")
    means = {name: mean(each.values()) for name, each in found.items()}
    egl, lodl = ("egl-directed", None), ("lodl-directed", 0.5)
    least, start = means["two-stage-pe", None], means["two-stage-gmm1", None]
    single = {name: value for name, value in means.items() if "+crossfit" not in name[0]}
    metric, dfl = ("taskmet", "set"), ("dfl-pe", "set")
    assert sorted(single, key=single.get)[:3] == [metric, egl, lodl]
    assert (
        f"it gains on all five seeds, and has the lowest mean of all single fits, "
        f"{means[metric]:.3f};"
    )
    assert found["taskmet", None] == found["two-stage-pe", None]  # "it keeps the start"
    low, high = sorted(found[dfl].values())[:3], sorted(found[dfl].values())[3:]
    words = (
        "gains on three seeds, {:.2f} to {:.2f}, and little on the other two, {:.2f} and {:.2f}"
    )
    assert words.format(low[0], low[-1], *high) in page
    assert max(found[egl].values()) < 0.25
    assert max(found[lodl].values()) < 0.3
    assert (
        f"EGL ({means[egl]:.2f}) and LODL ({means[lodl]:.2f}) with directed weights gain most of "
        f"what least squares, {least:.2f}, leaves"
    ) in page
    assert (
        f"With networks as losses they have {means['egl', None]:.2f} and "
        f"{means['lodl-pe', 0.5]:.2f}, and LODL with our default spread, 1.5, has "
        f"{means['lodl-pe', None]:.2f}"
    ) in page
    stock = {}
    for row in rows:
        if row["problem"] == "inventory" and not row["changes"]:
            stock.setdefault(row["method"], []).append(row["regret"])
    four = [mean(stock[name]) for name in ("lodl-pe", "lodl-directed", "egl", "egl-directed")]
    words = "LODL has {:.1f}, with directed weights {:.1f}, EGL {:.1f} and {:.1f}."
    assert f"On inventory networks as losses are the better form: {words.format(*four)}" in page
    assert four[0] < four[1]
    assert four[2] < four[3]
    ebm = means["so-ebm-gmm1", None]
    assert f"SO-EBM gains on all five seeds, {ebm:.2f} from a Gaussian with {start:.2f}" in page
    gained = found["so-ebm-gmm1", None].items()
    assert all(regret < found["two-stage-gmm1", None][seed] - 1 for seed, regret in gained)
    forecasts = text("docs/methods/forecasts.md")
    assert f"five seeds: regret {ebm:.2f}, from {start:.2f}" in forecasts
    assert f"have a regret of {means[lodl]:.2f} with 0.5, from {least:.2f}" in forecasts
    assert found["lodl-directed", None] == found["two-stage-pe", None]  # "keep the start"
    ours = means["df2-quick", None]
    folds, egl = means["df2", None], means["egl-directed+crossfit", None]
    assert (
        f"One network of DF2, {ours:.2f}, is hardly better there than a constant action, nor is "
        f"its cross-fitted default, {folds:.2f}, against {egl:.2f} of cross-fitted EGL"
    ) in page
    assert all(
        means["constant", None] - 0.2 < of < means["constant", None] for of in (ours, folds)
    )


def test_the_sentences_on_one_resource_with_a_network(rows):
    page = text("docs/contest.md")
    single = line_of("cubic-top1", quality.SINGLE)
    assert (single.best.label, single.first.difference.verdict) == ("taskmet", "worse")
    pair = single.best.score.mean, single.ours["df2-quick"].score.mean
    assert "and TaskMet, {:.4f}, than one network of DF2, {:.4f}".format(*pair) in page
    energy, start = (
        {r["seed"]: r["regret"] for r in rows if (r["problem"], r["method"]) == ("cubic-top1", m)}
        for m in ("so-ebm-gmm1", "two-stage-gmm1")
    )
    assert len(energy) == 5
    assert all(regret < start[seed] for seed, regret in energy.items())
    pair = mean(energy.values()), mean(start.values())
    assert "gains on all five seeds, {:.2f} from a Gaussian with {:.2f}".format(*pair) in page
    line = line_of("cubic-top1", quality.CROSSFITTED)
    assert line.best.label == "two-stage-quantiles+crossfit"
    pair = line.best.score.mean, line.ours["df2"].score.mean
    assert "quantiles, {:.4f}, are better than DF2's default, {:.4f}".format(*pair) in page


def test_the_sentences_on_one_network_on_wind_and_on_origins(rows):
    page = text("docs/contest.md")
    line = line_of("wind", quality.SINGLE)
    assert (line.best.label, line.first.difference.verdict) == ("policy-net", "tie")
    ours, theirs, paper = (
        cell.score.mean for cell in (line.ours["df2-quick"], line.best, line.ours["df2-paper"])
    )
    (nothing,) = {
        r["regret"]
        for r in rows
        if (r["problem"], r["method"], r["changes"]) == ("wind", "no-attention", {})
    }
    assert (
        f"On wind its mean regret, {ours:.1f}, is above that of a policy network, {theirs:.1f}, "
        f"with a wide interval, and above the {nothing:.1f} of bidding nothing at all; the "
        f"paper's settings have {paper:.1f}"
    ) in page
    verdicts = {
        line.problem: line.first.difference.verdict
        for line in lines_of(quality.SINGLE)
        if "origins" not in line.problem
    }
    assert "better" not in verdicts.values()
    assert "better than the best single opponent on no problem, and worse on six" in page
    assert {problem for problem, verdict in verdicts.items() if verdict == "worse"} == {
        *("shortest-path-deg6", "shortest-path-linear-deg6", "cubic-top1", "cubic-top1-linear"),
        *("ten bakeries", "restaurant"),
    }
    line = line_of("shortest-path-linear-deg6", quality.SINGLE)
    pair = line.ours["df2-quick"].score.mean, line.best.score.mean
    assert "linear methods ({:.3f}, flows {:.3f})".format(*pair) in page
    folded = summarise(quality.of_table(all_rows(), quality.CROSSFITTED), quality.OURS)
    (knn,) = (
        cell.score
        for cell in folded
        if (cell.problem, cell.label) == ("wind-farm, 5 origins", "residual-saa-knn+crossfit")
    )
    farm = line_of("wind-farm, 5 origins", quality.CROSSFITTED)
    assert knn.n == 1
    assert knn.mean < farm.best.score.mean
    pair = knn.mean, farm.ours["df2"].score.mean
    assert "that opponent on the farm, {:.1f}, DF2 {:.1f}".format(*pair) in page
    origins = [line for line in lines_of(quality.CROSSFITTED) if "5 origins" in line.problem]
    assert {line.first.difference.verdict for line in origins} == {"tie"}
    for name in ("inventory", "inventory-items 1-10"):
        line = line_of(f"{name}, 5 origins", quality.CROSSFITTED)
        pair = line.best.score.mean, line.ours["df2"].score.mean
        assert "{:.2f} against {:.2f}".format(*pair) in page
    single = {
        line.problem.removesuffix(", 5 origins"): line
        for line in lines_of(quality.SINGLE)
        if "5 origins" in line.problem
    }
    verdicts = {name: line.first.difference.verdict for name, line in single.items()}
    assert verdicts == {
        "wind": "tie",
        "wind-farm": "worse",
        "inventory": "tie",
        "inventory-store": "tie",
        "inventory-items 1-10": "tie",
    }
    farm, items = single["wind-farm"], single["inventory-items 1-10"]
    assert farm.best.label == "two-stage-quantiles"
    assert items.best.label.startswith("two-stage-gmm3")
    a, b, c, d = (
        score.mean
        for line in (farm, items)
        for score in (line.ours["df2-quick"].score, line.best.score)
    )
    assert f"worse than quantiles on wind-farm, {a:.1f} against {b:.1f}." in page
    assert f"where the mean of a mixture is lower, {d:.2f} against {c:.2f}" in page
    folds = {
        line.problem.removesuffix(", 5 origins"): line
        for line in lines_of(quality.CROSSFITTED)
        if "5 origins" in line.problem
    }
    assert {line.first.difference.verdict for line in folds.values()} == {"tie"}
    assert folds.keys() == {name.removesuffix(", 5 origins") for name in verdicts}
    behind = [folds["inventory"], folds["inventory-items 1-10"]]
    assert all(line.best.method.startswith("two-stage-gmm3") for line in behind)
    pairs = [
        f"{line.best.score.mean:.2f} against {line.ours['df2'].score.mean:.2f}" for line in behind
    ]
    assert f"the mean of that opponent, a mixture, is lower: {', and '.join(pairs)}" in page


def test_the_sentences_on_methods_without_rows(rows):
    import write_tables

    page, absent = text("docs/contest.md"), write_tables.absent(all_rows())
    assert {"dfl-pe", "taskmet", "lodl-gmmK"} <= set(absent["inventory-items 1-10"])
    items = [f"inventory-item{i}" for i in range(1, 11)]
    seeds = Counter((row["problem"], row["method"]) for row in rows)
    assert {seeds[p, f"{m}-gmm1"] for p in items for m in ("dfl", "so-ebm")} == {1}
    assert (
        "The items have no rows of DFL with points, nor of TaskMet and LODL with mixtures, and "
        "one seed of DFL and SO-EBM with one Gaussian."
    ) in page
    once = ("lodl-pe", "lodl-gmm1", "taskmet", "dfl-gmm1", "so-ebm-gmm1")
    assert {seeds["inventory-store", method] for method in once} == {1}
    assert "The store has one seed of LODL, TaskMet, and DFL and SO-EBM with one Gaussian." in page
    flows = Counter(r["problem"] for r in rows if r["method"] == "two-stage-flow")
    del flows["inventory, 5 origins"]
    five = {name for name, n in flows.items() if n >= 5}
    assert five == {
        *("synthetic-convex", "synthetic-nonconvex", "wind", "wind-farm", "inventory"),
        *(
            "inventory-store",
            "scheduling",
            "cubic-top1",
            "cubic-top1-linear",
            "shortest-path-linear-deg6",
        ),
        *(f"shortest-path-deg{degree}" for degree in (1, 4, 6)),
    }
    one = {name for name, n in flows.items() if n == 1}
    assert one == {"vaccine", "vaccine-wave", *items}
    assert flows.keys() == five | one
    assert (
        "have five seeds or more on both synthetic problems, wind, wind-farm, inventory, the "
        "store, scheduling, all shortest paths and both with one resource, one on the items and "
        "both vaccine problems, and none on the shelf"
    ) in page
    assert "inventory" not in absent  # it has a row of every method
    assert all("dfl-flow" in names for names in absent.values())
    assert Counter(r["problem"] for r in rows if r["method"] == "dfl-flow") == {"inventory": 1}
    farm = [r for r in rows if (r["problem"], r["method"]) == ("wind-farm", "two-stage-flow")]
    starts = [r["regret"] for r in farm if r["chosen_epoch"] == 0]
    assert (len(farm), len(starts), len(set(starts))) == (5, 4, 1)
    assert "on wind-farm four of its five fits return their start" in page
    single = quality.of_table(all_rows(), quality.SINGLE)
    cells = summarise([row for row in single if row["problem"] == "wind"], quality.OURS)
    opponents = [c for c in cells if not c.is_ours and "share" not in c.changes]
    wind = {c.label: c.score.mean for c in opponents if len(c.seeds) >= 5}
    assert sorted(wind, key=wind.get)[:2] == ["policy-net", "two-stage-flow"]
    assert f"the flow has the second lowest mean on wind, {wind['two-stage-flow']:.1f};" in page


def test_the_sentence_on_networks_trained_on_decisions_on_wind_farm():
    single = quality.of_table(all_rows(), quality.SINGLE)
    cells = summarise([row for row in single if row["problem"] == "wind-farm"], quality.OURS)
    farm = {cell.label: cell.score.mean for cell in cells}
    line = line_of("wind-farm", quality.SINGLE)
    assert (line.best.label, line.first.difference.verdict) == ("decision-forest", "tie")
    trained = ("so-ebm", "lancer", "policy-net", "lodl", "dfl", "taskmet", "egl")
    lowest = min(mean for name, mean in farm.items() if name.startswith(trained))
    assert 0.99 * farm["constant"] < lowest == farm["lodl-gmm3"]
    assert (
        "On wind-farm one network of DF2 has {df2-quick:.1f}, and ties with the forest grown on "
        "decisions, {decision-forest:.1f}. Opponents' networks that are trained on decisions are "
        "at most 1 % below the best constant action there, {constant:.1f}: LODL with three "
        "Gaussians has {lodl-gmm3:.1f}, with one {lodl-gmm1:.1f}, SO-EBM {so-ebm-gmm1:.1f}, "
        "LANCER {lancer:.1f}, the policy network {policy-net:.1f}, DFL {dfl-gmm1:.1f} and TaskMet "
        "{taskmet:.0f}."
    ).format(**farm) in text("docs/contest.md")


def test_the_sentences_on_so_ebm_and_its_start(rows):
    def regrets(problem, method):
        key = problem, method
        return {
            row["seed"]: row["regret"]
            for row in rows
            if (row["problem"], row["method"]) == key and not row["changes"]
        }

    forecasts = text("docs/methods/forecasts.md")
    energy, start = (regrets("wind", f"{m}-gmm1") for m in ("so-ebm", "two-stage"))
    assert all(energy[seed] > regret for seed, regret in start.items() if seed in energy)
    pair = mean(energy.values()), mean(start[seed] for seed in energy)
    assert "on wind it makes one Gaussian worse, {:.1f} from {:.1f}".format(*pair) in forecasts
    energy, start = (regrets("inventory", f"{m}-gmm1") for m in ("so-ebm", "two-stage"))
    assert len(energy) == 5
    assert all(start[seed] == regret for seed, regret in energy.items())
    assert "On inventory the second stage keeps its start on all five seeds" in forecasts
    energy, start = (regrets("wind-farm", f"{m}-gmm1") for m in ("so-ebm", "two-stage"))
    assert (len(energy), sum(energy[seed] < start[seed] for seed in energy)) == (5, 4)
    pair = mean(energy.values()), mean(start[seed] for seed in energy)
    assert "on wind-farm on four, {:.1f} from {:.1f}".format(*pair) in forecasts
    energy, start = (regrets("cubic-top1", f"{m}-gmm1") for m in ("so-ebm", "two-stage"))
    pair = mean(energy.values()), mean(start.values())
    assert "on `cubic-top1` on all five, {:.2f} from {:.2f}".format(*pair) in forecasts


def test_the_sentence_on_the_best_opponents_of_the_forecasts_page():
    best = {
        line.problem: line.best.method
        for line in lines_of(quality.CROSSFITTED)
        if "origins" not in line.problem
    }
    kinds = ("two-stage-quantiles", "two-stage-flow", "residual-saa")
    assert sum(name.startswith(kinds) for name in best.values()) > len(best) / 2
    assert best["synthetic-nonconvex"].startswith("two-stage-gmm")
    assert (
        "quantiles, flows and residual SAA are the best opponents of DF2 on most problems, a "
        "mixture with 1,000 draws is on the non-convex synthetic one"
    ) in text("docs/methods/forecasts.md")


def test_the_sentences_on_the_shelf(rows):
    page, readme = text("docs/contest.md"), text("README.md")
    single, folded = (
        [line_of(name, part) for name in quality.SHELF]
        for part in (quality.SINGLE, quality.CROSSFITTED)
    )
    assert [line.first.difference.verdict for line in folded] == ["tie", "tie", "tie"]
    assert [line.first.difference.verdict for line in single] == ["tie", "worse", "worse"]
    assert [line.best.method for line in folded] == [
        "two-stage-gmm3+levels+crossfit",
        "residual-saa-knn+levels+crossfit",
        "residual-saa-knn+crossfit",
    ]
    assert [line.best.method for line in single] == [
        "two-stage-gmm3+levels",
        "two-stage-quantiles+levels",
        "wsaa-forest",
    ]
    words = (
        "The cross-fitted default ties with the best cross-fitted opponent on all three: {:.2f} "
        "against {:.2f} of a mixture on the stores, {:.2f} against {:.2f} of residual SAA on the "
        "bakeries, {:.2f} against {:.2f} of the same on the restaurant."
    )
    means = [m for x in folded for m in (x.ours["df2"].score.mean, x.best.score.mean)]
    assert words.format(*means) in page
    words = (
        "One network of DF2 ties with a mixture on the stores, {:.2f} against {:.2f}, and is "
        "worse than quantiles on the bakeries, {:.2f} against {:.2f}, and than a random forest on "
        "the restaurant, {:.2f} against {:.2f}. Without levels quantiles have {:.2f} on the "
        "bakeries."
    )
    means = [m for x in single for m in (x.ours["df2-quick"].score.mean, x.best.score.mean)]
    cells = summarise([r for r in all_rows() if r["problem"] == quality.SHELF[1]], quality.OURS)
    (plain,) = (cell.score.mean for cell in cells if cell.label == "two-stage-quantiles")
    assert words.format(*means, plain) in page
    assert (
        "On nine stores, ten bakeries and a restaurant on whose rows [nothing was "
        "chosen](docs/contest.md#the-shelf), it ties with the best cross-fitted opponents, too; "
        "one network of DF2 is worse than the best single fits on bakeries and restaurant"
    ) in readme
    own = [row for row in rows if row["problem"].startswith(("bakery", "restaurant"))]
    assert len({row["commit"] for row in own}) == 1  # "at one time"
    assert {row["problem"] for row in own} == {"restaurant", *(f"bakery{n}" for n in BAKERIES)}


def test_ten_methods_or_more_have_five_seeds_on_every_problem():
    for problem in quality.PROBLEMS:
        many = {
            cell.label
            for cell in summarise([r for r in all_rows() if r["problem"] == problem], quality.OURS)
            if cell.score and len(cell.seeds) >= (2 if cell.method.startswith(PLAIN) else 5)
        }
        assert len(many) >= 10, (problem, many)
    assert "Every problem has ten methods or more with five seeds" in text("docs/contest.md")


@pytest.mark.parametrize("name", ["wind", "wind-farm"])
def test_the_plain_network_bids_nothing(rows, name):
    try:
        p = PROBLEMS[name](0)
    except FileNotFoundError:
        pytest.skip("the public data are not here")
    nothing = torch.zeros(len(p.data.test), p.task.feasible.dim)
    cost = float(p.task.cost(p.data.test.y, nothing).double().mean())
    found = [r for r in rows if (r["problem"], r["method"]) == (name, "no-attention")]
    assert len(found) == 5
    for row in found:
        assert row["cost"] == pytest.approx(cost, rel=1e-5)


def test_the_sentences_on_the_ends_of_ranges():
    page = text("docs/contest.md")
    best = {}
    for path in (ROOT / "results" / "tuning").glob("*.jsonl"):
        for trial in map(json.loads, path.read_text().splitlines()):
            key = path.stem, trial["method"]
            if trial["cost"] is not None and trial["cost"] < best.get(key, (inf, None))[0]:
                best[key] = trial["cost"], trial["settings"]
    spreads = [s["spread"] for _, s in best.values() if s.get("spread", 1) < 0.6]
    words = "ended at spreads of {:.2f} to {:.2f} {} times; their range begins at {:g}"
    count = {3: "three"}[len(spreads)]
    assert words.format(min(spreads), max(spreads), count, SPREAD.low) in page
    assert "200 below 400 and 50 below 80" in page
    assert (OWN[NearestNeighbours]["k"].high, max(nearest_neighbours.TRIED)) == (200, 400)
    assert (LEAF.high, max(TRIED)) == (50, 80)
    assert OWN[TaskMet]["rate"].high < 0.1
    assert "rounds" not in OWN[TaskMet]
    lines = (ROOT / "results" / "wind.jsonl").read_text().splitlines()
    wind = [row for row in map(json.loads, lines) if row["method"] == "residual-saa-knn"]
    knn = [row["chosen"]["k"] for row in wind]
    assert max(NEIGHBOURS) == 800
    assert f"800, in {knn.count(800)} of {len(knn)} fits" in page


def test_the_normalised_regrets_of_the_page_on_problems(rows):
    page = text("docs/problems.md")
    names = ("df2-quick", "two-stage-pe", "wsaa-knn", "policy-net", "constant")
    for row in rows:
        if (row["problem"], row["seed"]) == ("shortest-path-deg4", 0) and row["method"] in names:
            percent = 100 * row["regret"] / (row["cost"] - row["regret"])
            assert f"{percent:.2f} % for `{row['method']}`" in page


def test_on_vaccine_every_fitted_method_but_one_decides_best(rows):
    plain = ("no-attention", "proportional")
    found = [row for row in rows if row["problem"] == "vaccine" and not row["refused"]]
    assert {row["method"] for row in found if row["regret"] != 0} == set(plain)
    assert "Every fitted method but the plain network has a regret of 0" in text("docs/contest.md")


def test_the_sentences_on_the_vaccine_wave():
    page = text("docs/contest.md")
    lines = (ROOT / "results" / "vaccine-wave.jsonl").read_text().splitlines()
    wave = [row for row in map(json.loads, lines) if not row["quick"]]
    ours = [row for row in wave if row["method"] == "df2-quick"]
    stays = sum(row["chosen_epoch"] == 0 for row in ours)
    assert f"in {stays} of {len(ours)} runs no epoch decides better than that start" in page
    single = line_of("vaccine-wave", quality.SINGLE)
    mean, best = (cell.score.mean for cell in (single.ours["df2-quick"], single.best))
    assert single.best.label == "two-stage-gmm1"
    assert single.first.difference.verdict == "tie"
    assert f"a regret of {mean:,.0f}, a Gaussian forecast {best:,.0f}, with a wide" in page
    folds = line_of("vaccine-wave", quality.CROSSFITTED)
    assert folds.best.label == "two-stage-pe+crossfit"
    pair = [cell.score.mean for cell in (folds.ours["df2"], folds.best)]
    d = folds.first.difference
    shown = interval(d.mean, d.low, d.high)
    words = (
        "default has {:,.0f}, the cross-fitted point forecast {:,.0f}, with a wide interval, {}"
    )
    assert words.format(*pair, shown) in page
    assert (folds.best.score.n, folds.first.difference.verdict) == (5, "tie")
    origins = line_of("vaccine-wave, 8 origins", quality.SINGLE)
    assert "At eight origins it ties with the best forecast" in page
    assert origins.first.difference.verdict == "tie"
    assert origins.best.label.startswith("two-stage")
    pair = [cell.score.mean for cell in (origins.ours["df2-quick"], origins.best)]
    assert "{:,.0f} against {:,.0f}".format(*pair) in page
    by_origin = {}
    for row in wave:
        if "@" in row["problem"]:
            by_origin.setdefault(int(row["problem"][-4]), []).append(row["regret"])
    assert max(max(by_origin[i]) for i in (1, 2, 3, 4)) < 100
    default = [row["problem"] for row in wave if row["method"] == "df2" and "@" in row["problem"]]
    assert sorted(default) == [f"vaccine-wave@{i}of8" for i in range(1, 9)]
    folds = line_of("vaccine-wave, 8 origins", quality.CROSSFITTED)
    pair = [cell.score.mean for cell in (folds.ours["df2"], folds.best)]
    assert "{:,.0f}, the best of two cross-fitted forecasts {:,.0f}, a tie".format(*pair) in page
    assert folds.first.difference.verdict == "tie"
    opponents = {r["method"] for r in wave if "@" in r["problem"] and "crossfit" in r["method"]}
    assert len(opponents) == 2
    assert 1.01 * min(by_origin[5]) > max(by_origin[5])


def test_the_table_of_the_papers_ablations(rows):
    page = text("docs/contest.md")
    wind = {}
    for row in rows:
        if row["problem"] == "wind" and row["regret"] is not None:
            changes = tuple(sorted(row["changes"].items()))
            wind.setdefault((row["method"], *changes), []).append(row["regret"])

    def regrets(method, **changes):
        return wind[method, *sorted(changes.items())]

    def variants(name, *values):
        found = [regrets("df2-paper", **{name: v}) for v in values]
        assert all(len(each) == 5 for each in found)
        return found

    (plain,) = set(regrets("no-attention"))
    ours, equal = mean(regrets("df2-paper")), mean(regrets("df2-quick"))
    assert (
        f"on wind, with every seed, it bids nothing, which has {plain:.1f}; the paper's settings "
        f"have {ours:.1f}, one network of DF2 with equal training {equal:.1f}"
    ) in page
    dfl = [r for draws in (10, 50, 100, 500) for r in regrets("dfl-gmm1", draws=draws, epochs=5)]
    assert len(dfl) == 20
    points = [mean(found) for found in variants("points", 50, 100, 200, 500, 1000)]
    assert max(points) - min(points) < 1.5
    assert points[-1] > points[0]
    assert max(regrets("df2-paper", points=50)) < min(dfl)
    tenth, *_, whole = variants("share", 0.1, 0.25, 0.5, 0.75, 1.0)
    assert mean(tenth) < mean(whole)
    shares = (0.1, 0.25, 0.5, 0.75, 1.0)
    mixture = [regrets("two-stage-gmm3", share=part) for part in shares]
    assert all(len(each) == 5 for each in mixture)
    for one, other in zip(variants("share", *shares), mixture, strict=True):
        assert mean(one) < mean(other)
    assert min(map(mean, mixture)) == mean(mixture[0])
    pairs = [(mean(tenth), mean(mixture[0])), (mean(whole), mean(mixture[-1]))]
    (a, b), (c, d) = pairs
    assert f"{a:.1f} and {b:.1f} with the latest tenth, {c:.1f} and {d:.1f} with all" in page
    (fixed,) = variants("learn_values", False)
    assert f"not learned cost more: {mean(fixed):.1f} against {mean(whole):.1f}" in page
    actions = variants("actions", 5, 10, 20, 50, 100, 200)
    assert max(map(mean, actions)) - min(map(mean, actions)) < 1
    assert stdev(actions[0]) < 1.1 * stdev(actions[-1])
    large = [row for row in rows if row["method"] == "dfl-gmm1000" and "draws" in row["changes"]]
    stay = sum(row["chosen_epoch"] == 0 for row in large)
    assert f"with 1,000 components {stay} of {len(large)} runs keep their two-stage start" in page
    few, many = (regrets("dfl-gmm1", draws=n, epochs=5) for n in (10, 500))
    assert mean(many) > mean(few)


def test_the_table_of_schedules_on_the_zoo():
    sys.path.insert(0, str(ROOT / "benchmarks" / "zoo"))
    import schedules

    kept = schedules.read(schedules.KEPT)
    found = schedules.ratios(kept)
    page = text("docs/decision-quality.md")
    names = {
        "df2-quick": "DF2, one network",
        "two-stage-pe": "point forecast",
        "two-stage-gmm3": "mixture of 3",
        "two-stage-quantiles": "quantiles",
        "policy-net": "policy network",
    }
    columns = [(1e-2, 5), (3e-3, None), (1e-3, None), (1e-2, None)]
    everything = {column: [] for column in columns}
    for method, name in names.items():
        for column in columns:
            everything[column] += found[method, column] * (method != "df2-quick")
        cells = [f"{mean(of):.3f} ({max(of):.3f})" for of in (found[method, c] for c in columns)]
        assert f"| {name} | {' | '.join(cells)} |" in page
    cells = [f"{mean(of):.3f} ({max(of):.3f})" for of in everything.values()]
    assert f"| all opponents | {' | '.join(cells)} |" in page
    problems = {row["problem"] for row in kept}
    drawn = [problem for problem in problems if " seed " in problem]
    assert (len(problems) - len(drawn), len(drawn)) == (32, 10)
    assert "on 32 problems of the zoo and ten synthetic ones" in page
    seconds = {
        part: mean(row["seconds"] for row in kept if (row["rate"], row["part"]) == (3e-3, part))
        for part in (5, None)
    }
    assert 2.5 < seconds[None] / seconds[5] < 3.5  # "three times as long"


def test_the_table_of_second_stages_on_the_zoo():
    sys.path.insert(0, str(ROOT / "benchmarks" / "zoo"))
    import second_stages

    kept = second_stages.read(second_stages.KEPT)
    found, page = second_stages.ratios(kept), text("docs/decision-quality.md")
    for title, rates, stop in (
        ("0.3", (0.3,), True),
        ("0.1", (0.1,), True),
        ("0.03", (0.03,), True),
        ("0.3 and 0.03, as DFL has them", (0.3, 0.03), True),
        ("1 and 0.1", (1.0, 0.1), True),
        ("1, no early stopping", (1.0,), False),
        ("0.3 and 0.03, no early stopping", (0.3, 0.03), False),
        ("none: the first stage", (0,), True),
    ):
        ratios = [found[name, rates, stop] for name in (*second_stages.METHODS, "all")]
        cells = [f"{mean(of):.3f} ({max(of):.3f})" for of in ratios]
        assert f"| {title} | {' | '.join(cells)} |" in page
    problems = {row["problem"] for row in kept}
    drawn = [problem for problem in problems if " seed " in problem]
    assert (len(problems) - len(drawn), len(drawn)) == (16, 4)
    assert len(found["all", (1.0,), True]) == 3 * len(problems) - 2  # "two fits were not made"
    choices = [of for (name, rates, _), of in found.items() if name == "all" and rates != (0,)]
    assert min(map(mean, choices)) > 0.99  # "no choice is better by 1 %"
    assert 1 - 1 / mean(found["all", (0,), True]) > 1 / 3  # "gains a third"


def test_the_table_of_rounds_on_the_zoo():
    sys.path.insert(0, str(ROOT / "benchmarks" / "zoo"))
    import rounds
    import second_stages

    kept, page = rounds.read(rounds.KEPT), text("docs/decision-quality.md")
    found = rounds.of_times.ratios(kept)
    for title, choice in (
        ("0.3", (0.3,)),
        ("3", (3.0,)),
        ("0.3, 1 and 3, chosen on validation rows", rounds.TIMES),
    ):
        cells = [
            f"{mean(of):.3f} ({max(of):.3f})" for of in (found[m, choice] for m in rounds.METHODS)
        ]
        assert f"| {title} | {' | '.join(cells)} |" in page
    problems = {row["problem"] for row in kept}
    drawn = [problem for problem in problems if " seed " in problem]
    assert (len(problems) - len(drawn), len(drawn)) == (12, 4)
    others = {row["problem"] for row in second_stages.read(second_stages.KEPT)} - problems
    assert all(problem.startswith("zoo-item") for problem in others)  # whose x is a window
    assert [len(found[m, (1.0,)]) for m in rounds.METHODS] == [16, 15]  # "TaskMet refused one"
    assert round(100 * (max(found["lancer", (3.0,)]) - 1)) == 14


def test_the_table_of_spreads_on_the_zoo():
    sys.path.insert(0, str(ROOT / "benchmarks" / "zoo"))
    import spreads

    kept = spreads.read(spreads.KEPT)
    found, page = spreads.of_spread.ratios(kept), text("docs/decision-quality.md")
    for title, choice in (
        ("0.25", (0.25,)),
        ("0.5", (0.5,)),
        ("1", (1.0,)),
        ("0.5 and 1.5", (0.5, 1.5)),
        ("all four", spreads.SPREADS),
    ):
        ratios = [found[name, choice] for name in (*spreads.METHODS, "all")]
        cells = [f"{mean(of):.3f} ({max(of):.3f})" for of in ratios]
        assert f"| {title} | {' | '.join(cells)} |" in page
        if len(choice) == 1:
            assert mean(ratios[-1]) > 1.01  # "no other spread is better on average"
    assert 0.985 < mean(found["all", spreads.SPREADS]) < 0.995  # "gain 1 %"
    stays = {s: sum(r["epoch"] < 0 for r in kept if r["spread"] == s) for s in spreads.SPREADS}
    assert (
        f"{stays[0.25]} of {len(kept) // 4} fits with 0.25, {stays[0.5]} with 0.5, {stays[1.5]} "
        f"with 1.5"
    ) in page


def test_the_table_of_outcomes_of_both_kinds_on_the_zoo():
    sys.path.insert(0, str(ROOT / "benchmarks" / "zoo"))
    import both_kinds

    found = both_kinds.ratios(both_kinds.read(both_kinds.KEPT))
    page, groups = text("docs/decision-quality.md"), tuple(both_kinds.MEASURES)
    assert [len(found[group, "anchored"]) for group in groups] == [32, 10]
    for title, variant in (
        ("200 absolute", "absolute"),
        ("32 of each kind", "mixed32+32"),
        ("64 of each kind", "mixed64+64"),
    ):
        ratios = [found[group, variant] for group in groups]
        cells = [f"{mean(of):.3f} ({max(of):.3f})" for of in ratios]
        assert f"| {title} | {' | '.join(cells)} |" in page
    assert 0.985 < mean(found["zoo", "mixed32+32"]) < 0.995  # "gain 1 %"
    worse = {each: [ratio > 1 for ratio in found["synthetic", each]] for each in both_kinds.EACH}
    assert sum(worse["mixed64+64"][:5]) == 1  # "gain on four of five with a convex cost"
    assert all(sum(of[5:]) == 3 for of in worse.values())  # "both lose on three of five"


def test_the_table_of_families_in_a_blend_on_the_zoo():
    sys.path.insert(0, str(ROOT / "benchmarks" / "zoo"))
    import blends

    found, page = blends.ratios(blends.read(blends.KEPT)), text("docs/decision-quality.md")
    for title, name in (
        ("DF2's forms", "forms"),
        ("the usual ones and quantiles", "usual, quantiles"),
        ("the usual ones and three forms of residual SAA", "usual, residuals"),
        ("the usual ones, quantiles and residual SAA", "usual, residuals, quantiles"),
    ):
        assert f"| {title} | {mean(found[name]):.3f} ({max(found[name]):.3f}) |" in page
    both = found["usual, residuals, quantiles"]
    assert len(both) == 15
    gain = 1 - mean(found["usual, residuals"])
    words = f"residual SAA gains {gain:.1%}, quantiles nothing, and both together lose "
    words += f"{max(both) - 1:.1%} on one list"
    assert words.replace("%", " %") in page
    assert mean(found["usual, quantiles"]) > 1
    assert sum(ratio > 1.02 for ratio in both) == 1
    rows = blends.read(blends.KEPT)
    assert max(row["seconds"] for row in rows) < 240  # "less than four minutes"
    alone = blends.of_best(rows)
    usual, forms = (f"{mean(r):.3f} ({max(r):.3f})" for r in (alone["usual"], alone["forms"]))
    assert f"`Blend` has {usual} times the regret, DF2's forms {forms}" in page
    contest = text("docs/contest.md")
    assert f"alone have {mean(found['forms']):.3f} times its regret" in contest
    assert f"candidates it has {mean(both):.3f} times that regret" in contest


def test_all_rows_of_networks_have_the_present_training(rows):
    others = (*PLAIN, "df2-paper")  # the paper's settings have not changed
    networks = [
        row
        for row in rows
        if not row["method"].startswith(others)
        and "+tuned" not in row["method"]
        and not row["refused"]
    ]
    assert all(row["network"] is not None for row in networks)
    opponents = [row for row in networks if not row["method"].startswith(("df2", "blend"))]
    assert (
        f"The {len(networks):,} kept rows of networks, {len(opponents):,} of them of opponents, "
        f"were made with these terms"
    ) in text("docs/contest.md")


def test_the_sentence_on_second_stages(rows):
    def score(problem, method, name, **changes):
        key = problem, method, changes
        found = [r[name] for r in rows if (r["problem"], r["method"], r["changes"]) == key]
        assert len(found) == 5
        return mean(found)

    page = text("docs/contest.md")
    lancer, egl = (score("inventory", method, "regret") for method in ("lancer", "egl"))
    dfl = score("synthetic-nonconvex", "dfl-gmm1", "gap", draws=1000)
    assert f"now {lancer:.1f}; EGL 16.0 there, now {egl:.1f}" in page
    assert f"on synthetic-nonconvex, now {dfl:.3f}" in page


def test_the_sentence_on_so_ebm_on_shortest_paths(rows):
    means = {}
    for name in ("so-ebm-gmm1", "two-stage-gmm1"):
        key = ("shortest-path-deg1", name)
        gaps = [row["gap"] for row in rows if (row["problem"], row["method"]) == key]
        assert len(gaps) == 5
        means[name] = sum(gaps) / 5
    sentence = "the mean gap is {:.3f}, from {:.3f}, five seeds".format(*means.values())
    assert sentence in text("docs/methods/forecasts.md")
