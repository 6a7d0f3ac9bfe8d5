#!/usr/bin/env python3
"""check_includes.py BUILD: compares what the compiler reads with budgets, independent of the clock.

BUILD is a finished Ninja build folder. The cost of a translation unit is the size of all files that
it includes, and its own, from Ninja's dependency log; the time to compile follows it. A finding is
a group of units that reads more than its budget.
"""
import collections
import os
import pathlib
import subprocess
import sys

MEGABYTE = 1_000_000
# For the preset `ci` with g++ 12 on Debian 12, about 10 % above the measured sizes. Raise a budget
# only in the commit that needs it, with the reason.
BUDGETS = {"src": 445, "tests": 555, "bench": 60}  # in megabytes


def group_of(unit):
    top = unit.split("/", 1)[0]
    return top if top in BUDGETS else "src"


def read_deps(text):
    """{object: [files]} from the output of `ninja -t deps`."""
    units, current = {}, None
    for line in text.splitlines():
        if not line.strip():
            current = None
        elif not line.startswith(" "):
            name, _, state = line.partition(": #deps ")
            current = units.setdefault(name, []) if state.endswith("(VALID)") else None
        elif current is not None:
            current.append(line.strip())
    return units


def measure(units, size_of):
    """Bytes by group, and by header its share of all bytes."""
    groups, headers = collections.Counter(), collections.Counter()
    for unit, files in units.items():
        for name in files:
            size = size_of(name)
            groups[group_of(unit)] += size
            headers[name] += size
    return groups, headers


def findings(groups):
    return [f"{group}: the units read {groups[group] / MEGABYTE:.0f} MB, and the budget is "
            f"{budget} MB; include less, or say in CONTRIBUTING.md why it has to grow"
            for group, budget in BUDGETS.items() if groups[group] > budget * MEGABYTE]


def main(folder):
    deps = subprocess.run(["ninja", "-C", folder, "-t", "deps"], capture_output=True, text=True,
                          check=True).stdout
    sizes = {}

    def size_of(name):
        if name not in sizes:
            path = pathlib.Path(folder, name)
            sizes[name] = os.path.getsize(path) if path.exists() else 0
        return sizes[name]

    groups, headers = measure(read_deps(deps), size_of)
    if not groups:
        print(f"{folder}: no unit has been compiled there")
        return 1
    for group, budget in BUDGETS.items():
        print(f"{group}: {groups[group] / MEGABYTE:.0f} of {budget} MB")
    print("read the most, over all units:")
    for name, size in headers.most_common(12):
        print(f"  {size / MEGABYTE:6.1f} MB  {name}")
    found = findings(groups)
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
