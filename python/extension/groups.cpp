#include "extension/groups.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "extension/array.h"
#include "extension/loaded_plan.h"
#include "extension/rank.h"

namespace harpe::python {
namespace {

using nb::literals::operator""_a;
using std::chrono::milliseconds;

// An exchange of the library.
struct OwnExchange {
  std::shared_ptr<Exchange> exchange;
};

nb::typed<nb::list, nb::bytes> all_gather(const OwnExchange& own, const nb::bytes& given) {
  const auto* const data = static_cast<const std::byte*>(given.data());
  const Exchange::Bytes blob(data, data + given.size());
  nb::typed<nb::list, nb::bytes> all;
  for (const Exchange::Bytes& each : call([&] { return own.exchange->all_gather(blob); })) {
    all.append(nb::bytes(each.data(), each.size()));
  }
  return all;
}

std::vector<OwnExchange> make_local(int ranks, std::int64_t limit_ms) {
  std::vector<OwnExchange> all;
  for (auto& each : local_exchanges(ranks, milliseconds(limit_ms))) all.push_back({each});
  return all;
}

void bind_exchanges(nb::module_& module) {
  nb::class_<OwnExchange>(module, "Exchange", "How ranks exchange a few bytes.")
      .def_prop_ro("rank", [](const OwnExchange& own) { return own.exchange->rank(); })
      .def_prop_ro("ranks", [](const OwnExchange& own) { return own.exchange->ranks(); })
      .def("all_gather", &all_gather, "own"_a,
           "What every rank gave, in the order of ranks. All ranks call it equally often.")
      .def("__repr__", [](const OwnExchange& own) {
        return "<harpe.Exchange rank " + std::to_string(own.exchange->rank()) + " of " +
               std::to_string(own.exchange->ranks()) + ">";
      });
  module.def("local_exchanges", &make_local, "ranks"_a, "limit_ms"_a);
  module.def(
      "meet",
      [](std::string address, std::string secret, int rank, int ranks, std::int64_t limit_ms) {
        const Meeting meeting{.address = std::move(address),
                              .secret = std::move(secret),
                              .rank = rank,
                              .ranks = ranks,
                              .limit = milliseconds(limit_ms)};
        return OwnExchange{call([&] { return meet(meeting); })};
      },
      "address"_a, "secret"_a, "rank"_a, "ranks"_a, "limit_ms"_a);
}

struct JoinedGroup {
  std::shared_ptr<Rank> rank;
};

JoinedGroup join(const nb::object& exchange, std::optional<int> gpu, std::int64_t heap_bytes,
                 std::int64_t tensor_bytes, std::int64_t result_bytes, std::int64_t wait_limit_ms,
                 bool own_kernels, std::optional<std::string> kernel_cache,
                 std::vector<std::string> library_folders, nb::object compiling) {
  std::shared_ptr<GivenExchange> given;
  const auto signals = std::make_shared<SignalWatch>();
  GroupOptions options{.exchange = nullptr,
                       .gpu = gpu,
                       .heap_bytes = heap_bytes,
                       .tensor_bytes = tensor_bytes,
                       .result_bytes = result_bytes,
                       .wait_limit = milliseconds(wait_limit_ms),
                       .cpu_kernels = own_kernels ? CpuKernels::Own : CpuKernels::Libraries,
                       .kernel_cache = std::move(kernel_cache),
                       .library_folders = std::move(library_folders),
                       .compiling = hold(std::move(compiling)),
                       .waiting = [signals] { return signals->goes_on(); }};
  if (nb::isinstance<OwnExchange>(exchange)) {
    options.exchange = nb::cast<OwnExchange>(exchange).exchange;
  } else {
    options.exchange = given = std::make_shared<GivenExchange>(exchange);
  }
  Checked<Group> joined = [&] {
    const nb::gil_scoped_release released;
    return Group::join(options);
  }();
  if (!joined.ok()) raise(joined.error(), take_raised(given.get(), *signals));
  return {.rank = std::make_shared<Rank>(*joined, std::move(given), signals, gpu)};
}

using HeapArray = nb::ndarray<nb::array_api, std::uint8_t, nb::ndim<1>>;

// Memory that other ranks can access; freed with the last array over it.
HeapArray allocate(const JoinedGroup& joined, std::int64_t bytes) {
  using Memory = std::shared_ptr<std::byte>;
  auto memory = std::make_unique<Memory>(
      call(*joined.rank, [&] { return joined.rank->group.allocate(bytes); }));
  void* const begin = memory->get();
  const nb::capsule owner(memory.release(),
                          [](void* held) noexcept { delete static_cast<Memory*>(held); });
  const std::optional<int> gpu = joined.rank->gpu;
  return HeapArray(begin, {static_cast<std::size_t>(bytes)}, owner, {}, nb::dtype<std::uint8_t>(),
                   gpu ? nb::device::cuda::value : nb::device::cpu::value, gpu.value_or(0));
}

template <class Body>
void call_rank(const JoinedGroup& joined, const Body& body) {
  (void)call(*joined.rank, [&] { return body(joined.rank->group); });
}

LoadedPlan load(const JoinedGroup& joined, const Plan& plan) {
  Executable made = call(*joined.rank, [&] { return Executable::make(joined.rank->group, plan); });
  return {joined.rank, plan.facts().op, std::move(made)};
}

void bind_executables(nb::module_& module) {
  nb::class_<JoinedGroup>(module, "Group")
      .def_prop_ro("rank", [](const JoinedGroup& joined) { return joined.rank->group.rank(); })
      .def_prop_ro("ranks", [](const JoinedGroup& joined) { return joined.rank->group.ranks(); })
      .def_prop_ro("status",
                   [](const JoinedGroup& joined) {
                     return call(*joined.rank,
                                 [&] { return Checked(joined.rank->group.status()); });
                   })
      .def("allocate", &allocate, "bytes"_a)
      .def("check",
           [](const JoinedGroup& joined) {
             call_rank(joined, [](const Group& group) { return group.check(); });
           })
      .def("reset", [](const JoinedGroup& joined) {
        call_rank(joined, [](const Group& group) { return group.reset(); });
      });
  module.def("join", &join, "exchange"_a.none(), "gpu"_a.none(), "heap_bytes"_a, "tensor_bytes"_a,
             "result_bytes"_a, "wait_limit_ms"_a, "own_kernels"_a, "kernel_cache"_a.none(),
             "library_folders"_a, "compiling"_a.none());
  nb::class_<LoadedPlan>(module, "Executable")
      .def_prop_ro("tensors", &LoadedPlan::tensors)
      .def_prop_ro("launches", [](const LoadedPlan& plan) { return plan.status().launches; })
      .def_prop_ro("copied_bytes",
                   [](const LoadedPlan& plan) { return plan.status().copied_bytes; })
      .def("launch",
           nb::overload_cast<const nb::dict&, const nb::dict&, std::uintptr_t>(&LoadedPlan::launch,
                                                                               nb::const_),
           "inputs"_a, "outputs"_a, "stream"_a);
  module.def("load", &load, "group"_a, "plan"_a);
}

// Parts of whole arrays.

using Part = std::tuple<DType, std::vector<std::int64_t>, nb::bytearray>;

Part cut(const Plan& plan, const std::string& name, nb::handle whole, int rank) {
  Array array;
  array.take(whole, "whole", {});
  const Tensor part = call([&] { return shard(plan, name, rank, array.view()); });
  return {part.dtype, part.shape, nb::bytearray(part.data.data(), part.data.size())};
}

void put(const Plan& plan, const std::string& name, nb::handle part, int rank, nb::handle whole) {
  Array from, to;
  from.take(part, "part", {});
  to.take(whole, "whole", {.is_written = true});
  (void)call([&] { return unshard(plan, name, rank, from.view(), to.view()); });
}

}  // namespace

void bind_groups(nb::module_& module) {
  bind_exchanges(module);
  bind_executables(module);
  module.def("shard", &cut, "plan"_a, "name"_a, "whole"_a, "rank"_a);
  module.def("unshard", &put, "plan"_a, "name"_a, "part"_a, "rank"_a, "whole"_a);
}

}  // namespace harpe::python
