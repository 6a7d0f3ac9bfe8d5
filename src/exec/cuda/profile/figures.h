#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace harpe::cuda::profile {

// Measurements of this machine's GPUs. Times are seconds of the slowest participating GPU;
// bandwidths are bytes per second and direction.

// In a captured graph, except `issue`.
struct StartFigures {
  double kernel = 0;             // from one small kernel's start to the next's, in a stream
  double issue = 0;              // of the host, per launch without a graph
  double event = 0;              // additional time of an edge between streams
  std::optional<double> signal;  // from a task's end on one GPU to the next start on another
  double memory_bytes = 0;       // free before the measurements
  double cache_bytes = 0;        // of the L2 cache
  std::int64_t multiprocessors = 0;
};

struct TimedBytes {
  double bytes = 0;
  double seconds = 0;
};

// Copies by a kernel with this many blocks.
struct BlocksRate {
  std::int64_t blocks = 0;
  double bandwidth = 0;
};

enum class Pattern : std::uint8_t { AllGather, AllToAll, ReduceScatter, AllReduce };
// A collective as in plans (signals, pulls from every peer, signals), or one of NCCL's. `bytes` of
// one rank.
struct TimedCollective {
  Pattern pattern = Pattern::AllGather;
  double bytes = 0;
  double seconds = 0;
};

struct LinkFigures {
  std::vector<TimedBytes> engine_pair;  // one copy engine writes the neighbour's memory
  std::vector<TimedBytes> engine_ring;  // all GPUs at once, each to the next one's memory
  std::vector<TimedBytes> push_ring;    // likewise, by our kernel
  std::vector<TimedBytes> pull_ring;    // by our kernel, reading the next one's memory
  std::vector<BlocksRate> push_blocks;
  double engine_pull = 0;        // bandwidth: one copy engine reads the neighbour's memory
  double engine_all_to_all = 0;  // of a port, with every GPU writing to every other
  double engine_incast = 0;      // of the port that all other GPUs write to
  std::vector<TimedCollective> collectives;
};

// Operations at once: their rate beside copies or GEMMs divided by their rate alone.
struct Interference {
  double product = 1;  // beside incoming and outgoing copies
  double copies = 1;   // beside a GEMM
};

// One launched leaf; `seconds` without the time of a small kernel.
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

// The same leaves and collectives with NVIDIA's libraries.
struct LibraryFigures {
  std::string versions;                      // "NCCL 2.28.9, cuBLASLt 13.0.2"
  std::vector<TimedCollective> collectives;  // with NCCL, for at least two GPUs
  std::vector<LeafFigure> products;          // with cuBLASLt's fastest algorithm
};

struct GpuFigures {
  std::string gpu;  // "NVIDIA H200"
  std::int64_t gpus = 1;
  StartFigures starts;
  std::optional<LinkFigures> links;  // for at least two GPUs, as the next
  std::optional<Interference> interference;
  std::vector<LeafFigure> leaves;
  std::optional<LibraryFigures> libraries = {};  // if present
  std::string no_libraries = {};                 // else the reason
};

}  // namespace harpe::cuda::profile
