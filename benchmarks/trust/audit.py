"""Compare the installed packages with the public database of vulnerabilities, by pip-audit.

pip-audit ends with success when it could look nothing up. This script says how many packages it
has looked up, and fails if that is none.
"""

import json
import subprocess
import sys

AUDIT = (
    "-m",
    "pip_audit",
    "--local",
    "--skip-editable",
    "--progress-spinner",
    "off",
    "-f",
    "json",
)


def verdict(packages):
    """(sentences, exit status) of the packages in pip-audit's answer."""
    unknown = [package["name"] for package in packages if "skip_reason" in package]
    looked_up = len(packages) - len(unknown)
    if not looked_up:
        return [
            f"pip-audit could look up none of {len(packages)} packages, so nothing is known about "
            f"their vulnerabilities. Run make audit where https://pypi.org can be reached."
        ], 2
    bad = [
        f"{package['name']} {package['version']}: {hole['id']}, "
        f"repaired in {', '.join(hole['fix_versions']) or 'no version'}"
        for package in packages
        for hole in package.get("vulns", ())
    ]
    lines = [*bad, f"{len(bad)} known vulnerabilities in {looked_up} packages."]
    if unknown:
        lines.append(f"Not looked up: {', '.join(unknown)}.")
    return lines, int(bool(bad))


def main():
    done = subprocess.run([sys.executable, *AUDIT], capture_output=True, text=True, check=False)
    try:
        packages = json.loads(done.stdout)["dependencies"]
    except (json.JSONDecodeError, KeyError):
        reason = (done.stderr.strip().splitlines() or ["no answer"])[-1]
        lines, status = [f"pip-audit could look nothing up: {reason}"], 2
    else:
        lines, status = verdict(packages)
    print("\n".join(lines))
    return status


if __name__ == "__main__":
    sys.exit(main())
