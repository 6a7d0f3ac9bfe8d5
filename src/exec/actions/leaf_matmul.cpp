#include <algorithm>
#include <optional>

#include "exec/actions/leaf.h"

namespace harpe::actions {
namespace {

// Participants of the leaf.
constexpr std::size_t kMatmulA = 0;
constexpr std::size_t kMatmulB = 1;
constexpr std::size_t kMatmulC = 2;

// c[M, N] += a[M, K] * b[K, N], or the transposed product where c's rows lie along M.
struct Roles {
  std::size_t left = kMatmulA;  // its rows are c's rows
  std::size_t right = kMatmulB;
  std::optional<std::size_t> m;  // axes of the space; none: a single row
  std::optional<std::size_t> n;
  std::optional<std::size_t> k;
};

class MatmulBuilder {
 public:
  MatmulBuilder(const LeafSite& site, const LeafCall& call) : site_(site), call_(call) {}

  Checked<Action> build() {
    HP_REQUIRE_OK(check_types(site_, call_.cell));
    assign_roles();
    Multiply products;
    GemmProblem& problem = products.first;
    problem.m = extent(roles_.m);
    problem.n = extent(roles_.n);
    problem.k = extent(roles_.k);
    problem.c = view(kMatmulC).data;
    problem.c_row_stride = roles_.m ? stride(kMatmulC, *roles_.m) : problem.n;
    problem.accumulate = call_.accumulate[0];
    problem.products = site_.products;
    HP_TRY(problem.a, matrix(roles_.left, roles_.m, roles_.k));
    HP_TRY(problem.b, matrix(roles_.right, roles_.k, roles_.n));
    HP_REQUIRE_OK(limit_rows(products));
    products.loops = loops();
    if (roles_.left == kMatmulB) {
      for (Loop<3>& loop : products.loops) std::swap(loop.bytes[0], loop.bytes[1]);
    }
    return Action{std::move(products)};
  }

 private:
  [[nodiscard]] const View& view(std::size_t participant) const {
    return call_.cell.views[participant];
  }
  [[nodiscard]] std::int64_t stride(std::size_t participant, std::size_t axis) const {
    return view(participant).strides[axis];
  }
  [[nodiscard]] std::int64_t length(std::size_t axis) const { return call_.cell.span[axis].size(); }
  [[nodiscard]] std::int64_t extent(std::optional<std::size_t> axis) const {
    return axis ? length(*axis) : 1;
  }
  [[nodiscard]] bool has(std::size_t participant, std::size_t axis) const {
    const std::vector<std::size_t> axes = site_.axes_of(participant);
    return std::ranges::find(axes, axis) != axes.end();
  }

  // The longest axis that the first two have and the third lacks; `unit`: only axes with stride 1
  // in c.
  [[nodiscard]] std::optional<std::size_t> shared(std::size_t one, std::size_t other,
                                                  std::size_t third, bool unit) const {
    std::optional<std::size_t> best;
    for (std::size_t axis = 0; axis < call_.cell.span.size(); ++axis) {
      if (!has(one, axis) || !has(other, axis) || has(third, axis)) continue;
      if (unit && stride(kMatmulC, axis) != 1) continue;
      if (!best || length(axis) > length(*best)) best = axis;
    }
    return best;
  }

  // c's innermost axis decides which operand's columns are c's columns. If neither operand has it
  // as a column (a batch axis), c is a column vector.
  void assign_roles() {
    roles_.k = shared(kMatmulA, kMatmulB, kMatmulC, false);
    roles_.n = shared(kMatmulB, kMatmulC, kMatmulA, true);
    if (roles_.n) {
      roles_.m = shared(kMatmulA, kMatmulC, kMatmulB, false);
      return;
    }
    roles_.n = shared(kMatmulA, kMatmulC, kMatmulB, true);
    if (roles_.n) {
      roles_.left = kMatmulB;
      roles_.right = kMatmulA;
      roles_.m = shared(kMatmulB, kMatmulC, kMatmulA, false);
      return;
    }
    roles_.m = shared(kMatmulA, kMatmulC, kMatmulB, false);
  }

  // An operand as a matrix with a unit stride. The stride along an axis of length one is arbitrary.
  [[nodiscard]] Checked<MatrixView> matrix(std::size_t participant,
                                           std::optional<std::size_t> row_axis,
                                           std::optional<std::size_t> column_axis) const {
    const std::int64_t rows = extent(row_axis);
    const std::int64_t columns = extent(column_axis);
    MatrixView matrix{.data = view(participant).data,
                      .dtype = view(participant).dtype,
                      .row_stride = row_axis ? stride(participant, *row_axis) : columns,
                      .column_stride = column_axis ? stride(participant, *column_axis) : 1};
    if (columns == 1) matrix.column_stride = 1;
    if (rows == 1 && matrix.column_stride == 1) matrix.row_stride = columns;
    if (matrix.column_stride != 1 && rows == 1) matrix.row_stride = 1;
    if (matrix.column_stride == 1 || matrix.row_stride == 1) return matrix;
    return make_diag(DiagCode::X004, {{"leaf", site_.stmt.leaf},
                                      {"nest", site_.nest.name},
                                      {"buffer", site_.buffer_of(participant)}});
  }

  // Only used rows of a ragged axis are multiplied, so the axis must be c's rows.
  Checked<Ok> limit_rows(Multiply& products) const {
    const Cell& cell = call_.cell;
    if (!cell.slot_axis) return Ok{};
    const View& left = view(roles_.left);
    if (roles_.m != cell.slot_axis || left.used == nullptr) {
      return make_diag(DiagCode::X013, {{"leaf", site_.stmt.leaf},
                                        {"nest", site_.nest.name},
                                        {"axis", site_.names[*cell.slot_axis]}});
    }
    products.used = {.rows = left.used, .before = cell.rows_before, .taken = cell.rows_taken};
    products.result = view(kMatmulC).used;
    return Ok{};
  }

  // Loops over all axes outside the matrices; axes that c lacks come last and reduce.
  [[nodiscard]] std::vector<Loop<3>> loops() const {
    std::vector<Loop<3>> result;
    for (const bool reduces : {false, true}) {
      for (std::size_t axis = 0; axis < call_.cell.span.size(); ++axis) {
        const bool in_matrix = axis == roles_.m || axis == roles_.n || axis == roles_.k;
        if (in_matrix || length(axis) == 1 || has(kMatmulC, axis) == reduces) continue;
        Loop<3> loop{.length = length(axis), .bytes = {}, .reduces = reduces};
        for (std::size_t i = 0; i < 3; ++i) {
          loop.bytes[i] = stride(i, axis) * size_in_bytes(view(i).dtype);
        }
        result.push_back(loop);
      }
    }
    return result;
  }

  const LeafSite& site_;
  const LeafCall& call_;
  Roles roles_;
};

}  // namespace

Checked<Action> call_matmul(const LeafSite& site, const LeafCall& call) {
  return MatmulBuilder(site, call).build();
}

}  // namespace harpe::actions
