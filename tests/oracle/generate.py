"""Random normal forms that mostly make sense.

Buffers that move together have matching digits, stages and drains stand where they are needed, and
each kind of move suits the loop around it. One form in five is then damaged in one place, so that
near misses are refused by exactly the rule that they break.

fuzz.gen draws everything independently instead; together they cover both sides of every rule.
"""
import copy

from cir import Axis, Buffer, CNest, CommIR, For, Layout, Leaf, Mesh, Move, Par, Place, Split

# program -> divisible axes; per nest, groups of operands and of targets that move together.
PROGRAMS = {
    "gemm": (["M", "N", "K"], {"mm": ([["A"], ["B"]], [["C"]])}),
    "attn": (["Sq", "Skv", "Hkv"], {"fwd": ([["Q"], ["K", "V"]], [["O", "L"]])}),
    "attn_causal": (["Sq", "Skv", "Hkv"], {"fwd": ([["Q"], ["K", "V"]], [["O", "L"]])}),
    "flash_decode": (["Skv", "Hkv", "B"], {"dec": ([["Q"], ["K", "V"]], [["O", "L"]])}),
    "attn_bwd": (["Sq", "Skv", "Hkv"],
                 {"pre": ([["O"], ["DO"]], [["Delta"]]),
                  "bwd": ([["Q", "DO"], ["L", "Delta"], ["K", "V"]], [["DQ"], ["DK", "DV"]])}),
}
MESHES = [Mesh("m2", [("x", 2)]), Mesh("m3", [("x", 3)]), Mesh("m4", [("x", 4)]),
          Mesh("m5", [("x", 5)]), Mesh("m22", [("x", 2), ("y", 2)]),
          Mesh("m23", [("x", 2), ("y", 3)]), Mesh("m42", [("x", 4), ("y", 2)])]
# At these sizes every block of every axis has elements: the model has no empty blocks.
ROOMY = 65536


def roomy(program, axes):
    """The program with divisible axes that are long enough for any split."""
    program = copy.deepcopy(program)
    for decl in program.decls:
        if isinstance(decl, Axis) and decl.name in axes:
            decl.size = ROOMY
            decl.grain = 1
    return program


def buffer_axes(program, name):
    dims = next(d.dims for d in program.decls if isinstance(d, Buffer) and d.name == name)
    flat = [list(d) if isinstance(d, tuple) else [d] for d in dims]
    return [axis for part in flat for axis in part if isinstance(axis, str)]


