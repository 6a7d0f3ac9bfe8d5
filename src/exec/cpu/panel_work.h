#pragma once

#include <optional>
#include <string>
#include <vector>

#include "exec/actions/prepare.h"
#include "exec/cpu/launch_steps.h"
#include "support/diag.h"

namespace harpe::cpu {

// Makes the actions of one launch's kernels, part by part. A panel is a sum that begins with its
// first part and is stored with its last. Panels of a launch run one after the other and share the
// sum's memory.
class PanelWork {
 public:
  // Requires: all outlive this.
  PanelWork(const actions::Setting& setting, const launch::Launch& launch, launch::LaunchId id)
      : setting_(setting), launch_(launch), id_(id) {}

  // In the order of the steps. Errors: those of prepare_statement; V704, V705.
  [[nodiscard]] Checked<actions::TaskWork> prepare(const PanelPart& part);
  [[nodiscard]] Checked<actions::TaskWork> prepare(const CopyPart& part);

 private:
  using Span = launch::Span;
  using Operands = std::vector<actions::StatementWork::Operand>;
  // The partial result of one target of the current panel.
  struct Sum {
    std::string buffer;
    actions::Patch patch;
  };
  struct Memory {
    std::byte* data = nullptr;
    std::int64_t bytes = 0;
  };

  [[nodiscard]] Checked<actions::TaskWork> begin(const launch::Panel& panel);
  [[nodiscard]] Checked<actions::TaskWork> meet(const launch::Panel& panel,
                                                const launch::Arrival& arrival);
  [[nodiscard]] Checked<actions::TaskWork> add(const launch::Addend& addend);
  [[nodiscard]] Checked<actions::TaskWork> apply(const launch::Panel& panel, std::size_t map);
  [[nodiscard]] Checked<actions::TaskWork> store(const launch::Panel& panel);

  [[nodiscard]] Checked<std::vector<actions::Patch>> patches_of(const launch::Place& place,
                                                                WriteMode mode) const;
  [[nodiscard]] Checked<Operands> operands_of(const std::vector<launch::Place>& places) const;
  [[nodiscard]] const std::string& buffer_of(const launch::Place& place) const;
  [[nodiscard]] const Nest& nest() const;
  [[nodiscard]] const Stmt& stmt() const;
  [[nodiscard]] bool is_target(const std::string& buffer) const;
  [[nodiscard]] const Sum* find_sum(const launch::Place& place) const;  // or null
  [[nodiscard]] const launch::Arrival& arrival_of(const launch::Panel& panel,
                                                  std::size_t met) const;
  // The box over the nest's axes, reduced to what these places contain.
  [[nodiscard]] Span narrow(Span box, const std::vector<Access>& accesses,
                            const std::vector<launch::Place>& places) const;
  // Reduces the box to the part that accesses these elements of an access's buffer.
  void narrow_to(Span& box, const Access& access, const Span& elements) const;
  [[nodiscard]] std::optional<std::size_t> axis_of(const Access& access, int axis) const;
  [[nodiscard]] Interval whole_axis(int axis) const;
  [[nodiscard]] Span whole_box() const;
  [[nodiscard]] bool makes_all(const Span& box) const;
  // Opens the sum of the target in memory number `slot`.
  void open_sum(std::size_t target, std::size_t slot);
  void add_mask_data(Operands& operands) const;
  [[nodiscard]] std::byte* reserve(Memory& memory, std::int64_t bytes) const;
  [[nodiscard]] Diag misfit(const std::string& problem) const;  // V704

  const actions::Setting& setting_;
  const launch::Launch& launch_;
  launch::LaunchId id_;

  // The current kernel.
  const launch::Kernel* kernel_ = nullptr;
  // The statement that it computes, or the map being applied.
  std::string nest_;
  int stmt_ = 0;
  // The current panel.
  Span box_;                      // over the nest's axes
  std::vector<Sum> sums_;         // per target
  bool is_begun_ = false;         // the sums hold contributions
  std::vector<Memory> memories_;  // per target, then per map, as the next
  std::vector<Memory> numbers_;   // numbers of rows in use
};

}  // namespace harpe::cpu
