#include "exec/cuda/executor/homes.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "exec/actions/partials.h"
#include "exec/actions/tensors.h"
#include "exec/cuda/kernels/plan_launches.h"
#include "exec/cuda/kernels/prepared_launches.h"
#include "exec/cuda/runtime/device_memory.h"
#include "exec/cuda/runtime/host_memory.h"
#include "support/check.h"

namespace harpe::cuda {
namespace {

using actions::Direction;
using actions::HomeMoves;
using actions::Setting;

std::byte* bytes_at(const MappedMemory& memory) {
  return reinterpret_cast<std::byte*>(memory.address());
}

// Runs one home's moves on its rank's GPU and waits for them.
Checked<Ok> run_moves(KernelLibrary& library, const std::string& buffer, const HomeMoves& home) {
  const Device& device = library.device();
  const Result<Ok, CudaError> current = device.make_current();
  if (!current.ok()) return to_diag(current.error());
  HP_TRY(const Stream stream, Stream::create(device));
  Launches launches;
  const LaunchChoice choice{.nest = "", .buffer = buffer};
  const LaunchTools tools{.kernels = library, .multiprocessors = choice.multiprocessors};
  for (const actions::Assign& assign : home.assigns) {
    HP_TRY(const LaunchSpecs specs, plan_launches(choice, assign));
    for (const LaunchSpec& spec : specs) {
      HP_REQUIRE_OK(spec->check(tools.multiprocessors));
      HP_REQUIRE_OK(launches.add(tools, spec));
    }
  }
  const Result<Ok, CudaError> ordered = launches.enqueue(stream.handle());
  if (!ordered.ok()) return to_diag(ordered.error());
  const Result<Ok, CudaError> done = stream.synchronize();
  if (!done.ok()) return to_diag(done.error());
  return Ok{};
}

const Device& any_device(const RankLibraries& libraries) {
  const auto found = std::ranges::find_if(libraries, [](auto* each) { return each != nullptr; });
  HP_CHECK(found != libraries.end(), "some rank is here");
  return (*found)->device();
}

KernelLibrary& library_of(const RankLibraries& libraries, RankId rank) {
  return *libraries[rank.index()];
}

// From the ranks whose coordinate along the buffer's partial axes is `part`.
Checked<HostTensor> gather_part(const Setting& setting, const RankLibraries& libraries,
                                const std::string& buffer, std::int64_t part) {
  const Buffer* const declared = find_buffer(setting.plan.program, buffer);
  HostTensor tensor = make_tensor(actions::table_of(setting, buffer).dtype,
                                  shape_of(setting.plan.program, *declared));
  const auto bytes = static_cast<std::int64_t>(tensor.data.size());
  HP_TRY(const MappedMemory whole, MappedMemory::allocate(libraries[0]->device(), bytes));
  HP_TRY(const MappedMemory again, MappedMemory::allocate(libraries[0]->device(), bytes));
  std::int64_t elements = 0;
  for (const HomeMoves& home : home_moves(setting, buffer, bytes_at(whole), Direction::ToTensor)) {
    if (home.part != part || home.is_copy) continue;
    elements += home.elements;
    HP_REQUIRE_OK(run_moves(library_of(libraries, home.rank), buffer, home));
  }
  HP_CHECK(elements == element_count(tensor), "the homes of `" + buffer + "` hold all of it");
  std::ranges::copy(whole.host(), again.host().begin());
  for (const HomeMoves& home : home_moves(setting, buffer, bytes_at(again), Direction::ToTensor)) {
    if (home.part != part || !home.is_copy) continue;
    HP_REQUIRE_OK(run_moves(library_of(libraries, home.rank), buffer, home));
    HP_CHECK(std::ranges::equal(whole.host(), again.host()),
             "homes of `" + buffer + "` on several ranks are equal, rank " +
                 std::to_string(home.rank.value) + " included");
  }
  std::memcpy(tensor.data.data(), whole.host().data(), tensor.data.size());
  return tensor;
}

// From host memory, by its GPU address, to the homes of this process's ranks.
Checked<Ok> scatter_from(const Setting& setting, const RankLibraries& libraries,
                         const std::string& buffer, std::byte* whole) {
  for (const HomeMoves& home : home_moves(setting, buffer, whole, Direction::ToHomes)) {
    if (libraries[home.rank.index()] == nullptr) continue;
    HP_REQUIRE_OK(run_moves(library_of(libraries, home.rank), buffer, home));
  }
  return Ok{};
}

}  // namespace

Checked<Ok> scatter(const Setting& setting, const RankLibraries& libraries,
                    const std::string& buffer, const HostTensor& tensor) {
  const DType dtype = actions::table_of(setting, buffer).dtype;
  const auto pinned = address_of_pinned(any_device(libraries), tensor.data);
  if (pinned && dtype == tensor.dtype) {
    return scatter_from(setting, libraries, buffer, reinterpret_cast<std::byte*>(*pinned));
  }
  const HostTensor rounded = convert(tensor, dtype);
  HP_TRY(const MappedMemory whole,
         MappedMemory::allocate(any_device(libraries),
                                static_cast<std::int64_t>(rounded.data.size())));
  std::memcpy(whole.host().data(), rounded.data.data(), rounded.data.size());
  return scatter_from(setting, libraries, buffer, bytes_at(whole));
}

Checked<HostTensor> gather(const Setting& setting, const RankLibraries& libraries,
                           const std::string& buffer) {
  if (actions::table_of(setting, buffer).partial_axes.empty()) {
    return gather_part(setting, libraries, buffer, 0);
  }
  std::optional<Diag> failed;
  const auto part_of = [&](const std::string& name, std::int64_t part) {
    Checked<HostTensor> tensor = gather_part(setting, libraries, name, part);
    if (tensor.ok()) return std::move(tensor).value();
    failed = std::move(tensor).error();
    const Buffer* const declared = find_buffer(setting.plan.program, name);
    return make_tensor(declared->dtype, shape_of(setting.plan.program, *declared));
  };
  HostTensor combined = actions::combine_parts(setting, buffer, part_of);
  if (failed) return *std::move(failed);
  return combined;
}

}  // namespace harpe::cuda
