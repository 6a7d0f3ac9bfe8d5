#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "measure/baselines/baseline.h"

namespace harpe::library {

// An operator with its sizes over all ranks; sizes of other operators are ignored.
struct Subject {
  std::string op;  // "ag_gemm"
  DType dtype = DType::BF16;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::int64_t batch = 1;
  std::int64_t seq = 0;  // for decode: keys of each sequence
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  bool causal = false;
  std::int64_t tokens = 0;
  std::int64_t hidden = 0;
  std::int64_t experts = 0;
  std::int64_t topk = 0;
  std::int64_t inter = 0;
  const HostTensor* router = nullptr;  // the logits of the run
};

// `make` may be called more than once, and reads the subject's data. Errors: G081 the operator
// cannot be executed in this way; G005.
struct Candidate {
  std::string name;  // "all-gather, GEMM"
  std::function<Checked<std::unique_ptr<Baseline>>()> make;
};

// The ways to execute the operator with NCCL and libraries; empty if there is none.
[[nodiscard]] std::vector<Candidate> make_baselines(const std::shared_ptr<Team>& team,
                                                    const Subject& subject);

// Per family.
[[nodiscard]] Checked<std::unique_ptr<Baseline>> make_gemm_baseline(
    const std::shared_ptr<Team>& team, const Subject& subject);
// Exchanges heads for positions, computes attention of whole sequences, and exchanges back.
[[nodiscard]] Checked<std::unique_ptr<Baseline>> make_ulysses_baseline(
    const std::shared_ptr<Team>& team, const Subject& subject);
// Gathers all keys and values on every rank; queries stay.
[[nodiscard]] Checked<std::unique_ptr<Baseline>> make_gathered_baseline(
    const std::shared_ptr<Team>& team, const Subject& subject);
// The same for gradients, with cuDNN's backward kernel. Gradients of keys are rounded to the keys'
// type before ranks' contributions are added, as training libraries do.
[[nodiscard]] Checked<std::unique_ptr<Baseline>> make_ulysses_backward_baseline(
    const std::shared_ptr<Team>& team, const Subject& subject);
[[nodiscard]] Checked<std::unique_ptr<Baseline>> make_gathered_backward_baseline(
    const std::shared_ptr<Team>& team, const Subject& subject);
// Harpe's kernel over the rank's keys; states are gathered and combined. Parts: the kernel for many
// queries, with keys in parts. Shares: the kernel for few queries, which `bulk` uses too.
enum class LocalDecode : std::uint8_t { Parts, Shares };
[[nodiscard]] Checked<std::unique_ptr<Baseline>> make_decode_baseline(
    const std::shared_ptr<Team>& team, const Subject& subject, LocalDecode kernel);
// Rows are sent to their experts' ranks, two GEMMs run for each expert, and rows are sent back. The
// sorted baseline has one message between two ranks, and sorts arriving rows by expert; the direct
// one has a message for each expert. The numbers of rows from each rank to each expert are computed
// in advance from the given logits, because a captured layer has fixed sizes. Harpe counts rows in
// every execution; the baselines pay neither for that nor for reading the counts back. Both find
// out in each execution which rows they are. Weights of gate and up lie side by side, as one GEMM.
[[nodiscard]] Checked<std::unique_ptr<Baseline>> make_sorted_moe_baseline(
    const std::shared_ptr<Team>& team, const Subject& subject);
[[nodiscard]] Checked<std::unique_ptr<Baseline>> make_direct_moe_baseline(
    const std::shared_ptr<Team>& team, const Subject& subject);

// `size` divided by the ranks. Errors: G081.
[[nodiscard]] Checked<std::int64_t> share_of(std::string_view what, std::int64_t size, int ranks);
[[nodiscard]] device::Element element_of(DType dtype);

}  // namespace harpe::library
