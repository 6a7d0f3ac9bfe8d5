#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace harpe::bench {

// The options of the command line.
struct Options {
  std::string command;             // an experiment, or `all`
  std::string family;              // "": all
  std::string filter;              // cases whose name contains it
  std::vector<std::string> sizes;  // MxNxK, in place of the GEMMs of an experiment
  std::string json;                // file for JSON lines
  std::string cache;               // folder of compiled kernels
  std::string nvrtc;               // libraries by name; "": the usual places
  std::string cublaslt;
  std::string cudnn;
  std::string source = "host";  // where arriving chunks come from
  std::uint64_t seed = 1;
  int device = 0;
  int rounds = 20;     // timed calls of each contender
  int repeat = 1000;   // launches of a repeated check
  int panels = 1;      // of equal numbers of rows, in each GEMM of few rows
  double budget = 0;   // seconds; 0: no limit
  bool quick = false;  // a few cases of each check
  bool all_variants = false;
};

}  // namespace harpe::bench
