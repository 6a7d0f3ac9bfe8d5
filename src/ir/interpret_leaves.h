#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/interpret.h"
#include "ir/interpret_math.h"
#include "ir/program.h"
#include "ir/routing.h"
#include "ir/tensor.h"
#include "support/diag.h"

namespace harpe {

// A statement's operand or target: a whole tensor and the names of its axes in the nest.
struct NamedTensor {
  struct Axis {
    std::string name;
    std::int64_t size = 1;
    std::int64_t stride = 0;  // elements
  };
  std::string buffer;
  const HostTensor* tensor = nullptr;
  double* values = nullptr;             // for a target: the tensor's elements
  double* scales = nullptr;             // for computed tensors: Meaning::scales; null for inputs
  double error = 0;                     // Roundings::error; 0 for inputs that arrive exact
  std::vector<std::vector<Axis>> dims;  // opaque dimensions are axes named "#0", "#1", …

  [[nodiscard]] std::vector<Axis> axes() const;
  [[nodiscard]] const Axis* find(const std::string& name) const;
};

// The slots of a ragged axis in use: the first counts[e] slots of expert e.
struct UsedSlots {
  std::string slot;  // axes
  std::string expert;
  std::vector<std::int64_t> counts;  // per expert
};

// One statement on whole tensors.
struct LeafCall {
  const Nest* nest = nullptr;
  const Stmt* stmt = nullptr;
  std::vector<NamedTensor> operands;
  std::vector<NamedTensor> targets;               // f64
  std::vector<NamedTensor> mask_data = {};        // the buffers that masks read (mask_reads)
  std::optional<Routing> routing = std::nullopt;  // for a leaf that follows a route
  std::optional<UsedSlots> used = std::nullopt;   // for targets with a ragged axis
  std::optional<RowSample> sample;
  double error = 0;  // Roundings::error
  Workers& workers;
};

// Per target, flat indices of the computed rows, ascending; empty if all rows were computed.
using ComputedRows = std::vector<std::vector<std::int64_t>>;

[[nodiscard]] Checked<ComputedRows> interpret_matmul(const LeafCall& call);
[[nodiscard]] Checked<ComputedRows> interpret_attention(const LeafCall& call);
[[nodiscard]] Checked<ComputedRows> interpret_attention_backward(const LeafCall& call);
[[nodiscard]] Checked<ComputedRows> interpret_rowdot(const LeafCall& call);
[[nodiscard]] Checked<ComputedRows> interpret_copy(const LeafCall& call);
[[nodiscard]] Checked<ComputedRows> interpret_pointwise(const LeafCall& call);
[[nodiscard]] Checked<ComputedRows> interpret_add_rms_norm(const LeafCall& call);
[[nodiscard]] Checked<ComputedRows> interpret_topk(const LeafCall& call);
[[nodiscard]] Checked<ComputedRows> interpret_limit_choices(const LeafCall& call);
[[nodiscard]] Checked<ComputedRows> interpret_gather_rows(const LeafCall& call);
[[nodiscard]] Checked<ComputedRows> interpret_combine_rows(const LeafCall& call);

[[nodiscard]] Diag misfit(const LeafCall& call, const NamedTensor& tensor,
                          const std::string& reason);

}  // namespace harpe
