#include "exec/cuda/kernels/batch.h"

#include <algorithm>
#include <optional>
#include <span>

#include "exec/cuda/kernels/loop_nests.h"
#include "exec/cuda/kernels/plain/join_places.h"

namespace harpe::cuda {
namespace {

using device::MapArgs;
using device::MoveArgs;

constexpr std::size_t kMostPlaces = device::GemmConfig::kMostPanels;

// Bytes [begin, end) that hold all of an operand.
struct Span {
  DeviceAddress begin = 0;
  DeviceAddress end = 0;

  [[nodiscard]] bool meets(const Span& other) const {
    return begin < other.end && other.begin < end;
  }
};

// What one launch of a batch writes and reads, its rows' numbers included.
struct Touched {
  std::vector<Span> written;
  std::vector<Span> read;

  [[nodiscard]] bool depends_on(const Touched& other) const {
    return any_meet(written, other.written) || any_meet(written, other.read) ||
           any_meet(read, other.written);
  }

 private:
  [[nodiscard]] static bool any_meet(const std::vector<Span>& some, const std::vector<Span>& all) {
    return std::ranges::any_of(some, [&](const Span& one) {
      return std::ranges::any_of(all, [&](const Span& other) { return one.meets(other); });
    });
  }
};

Span span_of(DeviceAddress address, std::int64_t bytes) {
  return {.begin = address, .end = address + static_cast<DeviceAddress>(bytes)};
}

// Of the operand's elements, `bytes` a turn of the innermost loop.
template <int kOperands>
Span span_of(const device::LoopNest<kOperands>& nest, std::size_t operand, const void* data,
             std::int64_t bytes) {
  std::int64_t before = 0;
  std::int64_t behind = bytes;
  for (std::int32_t loop = 0; loop < nest.count; ++loop) {
    const std::int64_t reach = (nest.lengths[loop] - 1) * nest.bytes[loop][operand];
    (reach < 0 ? before : behind) += reach;
  }
  const DeviceAddress begin = address_of(data) + static_cast<DeviceAddress>(before);
  return span_of(begin, behind - before);
}

void add_used(const device::UsedRows& used, Touched& touched) {
  if (used.rows == nullptr) return;
  touched.read.push_back(span_of(address_of(used.rows), sizeof(std::int32_t)));
  if (used.result == nullptr) return;
  touched.written.push_back(span_of(address_of(used.result), sizeof(std::int32_t)));
}

Touched touched_by(const MoveArgs& args) {
  Touched touched{.written = {span_of(args.nest, 0, args.to, args.word_bytes)}, .read = {}};
  if (args.from != nullptr) {
    touched.read.push_back(span_of(args.nest, 1, args.from, args.word_bytes));
  }
  add_used(args.used, touched);
  return touched;
}

Touched touched_by(const MapArgs& args) {
  constexpr int kWidest = device::map_width(false);
  const auto bytes = [&](device::Number number) {
    return device::bytes_of(number) * (args.vectors ? kWidest : 1);
  };
  Touched touched{.written = {span_of(args.nest, 0, args.to, bytes(args.to_number))}, .read = {}};
  touched.read.push_back(span_of(args.nest, 1, args.a, bytes(args.a_number)));
  if (args.b != nullptr)
    touched.read.push_back(span_of(args.nest, 2, args.b, bytes(args.b_number)));
  add_used(args.used, touched);
  return touched;
}

// Rows of `columns` elements, so far apart.
Span span_of(DeviceAddress address, std::int64_t rows, std::int64_t columns, std::int64_t stride,
             device::Element element) {
  return span_of(address, ((rows - 1) * stride + columns) * device::bytes_of(element));
}

Touched touched_by(const GemmSpec& spec) {
  const GemmPanelSpec& panel = spec.panels.front();
  const GemmPieceSpec& piece = panel.pieces.front();
  const bool rows_of_n = spec.layout == device::GemmLayout::NMajor;
  const std::int64_t b_rows = rows_of_n ? spec.k : spec.n;
  const std::int64_t b_columns = rows_of_n ? spec.n : spec.k;
  Touched touched{.written = {span_of(panel.c, panel.rows, spec.n, panel.c_stride, spec.out)},
                  .read = {span_of(piece.a, panel.rows, spec.k, piece.stride, spec.in),
                           span_of(spec.b, b_rows, b_columns, spec.b_stride, spec.in)}};
  add_used(panel.used, touched);
  return touched;
}

bool has_used_rows(const GemmSpec& spec) {
  return spec.panels.size() == 1 && spec.panels.front().used.rows != nullptr;
}

bool are_alike(const GemmSpec& one, const GemmSpec& other) {
  // Others are better cut and walked by themselves.
  return has_used_rows(one) && has_used_rows(other) && one.n == other.n && one.k == other.k &&
         one.in == other.in && one.out == other.out && one.add == other.add &&
         one.layout == other.layout && one.b_stride == other.b_stride;
}

bool are_alike(const LaunchSpec& one, const LaunchSpec& other) {
  if (const auto* const product = std::get_if<GemmSpec>(&one)) {
    const auto* const next = std::get_if<GemmSpec>(&other);
    return next != nullptr && are_alike(*product, *next);
  }
  const auto* const plain = std::get_if<PlainLaunch>(&one);
  const auto* const next = std::get_if<PlainLaunch>(&other);
  if (plain == nullptr || next == nullptr) return false;
  return differ_in_places(*plain, *next);
}

// Requires: is one of what are_alike takes.
Touched touched_by(const LaunchSpec& launch) {
  if (const auto* const product = std::get_if<GemmSpec>(&launch)) return touched_by(*product);
  const PlainArgs& args = std::get<PlainLaunch>(launch).args;
  if (const auto* const move = std::get_if<MoveArgs>(&args)) return touched_by(*move);
  return touched_by(std::get<MapArgs>(args));
}

// Products with B's of their own, as groups; those that share B one after the other, while its
// columns are in the second level of cache. None where no kernel has them so.
std::optional<LaunchSpec> as_groups(std::span<const LaunchSpec> run) {
  constexpr int kFewBlocks = 2;  // nothing is copied
  GemmSpec groups = std::get<GemmSpec>(run.front());
  groups.panels.clear();
  for (const LaunchSpec& launch : run) groups.b = std::min(groups.b, std::get<GemmSpec>(launch).b);
  const std::int64_t row_bytes = groups.b_stride * device::bytes_of(groups.in);
  const std::int64_t rows = groups.layout == device::GemmLayout::NMajor ? groups.k : groups.n;
  for (const LaunchSpec& launch : run) {
    const auto& product = std::get<GemmSpec>(launch);
    const auto moved = static_cast<std::int64_t>(product.b - groups.b);
    if (moved % row_bytes != 0) return std::nullopt;
    groups.panels.push_back(product.panels.front());
    groups.panels.back().b_first = moved / row_bytes;
    groups.b_rows = std::max(groups.b_rows, moved / row_bytes + rows);
  }
  std::ranges::stable_sort(groups.panels, {}, &GemmPanelSpec::b_first);
  if (!check(groups, kFewBlocks).ok()) return std::nullopt;
  return LaunchSpec{std::move(groups)};
}

// Appends the run as one launch where it can be, else one by one.
void add_batch(std::span<const LaunchSpec> run, int multiprocessors,
               std::vector<LaunchSpec>& launches) {
  std::optional<LaunchSpec> batch;
  if (run.size() > 1 && std::holds_alternative<GemmSpec>(run.front())) {
    batch = as_groups(run);
  } else if (run.size() > 1) {
    batch = join_places(run, multiprocessors);
  }
  if (batch) {
    launches.push_back(*std::move(batch));
  } else {
    launches.insert(launches.end(), run.begin(), run.end());
  }
}

}  // namespace

bool can_be_batched(const std::vector<LaunchSpec>& launches) {
  const auto are_neighbours = [](const LaunchSpec& one, const LaunchSpec& other) {
    return are_alike(one, other);
  };
  return std::ranges::adjacent_find(launches, are_neighbours) != launches.end();
}

bool is_ragged(const LaunchSpec& launch) {
  if (const auto* const product = std::get_if<GemmSpec>(&launch)) return has_used_rows(*product);
  const auto* const plain = std::get_if<PlainLaunch>(&launch);
  if (plain == nullptr) return false;
  if (const auto* const move = std::get_if<MoveArgs>(&plain->args))
    return move->used.rows != nullptr;
  const auto* const map = std::get_if<MapArgs>(&plain->args);
  return map != nullptr && map->used.rows != nullptr;
}

std::vector<LaunchSpec> batched(std::vector<LaunchSpec> launches, int multiprocessors) {
  std::vector<LaunchSpec> batches;
  const std::span<const LaunchSpec> all(launches);
  for (std::size_t first = 0; first < all.size();) {
    std::vector<Touched> touched;
    std::size_t end = first + 1;
    for (; end < all.size() && end - first < kMostPlaces && are_alike(all[first], all[end]);
         ++end) {
      if (touched.empty()) touched.push_back(touched_by(all[first]));
      Touched next = touched_by(all[end]);
      const auto is_needed = [&](const Touched& before) { return next.depends_on(before); };
      if (std::ranges::any_of(touched, is_needed)) break;
      touched.push_back(std::move(next));
    }
    add_batch(all.subspan(first, end - first), multiprocessors, batches);
    first = end;
  }
  return batches;
}

}  // namespace harpe::cuda
