from functools import partial

from costscape.bench import report

overview = partial(report.overview, ours=("df2", "blend"))


def table(rows):
    head, measures, *lines = (line.split() for line in overview(rows).splitlines())
    return head, measures, {line[0]: line[1:] for line in lines}


def test_a_line_for_each_method_and_a_column_for_each_problem(run):
    rows = [
        run("synthetic-convex", "df2", gap=0.01),
        run("synthetic-convex", "cme", gap=0.02),
        run("wind", "df2", regret=60.0),
        run("wind", "egl", regret=None, refused="EGL needs a point."),
        run("wind", "lancer", regret=None, error="Traceback"),
    ]
    head, measures, found = table(rows)
    assert head == ["method", "synthetic-convex", "wind"]
    assert measures == ["gap", "regret"]
    assert found["df2"] == ["0.0100", "60.0"]
    assert found["cme"] == ["0.0200*", "-"]
    assert found["egl"] == ["-", "refused"]
    assert found["lancer"] == ["-", "failed"]


def test_what_is_better_than_the_best_opponent_is_marked(run):
    noise = (0.0, 0.1, -0.1)
    rows = [run(method="df2", seed=s, regret=60 + e) for s, e in enumerate(noise)]
    rows += [run(method="cme", seed=s, regret=70 - e) for s, e in enumerate(noise)]
    assert table(rows)[2] == {"df2": ["60.0+"], "cme": ["70.0*"]}


def test_what_a_single_seed_of_an_opponent_undercuts_is_not_marked(run):
    rows = [run(method="df2", seed=s, regret=60 + s / 10) for s in range(3)]
    rows += [run(method="cme", seed=s, regret=70 + s / 10) for s in range(3)]
    rows += [run(method="egl", seed=0, regret=59.0)]
    found = table(rows)[2]
    assert found == {"df2": ["60.1"], "cme": ["70.1*"], "egl": ["59.0", "n=1"]}


def test_fewer_seeds_than_others_are_said(run):
    rows = [run(seed=s) for s in range(3)] + [run(method="cme", seed=0, regret=2.0)]
    assert "2.00* n=1" in overview(rows)


def test_ours_come_first_and_ten_after_three(run):
    names = ["two-stage-gmm10", "two-stage-gmm3", "cme", "df2"]
    found = table([run(method=name) for name in names])[2]
    assert list(found) == ["df2", "cme", "two-stage-gmm3", "two-stage-gmm10"]


def test_a_method_that_never_left_its_start_has_no_number_of_its_own(run):
    rows = [run("wind", "df2", seed, regret=60.0 + seed) for seed in (0, 1)]
    rows += [run("wind", "two-stage-gmm1", seed, regret=70.0 + seed) for seed in (0, 1)]
    start = {"chosen": {"epoch": 0}}
    rows += [run("wind", "so-ebm-gmm1", seed, regret=69.9 + seed, **start) for seed in (0, 1)]
    folds = {"chosen": {"fits": [{"epoch": 0}, {"epoch": 0}]}}
    rows += [run("wind", "dfl-pe+crossfit", seed, regret=80.0, **folds) for seed in (0, 1)]
    moved = {"chosen": {"fits": [{"epoch": 0}, {"epoch": 3}]}}
    rows += [
        run("wind", "egl", seed, regret=75.0, **(moved if seed else start)) for seed in (0, 1)
    ]
    *_, found = table(rows)
    assert found["so-ebm-gmm1"] == found["dfl-pe+crossfit"] == ["=", "two-stage"]
    assert found["two-stage-gmm1"] == ["70.5*"]  # not the method that repeats it
    assert found["egl"] == ["75.0"]
    text = report.markdown(rows, ours=("df2",))
    line = next(line for line in text.splitlines() if line.startswith("| so-ebm-gmm1"))
    assert "= two-stage" in line
    assert "70.4" not in line
    assert "(= two-stage in 1 of 2)" in text
    assert text.count('"= two-stage": in every run') == 1


def test_a_row_without_a_chosen_epoch_is_its_start_if_it_costs_the_same(run):
    def seeds(method, costs, **other):
        pairs = enumerate(costs)
        return [run("wind", method, i, regret=c, cost=1000 + c, **other) for i, c in pairs]

    rows = seeds("df2", [60.0, 61.0])
    rows += seeds("two-stage-gmm1", [70.0, 71.0]) + seeds("two-stage-pe", [90.0, 91.0])
    rows += seeds("so-ebm-gmm1", [69.9, 70.9, 50.0])  # 0.14 %; the third seed has no start
    rows += seeds("lodl-gmm1", [69.9, 70.8])  # 0.28 % on one seed
    rows += seeds("egl", [90.1, 90.9]) + seeds("taskmet", [80.0, 81.0])
    moved = seeds("dfl-gmm1", [69.5], chosen={"epoch": 4})
    cells = {cell.label: cell for cell in report.summarise([*rows, *moved], ("df2",))}
    same = {name for name, cell in cells.items() if cell.is_its_start}
    assert same == {"so-ebm-gmm1", "egl"}
    assert all(cells[name].difference is None for name in same)
    assert cells["lodl-gmm1"].is_best_opponent
    assert cells["lodl-gmm1"].remarks[-1] == "(= two-stage in 1 of 2)"
    text = report.markdown(rows, ours=("df2",))
    assert "= two-stage" in next(x for x in text.splitlines() if x.startswith("| so-ebm-gmm1"))
