#include "measure/baselines/moves.h"

#include "exec/cuda/kernels/loop_nests.h"
#include "exec/cuda/kernels/plain/plain_launch.h"

namespace harpe::library {
namespace {

using cuda::LaunchChoice;
using cuda::LaunchSpec;

constexpr std::int64_t kMostWord = 16;

LaunchChoice choice_of(const Member& member) {
  return {.nest = "baseline",
          .buffer = "baseline",
          .multiprocessors = member.device.facts().multiprocessors};
}

cuda::LaunchTools tools_of(const Member& member) {
  return {.kernels = *member.kernels, .multiprocessors = member.device.facts().multiprocessors};
}

Step step_of(std::shared_ptr<const cuda::Launches> launches) {
  return [launches = std::move(launches)](CUstream stream) -> Checked<Ok> {
    const Result<Ok, cuda::CudaError> done = launches->enqueue(stream);
    if (!done.ok()) return cuda::to_diag(done.error());
    return Ok{};
  };
}

Checked<Ok> add(const Member& member, const LaunchSpec& spec, cuda::Launches& launches) {
  const cuda::LaunchTools tools = tools_of(member);
  HP_REQUIRE_OK(spec->check(tools.multiprocessors));
  return launches.add(tools, spec);
}

Checked<Ok> add_all(const Member& member, const cuda::LaunchSpecs& specs,
                    cuda::Launches& launches) {
  for (const LaunchSpec& spec : specs) HP_REQUIRE_OK(add(member, spec, launches));
  return Ok{};
}

}  // namespace

Checked<Step> launch_step(const Member& member, const LaunchSpec& spec) {
  const auto launches = std::make_shared<cuda::Launches>();
  HP_REQUIRE_OK(add(member, spec, *launches));
  return step_of(launches);
}

Checked<Step> action_step(const Member& member, const actions::Action& action) {
  const auto launches = std::make_shared<cuda::Launches>();
  HP_TRY(const cuda::LaunchSpecs specs, cuda::plan_launches(choice_of(member), action));
  HP_REQUIRE_OK(add_all(member, specs, *launches));
  return step_of(launches);
}

Checked<Step> move_step(const Member& member, const Rows& rows) {
  cuda::Loops<2> loops;
  std::int64_t bits = rows.bytes | kMostWord;
  for (const Rows::Loop& loop : rows.loops) {
    loops.push_back({.length = loop.length, .bytes = {loop.to, loop.from}});
    bits |= loop.to | loop.from;
  }
  const std::int64_t word = bits & -bits;  // the widest access that divides everything
  loops.push_back({.length = rows.bytes / word, .bytes = {word, word}});
  loops = cuda::joined(std::move(loops));
  const std::span<const actions::Loop<2>> all(loops);
  device::MoveArgs args{};
  args.to = at<void>(rows.to);
  args.from = at<const void>(rows.from);
  args.nest = cuda::nest_of(all);
  args.words = cuda::turns_of(all);
  args.word_bytes = static_cast<std::int32_t>(word);
  const std::int64_t blocks = cuda::divide_up(args.words, device::kStridedThreads);
  return launch_step(member,
                     cuda::PlainLaunch{.kernel = cuda::PlainKernel::Move,
                                       .wide = false,
                                       .blocks = cuda::few_blocks(choice_of(member), blocks),
                                       .args = args});
}

// As a tree: combines the upper half of the states into the lower half until one is left.
Checked<Step> combine_step(const Member& member, const States& s) {
  const std::int64_t o_bytes = s.rows * s.columns * kFloatBytes;
  const std::int64_t l_bytes = s.rows * kFloatBytes;
  const auto launches = std::make_shared<cuda::Launches>();
  for (std::int64_t left = s.count; left > 1; left -= left / 2) {
    const std::int64_t upper = left - left / 2;
    const auto side = [&](std::int64_t state) {
      return actions::Combine::Side{.o = at<std::byte>(s.o) + state * o_bytes,
                                    .l = at<std::byte>(s.l) + state * l_bytes,
                                    .row_strides = {s.columns, 1}};
    };
    actions::Combine fold{.to = side(0),
                          .from = {side(0), side(upper)},
                          .rows = s.rows,
                          .value_dim = s.columns,
                          .loops = {}};
    const std::int64_t groups_apart = s.count;
    for (const auto& [length, apart] :
         {std::pair(s.groups, groups_apart), std::pair(left / 2, std::int64_t{1})}) {
      actions::Loop<actions::Combine::kOperands> loop{.length = length, .bytes = {}};
      for (std::size_t i = 0; i < 6; i += 2) {
        loop.bytes[i] = apart * o_bytes;
        loop.bytes[i + 1] = apart * l_bytes;
      }
      fold.loops.push_back(loop);
    }
    HP_TRY(const cuda::LaunchSpecs specs,
           cuda::plan_launches(choice_of(member), actions::Action(fold)));
    HP_REQUIRE_OK(add_all(member, specs, *launches));
  }
  return step_of(launches);
}

Checked<Step> round_step(const Member& member, cuda::DeviceAddress to, cuda::DeviceAddress from,
                         std::int64_t count, device::Element type) {
  const std::int64_t width = device::map_width(false);
  device::MapArgs args{};
  args.to = at<void>(to);
  args.a = at<const void>(from);
  args.to_number = type == device::Element::F16 ? device::Number::F16 : device::Number::BF16;
  args.a_number = device::Number::F32;
  args.b_number = device::Number::F32;
  args.function = device::MapFunction::Convert;
  args.vectors = count % width == 0;
  args.a_dense = true;
  args.b_dense = true;
  const std::int64_t step = args.vectors ? width : 1;
  const cuda::Loops<3> loops = {{.length = count / step, .bytes = {2 * step, 4 * step, 0}}};
  const std::span<const actions::Loop<3>> all(loops);
  args.nest = cuda::nest_of(all);
  args.turns = cuda::turns_of(all);
  const std::int64_t blocks = cuda::divide_up(args.turns, device::kStridedThreads);
  return launch_step(member,
                     cuda::PlainLaunch{.kernel = cuda::PlainKernel::Map,
                                       .wide = false,
                                       .blocks = cuda::few_blocks(choice_of(member), blocks),
                                       .args = args});
}

}  // namespace harpe::library
