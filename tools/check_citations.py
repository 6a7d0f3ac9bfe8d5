#!/usr/bin/env python3
"""Every citation in the tree leads somewhere: links and anchors between pages, pages and their
sections, decisions, theorems and steps of commir.md, numbered decisions, diagnostics, paths, files.

What is checked:
  PAGE.md 4.3, 7.2 steps 3, 4, D12, theorem 1   sections, steps, decisions and theorems of a page
  D12, Theorem 1                                 of docs/reference/commir.md, wherever they stand
  decision 0012                                  a file of docs/decisions
  F209 (in src/ and in pages)                    a registered diagnostic
  [text](page.md#anchor)                         a file, and a heading or an `<a id>` of it
  src/lower/lower.h, tests/gpu/*                 a path, from the root of the tree
  `executor/wiring.h` (in a page)                the end of some path
A table of a page whose column is headed by a page's name holds citations of that page.
"""
import fnmatch
import functools
import pathlib
import posixpath
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SPECIFICATION = "docs/reference/commir.md"
# They contain patterns, and citations that lead nowhere on purpose.
UNREAD = {"tools/check_citations.py", "tools/check_layers.py", "tests/tools/checks_test.py"}
# They name diagnostics that were removed or never existed.
UNREGISTERED = {"CHANGELOG.md", "docs/errors.md"}
# Files that a build makes, or that come from elsewhere.
OUTSIDE = {"bench/cuda/texts.h", "cuda.h"}
TREE = r"(?:src|docs|tests|tools|bench|examples|cmake|packaging|\.ci)"

FENCE = re.compile(r"^(```|~~~).*?^\1[^\n]*$", re.M | re.S)
HEADING = re.compile(r"^#{1,6} +(.+?)\s*$", re.M)
IDENTIFIER = re.compile(r"<a id=\"([\w-]+)\">")
LINK = re.compile(r"\]\(([^()\s]+)\)")
INLINE = re.compile(r"`([^`\n]+)`")
# A line of a comment, a quoted text or a list may continue on the next.
BREAK = re.compile(r"\"?[ \t]*\n[ \t]*(?://+|#+|\*|\"|>)?[ \t]*")
PAGE = re.compile(r"(?<![\w./-])((?:[\w-]+/|\.\.?/)*[\w-]+\.md)(#[\w-]+)?(?:\]\([^()\s]*\))?")
WORD = re.compile(r"[\s,]*(sections?|decisions?|theorems?|rules?|steps?|appendix|and|to|[-–(])?\s*"
                  r"(?:([DQR]\d+)\b|([A-B]\.\d+|\d+(?:\.\d+)*)(?![\w%]|,\d))?", re.I)
BARE = re.compile(r"\b(?:(D\d{1,2})|Theorems? (\d+)(?:(?: to |–|-)(\d+))?)\b")
CODE = re.compile(r"\b[A-Z]\d{3}\b")
REGISTERED = re.compile(r"^HP_DIAG\(\s*(\w+)\s*,", re.M)
DECISION = re.compile(r"\bdecisions? (\d{4})\b")
PATH = re.compile(rf"(?<![\w./<>$*-])({TREE}/[\w./*-]*[\w*])")
# `tests/LABEL/MODULE`: any label, any module.
PLACEHOLDER = re.compile(r"(?<=/)[A-Z]{3,}(?=/|$)")
SOURCE_NAME = re.compile(r"(?:[\w*.-]+/)*[\w*-]+\.(?:h|cpp|cu|cuh|py|def|op|cir|md|css|js|\*)")


