#pragma once

#include <cstdint>
#include <vector>

#include "exec/actions/action.h"
#include "ir/tensor.h"

// The messages and GEMMs of a layer of experts. They are computed before the layer runs, because a
// captured graph has fixed sizes. Only the numbers of rows are known in advance; kernels find out
// in every execution which rows they are.
namespace harpe::library {

struct MoeSizes {
  int ranks = 1;
  std::int64_t tokens = 0;   // per rank
  std::int64_t experts = 0;  // per rank
  std::int64_t choices = 0;  // per token
  std::int64_t hidden = 0;
  std::int64_t inter = 0;
  DType dtype = DType::BF16;

  [[nodiscard]] std::int64_t all_experts() const { return ranks * experts; }
  [[nodiscard]] std::int64_t row_bytes() const { return hidden * size_in_bytes(dtype); }
};

// Rows from each rank's tokens to each expert: [rank][expert].
using MoeCounts = std::vector<std::vector<std::int64_t>>;
// Each token chooses its largest logits, ties to the lower expert. Requires: logits are f32, of all
// tokens, and no NaN.
[[nodiscard]] MoeCounts count_choices(const MoeSizes& sizes, const HostTensor& logits);

struct RowMessage {
  int peer = 0;
  std::int64_t first = 0;  // the first row
  std::int64_t rows = 0;
  friend bool operator==(const RowMessage&, const RowMessage&) = default;
};

// One rank's part. Rows are sent sorted by expert. GEMMs take them sorted by expert, then by source
// rank. Results return along the same messages.
struct MoeLayout {
  std::vector<std::int64_t> sent;     // first row of each expert, then the number of rows
  std::vector<std::int64_t> grouped;  // the same for each of this rank's experts, of received rows
  std::vector<std::int64_t> sources;  // the same for each rank, of rows sorted by rank
  std::vector<RowMessage> sends;      // between two ranks in the order of the other's `receives`
  std::vector<RowMessage> receives;
  // With one message for all experts of a rank, rows arrive sorted by rank: the expert of each row,
  // and, for rows sorted by expert, the rank. Empty if rows arrive in the order of the GEMMs.
  std::vector<std::int32_t> experts_of_rows;
  std::vector<std::int32_t> ranks_of_rows;

  [[nodiscard]] std::int64_t sent_rows() const { return sent.back(); }
  [[nodiscard]] std::int64_t received_rows() const { return grouped.back(); }
};

enum class MoeMessages : std::uint8_t { OfRanks, OfExperts };
[[nodiscard]] MoeLayout layout_of(const MoeSizes& sizes, const MoeCounts& counts, int rank,
                                  MoeMessages messages);

// Addresses of one rank's buffers.
struct MoePlaces {
  std::byte* x = nullptr;         // [tokens, hidden]
  std::byte* router = nullptr;    // f32 [tokens, all experts]
  std::byte* index = nullptr;     // i32 [tokens, choices]
  std::byte* weight = nullptr;    // f32 [tokens, choices]
  std::byte* sent = nullptr;      // rows to experts
  std::byte* received = nullptr;  // as they arrive; `grouped` if that is in order
  std::byte* grouped = nullptr;
  std::byte* gates = nullptr;     // [rows, gate and up, inter]
  std::byte* act = nullptr;       // [rows, inter]
  std::byte* made = nullptr;      // results, as `grouped`
  std::byte* leaving = nullptr;   // as `received`; `made` if that is in order
  std::byte* returned = nullptr;  // as `sent`
  std::byte* y = nullptr;         // [tokens, hidden]
  std::byte* experts_of_rows = nullptr;
  std::byte* ranks_of_rows = nullptr;
  std::int32_t* used = nullptr;    // scratch: one per expert and rank
  std::int32_t* counts = nullptr;  // scratch on CPUs: the same
};

// The steps that are neither GEMM nor message, in order. Steps for rows already in order are empty.
[[nodiscard]] actions::ChooseExperts choose_action(const MoeSizes& sizes, const MoePlaces& at);
[[nodiscard]] actions::GatherRows send_action(const MoeSizes& sizes, const MoeLayout& layout,
                                              const MoePlaces& at);
[[nodiscard]] actions::GatherRows group_action(const MoeSizes& sizes, const MoeLayout& layout,
                                               const MoePlaces& at);
[[nodiscard]] actions::Apply gate_action(const MoeSizes& sizes, const MoeLayout& layout,
                                         const MoePlaces& at);
[[nodiscard]] actions::GatherRows ungroup_action(const MoeSizes& sizes, const MoeLayout& layout,
                                                 const MoePlaces& at);
[[nodiscard]] actions::CombineRows combine_action(const MoeSizes& sizes, const MoeLayout& layout,
                                                  const MoePlaces& at);

}  // namespace harpe::library
