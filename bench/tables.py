"""The results of `harpe bench` as rows, means and tables, for the scripts beside it."""
import dataclasses
import json
import math
import pathlib


@dataclasses.dataclass(frozen=True)
class Row:
    """One case of a family. Times are in microseconds, None if not measured."""
    family: str
    ranks: int
    case: str
    parameters: tuple = ()
    ours: float | None = None
    schedule: str = ""
    theirs: float | None = None
    baseline: str = ""
    limit: float | None = None
    predicted_bytes: int | None = None  # of a rank's memory, under the schedule
    measured_bytes: int | None = None
    note: str = ""  # why it has no time

    @property
    def ratio(self):
        """The baseline's time over Harpe's."""
        return self.theirs / self.ours if self.ours and self.theirs else None

    @property
    def over_limit(self):
        return self.ours / self.limit if self.ours and self.limit else None

    @property
    def theirs_over_limit(self):
        return self.theirs / self.limit if self.theirs and self.limit else None

    @property
    def memory(self):
        """The predicted memory over the measured memory."""
        if not self.predicted_bytes or not self.measured_bytes:
            return None
        return self.predicted_bytes / self.measured_bytes


def entry_of(case, name):
    """A case's entry for one contender."""
    return next((entry for entry in case.get("entries", []) if entry["name"] == name), {})


def note_of(case):
    """Why a case has no time of Harpe: it was skipped, or its contenders' reasons."""
    if "skipped" in case:
        return case["skipped"]
    if case.get("ours_us") is not None:
        return ""
    reasons = [f"{entry['name']}: {entry['reason']}" for entry in case.get("entries", [])
               if not entry["baseline"] and "reason" in entry]
    return "; ".join(reasons) or "nothing of ours ran"


def row_of(document, case):
    memory = entry_of(case, case.get("schedule")).get("memory") or {}
    return Row(family=document["suite"], ranks=document["ranks"], case=case["case"],
               parameters=tuple(case.get("parameters", ())), ours=case.get("ours_us"),
               schedule=case.get("schedule") or "", theirs=case.get("baseline_us"),
               baseline=case.get("baseline") or "", limit=case.get("limit_us"),
               predicted_bytes=memory.get("planned_bytes"),
               measured_bytes=memory.get("taken_bytes") or memory.get("allocated_bytes"),
               note=note_of(case))


def rows_of(document):
    """Rows of the object that `harpe bench --json` writes."""
    return [row_of(document, case) for case in document["cases"]]


def read_documents(paths, command):
    """Every object of this command in files and folders, in order."""
    documents = []
    for path in map(pathlib.Path, paths):
        for file in sorted(path.glob("*.json")) if path.is_dir() else [path]:
            document = json.loads(file.read_text(encoding="utf-8"))
            if isinstance(document, dict) and document.get("command") == command:
                documents.append(document)
    return documents


def merge(rows):
    """Of rows for one case on equally many ranks, keeps the last with a time of Harpe, else the
    last."""
    merged = {}
    for row in rows:
        key = (row.family, row.ranks, row.case)
        if key not in merged or row.ours or not merged[key].ours:
            merged[key] = row
    return list(merged.values())


def geometric_mean(values):
    values = [value for value in values if value]
    if not values:
        return None
    return math.exp(sum(map(math.log, values)) / len(values))


@dataclasses.dataclass(frozen=True)
class Summary:
    """A family on a number of ranks: geometric means and worst cases."""
    family: str
    ranks: int
    timed: int  # cases with a time of Harpe
    compared: int  # those of them with a baseline time
    cases: int
    ratio: float | None
    worst: Row | None  # by ratio
    best: Row | None
    over_limit: float | None
    theirs_over_limit: float | None
    farthest: Row | None  # from the limit
    memory: float | None


def summary_of(rows):
    """Requires: rows of one family on equally many ranks."""
    compared = [row for row in rows if row.ratio]
    limited = [row for row in rows if row.over_limit]
    return Summary(
        family=rows[0].family, ranks=rows[0].ranks, cases=len(rows), compared=len(compared),
        timed=sum(row.ours is not None for row in rows),
        ratio=geometric_mean(row.ratio for row in compared),
        worst=min(compared, key=lambda row: row.ratio, default=None),
        best=max(compared, key=lambda row: row.ratio, default=None),
        over_limit=geometric_mean(row.over_limit for row in limited),
        theirs_over_limit=geometric_mean(row.theirs_over_limit for row in limited),
        farthest=max(limited, key=lambda row: row.over_limit, default=None),
        memory=geometric_mean(row.memory for row in rows))


def summaries_of(rows):
    groups = {}
    for row in rows:
        groups.setdefault((row.family, row.ranks), []).append(row)
    return [summary_of(group) for group in groups.values()]


def print_ratio(value):
    return "-" if value is None else f"{value:.2f}"


def print_us(value):
    return "-" if value is None else f"{value:,.0f}"


def print_table(lines):
    """Columns have the width of their widest cell; the first line is the head."""
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return "".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() + "\n"
                   for line in lines)


def print_markdown(lines):
    head, *rest = lines
    return "".join("| " + " | ".join(cells) + " |\n" if cells else "|" + "---|" * len(head) + "\n"
                   for cells in [head, None, *rest])


def case_lines(rows, code=""):
    """The table of docs/benchmarks/plan_times.md; `code` encloses the names of families."""
    lines = [["case", "ours", "theirs", "theirs / ours", "limit", "ours / limit"]]
    for row in rows:
        ours = f"{print_us(row.ours)} {row.schedule}" if row.ours else row.note
        lines.append([f"{code}{row.family}{code} {row.case}", ours, print_us(row.theirs),
                      print_ratio(row.ratio), print_us(row.limit), print_ratio(row.over_limit)])
    return lines


def summary_lines(summaries):
    lines = [["family", "ranks", "cases", "theirs/ours", "worst", "", "ours/limit", "worst", "",
              "theirs/limit", "memory predicted/measured"]]
    for one in summaries:
        lines.append([one.family, str(one.ranks), f"{one.timed} of {one.cases}",
                      print_ratio(one.ratio), print_ratio(one.worst and one.worst.ratio),
                      one.worst.case if one.worst else "-", print_ratio(one.over_limit),
                      print_ratio(one.farthest and one.farthest.over_limit),
                      one.farthest.case if one.farthest else "-",
                      print_ratio(one.theirs_over_limit), print_ratio(one.memory)])
    return lines


def readme_lines(summaries):
    """Lines of README.md's table: speed-ups over NCCL + library, with their range."""
    lines = [["operator, number of cases", "ranks", "beside NCCL + library"]]
    for one in summaries:
        factor = "not measured"
        if one.ratio:
            direction = "faster" if one.ratio >= 1 else "slower"
            factor = (f"{print_ratio(one.ratio)}× {direction} "
                      f"({print_ratio(one.worst.ratio)}–{print_ratio(one.best.ratio)})")
        lines.append([f"`{one.family}`, {one.compared or one.timed}", str(one.ranks), factor])
    return lines