def slug(heading):
    """The anchor of a heading: lower case, without punctuation, spaces as hyphens."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
    return re.sub(r"[^\w\- ]", "", text).strip().replace(" ", "-")


class Page:
    """The parts of one Markdown file that can be cited."""

    def __init__(self, text):
        prose = FENCE.sub("", text)
        headings = HEADING.findall(prose)
        self.anchors = set(IDENTIFIER.findall(prose))
        for heading in headings:
            name, number = slug(heading), 0
            while name in self.anchors:
                number += 1
                name = f"{slug(heading)}-{number}"
            self.anchors.add(name)
        self.sections = {}
        for part in re.split(r"^(?=#{1,6} )", prose, flags=re.M):
            title = re.match(r"#+ +(?:Appendix )?(\d+(?:\.\d+)*|[A-Z]\.\d+)\.? ", part)
            if title:
                self.sections[title.group(1)] = set(re.findall(r"^(\d+)\. ", part, re.M))
        self.items = {f"{kind.upper()}{number}" for kind, number in
                      re.findall(r"<a id=\"([dqr])(\d+)\">", prose)}
        self.theorems = set(re.findall(r"\*\*Theorem (\d+)", prose))


class Tree:
    """The files of a tree, and the citable parts of its pages."""

    def __init__(self, root, names):
        self.root = root
        self.names = set(names)
        self.folders = {str(parent) for name in names for parent in pathlib.PurePath(name).parents}

    def has(self, path):
        path = PLACEHOLDER.sub("*", path)
        if "*" in path:
            return any(fnmatch.fnmatchcase(name, path) or fnmatch.fnmatchcase(name, path + "/*")
                       for name in self.names)
        return path.rstrip("/") in self.names | self.folders | OUTSIDE

    def has_ending(self, name):
        return name in OUTSIDE or any(fnmatch.fnmatchcase("/" + path, "*/" + name)
                                      for path in self.names)

    @functools.cached_property
    def diagnostics(self):
        """The registered codes."""
        codes = set()
        for name in self.names:
            if fnmatch.fnmatchcase(name, "src/support/diagnostics/*.def"):
                codes.update(REGISTERED.findall((self.root / name).read_text(encoding="utf-8")))
        return codes

    @functools.cache
    def page(self, name):
        return Page((self.root / name).read_text(encoding="utf-8"))

    def resolve(self, citing, name):
        """The page that `name` refers to in the file `citing`, or None."""
        beside = (pathlib.PurePath(citing).parent / name).as_posix()
        for path in (posixpath.normpath(beside), name):
            if path in self.names:
                return path
        ends = [path for path in self.names if path.endswith("/" + name)]
        return ends[0] if len(ends) == 1 else None


def cited(text):
    """(kind, name, section) of each citation in the text after a page's name."""
    position, kind, section, found = 0, "section", None, []
    while match := WORD.match(text, position):
        word, item, number = match.groups()
        if match.end() == position or not (word or item or number):
            break
        word = (word or "").lower().rstrip("s")
        if word in ("section", "theorem", "step"):
            kind = word
        elif word == "(":
            if kind != "section" or section is None or not number:
                break
            kind = "step"
        if item:
            found.append(("item", item, None))
        elif number:
            if kind == "section":
                section = number
            elif "." in number:
                kind, section = "section", number
            found.append((kind, number, section))
        elif word not in ("section", "decision", "theorem", "step", "rule", "appendix"):
            break
        position = match.end()
    return found


def missing(page, kind, name, section):
    """Whether `page` lacks the cited part."""
    if kind == "item":
        return name not in page.items
    if kind == "theorem":
        return name not in page.theorems
    if kind == "step":
        return name not in page.sections.get(section, ())
    return name not in page.sections


def describe(kind, name, section):
    return name if kind == "item" else f"{kind} {name}" + f" of {section}" * (kind == "step")


def check_pages(tree, name, text):
    """Names of pages with their cited parts, anywhere."""
    for match in PAGE.finditer(text):
        target = tree.resolve(name, match.group(1))
        if target is None:
            yield match.start(), f"there is no page `{match.group(1)}`"
            continue
        page = tree.page(target)
        anchor = match.group(2)
        if anchor and anchor[1:] not in page.anchors | set(page.sections):
            yield match.start(), f"`{target}` has no anchor `{anchor}`"
        for kind, cite, section in cited(BREAK.sub(" ", text[match.end():match.end() + 200])):
            if missing(page, kind, cite, section):
                yield match.start(), f"`{target}` has no {describe(kind, cite, section)}"


