#include "sim/kernel_work.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>

#include "support/check.h"

namespace harpe {
namespace {

// The same for refs of the same blocks.
using Key = std::vector<std::int32_t>;

Key key_of(const Ref& ref) {
  Key key = {ref.alloc.value, ref.when ? ref.when->value : -1};
  for (const Box& box : ref.boxes) {
    for (const Range& range : box) {
      key.push_back(range.lo);
      key.push_back(range.hi);
    }
  }
  return key;
}

// Bytes of what refs name, each once; of an allocation that several name, no more than it has.
class Extent {
 public:
  explicit Extent(const Plan& plan) : plan_(plan) {}

  void add(const Ref& ref, double bytes) {
    if (!known_.insert(key_of(ref)).second) return;
    Named& named = of_[ref.alloc];
    named.bytes += bytes;
    ++named.refs;
  }

  [[nodiscard]] double bytes() const {
    double sum = 0;
    for (const auto& [alloc, named] : of_) {
      const auto most = static_cast<double>(plan_.allocs[alloc.index()].bytes);
      sum += named.refs == 1 ? named.bytes : std::min(named.bytes, most);
    }
    return sum;
  }

 private:
  struct Named {
    double bytes = 0;
    int refs = 0;
  };
  const Plan& plan_;
  std::set<Key> known_;
  std::map<AllocId, Named> of_;
};

// Of one operand or target of all tasks.
struct Growth {
  double times = 1;    // what the first task has
  double touched = 0;  // bytes
};

Growth growth_of(const Plan& plan, std::span<const LaunchPart> parts, std::size_t at) {
  Extent named(plan);
  Extent touched(plan);
  for (const LaunchPart& part : parts) {
    named.add(*part.refs[at], part.named[at]);
    touched.add(*part.refs[at], part.touched[at]);
  }
  const double first = parts.front().named[at];
  return {.times = first > 0 ? named.bytes() / first : 1, .touched = touched.bytes()};
}

// Of an operand that exceeds the cache.
double read_in_step(std::span<const LaunchPart> parts, std::size_t at, double once) {
  double each = 0;
  double readers = 0;
  for (const LaunchPart& part : parts) {
    each += part.touched[at];
    readers += part.waits ? 1 : 0;
  }
  return std::min(each, std::max(1.0, readers) * once);
}

double points_of(const LeafShape& shape) {
  return shape.batch * shape.rows * shape.columns * shape.depth;
}

// Of tasks that have not as many operands each: more of the same problems.
LaunchWork side_by_side(std::span<const LaunchPart> parts) {
  LaunchWork work{.shape = parts.front().shape};
  double points = 0;
  work.shape.flops = work.shape.bytes = 0;
  for (const LaunchPart& part : parts) {
    points += points_of(part.shape);
    work.shape.flops += part.shape.flops;
    work.shape.bytes += part.shape.bytes;
  }
  work.shape.batch *= points / points_of(parts.front().shape);
  return work;
}

}  // namespace

LaunchWork joined_work(const Plan& plan, const Processor& processor, std::string_view leaf,
                       bool masked, double few_rows, std::span<const LaunchPart> parts) {
  HP_CHECK(!parts.empty(), "a launch has tasks");
  const LaunchPart& first = parts.front();
  const bool alike = std::ranges::all_of(parts, [&](const LaunchPart& part) {
    return part.operands == first.operands && part.refs.size() == first.refs.size();
  });
  if (!alike) return side_by_side(parts);
  const bool is_product = is_leaf(leaf, Leaf::Matmul);
  LaunchWork work{.shape = first.shape};
  LeafShape& shape = work.shape;
  double points = 0;
  double rows = 0;
  shape.flops = 0;
  for (const LaunchPart& part : parts) {
    points += points_of(part.shape);
    rows += part.shape.rows;
    shape.flops += part.shape.flops;
  }
  const bool is_one_tile = rows <= few_rows && std::ranges::all_of(parts, [](const auto& part) {
                             return part.shape.batch == 1;
                           });
  std::vector<double> times;
  shape.bytes = 0;
  for (std::size_t at = 0; at < first.refs.size(); ++at) {
    Growth growth = growth_of(plan, parts, at);
    times.push_back(growth.times);
    const bool is_far = growth.touched > processor.cache_bytes;
    if (is_product && at < first.operands && is_far && !is_one_tile) {
      growth.touched = read_in_step(parts, at, growth.touched);
    }
    shape.bytes += growth.touched;
    if (first.refs[at]->mode == WriteMode::Add) work.carried += growth.touched;
  }
  shape.bytes += work.carried;
  if (parts.size() == 1) return work;
  const double grown = points / points_of(first.shape);
  if (is_product) {
    // Operands and target grow by batch x rows x depth, batch x columns x depth, batch x rows x
    // columns; all points by the product of the four.
    const double target = times[first.operands];
    shape.batch *= times[0] * times[1] * target / (grown * grown);
    shape.rows *= grown / times[1];
    shape.columns *= grown / times[0];
    shape.depth *= grown / target;
  } else if (leaf.starts_with("attn_")) {
    // Queries grow by batch x rows, keys by batch x columns. Where a mask hides blocks there are
    // fewer points than that.
    const double batch = masked ? 1 : times[0] * times[1] / grown;
    shape.batch *= batch;
    shape.rows *= times[0] / batch;
    shape.columns *= times[1] / batch;
  } else {
    shape.batch *= grown;
  }
  return work;
}

std::vector<double> shares_of(std::span<const LaunchPart> parts, double waves) {
  double flops = 0;
  double bytes = 0;
  std::map<Key, std::size_t> last;  // of a target
  for (std::size_t i = 0; i < parts.size(); ++i) {
    flops += parts[i].shape.flops;
    bytes += parts[i].shape.bytes;
    last[key_of(*parts[i].refs[parts[i].operands])] = i;
  }
  std::vector<double> shares;
  for (const LaunchPart& part : parts) {
    shares.push_back(flops > 0   ? part.shape.flops / flops
                     : bytes > 0 ? part.shape.bytes / bytes
                                 : 1 / static_cast<double>(parts.size()));
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::size_t whole = last.at(key_of(*parts[i].refs[parts[i].operands]));
    if (whole == i) continue;
    const double begun = shares[i] / waves;
    shares[whole] += shares[i] - begun;
    shares[i] = begun;
  }
  return shares;
}

}  // namespace harpe
