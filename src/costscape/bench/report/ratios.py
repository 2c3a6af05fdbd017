"""The zoo as a table: regrets as ratios to the best opponent of each problem.

    ratio = regret of the method / least regret of a cross-fitted opponent

Below 1 the method decides better than every opponent on that problem. The best opponent is
chosen by its test regret, which flatters the opponents.
"""

from collections import defaultdict
from collections.abc import Sequence

from costscape.bench.report.number_format import number
from costscape.bench.report.read_rows import Row
from costscape.bench.report.result_tables import text_table

OURS = ("df2", "blend")  # the first word of a method's name, up to "-" or "+"
CROSSFIT = "+crossfit"
NOT_RUN = "-"


def ratios(rows: Sequence[Row]) -> str:
    """A line for each problem, then the mean and the worst ratio of each method.

    Methods of ours are columns; opponents are the rows' methods that end in "+crossfit".
    """
    regret: dict[str, dict[str, float]] = defaultdict(dict)
    for row in rows:
        if row["regret"] is not None and not row["quick"]:
            regret[row["problem"]][row["method"]] = row["regret"]
    ours = sorted({name for found in regret.values() for name in found if _is_ours(name)})
    lines, columns = [], {name: list[float]() for name in ours}
    for problem, found in sorted(regret.items()):
        rivals = {name: value for name, value in found.items() if name.endswith(CROSSFIT)}
        best = min(rivals, key=rivals.__getitem__, default=None)
        line = {"problem": problem, "best opponent": best or NOT_RUN, "regret": NOT_RUN}
        if best is not None:
            line["regret"] = number(rivals[best], 4)
        for name in ours:
            line[name] = NOT_RUN
            if name in found and best is not None and rivals[best] > 0:
                columns[name].append(found[name] / rivals[best])
                line[name] = f"{columns[name][-1]:.3f}"
        lines.append(line)
    for title, of in (("mean", lambda all_: sum(all_) / len(all_)), ("worst", max)):
        last = {"problem": title, "best opponent": "", "regret": ""}
        lines.append(last | {n: f"{of(v):.3f}" if v else NOT_RUN for n, v in columns.items()})
    return text_table(lines)


def _is_ours(name: str) -> bool:
    return name.partition("+")[0].partition("-")[0] in OURS
