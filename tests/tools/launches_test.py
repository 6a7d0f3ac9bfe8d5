"""`harpe show --stage launches`: every task is launched once, and every wait ends.

    launches_test.py HARPE

The reader here shares no code with the printer of the text. For every named schedule on 2, 3, 4 and
8 ranks: each task belongs to one launch; signals grow by as much as their waits require; kernels
read and store whole operands; two consecutive executions end; and the verifier proves the launch
plan. `--paranoid` parses launch plans back, binds them at made-up addresses and proves them: with a
GPU per rank, with shared GPUs, with NCCL collectives, and for CPU ranks.
"""
import re
import subprocess
import sys
import unittest

HARPE = sys.argv.pop(1) if len(sys.argv) > 1 else "harpe"
AXES = {"ag_gemm": "tp", "gemm_rs": "tp", "gemm_ar": "tp", "attention": "cp",
        "attention_bwd": "cp", "decode": "tp", "moe": "ep", "moe_capped": "ep"}
RANKS = (2, 3, 4, 8)
WORDS = {"rank", "queue", "does", "lands", "skipped", "after", "begun", "awaits", "begins", "ready",
         "all_ready", "pulled", "all_pulled", "reserved", "raises", "by", "bounds", "opens"}
NUMBERS = ("rank", "queue", "does", "lands", "after", "begun", "awaits", "all_ready", "all_pulled")
SIGNAL = re.compile(r"signal (\d+) rank \d+ (\w+) \d+(?: from[ \d]+?)?"
                    r"(?: arrivals (\d+))?( posted)?(?: in data)?")
PLACE = re.compile(r"[\w.]+(?:@\d+)?\[[^]]*\]")


def harpe(*arguments):
    return subprocess.run([HARPE, *arguments], capture_output=True, text=True, timeout=120,
                          check=False)


def clauses(text):
    """Maps each keyword of a launch's line to the words behind it."""
    found, word = {}, None
    for token in text.split():
        if token in WORDS and not (word == "begins" and not found[word]):
            word = token
            found[word] = []
        else:
            found[word].append(token)
    return found


def raises_of(tokens):
    return [(int(t.split("+")[0]), int(t.split("+")[1]) if "+" in t else 0) for t in tokens]


class Kernel:
    def __init__(self, name):
        self.name = name
        self.arrivals = []  # signals awaited, or None
        self.panels = []  # (arrivals it waits for, signals of addends, fused store or None)
        self.fused_stores = []  # raises
        self.fused_copies = []  # signals


class Launch:
    def __init__(self, line):
        number, rest = re.fullmatch(r"launch (\d+) (.*)", line).groups()
        self.number = int(number)
        words = clauses(rest)
        numbers = {word: [int(t) for t in words.get(word, [])] for word in NUMBERS}
        self.rank, self.queue = numbers["rank"][0], numbers["queue"][0]
        self.lands = bool(numbers["lands"])
        self.does = numbers["does"] or numbers["lands"]
        self.after, self.begun, self.awaits = numbers["after"], numbers["begun"], numbers["awaits"]
        self.all_ready, self.all_pulled = numbers["all_ready"], numbers["all_pulled"]
        self.ready = raises_of(words.get("ready", []))
        self.pulled = raises_of(words.get("pulled", []))
        self.raises = raises_of(words.get("raises", []))
        self.begins_epoch = "begins" in words
        self.is_skipped = "skipped" in words
        self.kernels = []


class Text:
    """The text of a launch plan."""

    def __init__(self, text):
        self.signals, self.launches = [], []  # (kind, arrivals); Launch
        lines = text.splitlines()
        assert re.fullmatch(r'launches version 1 plan "\w+" target "[^"]+"', lines[0]), lines[0]
        for line in lines[1:]:
            self.read(line)
        panels = [p for launch in self.launches for k in launch.kernels for p in k.panels]
        assert all(meets or addends for meets, addends, _ in panels), "a panel of nothing"

    def read(self, line):
        word = line.split()[0]
        if word == "signal":
            match = SIGNAL.fullmatch(line)
            assert match and int(match[1]) == len(self.signals), line
            self.signals.append((match[2], int(match[3] or 1)))
        elif word == "launch":
            self.launches.append(Launch(line))
            assert self.launches[-1].number == len(self.launches) - 1, line
        elif word == "kernel":
            self.launches[-1].kernels.append(Kernel(line.split()[1]))
        elif word not in ("partials16", "box"):
            self.read_part(word, line)

    def read_part(self, word, line):
        kernel = self.launches[-1].kernels[-1]
        when = re.search(r" when (\d+)$", line)
        signal = int(when[1]) if when else None
        places = PLACE.findall(line)
        if word == "arrival":
            assert len(places) == 2, "two operands arrive together: " + line
            kernel.arrivals.append(signal)
        elif word == "panel":
            meets = re.search(r" meets((?: \d+)*) (?:stores|adds to) ", line)
            fused = re.search(r" fused (\d+)$", line)
            assert meets and places, line
            store = int(fused[1]) if fused else None
            kernel.panels.append(([int(t) for t in meets[1].split()], [], store))
        elif word == "addend":
            assert len(places) in (1, 2), "a sum, or o and lse: " + line
            kernel.panels[-1][1].append(signal)
        elif line.startswith("    fused store "):
            kernel.fused_stores.append(raises_of([line.split()[-1]])[0])
        else:
            match = re.search(r"fused copy reads .* stores .* raises (\d+) blocks \d+$", line)
            assert match and len(places) == 2, line
            kernel.fused_copies.append(int(match[1]))