class Draft:
    """A form under construction: which digit of which axis belongs to which mesh unit."""

    def __init__(self, rng, program, axes, mesh):
        self.rng, self.program, self.mesh = rng, program, mesh
        sizes = dict(mesh.axes)
        names = list(sizes)
        # A unit is one mesh axis, or all of them flattened.
        joined = len(names) > 1 and rng.random() < 0.2
        self.units = [tuple(names)] if joined else [(name,) for name in names]
        self.extent = {}
        for unit in self.units:
            self.extent[unit] = 1
            for name in unit:
                self.extent[unit] *= sizes[name]
        self.splits = {axis: [] for axis in axes}
        self.digit_extent, self.axis_of, self.layouts = {}, {}, []
        self.bound = {}  # digit -> unit, by par
        self.homes = {}  # buffer -> [(digit, unit)]

    def digit(self, axis, extent):
        name = f"{axis.lower()}{len(self.splits[axis])}"
        self.splits[axis].append((name, extent))
        self.digit_extent[name], self.axis_of[name] = extent, axis
        return name

    def choose(self, groups):
        rng = self.rng
        axes = list(self.splits)
        for unit in self.units:
            digits = [self.digit(axis, self.extent[unit]) for axis in axes if rng.random() < 0.75]
            if digits and rng.random() < 0.9:
                self.bound[rng.choice(digits)] = unit
            for group in groups:
                own = [d for d in digits if self.axis_of[d] in buffer_axes(self.program, group[0])]
                aligned = [d for d in own if d in self.bound]
                if own and rng.random() < 0.85:
                    picked = aligned[0] if aligned and rng.random() < 0.6 else rng.choice(own)
                    for buffer in group:
                        homes = self.homes.setdefault(buffer, [])
                        if all(u != unit for _, u in homes):  # not one from an earlier nest
                            homes.append((picked, unit))
        for axis in axes:
            if rng.random() < 0.2 and len(self.splits[axis]) < 2:
                self.digit(axis, 2)
        if self.program.name == "attn_causal" and len(self.units) == 1 and rng.random() < 0.4:
            self.zigzag()

    def zigzag(self):
        for axis in ("Sq", "Skv"):
            if len(self.splits[axis]) == 1:
                spread = self.splits[axis][0][0]
                self.layouts.append(Layout(axis, "zigzag", [spread, self.digit(axis, 2)]))

    def needs_drain(self, buffer, unit):
        mine = buffer_axes(self.program, buffer)
        reduces = any(u == unit and self.axis_of[d] not in mine for d, u in self.bound.items())
        home = [d for d, u in self.homes.get(buffer, []) if u == unit]
        moves = any(u == unit and d not in home for d, u in self.bound.items())
        return reduces or moves or any(self.bound.get(d) != unit for d in home)

    def needs_stage(self, buffer, unit):
        return any(u == unit and self.bound.get(d) != u for d, u in self.homes.get(buffer, []))

    def loops(self, axes):
        rng, loops = self.rng, []
        free = [d for d in self.digit_extent if d not in self.bound and self.axis_of[d] in axes]
        rng.shuffle(free)
        for digit in free:
            if rng.random() > 0.65:
                continue
            unit = next((u for homes in self.homes.values() for d, u in homes if d == digit), None)
            skew = list(unit) if unit and rng.random() < 0.8 else []
            offset = 1 if skew and rng.random() < 0.3 else 0
            loops.append(For(digit, skew, offset, rng.random() < 0.05))
        return loops

    def move(self, kind, group, unit, loops):
        """The place of the group's move over `unit`, and the moves themselves."""
        rng, buffer = self.rng, group[0]
        home = [d for d, u in self.homes.get(buffer, []) if u == unit]
        depth = next((i + 1 for i, loop in enumerate(loops) if loop.digit in home), None)
        position = depth if depth and rng.random() < 0.75 else rng.randint(0, depth or len(loops))
        hows = ["bulk", "direct"] if kind == "drain" or rng.random() < 0.85 else ["inline"]
        if depth and position == depth:
            loop = loops[depth - 1]
            rotates = loop.skew == list(unit) and not loop.rev
            mine = buffer_axes(self.program, buffer)
            partial = any(u == unit and self.axis_of[d] not in mine for d, u in self.bound.items())
            if rotates and (kind == "stage" or partial):
                hows = ["relay"] * 3 + hows
        how = rng.choice(hows)
        depths = [2, 3] if how == "relay" else [1, 2, 3]
        attrs = [("by", rng.choice(["src", "dst"])), ("depth", rng.choice(depths))]
        looped = [loop.digit for loop in loops]
        spare = [d for d in self.digit_extent if d not in self.bound and d not in looped and
                 self.axis_of[d] in buffer_axes(self.program, buffer)]
        if kind == "stage" and spare and rng.random() < 0.2:
            attrs.append(("grain", rng.choice(spare)))
        attrs.append(("via", rng.choice(["ce", "ce", "sm", "nccl"])))
        return position, [Move(kind, b, list(unit), how, list(attrs)) for b in group]

    def nest(self, name, reads, writes):
        axes = next(nest.over for nest in self.program.nests if nest.name == name)
        loops = self.loops(axes)
        slots = [[] for _ in range(len(loops) + 1)]
        for kind, groups, needs in (("stage", reads, self.needs_stage),
                                    ("drain", writes, self.needs_drain)):
            for group in groups:
                for unit in self.units:
                    if needs(group[0], unit):
                        position, moves = self.move(kind, group, unit, loops)
                        slots[position] += moves
        items = [Par(digit, list(unit)) for digit, unit in self.bound.items()
                 if self.axis_of[digit] in axes] + slots[0]
        for loop, moves in zip(loops, slots[1:]):
            items += [loop] + moves
        return CNest(name, items, Leaf([("sm", 132)]))


def damage(rng, form):
    """Changes one item of the form's first nest."""
    items = form.nests[0].items
    if not items:
        return
    index = rng.randrange(len(items))
    item = items[index]
    if rng.random() < 0.4:
        del items[index]
    elif isinstance(item, Move):
        attrs = dict(item.attrs)
        attrs["depth"] = 1
        item.attrs = [(k, attrs[k]) for k in ("by", "depth", "grain", "via") if k in attrs]
        item.how = rng.choice(["relay", "direct", item.how])
    elif isinstance(item, For):
        item.skew = [] if item.skew else item.skew
        item.offset = 0
        item.rev = not item.rev
    else:
        items.insert(0, items.pop(index))


def repeat(rng, form, mesh):
    """Repeats a move of the first nest at another place or over more mesh axes."""
    items = form.nests[0].items
    moves = [item for item in items if isinstance(item, Move)]
    if not moves:
        return
    again = copy.deepcopy(rng.choice(moves))
    again.how = rng.choice(["bulk", "direct", again.how])
    if rng.random() < 0.3:
        again.over = [name for name, _ in mesh.axes]
    items.insert(rng.randint(0, len(items)), again)


def gen(rng, programs):
    """(program, form, mesh)"""
    name = rng.choice(sorted(PROGRAMS))
    axes, nests = PROGRAMS[name]
    program = roomy(programs[name], axes)
    draft = Draft(rng, program, axes, rng.choice(MESHES))
    groups = [group for reads, writes in nests.values() for group in reads + writes]
    draft.choose(groups)
    form = CommIR("f", name, draft.mesh.name, [], draft.layouts, [], [], [])
    for axis, digits in draft.splits.items():
        if digits:
            form.splits.append(Split(axis, digits + [(f"{axis.lower()}r", None)]))
    for decl in program.decls:
        if isinstance(decl, Buffer):
            at = [(digit, list(unit)) for digit, unit in draft.homes.get(decl.name, [])]
            form.places.append(Place(decl.name, at, []))
    form.nests = [draft.nest(nest, reads, writes) for nest, (reads, writes) in nests.items()]
    if rng.random() < 0.2:
        damage(rng, form)
    if rng.random() < 0.05:
        repeat(rng, form, draft.mesh)
    return program, form, draft.mesh
