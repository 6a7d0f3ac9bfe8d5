#!/usr/bin/env python3
"""Prints what each pass over launch plans contributes to predictions.

    tools/price_passes.py HARPE FOLDER [MACHINE]

FOLDER contains files `*_plans.jsonl`. Each line of the table has the median error and the bound of
nine of ten plans, in percent (docs/benchmarks/prediction_errors.md): for normal predictions, for
launch plans without one pass and without all passes, and for rows that ran with 16-bit partials or
with NCCL where that is faster.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

PASSES = ("join_panels", "batch_rows", "read_in_place", "fuse_copies", "store_at_peers",
          "add_at_home", "store_at_home", "store_replicas", "reserve_sms", "choose_variants",
          "bound_epochs", "all")
EXECUTIONS = {"16-bit partials": {"partials16": True}, "NCCL": {"collectives": "auto"}}


def predict(harpe, folder, machine, *options):
    """Cells of a line by operator, and the worst ratio of choices."""
    command = [harpe, "validate", "--measured", folder, *machine, *options, "--json", "-"]
    result = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    whole = next(row for row in result["agreement"] if row["family"] == "all")
    rows = {row["operator"]: row for row in result["operators"]} | {"all": whole}
    return {name: f"{100 * row['median_error']:.1f} / {100 * row['error_90']:.1f}"
            for name, row in rows.items()} | {"choice": f"{100 * whole['regret_1']:.1f}"}


def say_otherwise(folder, execution, into):
    for path in pathlib.Path(folder).glob("*_plans.jsonl"):
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]
        lines = [json.dumps(row | execution) + "\n" for row in rows]
        pathlib.Path(into, path.name).write_text("".join(lines), encoding="utf-8")


def main():
    harpe, folder = sys.argv[1:3]
    machine = ["--machine", sys.argv[3]] if len(sys.argv) > 3 else []
    lines = {"as launched": predict(harpe, folder, machine)}
    for name in PASSES:
        lines[f"without `{name}`" if name != "all" else "without all passes"] = predict(
            harpe, folder, machine, "--without", name)
    for name, execution in EXECUTIONS.items():
        with tempfile.TemporaryDirectory() as into:
            say_otherwise(folder, execution, into)
            lines[f"as if with {name}"] = predict(harpe, into, machine)
    columns = list(lines["as launched"])
    print("| | " + " | ".join(columns) + " |\n" + "|---" * (len(columns) + 1) + "|")
    for name, cells in lines.items():
        print(f"| {name} | " + " | ".join(cells[column] for column in columns) + " |")


if __name__ == "__main__":
    main()
