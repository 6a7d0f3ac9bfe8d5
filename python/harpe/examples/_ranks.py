"""Connects the ranks of an example, which are processes that `torchrun` starts."""

import argparse
import os

import torch
import torch.distributed as dist


def add_device(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))


def join_ranks(device: str) -> torch.device:
    """Makes the default process group; returns the device of this rank's tensors. If the host has
    fewer GPUs than ranks, ranks share GPUs; NCCL does not support that, so the group then uses
    gloo."""
    if device == "cpu":
        dist.init_process_group("gloo")
        return torch.device("cpu")
    gpus, local = torch.cuda.device_count(), int(os.environ["LOCAL_RANK"])
    own = torch.device("cuda", local % gpus)
    torch.cuda.set_device(own)
    shared = int(os.environ["LOCAL_WORLD_SIZE"]) > gpus
    dist.init_process_group("cpu:gloo,cuda:gloo" if shared else "nccl")
    return own
