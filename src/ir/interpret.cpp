#include "ir/interpret.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "ir/blocks.h"
#include "ir/interpret_leaves.h"
#include "ir/interpret_rows.h"
#include "ir/interpret_sizes.h"
#include "ir/mask_contract.h"
#include "ir/mask_data.h"
#include "leaves/leaf.h"
#include "support/check.h"

namespace harpe {
namespace {

std::string print_shape(const std::vector<std::int64_t>& shape) {
  std::string out = "[";
  for (const std::int64_t extent : shape) {
    out += (out.size() > 1 ? ", " : "") + std::to_string(extent);
  }
  return out + "]";
}

double evaluate(const Program& program, const Scalar& scalar) {
  if (const auto* whole = std::get_if<std::int64_t>(&scalar)) return static_cast<double>(*whole);
  if (const auto* real = std::get_if<double>(&scalar)) return *real;
  const auto* name = std::get_if<Name>(&scalar);
  const Axis* axis = name == nullptr ? nullptr : find_axis(program, name->text);
  HP_CHECK(axis != nullptr, "a number or an axis in a polynomial of a ground program");
  return static_cast<double>(size_of(*axis));
}

double evaluate(const Program& program, const Poly& poly) {
  double sum = 0;
  double product = evaluate(program, poly.first);
  for (const Poly::Term& term : poly.rest) {
    const double value = evaluate(program, term.value);
    if (term.op == '*') {
      product *= value;
    } else if (term.op == '/') {
      product /= value;
    } else {
      sum += product;
      product = value;
    }
  }
  return sum + product;
}

double flops_of(const Program& program, const Nest& nest, const Stmt& stmt) {
  const LeafDecl* leaf = find_leaf(program, stmt.leaf);
  if (leaf != nullptr && leaf->flops) return evaluate(program, *leaf->flops);
  double points = kFlopsOfPoint;
  for (const std::string& axis : nest.over) {
    points *= static_cast<double>(size_of(*find_axis(program, axis)));
  }
  return points;
}

bool writes(const Stmt& stmt, const std::string& buffer) {
  return std::ranges::find(stmt.targets, buffer, &Access::buffer) != stmt.targets.end();
}
bool reads(const Stmt& stmt, const std::string& buffer) {
  return std::ranges::find(stmt.operands, buffer, &Access::buffer) != stmt.operands.end();
}

class Interpreter {
 public:
  Interpreter(const Program& program, const TensorMap& inputs,
              const std::optional<RowSample>& sample, int threads, const Roundings& roundings,
              const TimeLimit* limit)
      : program_(program),
        inputs_(inputs),
        sample_(sample),
        roundings_(roundings),
        workers_(threads, limit) {}

  Checked<Meaning> run() {
    for (const Buffer* buffer : buffers_of(program_)) HP_REQUIRE_OK(make_value(*buffer));
    for (const Nest& nest : program_.nests) {
      for (const Stmt& stmt : nest.stmts) HP_REQUIRE_OK(execute(nest, stmt));
    }
    Meaning meaning;
    meaning.scores = std::move(scores_);
    meaning.roots = std::move(roots_);
    for (const Buffer* buffer : buffers_of(program_)) {
      if (buffer->role == Role::Temp) {
        meaning.largest.emplace(buffer->name, largest_magnitude(values_.at(buffer->name)));
      }
      if (buffer->role != Role::Out) continue;
      meaning.outputs.emplace(buffer->name, std::move(values_.at(buffer->name)));
      meaning.sampled_rows.emplace(buffer->name, std::move(rows_[buffer->name]));
      meaning.scales.emplace(buffer->name, std::move(scales_[buffer->name]));
    }
    return meaning;
  }

