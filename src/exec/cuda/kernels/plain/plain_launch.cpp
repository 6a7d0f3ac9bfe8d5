#include "exec/cuda/kernels/plain/plain_launch.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "exec/cuda/kernels/kernel_binding.h"
#include "exec/cuda/kernels/loop_nests.h"
#include "exec/cuda/kernels/plain/plain_plans.h"

namespace harpe::cuda {
namespace {

using device::MapArgs;
using device::MoveArgs;
using device::StridedPlace;

constexpr std::array<std::string_view, 14> kPlainNames = {
    "move",           "map",           "sum",         "combine",     "join",
    "rowdot",         "add_rms_norm",  "gemm",        "attention",   "attention_backward",
    "choose_experts", "limit_choices", "gather_rows", "combine_rows"};

// Takes the operands' addresses out of the arguments; what remains is common to the batch.
StridedPlace take_place(MoveArgs& args) {
  const StridedPlace place{.to = args.to, .a = args.from, .b = nullptr, .used = args.used};
  args.to = nullptr;
  args.from = nullptr;
  args.used = {.rows = nullptr, .result = nullptr, .before = 0, .capacity = args.used.capacity};
  return place;
}

StridedPlace take_place(MapArgs& args) {
  const StridedPlace place{.to = args.to, .a = args.a, .b = args.b, .used = args.used};
  args.to = nullptr;
  args.a = nullptr;
  args.b = nullptr;
  args.used = {.rows = nullptr, .result = nullptr, .before = 0, .capacity = args.used.capacity};
  return place;
}

template <class Args>
bool differ_in_places(const PlainLaunch& one, const PlainLaunch& other) {
  const auto* const args = std::get_if<Args>(&one.args);
  const auto* const others = std::get_if<Args>(&other.args);
  if (args == nullptr || others == nullptr || one.kernel != other.kernel ||
      one.wide != other.wide) {
    return false;
  }
  Args rest = *args;
  Args rest_of_other = *others;
  const StridedPlace place = take_place(rest);
  const StridedPlace place_of_other = take_place(rest_of_other);
  return rest == rest_of_other && (place.a == nullptr) == (place_of_other.a == nullptr) &&
         (place.b == nullptr) == (place_of_other.b == nullptr);
}

template <class Args>
PlainLaunch with_places(std::span<const LaunchSpec> run, int multiprocessors) {
  constexpr std::int64_t kRounds = 4;  // waves of thread blocks if all rows are in use
  PlainLaunch batch = run.front().get<PlainLaunch>();
  auto& args = std::get<Args>(batch.args);
  take_place(args);
  batch.table.resize(run.size() * sizeof(StridedPlace));
  for (std::size_t i = 0; i < run.size(); ++i) {
    Args one = std::get<Args>(run[i].get<PlainLaunch>().args);
    const StridedPlace place = take_place(one);
    std::memcpy(batch.table.data() + i * sizeof place, &place, sizeof place);
  }
  batch.places = static_cast<std::int64_t>(run.size());
  const std::int64_t most = kRounds * kSmallBlocks * multiprocessors;
  batch.blocks = std::min(batch.blocks, divide_up(most, batch.places));
  return batch;
}

// The address range of the operand, of which an iteration of the innermost loop covers `bytes`.
template <int kOperands>
AddressRange range_of(const device::LoopNest<kOperands>& nest, std::size_t operand,
                      const void* data, std::int64_t bytes) {
  std::int64_t before = 0;
  std::int64_t behind = bytes;
  for (std::int32_t loop = 0; loop < nest.count; ++loop) {
    const std::int64_t reach = (nest.lengths[loop] - 1) * nest.bytes[loop][operand];
    (reach < 0 ? before : behind) += reach;
  }
  const DeviceAddress begin = address_of(data) + static_cast<DeviceAddress>(before);
  return cuda::range_of(begin, behind - before);
}

Touched touched_by(const MoveArgs& args) {
  Touched touched{.written = {range_of(args.nest, 0, args.to, args.word_bytes)}, .read = {}};
  if (args.from != nullptr) {
    touched.read.push_back(range_of(args.nest, 1, args.from, args.word_bytes));
  }
  touched.add(args.used);
  return touched;
}

Touched touched_by(const MapArgs& args) {
  constexpr int kWidest = device::map_width(false);
  const auto bytes = [&](device::Number number) {
    return device::bytes_of(number) * (args.vectors ? kWidest : 1);
  };
  Touched touched{.written = {range_of(args.nest, 0, args.to, bytes(args.to_number))}, .read = {}};
  touched.read.push_back(range_of(args.nest, 1, args.a, bytes(args.a_number)));
  if (args.b != nullptr) {
    touched.read.push_back(range_of(args.nest, 2, args.b, bytes(args.b_number)));
  }
  touched.add(args.used);
  return touched;
}

StridedArray array_at(const device::PlainMatrix& matrix, std::int64_t offset, std::int64_t rows,
                      std::int64_t columns) {
  return {.address = address_of(matrix.data) + static_cast<DeviceAddress>(offset),
          .element_bytes = device::bytes_of(matrix.number),
          .extents = {{rows, matrix.row_stride}, {columns, matrix.column_stride}}};
}

// One panel for each C, and one arrival for each GEMM that it sums.
KernelArrays arrays_of(const device::PlainGemmArgs& args, bool wide) {
  KernelArrays arrays;
  if (args.k <= 0) return arrays;
  std::vector<actions::Loop<3>> loops(static_cast<std::size_t>(args.nest.count));
  for (std::size_t at = 0; at < loops.size(); ++at) {
    loops[at].length = args.nest.lengths[at];
    std::ranges::copy(args.nest.bytes[at], loops[at].bytes.begin());
    loops[at].reduces = static_cast<std::int32_t>(at) >= args.nest.kept;
  }
  const auto add = [&](const auto& offsets, bool again) {
    if (!again) {
      const StridedArray c{.address = address_of(args.c) + static_cast<DeviceAddress>(offsets[2]),
                           .element_bytes = wide ? 8 : 4,
                           .extents = {{args.m, args.c_row_stride}, {args.n, 1}}};
      arrays.panels.push_back(
          {.dtype = wide ? DType::F64 : DType::F32, .adds = args.accumulate, .stores = {c}});
    }
    arrays.panels.back().meets.push_back(static_cast<std::int32_t>(arrays.arrivals.size()));
    arrays.arrivals.push_back({array_at(args.a, offsets[0], args.m, args.k),
                               array_at(args.b, offsets[1], args.k, args.n)});
  };
  actions::for_each_turn(std::span<const actions::Loop<3>>(loops), add);
  return arrays;
}

class PlainKernelLaunch final : public LaunchOf<PlainLaunch> {
 public:
  using LaunchOf::LaunchOf;

