#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "verify/panel_model.h"
#include "verify/step_builder.h"

namespace harpe::verifier {

// Makes the steps of kernels with panels. A panel is a sum that stays private to the kernel until
// the kernel stores it:
//   carry   loads the state that the sum continues from
//   meet    for each arrival: adds its contribution once the arrival is there
//   addend  adds another rank's contribution once it is there
//   map     turns the sum into a value, and each map's input into its result
//   store   copies the sum if the target is a partial state, else finalises it; after maps it
//   stores
//           the last map's value
class PanelSteps {
 public:
  PanelSteps(StepBuilder& builder, const Words& words)
      : builder_(builder), words_(words), places_(words.model()) {}

  // Removes from `left` the tasks whose work the kernel does.
  // Errors: V704 a kernel that cannot do what it says; V705 a place.
  [[nodiscard]] Checked<Ok> add(const Plan& plan, const launch::Launch& launch, std::int32_t kernel,
                                std::vector<TaskId>& left);

 private:
  // Of one panel.
  struct Sum {
    std::vector<AllocId> allocs;           // per target
    std::vector<std::vector<Box>> blocks;  // per target
  };
  // The statements of a panel's maps, and the blocks that the kernel's own statement makes for
  // them.
  struct Chain {
    std::vector<int> maps;  // into Model::statements
    PlacedBlocks made;
  };
  // Private memory. Panels that make different blocks share it.
  struct Memory {
    std::vector<AllocId> allocs;  // per target
    std::vector<Box> made;        // of the first target
  };

  [[nodiscard]] Checked<PlacedBlocks> blocks_of(const launch::Place& place);
  [[nodiscard]] Checked<std::vector<PlacedBlocks>> blocks_of(
      const std::vector<launch::Place>& places);
  [[nodiscard]] Checked<int> find_statement();
  [[nodiscard]] Checked<Chain> find_chain(const launch::Panel& panel);
  [[nodiscard]] Checked<Ok> add_panel(const launch::Panel& panel);
  [[nodiscard]] Checked<Ok> add_meet(const launch::Arrival& arrival, const Sum& sum,
                                     const PlacedBlocks& stored,
                                     const std::vector<PlacedBlocks>& of_panel);
  [[nodiscard]] Checked<Ok> note_done(const std::vector<Box>& iterations);
  [[nodiscard]] Checked<Ok> add_carry(const std::vector<PlacedBlocks>& states, const Sum& sum);
  [[nodiscard]] Checked<std::vector<PlacedBlocks>> places_of(const launch::Addend& addend);
  [[nodiscard]] Checked<Ok> add_addend(const launch::Addend& addend, const Sum& sum);
  [[nodiscard]] Checked<Ok> add_total(const launch::Panel& panel,
                                      const std::vector<PlacedBlocks>& stores);
  [[nodiscard]] Checked<Ok> add_maps(const launch::Panel& panel, const Chain& chain, const Sum& sum,
                                     const PlacedBlocks& stored);
  [[nodiscard]] Checked<Ok> check_type(const launch::Panel& panel) const;
  [[nodiscard]] Checked<Ok> add_store(const launch::Panel& panel, const Sum& sum,
                                      const std::vector<PlacedBlocks>& stores);
  [[nodiscard]] Checked<Ok> add_copy(const launch::FusedCopy& copy);
  [[nodiscard]] std::vector<AllocId> memory_for(const Sum& sum);
  [[nodiscard]] AllocId value_memory(int buffer);
  [[nodiscard]] Checked<Ok> find_sums();
  [[nodiscard]] bool does(const Task& task) const;

  [[nodiscard]] const launch::Kernel& kernel() const {
    return launch_->kernels[static_cast<std::size_t>(kernel_)];
  }
  [[nodiscard]] const StatementModel& statement() const {
    return words_.model().statements[static_cast<std::size_t>(statement_)];
  }
  [[nodiscard]] const std::vector<Dim>& dims_of(int buffer) const;
  [[nodiscard]] int find_map_statement(const launch::Map& map) const;
  [[nodiscard]] int target_of(int buffer) const;  // or -1
  [[nodiscard]] Task task_of(TaskKind kind) const;
  [[nodiscard]] Task task_of(TaskKind kind, const StatementModel& model) const;
  [[nodiscard]] StepOrigin origin_of(StepKind kind) const;
  [[nodiscard]] Diag misfit(const std::string& problem) const;  // V704

  StepBuilder& builder_;
  const Words& words_;
  PlaceBlocks places_;
  std::map<int, PanelModel> models_;  // per statement

  // The iterations of the current launch's kernels, if it has several.
  struct Done {
    std::int32_t kernel = 0;
    int statement = -1;
    Box iterations;
  };
  std::vector<Done> done_;

  // Of the current kernel.
  const Plan* plan_ = nullptr;
  const launch::Launch* launch_ = nullptr;
  std::int32_t kernel_ = 0;
  std::int32_t part_ = 0;
  int statement_ = -1;
  const PanelModel* model_ = nullptr;
  QueueId queue_;
  std::vector<Sum> sums_;  // per panel, until it is added
  std::vector<Memory> memories_;
  std::vector<std::vector<bool>> holds_;  // per target: digits that differ between panels
  std::vector<std::int32_t> stored_;      // per panel: its last step
};

}  // namespace harpe::verifier