class Run:
    """Two executions by queues and signals; one thread block runs all panels of a kernel."""

    def __init__(self, text):
        self.text = text
        self.raised = [0] * len(text.signals)  # executions, times arrivals
        self.over = [0] * len(text.launches)  # executions
        self.begun = [0] * len(text.launches)
        self.by_queue = {}
        for launch in text.launches:
            self.by_queue.setdefault((launch.rank, launch.queue), []).append(launch)

    def is_there(self, signal, execution):
        kind, arrivals = self.text.signals[signal]
        wanted = execution if kind == "credit" else execution + 1
        return self.raised[signal] >= wanted * arrivals

    def raise_all(self, raises):
        for signal, adds in raises:
            self.raised[signal] += adds or self.text.signals[signal][1]

    def steps_of(self, launch, execution):
        """A generator that yields while the launch has to wait."""
        def wait(signals):
            while not all(s is None or self.is_there(s, execution) for s in signals):
                yield
        while not all(self.over[i] > execution for i in launch.after):
            yield
        while not all(self.begun[i] > execution for i in launch.begun):
            yield
        yield from wait(launch.awaits)
        self.begun[launch.number] = execution + 1
        self.raise_all(launch.ready)
        yield from wait(launch.all_ready)
        for kernel in launch.kernels:
            for signal in kernel.fused_copies:
                self.raised[signal] += self.text.signals[signal][1]
            left = [panel[2] for panel in kernel.panels]
            for meets, addends, fused in kernel.panels:
                yield from wait([kernel.arrivals[i] for i in meets] + addends)
                left.remove(fused)
                if fused is not None and fused not in left:
                    self.raise_all([kernel.fused_stores[fused]])
        self.raise_all(launch.pulled)
        yield from wait(launch.all_pulled)
        self.raise_all(launch.raises)
        self.over[launch.number] = execution + 1

    def queue_of(self, launches, execution):
        for launch in launches:
            yield from self.steps_of(launch, execution)

    def execute(self, execution):
        """Runs one execution; returns the queues that do not end."""
        queues = {key: self.queue_of(launches, execution)
                  for key, launches in self.by_queue.items()}
        while queues:
            progress = self.begun[:], self.over[:], self.raised[:]
            for key in list(queues):
                if next(queues[key], "over") == "over":
                    del queues[key]
            if queues and progress == (self.begun, self.over, self.raised):
                return sorted(queues)
        return []


def applicable(operator, ranks):
    lines = harpe("schedules", operator, "--mesh", f"{AXES[operator]}={ranks}").stdout.split("\n\n")
    for part in lines:
        if part.startswith("applies\n"):
            return [line.split()[0] for line in part.splitlines()[1:] if line.strip()]
    return []


class Launches(unittest.TestCase):
    def check(self, question):
        plan = harpe("show", *question, "--stage", "plan")
        if plan.returncode != 0:
            return False
        proved = harpe("verify", *question, "--stage", "launches")
        self.assertEqual(proved.returncode, 0, proved.stderr)
        tasks = sorted(int(t) for t in re.findall(r"^\s*task (\d+)", plan.stdout, re.M))
        for target in ("h200", "cpu"):
            shown = harpe("show", *question, "--stage", "launches", "--target", target,
                          "--paranoid")
            self.assertEqual(shown.returncode, 0, shown.stderr)
            self.check_text(Text(shown.stdout), tasks)
        return True

    def check_text(self, text, tasks):
        done = sorted(task for launch in text.launches if not launch.lands for task in launch.does)
        self.assertEqual(done, tasks)
        self.check_launches(text)
        run = Run(text)
        for execution in range(2):
            self.assertEqual(run.execute(execution), [], f"execution {execution} does not end")
            awaited = {s for launch in text.launches for s in self.awaited_by(launch)}
            for signal in awaited:
                self.assertEqual(run.raised[signal], (execution + 1) * text.signals[signal][1],
                                 f"signal {signal} {text.signals[signal]}")

    @staticmethod
    def awaited_by(launch):
        inside = [s for kernel in launch.kernels for s in kernel.arrivals]
        inside += [s for kernel in launch.kernels for panel in kernel.panels for s in panel[1]]
        outside = launch.awaits + launch.all_ready + launch.all_pulled
        return [s for s in outside + inside if s is not None]

    def check_launches(self, text):
        entries = [launch.rank for launch in text.launches if launch.begins_epoch]
        self.assertEqual(entries, sorted(set(launch.rank for launch in text.launches)))
        for launch in text.launches:
            for other in launch.after + launch.begun:
                self.assertEqual(text.launches[other].rank, launch.rank)
            self.assertFalse(launch.is_skipped and launch.kernels)
            for kernel in launch.kernels:
                fused = {panel[2] for panel in kernel.panels} - {None}
                self.assertEqual(fused, set(range(len(kernel.fused_stores))), kernel.name)

    def test_every_named_schedule(self):
        seen = 0
        for operator in AXES:
            for ranks in RANKS:
                for schedule in applicable(operator, ranks):
                    mesh = f"{AXES[operator]}={ranks}"
                    question = [operator, "--mesh", mesh, "--schedule", schedule]
                    with self.subTest(" ".join(question)):
                        seen += self.check(question)
        print(f"{seen} launch plans", file=sys.stderr)
        self.assertGreater(seen, 120)

    def test_a_signal_that_nothing_raises_is_found(self):
        question = ["ag_gemm", "m=1024", "--mesh", "tp=2", "--schedule", "push"]
        text = harpe("show", *question, "--stage", "launches").stdout
        broken = re.sub(r" raises \d+ by engine", "", text, count=1)
        self.assertNotEqual(text, broken)
        self.assertNotEqual(Run(Text(broken)).execute(0), [])


if __name__ == "__main__":
    unittest.main()
