#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harpe/api.h"
#include "harpe/error.h"
#include "harpe/group.h"
#include "harpe/plan.h"
#include "harpe/view.h"

namespace harpe {
HARPE_INLINE namespace v1 {
// What one rank gives or takes of an input or output: the elements that it holds at home
// (Plan::buffers), as one tensor, the blocks one behind the other in the order of their indices
// along each dimension.
struct LocalTensor {
  std::string name;
  Buffer::Role role = Buffer::Role::In;
  DType dtype = DType::F32;
  std::vector<std::int64_t> shape;  // all 0 where the rank holds nothing of it
  // Where it may lie. Anywhere: dense tensors are used in place. Heap: other ranks read or write
  // it, so it is copied to or from the group's memory unless it lies there (Group::allocate). On
  // GPUs all ranks' tensors of a launch have to lie at the same place there, or none.
  enum class Place : std::uint8_t { Anywhere, Heap };
  Place place = Place::Anywhere;
};

// A tensor of a launch; inputs are not written to.
struct Argument {
  Argument(std::string_view given, const View& tensor) : name(given), view(tensor) {}
  Argument(std::string_view given, const ConstView& tensor)
      : name(given),
        view{.data = const_cast<void*>(tensor.data),
             .dtype = tensor.dtype,
             .axes = tensor.axes,
             .shape = tensor.shape,
             .strides = tensor.strides} {}

  std::string_view name;
  View view;
};

struct ExecutableStatus {
  std::int64_t launches = 0;
  std::int64_t copied_bytes = 0;  // between tensors and the group's memory, of all launches
};

// One rank's part of a plan, on a group's memory. Copies are the same executable.
class HARPE_API Executable {
 public:
  // Collective: all ranks of the group, with the same plan. Errors: I311 a plan of other ranks;
  // N015 ranks have different plans; N010, N017; X0xx, G0xx what cannot be executed; X005, G073
  // memory.
  [[nodiscard]] static Checked<Executable> make(const Group& group, const Plan& plan);

  [[nodiscard]] const std::vector<LocalTensor>& tensors() const;  // inputs, then outputs

  // One execution, of all ranks together: they launch a group's executables in the same order.
  // Takes every tensor once, of its type and shape; outputs overlap no other (I311 where both are
  // dense).
  // On CPU ranks the calling thread computes, and results are there on return; `stream` is not
  // used. On GPUs the work is ordered in `stream` (a cudaStream_t of the rank's GPU, null for the
  // default one) behind what that holds, and the call returns without waiting; tensors stay until
  // it is over. Where the stream is being captured, the execution becomes a part of that graph,
  // which the executable and its tensors outlive; runs of the graph take their turn among the
  // launches of other streams as the caller orders them. Captures count as launches of the same
  // order on all ranks. Errors: I310, I311 names, tensors, ranks that launch different plans, or,
  // on GPUs, with tensors in the group's memory that lie at different places; on CPU ranks P206,
  // P207, P22x what masks and routes read (GPUs do not look); of kind Fault what happened to an
  // execution, and from then on, until Group::reset, that.
  Checked<Done> launch(void* stream, std::span<const Argument> arguments) const;
  Checked<Done> launch(void* stream, std::initializer_list<Argument> arguments) const {
    return launch(stream, std::span(arguments.begin(), arguments.size()));
  }

  // Memory of the group for the outputs of the next launch, in `stream`, that have to lie in the
  // heap, in the order of tensors(); null for others and where there is no room, which on GPUs is
  // so on all ranks alike. All ranks call it before the same launches. A piece is free again once
  // the last pointer to it ends, on any thread, and on GPUs only for launches behind what `stream`
  // holds then; what a captured launch takes stays taken. GPUs give pieces at the same place on all
  // ranks, whatever each rank still holds. Errors: those of earlier executions, as for launch.
  [[nodiscard]] Checked<std::vector<std::shared_ptr<std::byte>>> take_results(void* stream) const;

  [[nodiscard]] ExecutableStatus status() const;

  struct State;
  explicit Executable(std::shared_ptr<State> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<State> state_;
};

// Which part of an input or output a rank holds at home: per dimension its indices in the whole
// tensor, in the order of LocalTensor. Errors: I301, I305 no such input or output; I311 a rank that
// the plan does not have.
[[nodiscard]] HARPE_API Checked<std::vector<std::vector<Range>>> positions(const Plan& plan,
                                                                           const std::string& name,
                                                                           int rank);

// The part of a whole tensor of the plan that a rank holds at home, as its executable takes it; and
// back, where the others' parts of `whole` stay as they are. Types may differ as in run().
// Errors: I301, I305 no such input or output; I311 a view, or a rank that the plan does not have.
[[nodiscard]] HARPE_API Checked<Tensor> shard(const Plan& plan, const std::string& name, int rank,
                                              const ConstView& whole);
[[nodiscard]] HARPE_API Checked<Done> unshard(const Plan& plan, const std::string& name, int rank,
                                              const ConstView& part, const View& whole);

}  // namespace v1
}  // namespace harpe
