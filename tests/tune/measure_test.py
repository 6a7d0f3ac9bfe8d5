#!/usr/bin/env python3
"""`tune --measure` executes what the search found, keeps the fastest, and judges predictions.

measure_test.py HARPE.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

SUBJECT = ["attention", "batch=1", "seq=64", "heads=4", "head_dim=16", "dtype=f32", "--mesh", "x=4"]


def harpe(folder: str, *words: str) -> dict:
    command = [sys.argv[1], *words, "--json", "-"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, f"{' '.join(command)}: {done.returncode}\n{done.stderr}"
    return json.loads(done.stdout)


def check_measured(result: dict) -> dict:
    measured = result["measured"]
    schedules = measured["schedules"]
    assert measured["backend"] == "cpu" and measured["processor"]
    assert measured["complete"] and measured["rounds"] >= 1
    assert measured["timed"] == len(schedules) and measured["wrong"] == 0, measured
    assert result["best"]["schedule"] == schedules[0]["schedule"]
    assert [one["place"] for one in schedules] == list(range(1, len(schedules) + 1))
    by_prediction = sorted(schedules, key=lambda one: one["predicted_place"])
    times = [one["predicted_us"] for one in by_prediction]
    assert times == sorted(times), times
    for one in schedules:
        assert one["measured_us"] > 0 and one["executions"] >= 9 * one["rounds"], one
    assert {"ring", "allgather"} <= {one["label"] for one in schedules if one["named"]}
    agreement = measured["agreement"]
    fastest = min(one["measured_us"] for one in schedules)
    regret = by_prediction[0]["measured_us"] / fastest - 1
    assert abs(agreement["regret_1"] - regret) < 1e-9, (agreement, regret)
    assert agreement["cases"] == len(schedules)
    return measured


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        result = harpe(folder, "tune", *SUBJECT, "--measure", "--top", "4", "--spread", "3",
                       "--iters", "3", "--cache", "cache", "-o", "best.plan",
                       "--measurements", "a_plans.jsonl")
        measured = check_measured(result)
        # `auto` runs the measured schedule on processors of the measured kind.
        entry = harpe(folder, "cache", "list", "--dir", "cache")["entries"][0]
        kept = [one for one in entry["schedules"] if one["measured_us"] is not None]
        assert [one["label"] for one in kept] == [measured["schedules"][0]["label"]], kept
        assert kept[0]["measured_on"] == measured["processor"]
        by_auto = harpe(folder, "run", *SUBJECT, "--check", "--cache", "cache")
        by_file = harpe(folder, "run", "best.plan", "--check")
        for name in ("schedule", "tasks", "memory_bytes"):
            assert by_auto[name] == by_file[name], name
        # Predicting the recorded lines again gives the same agreement.
        lines = pathlib.Path(folder, "a_plans.jsonl").read_text(encoding="utf-8").splitlines()
        assert len(lines) == measured["timed"]
        again = harpe(folder, "validate", "--measured", ".", "--machine", result["machine"])
        assert len(again["cases"]) == measured["timed"]
        for name in ("median_error", "spearman", "kendall", "regret_1", "regret_8"):
            difference = again["agreement"][0][name] - measured["agreement"][name]
            assert abs(difference) < 1e-9, (name, again["agreement"][0])
        print(f"{measured['timed']} schedules in {measured['rounds']} rounds, best "
              f"{result['best']['label']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
