"""Which positions of a sequence each rank holds."""

from collections.abc import Iterable, Mapping

import harpe
from harpe._errors import refuse

LAYOUTS = "contiguous", "zigzag"


def find_blocks(size: int, ranks: int, rank: int, layout: str = "contiguous") -> list[slice]:
    """The slices of `size` positions over all ranks that a rank holds, in its order.

    "contiguous": block `rank` of `ranks`. "zigzag": blocks `rank` and `2 * ranks - 1 - rank` of `2
    * ranks`, so that every rank has the same work under a causal mask.
    """
    if layout not in LAYOUTS:
        raise refuse("layout", " or ".join(f"'{each}'" for each in LAYOUTS), f"{layout!r}")
    blocks = ranks if layout == "contiguous" else 2 * ranks
    length, rest = divmod(size, blocks)
    if rest:
        raise refuse("size", f"a multiple of {blocks}, for equal blocks", f"{size}")
    held = [rank] if layout == "contiguous" else [rank, 2 * ranks - 1 - rank]
    return [slice(block * length, (block + 1) * length) for block in held]


def check_homes(plan: harpe.Plan, divided: Mapping[str, int], layout: str = "contiguous") -> None:
    """Checks that the homes of a plan are those of torch's operators: blocks along the given
    dimension for buffers in `divided`, the whole tensor for all others. Raises Refused."""
    for buffer in plan.buffers.values():
        for rank, home in enumerate(buffer.homes):
            wanted = [set(range(extent)) for extent in buffer.shape]
            if buffer.name in divided:
                dim = divided[buffer.name]
                blocks = find_blocks(buffer.shape[dim], plan.ranks, rank, layout)
                wanted[dim] = _list_positions(blocks)
            held = [_list_positions(block[dim] for block in home)
                    for dim in range(len(buffer.shape))]
            if held != wanted:
                message = (f"the schedule `{plan.schedule}` keeps `{buffer.name}` elsewhere than "
                           "tensors of the process group are")
                raise harpe.Refused(message, message=message)


def _list_positions(blocks: Iterable[slice]) -> set[int]:
    return {position for block in blocks for position in range(block.start, block.stop)}
