#!/usr/bin/env python3
"""Every registered diagnostic is produced somewhere: `DiagCode::CODE` stands in a source of src/.

That each is also shown to a user, with its whole text, is held by tests/golden/coverage_test.cpp.
"""
import pathlib
import re
import sys

SRC = pathlib.Path(__file__).resolve().parent.parent / "src"
REGISTERED = re.compile(r"^HP_DIAG\(\s*(\w+)\s*,", re.M)


def main():
    sources = [path for path in SRC.rglob("*") if path.suffix in (".cpp", ".h")]
    produced = set()
    for path in sources:
        produced.update(re.findall(r"\bDiagCode::(\w+)", path.read_text(encoding="utf-8")))
    findings = []
    for path in sorted((SRC / "support/diagnostics").glob("*.def")):
        for code in REGISTERED.findall(path.read_text(encoding="utf-8")):
            if code not in produced:
                findings.append(f"{path.name}: {code} is produced nowhere in src/")
    print("\n".join(findings), end="\n" if findings else "")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
