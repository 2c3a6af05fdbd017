"""Put the tables of the kept rows into the README and docs/results.md, between their marks.

python benchmarks/write_tables.py
"""

from pathlib import Path

from costscape.report import markdown, overview, read_rows

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
BEGIN, END = "<!-- results: begin -->\n", "<!-- results: end -->\n"


def texts():
    """What stands between the marks of each file."""
    rows = read_rows(RESULTS)
    return {
        ROOT / "README.md": f"\n```text\n{overview(rows)}\n```\n\n",
        ROOT / "docs" / "results.md": f"\n{markdown(rows)}\n",
    }


def between(path):
    return path.read_text().split(BEGIN)[1].split(END)[0]


def main():
    for path, text in texts().items():
        before, rest = path.read_text().split(BEGIN)
        path.write_text(before + BEGIN + text + END + rest.split(END)[1])
        print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
