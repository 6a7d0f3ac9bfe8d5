#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "measure/baselines/baseline.h"

namespace harpe::library {

// An operator with its sizes, over all ranks; those of other operators are not read.
struct Subject {
  std::string op;  // "ag_gemm"
  DType dtype = DType::BF16;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::int64_t batch = 1;
  std::int64_t seq = 0;  // of decode: keys of each sequence
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  bool causal = false;
  std::int64_t tokens = 0;
  std::int64_t hidden = 0;
  std::int64_t experts = 0;
  std::int64_t topk = 0;
  std::int64_t inter = 0;
  const HostTensor* router = nullptr;  // the logits that it will be given
};

// `make` may be called more than once, and reads what the subject points at. Errors: G081 the
// operator cannot be done so; G005.
struct Candidate {
  std::string name;  // "all-gather, product"
  std::function<Checked<std::unique_ptr<Baseline>>()> make;
};

// The ways to do the operator with NCCL and libraries; empty where none is known yet.
[[nodiscard]] std::vector<Candidate> make_baselines(const std::shared_ptr<Team>& team,
                                                    const Subject& subject);

// By family.
[[nodiscard]] Checked<std::unique_ptr<Baseline>> make_product_baseline(
    const std::shared_ptr<Team>& team, const Subject& subject);
// Heads exchanged for positions, attention of whole sequences, and back.
[[nodiscard]] Checked<std::unique_ptr<Baseline>> make_ulysses_baseline(
    const std::shared_ptr<Team>& team, const Subject& subject);
// All keys and values everywhere, queries where they are.
[[nodiscard]] Checked<std::unique_ptr<Baseline>> make_gathered_baseline(
    const std::shared_ptr<Team>& team, const Subject& subject);
// The same of gradients, by cuDNN's backward. Those of keys are rounded to the type of the keys
// before ranks' contributions are added up, as libraries of training do it.
[[nodiscard]] Checked<std::unique_ptr<Baseline>> make_ulysses_backward_baseline(
    const std::shared_ptr<Team>& team, const Subject& subject);
[[nodiscard]] Checked<std::unique_ptr<Baseline>> make_gathered_backward_baseline(
    const std::shared_ptr<Team>& team, const Subject& subject);
// Our kernel over the rank's keys, states gathered and combined. Parts: the kernel for many
// queries, its keys in parts. Shares: the one for few queries, which runs under `bulk` too.
enum class LocalDecode : std::uint8_t { Parts, Shares };
[[nodiscard]] Checked<std::unique_ptr<Baseline>> make_decode_baseline(
    const std::shared_ptr<Team>& team, const Subject& subject, LocalDecode kernel);
// Rows sent to their experts' ranks, two products for each expert, and rows sent back: one message
// between two ranks, whose rows are sorted by expert where they arrive, or one for each expert.
// How many rows go from each rank to each expert is known beforehand, from the logits that will be
// given: a layer that is captured has no other way. Ours finds that out in every execution, which
// these do not pay for, nor for reading it back. Which rows they are, theirs finds out too. Weights
// of gate and up lie side by side, as one product.
[[nodiscard]] Checked<std::unique_ptr<Baseline>> make_sorted_moe_baseline(
    const std::shared_ptr<Team>& team, const Subject& subject);
[[nodiscard]] Checked<std::unique_ptr<Baseline>> make_direct_moe_baseline(
    const std::shared_ptr<Team>& team, const Subject& subject);

// `size` of each rank. Errors: G081.
[[nodiscard]] Checked<std::int64_t> share_of(std::string_view what, std::int64_t size, int ranks);
[[nodiscard]] device::Element element_of(DType dtype);

}  // namespace harpe::library
