"""The zoo as a table: regrets as ratios to the best opponent of each problem.

    ratio = regret of the method / least regret of a cross-fitted opponent

Below 1 the method decides better than every opponent on that problem. The best opponent is
chosen by its test regret, which flatters the opponents.
"""

from collections import defaultdict
from collections.abc import Sequence

from costscape.bench.report.fit_kinds import CROSSFIT
from costscape.bench.report.number_format import number
from costscape.bench.report.read_rows import Row
from costscape.bench.report.result_tables import text_table
from costscape.bench.report.summary import is_named

NOT_RUN = "-"


def ratios(rows: Sequence[Row], ours: Sequence[str]) -> str:
    """A line for each problem, then the mean and the worst ratio of each method.

    The methods of ``ours``, as for ``summarise``, are columns. Opponents are the other methods
    whose names end in "+crossfit".
    """
    regret: dict[str, dict[str, float]] = defaultdict(dict)
    for row in rows:
        if row["regret"] is not None and not row["quick"]:
            regret[row["problem"]][row["method"]] = row["regret"]
    named = sorted({n for regrets in regret.values() for n in regrets if is_named(n, ours)})
    lines, columns = [], {name: list[float]() for name in named}
    for problem, regrets in sorted(regret.items()):
        opponents = {n: v for n, v in regrets.items() if n.endswith(CROSSFIT) and n not in named}
        best = min(opponents, key=opponents.__getitem__, default=None)
        line = {"problem": problem, "best opponent": best or NOT_RUN, "regret": NOT_RUN}
        if best is not None:
            line["regret"] = number(opponents[best], 4)
        for name in named:
            line[name] = NOT_RUN
            if name in regrets and best is not None and opponents[best] > 0:
                columns[name].append(regrets[name] / opponents[best])
                line[name] = f"{columns[name][-1]:.3f}"
        lines.append(line)
    for title, of in (("mean", lambda all_: sum(all_) / len(all_)), ("worst", max)):
        last = {"problem": title, "best opponent": "", "regret": ""}
        lines.append(last | {n: f"{of(v):.3f}" if v else NOT_RUN for n, v in columns.items()})
    return text_table(lines)
