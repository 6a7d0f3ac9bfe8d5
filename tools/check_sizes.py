#!/usr/bin/env python3
"""Files of at most 500 lines, functions of at most 60, lines of at most 100 columns."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FILE_LINES = 500
FUNCTION_LINES = 60
COLUMNS = 100

# The design's executable model, kept unchanged (tests/oracle/README.md).
AS_WRITTEN = {f"tests/oracle/{name}.py" for name in
              ("cir", "ref", "fuzz", "mutate", "neg", "plan", "redundant", "script", "surv")}
SOURCES = {".h", ".cpp", ".cuh", ".cu", ".py", ".cmake"}  # .def lists hold sentences

# Text in which braces and quotes have no meaning. Raw strings first.
BLANKED = re.compile(r'R"(\w*)\((?:.|\n)*?\)\1"|//[^\n]*|/\*(?:.|\n)*?\*/|"(?:\\.|[^"\\\n])*"'
                     r"|(?<![0-9A-Za-z_])'(?:\\.|[^'\\\n])+'|^[ \t]*#(?:\\\n|[^\n])*", re.M)
ACCESS = re.compile(r"\b(public|private|protected)\s*$")


def blank(text):
    """The text with comments, strings and preprocessor lines blanked; keeps its lines."""
    return BLANKED.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)


def opens_function(head, inside_function):
    """Whether the `{` after `head`, the text since the last statement, opens a function's body."""
    if inside_function or "(" not in head or head.count("(") != head.count(")"):
        return False
    if re.search(r"\b(namespace|class|struct|union|enum)\b[^()]*$", head):
        return False
    before_parenthesis = head.split("(")[0]
    return "=" not in before_parenthesis.replace("operator=", "").replace("==", "")


def is_member_initialiser(head):
    """`Foo() : a_` before `{` is one more member, not the body."""
    return bool(re.search(r"\)[^()]*:[^:].*[\w>]\s*$", head, re.S)) and not re.search(
        r"(\)|\bconst|\bnoexcept|\boverride|\bfinal)\s*$", head)


def functions(text):
    """(first line, lines, head) of every function; a lambda belongs to the enclosing function."""
    code = blank(text)
    found, stack = [], []
    head_start, position = 0, 0
    while position < len(code):
        char = code[position]
        if char == "{":
            head = code[head_start:position]
            inside = any(kind in ("function", "braces") for kind, _, _ in stack)
            if not inside and is_member_initialiser(head):
                stack.append(("braces", position, ""))
            elif opens_function(head, inside):
                start = head_start + len(head) - len(head.lstrip())
                stack.append(("function", start, " ".join(head.split())))
                head_start = position + 1
            else:
                scope = bool(re.search(r"\b(namespace|class|struct|union|enum|extern)\b", head))
                stack.append(("scope" if scope and not inside else "braces", position, ""))
                head_start = position + 1 if not inside and scope else head_start
        elif char == "}" and stack:
            kind, start, name = stack.pop()
            if kind == "function":
                first = code.count("\n", 0, start) + 1
                found.append((first, code.count("\n", start, position) + 1, name))
            if kind != "braces":
                head_start = position + 1
        elif char == ";" and not any(kind in ("function", "braces") for kind, _, _ in stack):
            head_start = position + 1
        elif char == ":" and ACCESS.search(code[head_start:position]):
            head_start = position + 1
        position += 1
    return found


def check_file(path):
    name = path.relative_to(ROOT).as_posix()
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    findings = []
    if len(lines) > FILE_LINES:
        findings.append(f"{name}: {len(lines)} lines; at most {FILE_LINES}")
    for number, line in enumerate(lines, 1):
        if len(line) > COLUMNS:
            findings.append(f"{name}:{number}: {len(line)} columns; at most {COLUMNS}")
    if path.suffix in (".h", ".cpp", ".cuh", ".cu"):
        for first, length, head in functions(text):
            if length > FUNCTION_LINES:
                findings.append(f"{name}:{first}: a function of {length} lines, at most "
                                f"{FUNCTION_LINES}: {head[:60]}")
    return findings


def main():
    findings = []
    for folder in ("src", "tests", "bench", "tools", "cmake"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in SOURCES and path.relative_to(ROOT).as_posix() not in AS_WRITTEN:
                findings += check_file(path)
    print("\n".join(findings), end="\n" if findings else "")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
