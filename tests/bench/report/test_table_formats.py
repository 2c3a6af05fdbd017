import csv as reader
import io
import json
from functools import partial

from costscape.bench import report

OURS = ("df2", "blend")
csv = partial(report.csv, ours=OURS)
latex = partial(report.latex, ours=OURS)
markdown = partial(report.markdown, ours=OURS)


def lines_of(text):
    return list(reader.DictReader(io.StringIO(text)))


def test_csv_starts_with_the_agreed_columns(store):
    assert (
        csv(store)
        .splitlines()[0]
        .startswith(
            "problem,method,seeds,regret_mean,regret_sd,gap_mean,cost_mean,fit_seconds,"
            "decide_seconds,refused,changes,difference,low,high,verdict,failed,paper_regret,device"
        )
    )


def test_csv_keeps_full_precision_and_labels(run):
    rows = [run(seed=i, regret=r, changes={"draws": 7}) for i, r in enumerate((0.1, 0.2))]
    (line,) = lines_of(csv(rows))
    assert line["method"] == "df2 draws=7"
    assert json.loads(line["changes"]) == {"draws": 7}
    assert float(line["regret_mean"]) == (0.1 + 0.2) / 2
    assert (line["seeds"], line["gap_mean"], line["difference"]) == ("2", "", "")


def test_csv_tells_verdicts_failures_refusals_and_the_papers_regret(store):
    wind = {line["method"]: line for line in lines_of(csv(store)) if line["problem"] == "wind"}
    assert wind["dfl-gmm3"]["verdict"] == "best opponent"
    assert wind["dfl-gmm3"]["failed"] == "1"
    assert wind["df2"]["verdict"] == "better"
    assert wind["df2"]["paper_regret"] == "60.9"
    assert wind["df2 points=50"]["paper_regret"] == ""
    assert wind["egl"]["refused"] == "EGL needs a point & a <loss>."


def test_markdown_has_a_table_a_problem_with_as_many_cells_in_every_line(store):
    text = markdown(store)
    assert [line for line in text.splitlines() if line.startswith("## ")] == [
        "## synthetic-convex",
        "## wind",
    ]
    tables = [part.splitlines() for part in text.split("\n\n") if part.startswith("|")]
    assert len(tables) == 3  # wind's settings have their own
    for lines in tables:
        assert len({line.count("|") for line in lines}) == 1


def test_markdown_shows_numbers_differences_and_remarks(store):
    lines = {
        line.split(" | ")[0][2:]: line for line in markdown(store).splitlines() if "|" in line
    }
    assert "| 60.00 (0.10) (3 seeds) | -6.00 [-6.75, -5.25]s better |" in lines["df2"]
    assert "better | cross-fitted | 3 | 20.0 | 0.500 | 60.90 (0.60) |" in lines["df2"]
    assert "66.00 (0.20) (3 seeds) failed (1 of 4) | best opponent |" in lines["dfl-gmm3"]
    assert "refused: EGL needs a point & a <loss>." in lines["egl"]


def test_a_tie_is_called_a_tie(run):
    rows = [run(method="cme", seed=i, regret=r) for i, r in enumerate((1.0, 2.0, 3.0))]
    rows += [run(method="df2", seed=i, regret=r) for i, r in enumerate((1.1, 1.9, 3.0))]
    assert "]s tie |" in markdown(rows)


def test_the_gap_has_a_column_just_where_it_is_known(store):
    convex, wind = markdown(store).split("## wind\n")
    assert "gap, mean (sd)" in convex
    assert "gap, mean (sd)" not in wind


def test_a_bar_in_a_sentence_does_not_break_the_markdown_table(run):
    rows = [run(), run(method="egl", regret=None, refused="p(a|x) is\nnot known.")]
    assert r"| egl | refused: p(a\|x) is not known. |" in markdown(rows)


def test_devices_have_a_column_where_there_are_several(run):
    one = markdown([run()])
    assert "Seconds on cpu: x86_64, 2 cores." in one
    assert "| device |" not in one
    two = markdown([run(), run(method="cme", device="NVIDIA H200")])
    assert "Compare seconds on one device only." in two
    line = next(line for line in two.splitlines() if line.startswith("| df2 "))
    assert "| 2.00 | 0.500 | cpu: x86_64, 2 cores |" in line


def test_a_table_of_several_kinds_of_fits_names_them(run):
    rows = [run(method=m, seed=s, regret=float(s)) for m in ("df2", "cme") for s in (0, 1)]
    words = "Each kind of fits has its own best opponent"
    assert words in markdown(rows)
    assert "| best opponent | single fit | 2 |" in markdown(rows)
    assert [line["kind"] for line in lines_of(csv(rows))] == ["cross-fitted", "single fit"]
    single = markdown([row for row in rows if row["method"] == "cme"])
    assert words not in single
    assert "| kind |" not in single


def test_what_tables_share_is_said_once(store):
    words = "Mean (standard deviation) over seeds; less is better."
    assert markdown(store).count("## ") > 1
    assert markdown(store).count(words) == 1
    assert markdown(store).startswith(words)
    assert latex(store).count(words) == latex(store).count("Data:")  # floats are read alone


def test_captions_name_the_data_and_the_limits_of_the_papers_numbers(run):
    text = markdown([run("inventory"), run("inventory", "cme", source="another")])
    assert "Data: another; made up." in text
    assert "not in our units" in text


def test_data_drawn_by_seed_are_named_once(run):
    rows = [run(seed=seed, source=f"three Gaussians, seed {seed}") for seed in range(12)]
    assert "Data: three Gaussians, drawn by seed." in markdown(rows)


def test_latex_is_booktabs_with_balanced_braces_and_equal_columns(store):
    text = latex(store)
    assert text.count(r"\begin{table}") == text.count(r"\end{table}") == 3
    for rule in ("toprule", "midrule", "bottomrule"):
        assert text.count(rf"\{rule}") == 3
    bare = text.replace(r"\{", "").replace(r"\}", "")
    assert bare.count("{") == bare.count("}")
    for part in text.split(r"\begin{tabular}{")[1:]:
        width = part.index("}")
        body = part.split(r"\midrule")[1].split(r"\bottomrule")[0]
        for line in body.strip().splitlines():
            if "multicolumn" not in line:
                assert line.replace(r"\&", "").count("&") == width - 1


def test_latex_escapes_what_it_would_read_as_orders(run):
    words = r"50% of $x_1 & {y} ~ ^ # < > \end"
    text = latex([run(), run(method="a_b", regret=None, refused=words)])
    assert (
        r"50\% of \$x\_1 \& \{y\} \textasciitilde{} \textasciicircum{} \# \textless{} "
        r"\textgreater{} \textbackslash{}end"
    ) in text
    assert r"a\_b & \multicolumn" in text


def test_latex_sets_signs_as_mathematics_and_leaves_names_alone(store):
    line = next(x for x in latex(store).splitlines() if x.startswith("df2-paper &"))
    assert "$-$4" in line
    assert "``Decision regret of each method''" in latex(store)


def test_a_problem_that_every_method_refuses_is_still_told(run):
    rows = [run(method="egl", regret=None, refused="No loss.", fit_seconds=None)]
    assert "| egl | refused: No loss. |" in markdown(rows)
    assert "No loss." in latex(rows)
    assert lines_of(csv(rows))[0]["refused"] == "No loss."