def check_tables(tree, name, text):
    """Columns of tables that have a page's name as their head."""
    column, page = None, None
    for match in re.finditer(r"^.*$", text, re.M):
        cells = match.group().split("|")
        if len(cells) < 3:
            column = None
        elif column is None:
            heads = [(at, tree.resolve(name, cell.strip(" `"))) for at, cell in enumerate(cells)
                     if cell.strip(" `").endswith(".md")]
            column, page = heads[0] if heads else (0, None)
        elif page and "---" not in match.group() and column < len(cells):
            for kind, cite, section in cited(cells[column]):
                if missing(tree.page(page), kind, cite, section):
                    yield match.start(), f"`{page}` has no {describe(kind, cite, section)}"


def check_links(tree, name, text):
    """Links of a page."""
    for match in LINK.finditer(text):
        path, _, anchor = match.group(1).partition("#")
        if re.match(r"[a-z]+:", path):
            continue
        target = name if not path else posixpath.normpath(
            (pathlib.PurePath(name).parent / path).as_posix())
        if not tree.has(target):
            yield match.start(), f"the link `{match.group(1)}` leads to no file"
        elif anchor and (not target.endswith(".md") or anchor not in tree.page(target).anchors):
            yield match.start(), f"`{target}` has no anchor `#{anchor}`"


def check_names(tree, text):
    """Names of files in a page's `code`."""
    for match in INLINE.finditer(text):
        token = match.group(1)
        if SOURCE_NAME.fullmatch(token) and not (tree.has(token) or tree.has_ending(token)):
            yield match.start(), f"there is no file `{token}`"


def check_anywhere(tree, name, text):
    """Decisions, theorems and paths, in any file."""
    if SPECIFICATION in tree.names:
        specification = tree.page(SPECIFICATION)
        for match in BARE.finditer(text):
            item, first, last = match.groups()
            if item and item not in specification.items:
                yield match.start(), f"`{SPECIFICATION}` has no {item}"
            for theorem in filter(None, (first, last)):
                if theorem not in specification.theorems:
                    yield match.start(), f"`{SPECIFICATION}` has no theorem {theorem}"
    for match in DECISION.finditer(text):
        if not tree.has(f"docs/decisions/{match.group(1)}-*"):
            yield match.start(), f"there is no decision {match.group(1)}"
    for match in PATH.finditer(text):
        beside = (pathlib.PurePath(name).parent / match.group(1)).as_posix()
        if not (tree.has(match.group(1)) or tree.has(beside)):
            yield match.start(), f"there is no `{match.group(1)}`"


def check_diagnostics(tree, text):
    """Codes of diagnostics."""
    families = {code[0] for code in tree.diagnostics}
    for match in CODE.finditer(text):
        code = match.group()
        if code[0] in families and code not in tree.diagnostics:
            yield match.start(), f"there is no diagnostic {code}"


def check_file(tree, name):
    """The citations of one file that lead nowhere, as lines to print."""
    text = (tree.root / name).read_text(encoding="utf-8")
    found = [*check_pages(tree, name, text), *check_anywhere(tree, name, text)]
    if name.startswith("src/") or name.endswith(".md") and name not in UNREGISTERED:
        found += check_diagnostics(tree, text)
    if name.endswith(".md"):
        prose = FENCE.sub(lambda fence: re.sub(r"[^\n]", " ", fence.group()), text)
        found += [*check_tables(tree, name, prose), *check_names(tree, prose)]
        found += check_links(tree, name, INLINE.sub(lambda code: " " * len(code.group()), prose))
    return [f"{name}:{text.count(chr(10), 0, at) + 1}: {what}" for at, what in sorted(set(found))]


def main():
    listing = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True,
                             capture_output=True, text=True).stdout
    names = [name for name in sorted(set(listing.splitlines())) if (ROOT / name).is_file()]
    tree = Tree(ROOT, names)
    findings = []
    for name in names:
        if name in UNREAD or name.endswith(".svg"):
            continue
        try:
            findings += check_file(tree, name)
        except UnicodeDecodeError:
            continue  # not a text
    print("\n".join(findings), end="\n" if findings else "")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
