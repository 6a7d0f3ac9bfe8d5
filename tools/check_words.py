#!/usr/bin/env python3
"""Words that must not occur in the tree: unfinished work without an issue, and paths outside it."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SELF = pathlib.Path(__file__).resolve().relative_to(ROOT).as_posix()

RULES = [
    (re.compile(r"\b(TODO|FIXME|XXX|HACK)\b(?!\(#\d+\))"),
     "unfinished work needs its issue: `TODO(#12)`"),
    (re.compile(r"(?<![\w.])/(home|root|work|Users|mnt)/\w|bash_jobs|/\.library\b"),
     "a path of one machine; the tree runs from any clone"),
    (re.compile(r"\b([Ss]ub-?agent|[Cc]laude|[Aa]nthropic|[Cc]hat[Gg][Pp][Tt]|[Cc]opilot)\b"),
     "the project speaks of itself alone"),
]
# Links may only lead to hosts that last.
LINK = re.compile(r"https?://([\w.-]+)")
HOSTS = re.compile(r"(^|\.)(apache\.org|arxiv\.org|github\.com|perfetto\.dev|docs\.nvidia\.com|"
                   r"llvm\.org|cmake\.org|debian\.org|w3\.org|doi\.org)$")


def tracked_files():
    listing = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True,
                             capture_output=True, text=True).stdout
    return [name for name in sorted(set(listing.splitlines())) if (ROOT / name).is_file()]


def main():
    findings = []
    for name in tracked_files():
        if name == SELF:
            continue
        try:
            lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(lines, 1):
            for pattern, sentence in RULES:
                if pattern.search(line):
                    findings.append(f"{name}:{number}: {sentence}: {line.strip()[:80]}")
            for host in LINK.findall(line):
                if not HOSTS.search(host):
                    findings.append(f"{name}:{number}: a link to `{host}`, which is not in {SELF}")
    print("\n".join(findings), end="\n" if findings else "")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
