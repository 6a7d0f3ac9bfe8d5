#include "exec/cuda/kernels/copy_engine/copy_launch.h"

#include <algorithm>
#include <limits>
#include <variant>

#include "exec/cuda/kernels/loop_nests.h"

namespace harpe::cuda {
namespace {

// The copy engine moves narrower rows one by one.
constexpr std::int64_t kLeastCopyBytes = 64;

class CopyEngineLaunch final : public LaunchOf<CopyLaunch> {
 public:
  using LaunchOf::LaunchOf;

  std::unique_ptr<KernelLaunch> copy() const override {
    return std::make_unique<CopyEngineLaunch>(*this);
  }
  std::string_view name() const override { return "copy_engine"; }
};

bool is_pitched(const Loops<2>& loops, std::int64_t row_bytes) {
  if (loops.empty()) return true;
  const auto& bytes = loops[0].bytes;
  constexpr std::int64_t kMostPitch = std::numeric_limits<std::int32_t>::max();
  return loops.size() == 1 && row_bytes >= kLeastCopyBytes &&
         std::ranges::min(bytes) >= row_bytes && std::ranges::max(bytes) <= kMostPitch;
}

// Plans a bitwise copy of whole rows, flat or pitched.
Checked<std::optional<LaunchSpecs>> plan_copy(const LaunchChoice& choice,
                                              const actions::Action& action) {
  const auto* const assign = std::get_if<actions::Assign>(&action);
  if (assign == nullptr || !choice.by_copy_engine || assign->rows.count() == 0 ||
      assign->to.dtype != assign->from.dtype || assign->slots.used.rows != nullptr) {
    return std::optional<LaunchSpecs>();
  }
  const std::int64_t size = size_in_bytes(assign->to.dtype);
  const Loops<2> loops = loops_around<2>(assign->rows, &assign->slots, {size, size});
  const std::int64_t bytes = assign->rows.length() * size;
  if (!is_pitched(loops, bytes)) return std::optional<LaunchSpecs>();
  CopyLaunch copy{
      .to = address_of(assign->to.data), .from = address_of(assign->from.data), .bytes = bytes};
  if (!loops.empty()) {
    copy.rows = loops[0].length;
    copy.to_pitch = loops[0].bytes[0];
    copy.from_pitch = loops[0].bytes[1];
  }
  if (copy.rows == 0) return std::optional(LaunchSpecs());
  return std::optional(LaunchSpecs{copy});
}

}  // namespace

std::unique_ptr<KernelLaunch> make_launch(CopyLaunch copy) {
  return std::make_unique<CopyEngineLaunch>(copy);
}

KernelFamily copy_engine_family() { return {.plan = plan_copy, .variants = nullptr}; }

}  // namespace harpe::cuda
