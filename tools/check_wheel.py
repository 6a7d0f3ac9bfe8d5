#!/usr/bin/env python3
"""check_wheel.py WHEEL...: compares a wheel's contents with what docs/python.md states.

A wheel contains the package, one extension and the licences, but no file of NVIDIA's. The extension
links only the run-times of C and C++. Each finding is a line; the last line of a wheel has its
figures.
"""
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

PAGE = pathlib.Path(__file__).resolve().parents[1] / "docs/python.md"
LICENCES = ["fmt", "JSON for C++", "robin-map", "nanobind", "OpenSSL"]
RUN_TIMES = {"libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2"}
FOREIGN = re.compile(r"nvidia|nvrtc|cublas|cudnn|libcuda|cuda\.h", re.IGNORECASE)


def stated():
    """The oldest glibc and libstdc++ and the wheel's megabytes that the page states."""
    text = PAGE.read_text(encoding="utf-8")
    glibc = re.search(r"glibc (\d+\.\d+)", text).group(1)
    cxx = re.search(r"GLIBCXX_(\d+\.\d+\.\d+)", text).group(1)
    megabytes = re.search(r"wheel has (\d+\.\d) MB", text).group(1)
    return {"GLIBC": glibc, "GLIBCXX": cxx}, float(megabytes)


def number(version):
    return [int(part) for part in version.split(".")]


def least_versions(symbols):
    """{family: newest version} in the output of `readelf --version-info`."""
    versions = {}
    for family, version in re.findall(r"\b(GLIBC|GLIBCXX)_(\d+(?:\.\d+)+)", symbols):
        versions[family] = max(versions.get(family, version), version, key=number)
    return versions


def read_elf(option, path):
    return subprocess.run(["readelf", "--wide", option, path], check=True, text=True,
                          stdout=subprocess.PIPE).stdout


def check_names(names):
    """Files that a wheel must not contain, and files that it lacks."""
    extensions = [name for name in names if re.search(r"\.so(\.|$)", name)]
    if len(extensions) != 1 or not extensions[0].startswith("harpe/_harpe."):
        yield f"extensions are {extensions}, not one `harpe/_harpe.….so`"
    for name in names:
        if not re.match(r"harpe(-[\d.]+\.dist-info)?/", name) or FOREIGN.search(name):
            yield f"`{name}` does not belong in it"
    for ending in "/licenses/LICENSE", "/licenses/packaging/licenses/third-party.txt":
        if not any(name.endswith(".dist-info" + ending) for name in names):
            yield f"`{ending}` is missing"


def check_licences(text):
    for name in LICENCES:
        if not re.search(rf"^{re.escape(name)}  ", text, re.MULTILINE):
            yield f"third-party.txt does not name {name}"


def check_links(dynamic):
    for library in sorted(set(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)) - RUN_TIMES):
        yield f"the extension links {library}"


def check(path):
    """(findings, figures) of one wheel."""
    limits, megabytes = stated()
    with zipfile.ZipFile(path) as archive, tempfile.TemporaryDirectory() as folder:
        names = archive.namelist()
        findings = list(check_names(names))
        if findings:
            return findings, ""
        third = next(name for name in names if name.endswith("third-party.txt"))
        findings += check_licences(archive.read(third).decode())
        extension = archive.extract(next(n for n in names if n.endswith(".so")), folder)
        findings += check_links(read_elf("--dynamic", extension))
        versions = least_versions(read_elf("--version-info", extension))
        unpacked = sum(entry.file_size for entry in archive.infolist())
    for family, version in versions.items():
        if number(version) > number(limits[family]):
            findings.append(f"it needs {family}_{version}; docs/python.md says {limits[family]}")
    size = path.stat().st_size
    if size > 1.1e6 * megabytes:
        findings.append(f"it has {size / 1e6:.1f} MB; docs/python.md says {megabytes}")
    needs = ", ".join(f"{family}_{version}" for family, version in sorted(versions.items()))
    return findings, f"{size / 1e6:.2f} MB, {unpacked / 1e6:.2f} MB unpacked; needs {needs}"


def main():
    paths = [pathlib.Path(argument) for argument in sys.argv[1:]]
    if not paths:
        sys.exit(__doc__.strip())
    failed = False
    for path in paths:
        findings, figures = check(path)
        for finding in findings:
            print(f"{path.name}: {finding}")
        print(f"{path.name}: {figures}")
        failed = failed or bool(findings)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
