#!/usr/bin/env python3
"""Every registered diagnostic is produced somewhere, and names options and flags that are there.

Produced: `DiagCode::CODE` occurs in a source of src/. tests/golden/coverage_test.cpp checks that
each is also shown to a user with its whole text.

Options: `{option:NAME=VALUE}` in a text below the command line is a field of include/harpe, which
programs set, or one of COMMAND_LINE_ALONE. The command line writes it as a flag:

Flags: `harpe VERB ... --flag` names a flag of that verb. A flag alone, `--flag`, must be one of
every verb that EMITTED_BY lists for the code, and if a case of tests/golden shows the code, a flag
of the verb that the case runs. Diagnostics U10x are about flags as the user typed them.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SRC = ROOT / "src"
REGISTERED = re.compile(r"^HP_DIAG\(\s*(\w+)\s*,", re.M)
OPTION = re.compile(r"\{option:([a-z_]+)(?:=([^}]*))?\}")
SHOWN = re.compile(r"`([^`\n]*--[^`\n]*)`")

# Options that only the command line has.
COMMAND_LINE_ALONE = ("all backend cases collectives help inject input level list load measured "
                      "output share_gpus stage divide_gpus").split()
PLANNING = "lower run show simulate taxes tune verify"
# For diagnostics that name flags alone: the verbs that can emit them.
EMITTED_BY = {
    "G070": "bench run taxes tune profile",
    "G072": "bench run taxes tune",
    "G082": "bench run taxes tune",
    "G084": "bench run taxes tune",
    "I301": "run",
    "I305": "run",
    "I307": "run",
    "I501": "bench run taxes tune profile",
    "I505": "schedules tune",
    "S702": "tune",
    "S705": "tune",
    "S701": "tune",
    "U105": "run",
    "U115": "explain",
    "U117": "run",
    "U124": "verify",
    "U120": "show",
    "U131": "validate",
    "U133": PLANNING + " schedules",
}


def read_flags(text):
    """The flags of each verb in src/cli/flags.h."""
    flags = {}
    for name, rest in re.findall(r'Flag\{"([\w-]+)",(.*?)\}', text, re.S):
        for verb in re.findall(r"\bk([A-Z][a-z]+)\b", rest):
            flags.setdefault(verb.lower(), set()).add(name)
    return flags


def read_option_flags(text):
    """Options with another name as flags, from src/cli/flags.h: {option: "flag value"}."""
    return dict(re.findall(r'OptionFlag\{"(\w+)", "([^"]+)"\}', text))


def write_flags(text, other_flags):
    """`text` with options written as the command line writes them."""
    def flag(match):
        name, value = match.groups()
        return "--" + other_flags.get(name, name).replace("_", "-") + (" " + value if value else "")
    return OPTION.sub(flag, text)


def check_options(text, public):
    """Findings about options in a text; `public` are the public headers."""
    return [f"`{{option:{name}}}` is no field of include/harpe, nor of the command line alone"
            for name, _ in OPTION.findall(text)
            if name not in COMMAND_LINE_ALONE and not re.search(rf"\b{name}\b( =|;|\{{)", public)]


def read_diagnostics(text):
    """Code and text of each diagnostic, with adjacent strings joined."""
    starts = [(match.start(), match.group(1)) for match in REGISTERED.finditer(text)]
    ends = [start for start, _ in starts[1:]] + [len(text)]
    for (start, code), end in zip(starts, ends):
        strings = re.findall(r'"((?:[^"\\]|\\.)*)"', re.sub(r"(?m)^\s*//.*", "", text[start:end]))
        yield code, "".join(strings)


def check_flags(code, text, flags, verbs):
    """Findings about the flags in a diagnostic's text; `verbs` can emit it."""
    findings = []
    for shown in SHOWN.findall(text):
        named = re.match(r"(?:harpe )?([a-z]+) ", shown)
        verb = named.group(1) if named and named.group(1) in flags else None
        for flag in re.findall(r"--([a-z][\w-]*)", shown):
            if not any(flag in known for known in flags.values()):
                findings.append(f"{code} names `--{flag}`, which is a flag of no verb")
                continue
            everywhere = all(flag in known for known in flags.values())  # such as --help
            if not verb and not verbs and not everywhere:
                findings.append(f"{code} names `--{flag}`: say of which verb, or list in "
                                "EMITTED_BY those that can emit it")
            for one in [verb] if verb else verbs:
                if flag not in flags.get(one, ()):
                    findings.append(f"{code} names `--{flag}`, which `{one}` does not have")
    return findings


def check_case(name, text, flags):
    """The same for the errors in a golden case, each for the command before it."""
    findings = []
    verb = None
    for line in text.splitlines():
        command = re.match(r"harpe ([a-z]+)\b", line)
        if command:
            verb = command.group(1)
        error = re.match(r"error\[(\w+)\]: (.*)", line)
        if error and verb in flags and not error.group(1).startswith("U10"):
            found = check_flags(error.group(1), error.group(2), flags, [verb])
            findings += [f"{name}: {finding}" for finding in found]
    return findings


def main():
    sources = [path for path in SRC.rglob("*") if path.suffix in (".cpp", ".h")]
    produced = set()
    for path in sources:
        produced.update(re.findall(r"\bDiagCode::(\w+)", path.read_text(encoding="utf-8")))
    table = (SRC / "cli/flags.h").read_text(encoding="utf-8")
    flags, other_flags = read_flags(table), read_option_flags(table)
    public = "".join(path.read_text(encoding="utf-8")
                     for path in sorted((ROOT / "include/harpe").glob("*.h")))
    findings = []
    for path in sorted(SRC.rglob("*")):
        if path.suffix in (".cpp", ".h", ".def"):
            found = check_options(path.read_text(encoding="utf-8"), public)
            findings += [f"{path.relative_to(ROOT)}: {finding}" for finding in found]
    for path in sorted((SRC / "support/diagnostics").glob("*.def")):
        for code, text in read_diagnostics(path.read_text(encoding="utf-8")):
            if code not in produced:
                findings.append(f"{path.name}: {code} is produced nowhere in src/")
            verbs = EMITTED_BY.get(code, "").split()
            found = check_flags(code, write_flags(text, other_flags), flags, verbs)
            findings += [f"{path.name}: {finding}" for finding in found]
    for path in sorted((ROOT / "tests/golden").rglob("*.comm")):
        findings += check_case(path.name, path.read_text(encoding="utf-8"), flags)
    print("\n".join(findings), end="\n" if findings else "")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
