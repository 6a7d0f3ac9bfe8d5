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
// One rank's part of an input or output: the elements that the rank holds at home (Plan::buffers),
// as one tensor. Along each dimension the blocks follow each other in the order of their indices.
struct LocalTensor {
  std::string name;
  Buffer::Role role = Buffer::Role::In;
  DType dtype = DType::F32;
  std::vector<std::int64_t> shape;  // all 0 if the rank holds no element
  // Where the tensor may lie. Anywhere: a dense tensor is used in place. Heap: other ranks read or
  // write it, so a launch copies it to or from the group's memory unless it lies there already
  // (Group::allocate). On GPUs, either all ranks pass this tensor of a launch at the same offset of
  // the group's memory, or no rank passes it there.
  enum class Place : std::uint8_t { Anywhere, Heap };
  Place place = Place::Anywhere;
};

// A tensor of a launch. A launch does not write to inputs.
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
  std::int64_t copied_bytes = 0;  // between tensors and the group's memory, over all launches
};

// One rank's part of a plan, in a group's memory. Copies refer to the same executable.
class HARPE_API Executable {
 public:
  // Collective: all ranks of the group call it with the same plan. Errors: I311 the plan is for
  // another number of ranks; N015 ranks have different plans; N010, N017; X0xx, G0xx the back end
  // cannot execute the plan; X005, G073 memory.
  [[nodiscard]] static Checked<Executable> make(const Group& group, const Plan& plan);

  [[nodiscard]] const std::vector<LocalTensor>& tensors() const;  // inputs, then outputs

  // One execution, in which all ranks take part: they launch a group's executables in the same
  // order. Requires every tensor once, with its type and shape; an output may overlap no other
  // tensor (I311 if both are dense).
  // CPU ranks: the calling thread computes, the results are ready on return, and `stream` is
  // unused.
  // GPUs: the work is ordered in `stream` (a cudaStream_t of the rank's GPU, null for the default
  // stream) after earlier work there, and the call returns without waiting. The tensors must live
  // until the work is done. If the stream is being captured, the execution becomes part of that
  // graph; the executable and its tensors must outlive the graph, and the caller orders runs of the
  // graph among the launches of other streams. A capture counts as a launch in the common order of
  // all ranks.
  // Errors: I310, I311 names, tensors, ranks that launch different plans, or, on GPUs, tensors at
  // different offsets of the group's memory; on CPU ranks P206, P207, P22x values that masks and
  // routes read (GPUs do not check them); of kind Fault the failure of an execution, which every
  // later launch returns too until Group::reset.
  Checked<Done> launch(void* stream, std::span<const Argument> arguments) const;
  Checked<Done> launch(void* stream, std::initializer_list<Argument> arguments) const {
    return launch(stream, std::span(arguments.begin(), arguments.size()));
  }

  // Memory of the group for the outputs of the next launch in `stream`, in the order of tensors().
  // Null for tensors whose place is not Heap, and if there is no room, which on GPUs holds on all
  // ranks alike. All ranks call it before the same launches. The memory is free again once the last
  // pointer to it ends, on any thread; on GPUs only for launches ordered after the work that
  // `stream` holds at that time. Memory that a captured launch takes is free for later launches of
  // the same capture, and for other captures once the graph and all that is made of it are
  // destroyed on all ranks. On GPUs the memory has the same offset on all ranks, whatever each rank
  // still holds. Errors: those of earlier executions, as for launch.
  [[nodiscard]] Checked<std::vector<std::shared_ptr<std::byte>>> take_results(void* stream) const;

  [[nodiscard]] ExecutableStatus status() const;

  struct State;
  explicit Executable(std::shared_ptr<State> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<State> state_;
};

// The part of an input or output that a rank holds at home: per dimension its indices in the whole
// tensor, in the order of LocalTensor. Errors: I301, I305 no such input or output; I311 the plan
// has no such rank.
[[nodiscard]] HARPE_API Checked<std::vector<std::vector<Range>>> positions(const Plan& plan,
                                                                           const std::string& name,
                                                                           int rank);

// shard() copies the part that a rank holds at home out of a whole tensor, in the form that its
// executable takes. unshard() copies such a part back and leaves the rest of `whole` unchanged.
// Types may differ as in run(). Errors: I301, I305 no such input or output; I311 a view, or a rank
// that the plan does not have.
[[nodiscard]] HARPE_API Checked<Tensor> shard(const Plan& plan, const std::string& name, int rank,
                                              const ConstView& whole);
[[nodiscard]] HARPE_API Checked<Done> unshard(const Plan& plan, const std::string& name, int rank,
                                              const ConstView& part, const View& whole);

}  // namespace v1
}  // namespace harpe
