#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "extension/loaded_plan.h"
#include "extension/tensors.h"

namespace harpe::python {

// Calls of operators of PyTorch on one process group (harpe/ops/_calls.py): what the first call of
// a kind has found out is kept, and later ones read addresses, make results and launch.
class Calls {
 public:
  // Of torch: its type of tensors, a function (shape, strides, dtype) for the host and one for GPUs
  // that allocates on the current one, and one that exchanges that.
  Calls(nb::handle tensor_type, nb::object empty_on_host, nb::object empty_on_gpu,
        nb::object exchange_gpu);

  // New results; None where PyTorch's own way is to be taken. `ask`, the tensors' types, shapes and
  // devices, and `options` say which call it is; strides may differ. The first one is what
  // `prepare(ranks, ask, tensors, options)` makes, a Call of Python's.
  [[nodiscard]] nb::object execute(nb::handle prepare, nb::handle ranks, nb::handle ask,
                                   const nb::tuple& tensors, nb::handle options);
  // Calls that have this answer are prepared anew.
  void forget(nb::handle answer);

  // When a call had this answer last, in calls of the group; 0: none has, as far as is kept.
  [[nodiscard]] std::int64_t find_last(nb::handle answer) const;

  int warming = 0;  // above 0: nothing is launched, results are 0

 private:
  using Described = std::vector<nb::dlpack::dltensor>;
  // How a tensor lies in the program.
  struct Seen {
    nb::object given;  // Python's, which copies where dimensions do not become one as they lie
    std::string name;  // none: the program has no such tensor
    int merged = 0;    // as many dimensions become one with the next
    int dropped = 0;   // leading dimensions of 1
  };
  struct Result {
    Seen seen;
    nb::tuple arguments;  // of `empty`
    std::vector<std::int64_t> shape = {};
    nb::dlpack::dtype dtype = {};
    std::size_t at = 0;      // of the plan's tensors
    bool is_shared = false;  // other ranks write it
  };
  struct Call {
    nb::object ask, options;
    std::vector<std::int64_t> kind;  // of the tensors
    nb::object answer;
    nb::object executable;  // holds the plan
    LoadedPlan* plan = nullptr;
    std::vector<Seen> inputs;
    std::vector<Result> results;
    bool has_shared = false;  // results
    bool is_told = false;     // that results are copied
    std::int64_t last = 0;    // in calls of the group
  };

  // Of all tensors that are there; false where one cannot be described.
  [[nodiscard]] bool describe(const nb::tuple& tensors, Described& described,
                              std::vector<std::int64_t>& kind) const;
  [[nodiscard]] std::shared_ptr<Call> find(std::uint64_t key, nb::handle ask, nb::handle options,
                                           std::span<const std::int64_t> kind) const;
  [[nodiscard]] std::shared_ptr<Call> read(const nb::object& made) const;
  [[nodiscard]] nb::object run(Call& call, const nb::tuple& tensors,
                               const Described& described) const;
  void launch(const Call& call, const nb::tuple& tensors, const Described& described,
              const nb::tuple& results, void* stream) const;
  [[nodiscard]] nb::tuple make_results(Call& call, nb::dlpack::device device, void* stream) const;
  [[nodiscard]] nb::object make_result(const Result& result, nb::dlpack::device device) const;
  // `holder` keeps a copy, where one is made.
  [[nodiscard]] Argument see(const Seen& seen, nb::handle tensor,
                             const nb::dlpack::dltensor& described, nb::object& holder) const;

  nb::object empty_on_host_, empty_on_gpu_, exchange_gpu_;
  TensorExchange exchange_;
  std::unordered_multimap<std::uint64_t, std::shared_ptr<Call>> known_;
  std::int64_t count_ = 0;
};

void bind_calls(nb::module_& module);

}  // namespace harpe::python