 private:
  // Inputs keep their buffer's dtype; all other buffers are f64.
  Checked<Ok> make_value(const Buffer& buffer) {
    const std::vector<std::int64_t> shape = shape_of(program_, buffer);
    if (buffer.role != Role::In) {
      HostTensor value = make_tensor(DType::F64, shape);
      std::fill_n(reinterpret_cast<double*>(value.data.data()), element_count(value),
                  std::numeric_limits<double>::quiet_NaN());
      make_scales(value, buffer.name);
      values_.emplace(buffer.name, std::move(value));
      return Ok{};
    }
    const auto input = inputs_.find(buffer.name);
    if (input == inputs_.end()) {
      return make_diag(DiagCode::P202, {{"name", buffer.name}, {"program", program_.name}});
    }
    const HostTensor& tensor = input->second;
    const bool whole =
        std::ssize(tensor.data) == element_count(tensor) * size_in_bytes(tensor.dtype);
    if (tensor.shape != shape || !whole) {
      return make_diag(DiagCode::P203, {{"name", buffer.name},
                                        {"found", print_shape(tensor.shape)},
                                        {"wanted", print_shape(shape)}});
    }
    HP_REQUIRE_OK(check_mask_data(program_, buffer, inputs_));
    if (tensor.dtype == buffer.dtype) return Ok{};  // used in place
    values_.emplace(buffer.name, convert(tensor, buffer.dtype));
    return Ok{};
  }

  void make_scales(const HostTensor& value, const std::string& buffer) {
    scales_[buffer].assign(static_cast<std::size_t>(element_count(value)),
                           std::numeric_limits<double>::quiet_NaN());
  }

  // Names axes as the nest does; axes reached through a route keep the buffer's names.
  NamedTensor resolve(const Access& access) {
    const Buffer& buffer = *find_buffer(program_, access.buffer);
    NamedTensor out{.buffer = buffer.name, .tensor = nullptr, .dims = {}};
    const bool exact = buffer.role == Role::In && !roundings_.inputs.contains(buffer.name);
    out.error = exact ? 0 : roundings_.error;
    if (const auto own = values_.find(buffer.name); own != values_.end()) {
      out.tensor = &own->second;
      out.values = reinterpret_cast<double*>(own->second.data.data());
      if (const auto scales = scales_.find(buffer.name); scales != scales_.end()) {
        out.scales = scales->second.data();
      }
    } else {
      out.tensor = &inputs_.at(buffer.name);
    }
    int opaque = 0;
    for (const Dim& dim : buffer.dims) {
      std::vector<NamedTensor::Axis> axes;
      if (const auto* extent = std::get_if<std::int64_t>(&dim)) {
        axes.push_back({.name = "#" + std::to_string(opaque++), .size = *extent});
      } else if (const auto* name = std::get_if<std::string>(&dim)) {
        axes.push_back({.name = *name, .size = size_of(*find_axis(program_, *name))});
      } else {
        for (const std::string& part : std::get<std::vector<std::string>>(dim)) {
          axes.push_back({.name = part, .size = size_of(*find_axis(program_, part))});
        }
      }
      out.dims.push_back(std::move(axes));
    }
    std::int64_t stride = 1;
    for (auto dim = out.dims.rbegin(); dim != out.dims.rend(); ++dim) {
      for (auto axis = dim->rbegin(); axis != dim->rend(); ++axis) {
        axis->stride = stride;
        stride *= axis->size;
        const auto rename = std::ranges::find(access.renames, axis->name, &Rename::axis);
        const bool routed = rename != access.renames.end() && !rename->member.empty();
        if (rename != access.renames.end() && !routed) {
          axis->name = rename->source;
          axis->size = size_of(*find_axis(program_, rename->source));
        }
      }
    }
    return out;
  }

  // Whether rows of these targets may be skipped, because no later statement reads them.
  [[nodiscard]] bool may_sample(const Stmt& sampled) const {
    for (const Access& target : sampled.targets) {
      int writers = 0;
      for (const Nest& nest : program_.nests) {
        for (const Stmt& stmt : nest.stmts) {
          if (reads(stmt, target.buffer)) return false;
          if (writes(stmt, target.buffer)) ++writers;
        }
      }
      if (writers != 1) return false;
    }
    return true;
  }

