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

// Calls of PyTorch operators on one process group (harpe/ops/_calls.py). Keeps what the first call
// with tensors of a kind finds out; later calls only read addresses, allocate results and launch.
class Calls {
 public:
  // From torch: its tensor type, a function (shape, strides, dtype) that allocates on the host, one
  // that allocates on the current GPU, and one that sets the current GPU and returns the previous
  // one.
  Calls(nb::handle tensor_type, nb::object empty_on_host, nb::object empty_on_gpu,
        nb::object exchange_gpu);

  // Returns new results; None if PyTorch has to compute them. `ask`, the tensors' types, shapes and
  // devices, and `options` identify the call; strides may differ. For a new kind it calls
  // `prepare(ranks, ask, tensors, options)`, which makes Python's Call.
  [[nodiscard]] nb::object execute(nb::handle prepare, nb::handle ranks, nb::handle ask,
                                   const nb::tuple& tensors, nb::handle options);
  // Calls with this answer are prepared again.
  void forget(nb::handle answer);

  // When a call last used this answer, counted in calls of the group; 0: never, or no longer known.
  [[nodiscard]] std::int64_t find_last(nb::handle answer) const;

  int warming = 0;  // above 0: launches nothing, results are 0

 private:
  using Described = std::vector<nb::dlpack::dltensor>;
  // How a tensor maps to the program's buffer.
  struct Seen {
    nb::object given;  // the Python object; copies if dimensions cannot be merged in place
    std::string name;  // empty: the program has no such tensor
    int merged = 0;    // number of dimensions merged with the next
    int dropped = 0;   // leading dimensions of 1
  };
  struct Result {
    Seen seen;
    nb::tuple arguments;  // of `empty`
    std::vector<std::int64_t> shape = {};
    nb::dlpack::dtype dtype = {};
    std::size_t at = 0;      // index among the plan's tensors
    bool is_shared = false;  // other ranks write it
  };
  struct Call {
    nb::object ask, options;
    std::vector<std::int64_t> kind;  // identifies the tensors' types, shapes and devices
    nb::object answer;
    nb::object executable;  // holds the plan
    LoadedPlan* plan = nullptr;
    std::vector<Seen> inputs;
    std::vector<Result> results;
    bool has_shared = false;  // some result is shared
    bool is_told = false;     // has logged that results are copied
    std::int64_t last = 0;    // in calls of the group
  };

  // Describes all tensors that are not None; false if one cannot be described.
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
  // `holder` keeps a copy alive, if one is made.
  [[nodiscard]] Argument see(const Seen& seen, nb::handle tensor,
                             const nb::dlpack::dltensor& described, nb::object& holder) const;

  nb::object empty_on_host_, empty_on_gpu_, exchange_gpu_;
  TensorExchange exchange_;
  std::unordered_multimap<std::uint64_t, std::shared_ptr<Call>> known_;
  std::int64_t count_ = 0;
};

void bind_calls(nb::module_& module);

}  // namespace harpe::python
