#include "driver/scale.h"

#include <algorithm>
#include <cmath>

#include "ir/leaf_contract.h"
#include "support/check.h"

namespace harpe {
namespace {

struct FlatAxis {
  std::string name;  // of the nest; "" for an opaque extent
  std::int64_t size = 1;
};

// The axes of an access, one list per dimension, by the names the nest has for them.
std::vector<std::vector<FlatAxis>> flatten(const Program& program, const Access& access) {
  const Buffer* buffer = find_buffer(program, access.buffer);
  HP_CHECK(buffer != nullptr, "statement names buffer `" + access.buffer + "`");
  const auto flat = [&](const std::string& name) {
    const Axis* axis = find_axis(program, name);
    HP_CHECK(axis != nullptr, "buffer `" + buffer->name + "` names axis `" + name + "`");
    const auto rename = std::ranges::find(access.renames, name, &Rename::axis);
    return FlatAxis{rename == access.renames.end() ? name : rename->source, size_of(*axis)};
  };
  std::vector<std::vector<FlatAxis>> dims;
  for (const Dim& dim : buffer->dims) {
    std::vector<FlatAxis>& axes = dims.emplace_back();
    if (const auto* name = std::get_if<std::string>(&dim)) axes.push_back(flat(*name));
    if (const auto* opaque = std::get_if<std::int64_t>(&dim)) axes.push_back({"", *opaque});
    if (const auto* names = std::get_if<std::vector<std::string>>(&dim)) {
      for (const std::string& name : *names) axes.push_back(flat(name));
    }
  }
  return dims;
}

std::vector<FlatAxis> join(const std::vector<std::vector<FlatAxis>>& dims) {
  std::vector<FlatAxis> all;
  for (const std::vector<FlatAxis>& axes : dims) all.insert(all.end(), axes.begin(), axes.end());
  return all;
}

// Steps through all index vectors of `sizes`, last fastest, calling body(flat index, group), where
// `group` moves by strides[i] with every step along axis i.
template <class Body>
void for_each_element(const std::vector<std::int64_t>& sizes,
                      const std::vector<std::int64_t>& strides, const Body& body) {
  std::vector<std::int64_t> at(sizes.size(), 0);
  std::int64_t group = 0;
  for (std::int64_t i = 0;; ++i) {
    body(i, group);
    std::size_t axis = sizes.size();
    while (axis > 0 && at[axis - 1] + 1 == sizes[axis - 1]) {
      --axis;
      group -= at[axis] * strides[axis];
      at[axis] = 0;
    }
    if (axis == 0) return;
    ++at[axis - 1];
    group += strides[axis - 1];
  }
}

double largest_norm(const HostTensor& tensor) {
  const std::int64_t length = tensor.shape.back();
  double largest = 0;
  double sum = 0;
  const std::int64_t elements = element_count(tensor);
  for (std::int64_t i = 0; i < elements; ++i) {
    const double x = load(tensor, i);
    sum += x * x;
    if ((i + 1) % length == 0) {
      if (std::isfinite(sum)) largest = std::max(largest, sum);
      sum = 0;
    }
  }
  return std::sqrt(largest);
}

}  // namespace

RowScale::RowScale(const Program& program, const Producer& producer, const TensorMap& inputs) {
  const Stmt& stmt = *producer.stmt;
  split_rows(program, stmt.targets[producer.target]);
  if (stmt.monoid != Monoid::Sum && stmt.monoid != Monoid::Lse) return;
  // Under lse the row is a mean of the values, weighted by what queries and keys say.
  const bool is_mean = stmt.monoid == Monoid::Lse;
  double length = 1;
  for (std::size_t i = is_mean ? 2 : 0; i < stmt.operands.size(); ++i) {
    const auto tensor = inputs.find(stmt.operands[i].buffer);
    if (tensor == inputs.end()) {
      parts_.clear();
      return;
    }
    parts_.push_back(measure(program, stmt.operands[i], tensor->second));
  }
  std::vector<FlatAxis> target = join(flatten(program, stmt.targets[producer.target]));
  std::vector<std::string> counted;
  for (const Access& operand : stmt.operands) {
    for (const FlatAxis& axis : join(flatten(program, operand))) {
      const bool kept = std::ranges::find(target, axis.name, &FlatAxis::name) != target.end();
      const bool scored = is_mean && &operand != &stmt.operands.back();
      if (kept || scored || std::ranges::find(counted, axis.name) != counted.end()) continue;
      counted.push_back(axis.name);
      length *= static_cast<double>(axis.size);
    }
  }
  factor_ = is_mean ? 1 / std::sqrt(length) : std::sqrt(length);
}

void RowScale::split_rows(const Program& program, const Access& target) {
  std::vector<std::vector<FlatAxis>> dims = flatten(program, target);
  if (!dims.empty()) dims.pop_back();
  for (const std::vector<FlatAxis>& axes : dims) {
    std::vector<std::int64_t>& sizes = dims_.emplace_back();
    for (const FlatAxis& axis : axes) {
      axes_.push_back(axis.name);
      sizes.push_back(axis.size);
    }
  }
}

RowScale::Part RowScale::measure(const Program& program, const Access& operand,
                                 const HostTensor& tensor) const {
  const std::vector<FlatAxis> axes = join(flatten(program, operand));
  Part part;
  std::vector<std::int64_t> sizes(axes.size());
  std::vector<std::int64_t> strides(axes.size(), 0);
  std::int64_t groups = 1;
  std::int64_t elements = 1;
  for (std::size_t i = axes.size(); i-- > 0;) {
    sizes[i] = axes[i].size;
    elements *= axes[i].size;
    const auto row_axis = std::ranges::find(axes_, axes[i].name);
    if (axes[i].name.empty() || row_axis == axes_.end()) continue;
    strides[i] = groups;
    groups *= axes[i].size;
    part.positions.insert(part.positions.begin(),
                          static_cast<std::size_t>(row_axis - axes_.begin()));
    part.sizes.insert(part.sizes.begin(), axes[i].size);
  }
  part.rms.assign(static_cast<std::size_t>(groups), 0.0);
  if (elements == 0) return part;
  for_each_element(sizes, strides, [&](std::int64_t i, std::int64_t group) {
    const double x = load(tensor, i);
    if (std::isfinite(x)) part.rms[static_cast<std::size_t>(group)] += x * x;
  });
  for (double& value : part.rms) {
    value = std::sqrt(value * static_cast<double>(groups) / static_cast<double>(elements));
  }
  return part;
}

double RowScale::of(const std::vector<std::int64_t>& coordinates) const {
  if (parts_.empty()) return 0;
  std::vector<std::int64_t> at;
  for (std::size_t dim = 0; dim < dims_.size(); ++dim) {
    std::int64_t rest = coordinates[dim];
    const std::size_t begin = at.size();
    at.resize(begin + dims_[dim].size());
    for (std::size_t i = dims_[dim].size(); i-- > 0;) {
      at[begin + i] = rest % dims_[dim][i];
      rest /= dims_[dim][i];
    }
  }
  double scale = factor_;
  for (const Part& part : parts_) {
    std::int64_t group = 0;
    for (std::size_t i = 0; i < part.positions.size(); ++i) {
      group = group * part.sizes[i] + at[part.positions[i]];
    }
    scale *= part.rms[static_cast<std::size_t>(group)];
  }
  return scale;
}

double largest_score(const Stmt& stmt, const TensorMap& inputs) {
  const LeafContract* leaf = find_leaf_contract(stmt.leaf);
  if (leaf == nullptr || !leaf->has_scores()) return 1;
  const auto query = inputs.find(stmt.operands[0].buffer);
  const auto key = inputs.find(stmt.operands[1].buffer);
  if (query == inputs.end() || key == inputs.end() || query->second.shape.empty()) return 1;
  double scale = 1 / std::sqrt(static_cast<double>(query->second.shape.back()));
  const auto attr = std::ranges::find(
      stmt.attrs, "scale", [](const auto& pair) { return std::string_view(pair.first); });
  if (attr != stmt.attrs.end()) {
    if (const auto* real = std::get_if<double>(&attr->second)) scale = std::abs(*real);
    if (const auto* whole = std::get_if<std::int64_t>(&attr->second)) {
      scale = std::abs(static_cast<double>(*whole));
    }
  }
  return std::max(1.0, scale * largest_norm(query->second) * largest_norm(key->second));
}

double largest_logsum(const Stmt& stmt, const TensorMap& inputs, const TensorMap& results) {
  const LeafContract* leaf = find_leaf_contract(stmt.leaf);
  if (leaf == nullptr || !leaf->has_scores()) return 1;
  const bool own = leaf->sums == LeafContract::kOwnSums;
  const Access& access =
      own ? stmt.targets[1] : stmt.operands[static_cast<std::size_t>(leaf->sums)];
  const TensorMap& tensors = own ? results : inputs;
  const auto found = tensors.find(access.buffer);
  return found == tensors.end() ? 1 : std::max(1.0, largest_magnitude(found->second));
}

}  // namespace harpe
