#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace harpe::cuda::profile {

// What was measured of the GPUs of this machine. Times are seconds, of the slowest GPU that takes
// part; bandwidths bytes a second and direction.

// Of a captured graph, but for `issue`.
struct StartFigures {
  double kernel = 0;             // from one small kernel's start to the next's, in a stream
  double issue = 0;              // of the host, per launch that is not replayed
  double event = 0;              // what an edge between streams takes beyond that
  std::optional<double> signal;  // from a task's end on one GPU until another goes on
  double memory_bytes = 0;       // free before anything was measured
  double cache_bytes = 0;        // of the second level
  std::int64_t multiprocessors = 0;
};

struct TimedBytes {
  double bytes = 0;
  double seconds = 0;
};

// Copies by a kernel of so many blocks.
struct BlocksRate {
  std::int64_t blocks = 0;
  double bandwidth = 0;
};

enum class Pattern : std::uint8_t { AllGather, AllToAll, ReduceScatter, AllReduce };
// A collective as plans have it: signals, pulls from every peer, signals; or one of NCCL's. `bytes`
// of one rank.
struct TimedCollective {
  Pattern pattern = Pattern::AllGather;
  double bytes = 0;
  double seconds = 0;
};

struct LinkFigures {
  std::vector<TimedBytes> engine_pair;  // one copy engine writes the neighbour's memory
  std::vector<TimedBytes> engine_ring;  // all at once, each the next one's
  std::vector<TimedBytes> push_ring;    // likewise, by our kernel
  std::vector<TimedBytes> pull_ring;    // by our kernel, which reads the next one's
  std::vector<BlocksRate> push_blocks;
  double engine_pull = 0;        // bandwidth: one copy engine reads the neighbour's memory
  double engine_all_to_all = 0;  // of a port, everybody writing to everybody
  double engine_incast = 0;      // of the port that all others write to
  std::vector<TimedCollective> collectives;
};

// Of what goes on at once: the rate beside copies or products over the rate alone.
struct Interference {
  double product = 1;  // beside copies that come in and go out
  double copies = 1;   // beside a product
};

// One leaf as it is launched, beyond what a small kernel takes anyway.
struct LeafFigure {
  std::string leaf;
  std::string dtype;
  bool causal = false;
  double batch = 1;
  double rows = 1;
  double columns = 1;
  double depth = 1;
  double flops = 0;
  double bytes = 0;
  double seconds = 0;
};

// The same leaves and collectives by NVIDIA's libraries.
struct LibraryFigures {
  std::string versions;                      // "NCCL 2.28.9, cuBLASLt 13.0.2"
  std::vector<TimedCollective> collectives;  // by NCCL, between two GPUs or more
  std::vector<LeafFigure> products;          // by cuBLASLt's fastest algorithm
};

struct GpuFigures {
  std::string gpu;  // "NVIDIA H200"
  std::int64_t gpus = 1;
  StartFigures starts;
  std::optional<LinkFigures> links;  // between two GPUs or more, like what follows
  std::optional<Interference> interference;
  std::vector<LeafFigure> leaves;
  std::optional<LibraryFigures> libraries = {};  // where they are there
  std::string no_libraries = {};                 // else why not
};

}  // namespace harpe::cuda::profile