  std::unique_ptr<KernelLaunch> copy() const override {
    return std::make_unique<PlainKernelLaunch>(*this);
  }
  std::string_view name() const override {
    return kPlainNames[static_cast<std::size_t>(spec.kernel)];
  }
  KernelArrays arrays() const override {
    KernelArrays arrays;
    arrays.joins = static_cast<std::int32_t>(spec.places);
    return arrays;
  }
  KernelArrays arrays_beside_others() const override {
    const auto* const products = std::get_if<device::PlainGemmArgs>(&spec.args);
    return products == nullptr ? arrays() : arrays_of(*products, spec.wide);
  }
  // Returns the task's own launch: its operands cannot be moved and it cannot be joined.
  Checked<LaunchSpec> bind(const KernelBinding& binding) const override {
    const launch::Kernel& kernel = binding.kernel();
    for (LaunchAlone& alone : binding.alone()) {
      const bool is_it = !alone.is_bound && (*alone.spec)->makes(kernel.name) &&
                         alone.kernel->arrivals == kernel.arrivals &&
                         alone.kernel->panels == kernel.panels;
      if (!is_it) continue;
      alone.is_bound = true;
      return *alone.spec;
    }
    return binding.refuse("none of them has the operands that it has");
  }
  void add_fixed(FixedWords& fixed) const override { fixed.add_table(spec.table); }

  bool counts_rows() const override {
    const auto* const move = std::get_if<MoveArgs>(&spec.args);
    const auto* const map = std::get_if<MapArgs>(&spec.args);
    return (move != nullptr && move->used.rows != nullptr) ||
           (map != nullptr && map->used.rows != nullptr);
  }
  bool is_like(const KernelLaunch& other) const override {
    const auto* const plain = find_spec<PlainLaunch>(other);
    return plain != nullptr &&
           (differ_in_places<MoveArgs>(spec, *plain) || differ_in_places<MapArgs>(spec, *plain));
  }
  Touched touched() const override {
    const auto* const move = std::get_if<MoveArgs>(&spec.args);
    return move != nullptr ? touched_by(*move) : touched_by(std::get<MapArgs>(spec.args));
  }
  std::optional<LaunchSpec> join(std::span<const LaunchSpec> run,
                                 int multiprocessors) const override {
    return std::holds_alternative<MoveArgs>(spec.args) ? with_places<MoveArgs>(run, multiprocessors)
                                                       : with_places<MapArgs>(run, multiprocessors);
  }
};

Checked<std::optional<LaunchSpecs>> plan_plain(const LaunchChoice& choice,
                                               const actions::Action& action) {
  HP_TRY(LaunchSpecs specs, std::visit([&](const auto& one) { return plan(choice, one); }, action));
  return std::optional(std::move(specs));
}

}  // namespace

std::unique_ptr<KernelLaunch> make_launch(PlainLaunch launch) {
  return std::make_unique<PlainKernelLaunch>(std::move(launch));
}

PlainLaunch copy_of_number(std::int32_t* to, const std::int32_t* from) {
  MoveArgs args{};
  args.to = to;
  args.from = from;
  args.words = 1;
  args.word_bytes = sizeof(std::int32_t);
  return {.kernel = PlainKernel::Move, .wide = false, .blocks = 1, .args = args};
}

KernelFamily plain_family() { return {.plan = plan_plain, .variants = plain_variants}; }

}  // namespace harpe::cuda
