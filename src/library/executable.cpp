#include "harpe/executable.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "io/npy.h"
#include "library/boundary.h"
#include "library/dtypes.h"
#include "library/group_state.h"
#include "library/plan_state.h"
#include "library/views.h"
#include "run/run.h"

// What a public executable holds.
struct harpe::v1::Executable::State {
  std::shared_ptr<Group::State> group;  // outlives the executable
  Plan plan;
  std::unique_ptr<RankExecutable> executable;
  std::vector<LocalTensor> tensors = {};    // one per home
  std::vector<TensorView> views = {};       // of one launch, by home
  std::vector<const Argument*> given = {};  // likewise
};

namespace harpe::library {
namespace {

using State = v1::Executable::State;

v1::LocalTensor to_local_tensor(const LocalHome& home) {
  using Place = v1::LocalTensor::Place;
  return {.name = home.buffer,
          .role = home.role == Role::In ? v1::Buffer::Role::In : v1::Buffer::Role::Out,
          .dtype = public_dtype(home.dtype),
          .shape = home.shape,
          .place = home.is_own ? Place::Anywhere : Place::Heap};
}

std::string print_shape_of(const v1::View& view) {
  if (view.axes > v1::kMostAxes) return std::to_string(view.axes) + " axes";
  return print_shape(
      {view.shape.begin(), view.shape.begin() + static_cast<std::ptrdiff_t>(view.axes)});
}

harpe::Checked<Ok> refuse(const v1::LocalTensor& tensor, const std::string& wanted,
                          const std::string& found) {
  return make_diag(DiagCode::I311,
                   {{"argument", tensor.name}, {"wanted", wanted}, {"found", found}});
}

harpe::Checked<Ok> check_view(const v1::LocalTensor& tensor, const v1::View& view) {
  const bool is_shape = view.axes == tensor.shape.size() &&
                        std::equal(tensor.shape.begin(), tensor.shape.end(), view.shape.begin());
  if (!is_shape || view.dtype != tensor.dtype) {
    const std::string dtype = view.dtype <= v1::DType::Bool ? print(view.dtype) : "no type";
    return refuse(tensor, print(tensor.dtype) + " of shape " + print_shape(tensor.shape),
                  dtype + " of shape " + print_shape_of(view));
  }
  const bool is_empty = std::ranges::find(tensor.shape, 0) != tensor.shape.end();
  if (view.data == nullptr && !is_empty) {
    return refuse(tensor, "the address of its first element", "null");
  }
  return Ok{};
}

harpe::Checked<Ok> check_places(const v1::LocalTensor& tensor, const TensorView& inner,
                                const v1::View& view) {
  const bool is_in = tensor.role == v1::Buffer::Role::In;
  if (is_in || is_dense(inner) || is_injective(view)) return Ok{};
  return refuse(tensor, "memory in which every element has a place of its own",
                print_strides(view));
}

// The memory of a dense tensor, which is exact. With other strides another tensor may interleave,
// so no memory is returned.
std::span<const std::byte> memory_of(const TensorView& tensor) {
  if (!is_dense(tensor)) return {};
  std::int64_t bytes = size_in_bytes(tensor.dtype);
  for (std::size_t axis = 0; axis < tensor.axes; ++axis) bytes *= tensor.shape[axis];
  return {tensor.data, static_cast<std::size_t>(bytes)};
}

bool overlap(std::span<const std::byte> one, std::span<const std::byte> other) {
  const auto is_below = [](const std::byte* a, const std::byte* b) { return std::less<>()(a, b); };
  return !one.empty() && !other.empty() && is_below(one.data(), other.data() + other.size()) &&
         is_below(other.data(), one.data() + one.size());
}

harpe::Checked<Ok> check_apart(const State& state) {
  for (std::size_t i = 0; i < state.tensors.size(); ++i) {
    if (state.tensors[i].role == v1::Buffer::Role::In) continue;
    for (std::size_t j = 0; j < i; ++j) {
      if (!overlap(memory_of(state.views[i]), memory_of(state.views[j]))) continue;
      return refuse(state.tensors[i], "apart from `" + state.tensors[j].name + "` in memory",
                    "in part the same");
    }
  }
  return Ok{};
}

// The error for a name that no tensor has.
Diag refuse_name(const State& state, std::string_view name) {
  std::string known;
  for (const v1::LocalTensor& tensor : state.tensors) {
    known += (known.empty() ? "" : ", ") + tensor.name;
  }
  return make_diag(DiagCode::I311, {{"argument", std::string(name)},
                                    {"wanted", "one of " + known},
                                    {"found", "no tensor of the plan"}});
}

// Checks indices that masks and routes read, because the CPU uses them as addresses. GPUs do not
// check them.
harpe::Checked<Ok> check_indices(const State& state) {
  if (state.group->is_on_gpu) return Ok{};
  TensorMap indices;
  for (std::size_t i = 0; i < state.tensors.size(); ++i) {
    const v1::LocalTensor& tensor = state.tensors[i];
    const bool is_read = tensor.dtype == v1::DType::I32 || tensor.dtype == v1::DType::I64;
    if (!is_read || tensor.role != v1::Buffer::Role::In) continue;
    indices.emplace(tensor.name, copy_view(state.given[i]->view));
  }
  const Program& program = state.plan.state().plan.program;
  for (const auto& [name, tensor] : indices) {
    HP_REQUIRE_OK(check_numbers(program, *find_buffer(program, name), indices));
  }
  return Ok{};
}

// Tries `likely` first: callers usually pass arguments in the order of tensors.
std::size_t find_tensor(const State& state, std::string_view name, std::size_t likely) {
  if (likely < state.tensors.size() && state.tensors[likely].name == name) return likely;
  const auto found = std::ranges::find(state.tensors, name, &v1::LocalTensor::name);
  return static_cast<std::size_t>(found - state.tensors.begin());
}

// Puts the views in the order of homes. On GPUs it allocates nothing unless it reports an error.
harpe::Checked<Ok> sort_arguments(State& state, std::span<const v1::Argument> arguments) {
  std::ranges::fill(state.given, nullptr);
  for (const v1::Argument& argument : arguments) {
    const auto likely = static_cast<std::size_t>(&argument - arguments.data());
    const std::size_t at = find_tensor(state, argument.name, likely);
    if (at == state.tensors.size()) return refuse_name(state, argument.name);
    if (state.given[at] != nullptr) return refuse(state.tensors[at], "given once", "given twice");
    HP_REQUIRE_OK(check_view(state.tensors[at], argument.view));
    state.given[at] = &argument;
  }
  for (std::size_t i = 0; i < state.given.size(); ++i) {
    const v1::LocalTensor& tensor = state.tensors[i];
    if (state.given[i] == nullptr) {
      return make_diag(DiagCode::I310, {{"program", state.plan.facts().op},
                                        {"name", tensor.name},
                                        {"wanted", print(tensor.dtype) + " of shape " +
                                                       print_shape(tensor.shape)}});
    }
    const v1::View& view = state.given[i]->view;
    state.views[i] = {.data = static_cast<std::byte*>(view.data),
                      .dtype = internal_dtype(view.dtype),
                      .axes = view.axes,
                      .shape = view.shape,
                      .strides = view.strides};
    HP_REQUIRE_OK(check_places(tensor, state.views[i], view));
  }
  HP_REQUIRE_OK(check_indices(state));
  return check_apart(state);
}

// Refuses partial results, because several ranks hold them together.
harpe::Checked<Ok> check_whole(const v1::Plan& plan) {
  for (const v1::Buffer& buffer : plan.buffers()) {
    if (!buffer.partial) continue;
    return make_diag(DiagCode::I311, {{"argument", "plan"},
                                      {"wanted", "of whole tensors at every rank"},
                                      {"found", "one that leaves partial results of `" +
                                                    buffer.name + "` at each"}});
  }
  return Ok{};
}

harpe::Checked<v1::Executable> make_executable(const v1::Group& group, const v1::Plan& plan) {
  HP_REQUIRE_OK(check_whole(plan));
  HP_TRY(std::unique_ptr<RankExecutable> made, group.state()->group->make(plan.state().plan));
  auto state = std::make_shared<State>(
      State{.group = group.state(), .plan = plan, .executable = std::move(made)});
  for (const LocalHome& home : state->executable->homes()) {
    state->tensors.push_back(to_local_tensor(home));
  }
  state->views.resize(state->tensors.size());
  state->given.resize(state->tensors.size());
  return v1::Executable(std::move(state));
}

v1::Checked<v1::Done> launch(State& state, void* stream, std::span<const v1::Argument> arguments) {
  const harpe::Checked<Ok> sorted = sort_arguments(state, arguments);
  if (!sorted.ok()) return to_error(sorted.error());
  const Result<Ok, LaunchFailure> launched = state.executable->launch(state.views, stream);
  if (launched.ok()) return v1::Done{};
  return to_error(launched.error());
}

v1::Checked<std::vector<std::shared_ptr<std::byte>>> take_results(State& state, void* stream) {
  auto taken = state.executable->take_results(stream);
  if (!taken.ok()) return to_error(taken.error());
  return std::move(taken).value();
}

}  // namespace
}  // namespace harpe::library

namespace harpe::v1 {

Checked<Executable> Executable::make(const Group& group, const Plan& plan) {
  return library::enter<Executable>(
      {}, [&](library::Call&) { return library::make_executable(group, plan); });
}

const std::vector<LocalTensor>& Executable::tensors() const { return state_->tensors; }

Checked<Done> Executable::launch(void* stream, std::span<const Argument> arguments) const {
  return library::guard([&] { return library::launch(*state_, stream, arguments); });
}

Checked<std::vector<std::shared_ptr<std::byte>>> Executable::take_results(void* stream) const {
  return library::guard([&] { return library::take_results(*state_, stream); });
}

ExecutableStatus Executable::status() const {
  const ExecutableCounts counts = state_->executable->counts();
  return {.launches = counts.launches, .copied_bytes = counts.copied_bytes};
}

}  // namespace harpe::v1
