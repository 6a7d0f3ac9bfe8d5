#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compile/session.h"
#include "exec/collective_use.h"
#include "support/diag.h"

namespace harpe {

// One measured time of a complete schedule, with the request that predicts it.
struct MeasuredCase {
  std::string family;  // "ag_gemm", "gemm_rs", "attention", "ulysses", …
  std::string label;   // "llama70b_qkv m=512 n=10240 k=8192"
  Request request;
  double microseconds = 0;
  std::string processor = {};  // that ran it, if the file states it
  CollectiveEngine collectives = CollectiveEngine::Pull;
  bool by_libraries = false;    // with libraries' kernels for the leaves that they support
  bool has_partials16 = false;  // its launch plan kept partial states in 16 bits where possible
  bool counts = true;           // towards the statistics; others are only shown
};

// The suffix of files with the measurements of `harpe tune`.
constexpr std::string_view kPlansFile = "_plans.jsonl";

// The cases in the files of a folder whose names end in `_peers.jsonl`, `_overlap.jsonl` or
// `_plans.jsonl`, in the order of names and lines. Errors: I101; U131 there is none, U132 a line
// that cannot be read.
[[nodiscard]] Checked<std::vector<MeasuredCase>> read_measurements(const std::string& folder);

}  // namespace harpe