  Checked<Ok> execute(const Nest& nest, const Stmt& stmt) {
    const LeafContract* contract = find_leaf_contract(stmt.leaf);
    if (contract == nullptr) return unknown_leaf(nest, stmt);
    LeafCall call{.nest = &nest,
                  .stmt = &stmt,
                  .operands = {},
                  .targets = {},
                  .mask_data = {},
                  .routing = std::nullopt,
                  .used = std::nullopt,
                  .sample = std::nullopt,
                  .error = roundings_.error,
                  .workers = workers_};
    for (const Access& access : stmt.operands) {
      call.operands.push_back(resolve(access));
    }
    for (const Access& access : stmt.targets) {
      call.targets.push_back(resolve(access));
    }
    for (const Access& access : mask_reads(stmt)) {
      call.mask_data.push_back(resolve(access));
    }
    HP_CHECK(std::ssize(call.operands) == contract->operands &&
                 std::ssize(call.targets) == contract->targets,
             "the arity of `" + stmt.leaf + "` passed check_program");
    HP_REQUIRE_OK(follow_route(*contract, call));
    if (may_sample(stmt)) call.sample = sample_;
    HP_TRY(ComputedRows rows, call_leaf(contract->leaf, call));
    if (!workers_.goes_on(0)) {
      return make_diag(DiagCode::I505, {{"work", "the reference of `" + program_.name + "`"}});
    }
    const std::string& first = stmt.targets[0].buffer;
    if (contract->has_scores()) scores_[first] = measure_scores(call);
    if (contract->leaf == Leaf::RmsScale) roots_[first] = least_root(call);
    if (contract->leaf == Leaf::AddRmsNorm) roots_[first] = least_norm_root(call);
    for (std::size_t i = 0; i < stmt.targets.size(); ++i) {
      rows_[stmt.targets[i].buffer] = std::move(rows[i]);
    }
    return Ok{};
  }

  // A leaf that fills slots determines which slots of ragged axes are in use.
  Checked<Ok> follow_route(const LeafContract& contract, LeafCall& call) {
    const Stmt& stmt = *call.stmt;
    const Route* const route = find_route_of(program_, *call.nest);
    if (contract.is_routed()) {
      const auto& index = call.operands[static_cast<std::size_t>(contract.index)];
      HP_TRY(call.routing, resolve_route(program_, *route, *index.tensor));
      UsedSlots used{.slot = route->slots[1], .expert = route->slots[0], .counts = {}};
      for (const auto& takers : call.routing->takers) used.counts.push_back(std::ssize(takers));
      call.used = used_.insert_or_assign(used.slot, used).first->second;
      return Ok{};
    }
    if (route != nullptr && goes_through(stmt, *route)) {
      return make_diag(DiagCode::P204,
                       {{"nest", call.nest->name}, {"leaf", stmt.leaf}, {"route", route->name}});
    }
    const Axis* const ragged =
        find_ragged_axis(program_, *find_buffer(program_, stmt.targets[0].buffer));
    if (ragged == nullptr) return Ok{};
    const auto used = used_.find(ragged->name);
    if (used != used_.end()) call.used = used->second;
    return Ok{};
  }

  static bool goes_through(const Stmt& stmt, const Route& route) {
    return std::ranges::any_of(stmt.operands, [&](const Access& access) {
      return std::ranges::find(access.renames, route.name, &Rename::source) != access.renames.end();
    });
  }

  static Checked<ComputedRows> call_leaf(Leaf leaf, const LeafCall& call) {
    switch (leaf) {
      case Leaf::Matmul:
        return interpret_matmul(call);
      case Leaf::AttentionForward:
        return interpret_attention(call);
      case Leaf::AttentionBackward:
        return interpret_attention_backward(call);
      case Leaf::RowDot:
        return interpret_rowdot(call);
      case Leaf::Copy:
        return interpret_copy(call);
      case Leaf::AddRmsNorm:
        return interpret_add_rms_norm(call);
      case Leaf::TopK:
        return interpret_topk(call);
      case Leaf::LimitChoices:
        return interpret_limit_choices(call);
      case Leaf::GatherRows:
        return interpret_gather_rows(call);
      case Leaf::CombineRows:
        return interpret_combine_rows(call);
      default:
        return interpret_pointwise(call);
    }
  }

