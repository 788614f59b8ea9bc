"""Ask for the known vulnerabilities of every package in constraints.txt.

pip-audit passes over what the advisory service says nothing about, and so over everything where the service cannot be
reached or is a mirror without advisories. Here that is a failure: what was not audited is not known to be safe.

    python -m hack.audit [--service pypi|osv]

Exit code: 0 when all packages were audited and have no known vulnerability, 1 when some have, 2 when some could not be
audited.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

CONSTRAINTS = Path(__file__).parents[1] / "constraints.txt"
_SHOWN = 5


def main(arguments: list[str] | None = None) -> int:
    """Print what pip-audit finds, and say whether that is everything."""
    parser = argparse.ArgumentParser(prog="hack.audit", description="Ask for known vulnerabilities of our packages.")
    parser.add_argument("--service", choices=["pypi", "osv"], default="pypi", help="who is asked (default: pypi)")
    service = parser.parse_args(arguments).service
    command = [sys.executable, "-m", "pip_audit", "--vulnerability-service", service]
    command += ["--requirement", str(CONSTRAINTS), "--no-deps", "--disable-pip", "--format", "json"]
    result = subprocess.run([*command, "--progress-spinner", "off"], capture_output=True, text=True, check=False)
    try:
        packages: list[dict[str, Any]] = json.loads(result.stdout)["dependencies"]
    except (ValueError, KeyError):
        reason = (result.stderr.strip().splitlines() or [f"pip-audit ended with exit code {result.returncode}"])[-1]
        return _not_audited(f"nothing was audited: {reason}", service)
    found = [_vulnerability(package, each) for package in packages for each in package.get("vulns") or []]
    for line in found:
        sys.stdout.write(f"{line}\n")
    skipped = [package for package in packages if "skip_reason" in package]
    if skipped or not packages:
        names = ", ".join(package["name"] for package in skipped[:_SHOWN]) + (", ..." if len(skipped) > _SHOWN else "")
        text = f"{len(skipped)} of {len(packages)} packages could not be audited: {names or 'there are none'}"
        return _not_audited(f"{text}: {skipped[0]['skip_reason']}" if skipped else text, service)
    sys.stdout.write(f"{len(packages)} packages audited, {len(found)} known vulnerabilities\n")
    return 1 if found else 0


def _vulnerability(package: dict[str, Any], found: dict[str, Any]) -> str:
    names = ", ".join([found["id"], *found.get("aliases", [])])
    fixed = ", ".join(found.get("fix_versions") or []) or "no release yet"
    return f"{package['name']} {package['version']}: {names}; fixed in {fixed}"


def _not_audited(problem: str, service: str) -> int:
    remedy = (
        f"Is the advisory service ({service}) reachable, and no mirror without advisories? Try again on a machine that "
        "reaches it, or ask another service: python -m hack.audit --service osv"
    )
    if problem.endswith("No module named pip_audit"):
        remedy = "`make audit` installs it"
    sys.stderr.write(f"error: {problem}\n{remedy}\n")
    return 2


if __name__ == "__main__":
    sys.exit(main())
