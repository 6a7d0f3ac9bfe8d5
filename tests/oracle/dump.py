#!/usr/bin/env python3
"""The model's results for many forms, one JSON object per line, for comparison with the compiler.

    dump.py [--examples] [--fuzz N] [--tied N] [--seed S] [--texts]

A record: name, program, mesh, form (texts); without --texts also accepted, and then
  reason      if refused: the model's reason
  transfers   if accepted: [source rank, destination rank, buffer, [block, ...]] of every copy; a
              block is the mixed-radix number of its digits, first most significant
  syncs       if accepted: synchronization edges left after reduction, without those from an
              entry and to an exit
  boundary    if accepted: the others
"""
import argparse
import glob
import json
import os
import random
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
os.chdir(HERE)  # fuzz.py reads examples/ when it is imported

import fuzz  # noqa: E402
import generate  # noqa: E402
from cir import pr  # noqa: E402
from ref import Bad, load, lower  # noqa: E402


def block_id(model, buffer, atom):
    number = 0
    for digit, value in zip(model.bdig(buffer), atom):
        number = number * model.ext[digit] + value
    return number


def transfers(model, plan):
    found = []
    for task in plan.tasks:
        if task.kind != "copy":
            continue
        (source, _, buffer, atoms), (destination, _, _, _) = task.reads[0], task.writes[0]
        found.append([model.co(source, model.mx), model.co(destination, model.mx), buffer,
                      sorted(block_id(model, buffer, atom) for atom in atoms)])
    return sorted(found)


def edges(plan):
    """(inner, boundary)"""
    boundary = sum(plan.tasks[before].kind == "entry" or task.kind == "exit"
                   for task in plan.tasks for before in task.deps)
    return sum(len(task.deps) for task in plan.tasks) - boundary, boundary


def record(name, program, form, mesh):
    return {"name": name, "program": pr(program), "mesh": pr(mesh), "form": pr(form)}


def judged(name, program, form, mesh):
    out = record(name, program, form, mesh)
    try:
        model, plan = lower(program, form, mesh)
    except Bad as refusal:
        return {**out, "accepted": False, "reason": str(refusal)}
    syncs, boundary = edges(plan)
    return {**out, "accepted": True, "transfers": transfers(model, plan), "syncs": syncs,
            "boundary": boundary}


def records(arguments):
    make = record if arguments.texts else judged
    programs, meshes, forms, _ = load(sorted(glob.glob("examples/*.cir")))
    if arguments.examples:
        for form in forms:
            yield make(form.name, programs[form.prog], form, meshes[form.mesh])
    for index in range(arguments.fuzz):
        rng = random.Random(arguments.seed * 10**6 + index)
        program, form, mesh = fuzz.gen(rng)
        if rng.random() < 0.03:
            generate.repeat(rng, form, mesh)
        split = [split.axis for split in form.splits]
        yield make(f"fuzz{index}", generate.roomy(program, split), form, mesh)
    for index in range(arguments.tied):
        rng = random.Random(arguments.seed * 10**6 + index)
        program, form, mesh = generate.gen(rng, programs)
        yield make(f"tied{index}", program, form, mesh)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--examples", action="store_true")
    parser.add_argument("--fuzz", type=int, default=0)
    parser.add_argument("--tied", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--texts", action="store_true")
    for line in records(parser.parse_args()):
        json.dump(line, sys.stdout, separators=(",", ":"))
        sys.stdout.write("\n")


if __name__ == "__main__":
    main()