  static Diag unknown_leaf(const Nest& nest, const Stmt& stmt) {
    std::vector<std::string> known;
    for (const LeafContract& contract : all_leaf_contracts()) known.emplace_back(contract.name);
    return make_diag(
        DiagCode::P201,
        {{"nest", nest.name}, {"leaf", stmt.leaf}, {"hint", suggestion(stmt.leaf, known)}});
  }

  const Program& program_;
  const TensorMap& inputs_;
  const std::optional<RowSample>& sample_;
  const Roundings& roundings_;
  Workers workers_;
  TensorMap values_;
  std::map<std::string, std::vector<double>> scales_;
  std::map<std::string, ScoreSizes> scores_;
  std::map<std::string, double> roots_;
  std::map<std::string, std::vector<std::int64_t>> rows_;
  std::map<std::string, UsedSlots> used_;  // by ragged axis
};

}  // namespace

std::vector<NamedTensor::Axis> NamedTensor::axes() const {
  std::vector<Axis> out;
  for (const std::vector<Axis>& dim : dims) out.insert(out.end(), dim.begin(), dim.end());
  return out;
}

const NamedTensor::Axis* NamedTensor::find(const std::string& name) const {
  for (const std::vector<Axis>& dim : dims) {
    const auto found = std::ranges::find(dim, name, &Axis::name);
    if (found != dim.end()) return &*found;
  }
  return nullptr;
}

Diag misfit(const LeafCall& call, const NamedTensor& tensor, const std::string& reason) {
  return make_diag(DiagCode::P205, {{"nest", call.nest->name},
                                    {"buffer", tensor.buffer},
                                    {"leaf", call.stmt->leaf},
                                    {"reason", reason}});
}

namespace {

// `to` is dense, row-major over the same points.
void copy_scales(const NamedTensor& from, const std::vector<std::int64_t>& rows,
                 const std::vector<std::int64_t>& columns, const NamedTensor& to) {
  if (from.scales == nullptr) return;
  double* scale = to.scales;
  for (const std::int64_t row : rows) {
    for (const std::int64_t column : columns) *scale++ = from.scales[row + column];
  }
}

}  // namespace

Checked<ComputedRows> interpret_copy(const LeafCall& call) {
  const NamedTensor& from = call.operands[0];
  const NamedTensor& to = call.targets[0];
  for (const NamedTensor::Axis& axis : to.axes()) {
    const NamedTensor::Axis* same = from.find(axis.name);
    if (same == nullptr || same->size != axis.size) {
      return misfit(call, to, "`" + from.buffer + "` has no such axis `" + axis.name + "`");
    }
  }
  if (from.axes().size() != to.axes().size()) {
    return misfit(call, from, "it has more axes than `" + to.buffer + "`");
  }
  AxisList rows;
  AxisList columns;
  for (std::size_t i = 0; i < to.dims.size(); ++i) {
    AxisList& part = i + 1 == to.dims.size() ? columns : rows;
    part.insert(part.end(), to.dims[i].begin(), to.dims[i].end());
  }
  const std::vector<std::int64_t> row_places = offsets_in(from, rows);
  const std::vector<std::int64_t> column_places = offsets_in(from, columns);
  gather({.tensor = from.tensor, .base = 0, .rows = row_places, .columns = column_places},
         to.values, std::ssize(column_places));
  copy_scales(from, row_places, column_places, to);
  return ComputedRows(1);
}

Checked<Meaning> interpret(const Program& program, const TensorMap& inputs,
                           const std::optional<RowSample>& sample, int threads,
                           const Roundings& roundings, const TimeLimit* limit) {
  return Interpreter(program, inputs, sample, threads, roundings, limit).run();
}

double flops_of(const Program& program) {
  double flops = 0;
  for (const Nest& nest : program.nests) {
    for (const Stmt& stmt : nest.stmts) flops += flops_of(program, nest, stmt);
  }
  return flops;
}

}  // namespace harpe
