#pragma once

#include "verify/model.h"

namespace harpe::verifier {

// Fills a Model step by step. Each step requires the steps above it, and check_program. Axes of
// dynamic size get the blocks of their capacity.
class ModelBuilder {
 public:
  ModelBuilder(const Program& program, const NormalForm& form, Model& model)
      : program_(program), form_(form), model_(model) {}

  [[nodiscard]] Checked<Ok> refine_mesh(const Mesh& mesh);
  [[nodiscard]] Checked<Ok> add_axes();
  [[nodiscard]] Checked<Ok> lay_out_axes();
  void cut_axes(const AxisCuts& cuts);
  void add_routes();
  [[nodiscard]] Checked<Ok> tie_slots();
  [[nodiscard]] Checked<Ok> add_buffers();
  [[nodiscard]] Checked<Ok> place_buffers();
  [[nodiscard]] Checked<Ok> add_nests();

 private:
  struct LayoutArgs {
    std::vector<std::size_t> digits;    // positions within the axis
    std::vector<std::int64_t> numbers;  // of a table
  };
  [[nodiscard]] Checked<LayoutArgs> layout_args(const Layout& layout, const AxisModel& axis) const;
  [[nodiscard]] Diag misfit(std::string reason) const;  // V201
  [[nodiscard]] Checked<std::vector<std::int64_t>> logical_blocks(const AxisModel& axis) const;
  [[nodiscard]] Checked<Radix> radix_over(const std::vector<std::string>& axis_names,
                                          const std::string& owner, std::int64_t limit) const;
  [[nodiscard]] std::vector<AxisView> views_of(const Radix& radix) const;
  [[nodiscard]] Checked<Ok> place(const Place& place);
  [[nodiscard]] Checked<std::vector<int>> mesh_axes(const MeshRef& names, std::vector<int>& used,
                                                    const std::string& owner) const;
  [[nodiscard]] Checked<Ok> tie(const std::string& slot, const std::string& source, int axis);
  [[nodiscard]] Checked<NestModel> make_nest(const Nest& nest) const;
  [[nodiscard]] Checked<int> route_of(const Nest& nest) const;  // or -1
  [[nodiscard]] Checked<AccessModel> access(const Access& access, const NestModel& nest) const;
  // The digit of the nest's space that a digit of the buffer equals at every point, or -1.
  [[nodiscard]] Checked<int> followed(const Access& access, int digit, const NestModel& nest) const;
  [[nodiscard]] int through_route(const Rename& rename, int digit, const NestModel& nest) const;
  // The digit at the same position of another axis; -1 unless both axes have equal blocks.
  [[nodiscard]] int counterpart(int digit, int axis) const;
  [[nodiscard]] bool runs_over(const NestModel& nest, const std::string& axis) const;
  // The mask by position, if the statement has one.
  [[nodiscard]] Checked<std::optional<MaskModel>> mask(const Stmt& stmt,
                                                       const NestModel& nest) const;
  [[nodiscard]] Checked<StatementModel> statement(const Stmt& stmt, const NestModel& nest) const;
  [[nodiscard]] int axis_index(std::string_view name) const;  // or -1

  const Program& program_;
  const NormalForm& form_;
  Model& model_;
};

}  // namespace harpe::verifier
