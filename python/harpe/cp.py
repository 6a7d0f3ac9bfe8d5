"""Context parallelism: sequences divided over ranks in the form that `harpe.ops.attention` takes.

    x = harpe.cp.shard(x, dim=1, group=cp, layout="zigzag")
    at = harpe.cp.positions(x.shape[1], group=cp, layout="zigzag")     # for rotary embeddings
    whole = harpe.cp.unshard(x, dim=1, group=cp, layout="zigzag")
"""

import torch

from harpe.ops._fallback import all_gather
from harpe.ops._groups import ProcessGroups, find, find_name
from harpe.ops._layout import find_blocks

__all__ = ["positions", "shard", "unshard"]


def shard(x: torch.Tensor, dim: int, *, group: ProcessGroups,
          layout: str = "contiguous") -> torch.Tensor:
    """This rank's part of a whole tensor: a new tensor. No communication; gradients stay local.

    Layouts as for `harpe.ops.attention`. Raises Refused: I311 a layout, or blocks of unequal size.
    """
    ranks = find(find_name(group)).process_group
    blocks = find_blocks(x.shape[dim], ranks.size(), ranks.rank(), layout)
    return torch.cat([x.narrow(dim, each.start, each.stop - each.start) for each in blocks], dim)


def unshard(x: torch.Tensor, dim: int, *, group: ProcessGroups,
            layout: str = "contiguous") -> torch.Tensor:
    """The whole tensor, on every rank, without gradient. Collective over the process group."""
    name = find_name(group)
    ranks = find(name).process_group.size()
    gathered = all_gather(x.detach(), name, dim)
    held = [positions(x.shape[dim], group=group, layout=layout, rank=rank) for rank in range(ranks)]
    return gathered.index_select(dim, torch.cat(held).argsort().to(x.device))


def positions(size: int, *, group: ProcessGroups, layout: str = "contiguous",
              rank: int | None = None) -> torch.Tensor:
    """The positions in the whole sequence of a rank's `size` positions; by default this rank's."""
    ranks = find(find_name(group)).process_group
    blocks = find_blocks(size * ranks.size(), ranks.size(), ranks.rank() if rank is None else rank,
                         layout)
    return torch.cat([torch.arange(block.start, block.stop) for block in blocks])
