#include "exec/cuda/library/nccl.h"

#include <numeric>

#include "exec/cuda/library/step.h"

namespace harpe::library {
namespace {

constexpr int kSuccess = 0;  // ncclSuccess
constexpr int kSum = 0;      // ncclSum

// ncclDataType_t
int type_of(device::Element element) {
  switch (element) {
    case device::Element::F16:
      return 6;
    case device::Element::F32:
      return 7;
    default:
      return 9;  // ncclBfloat16
  }
}

std::size_t count_of(const Elements& elements) { return static_cast<std::size_t>(elements.count); }

Checked<NcclFunctions> find_nccl_functions(const cuda::Library& library) {
  NcclFunctions functions;
  const auto find = [&](auto& function, const char* name) -> Checked<Ok> {
    HP_TRY(void* const address, library.find(name));
    function = reinterpret_cast<std::decay_t<decltype(function)>>(address);
    return Ok{};
  };
#define HP_NCCL(FUNCTION, PARAMETERS) HP_REQUIRE_OK(find(functions.FUNCTION, #FUNCTION));
#include "exec/cuda/library/nccl.def"
#undef HP_NCCL
  HP_REQUIRE_OK(find(functions.ncclGetErrorString, "ncclGetErrorString"));
  return functions;
}

// 22809 is 2.28.9.
std::string version_text(int number) {
  return std::to_string(number / 10000) + "." + std::to_string(number / 100 % 100) + "." +
         std::to_string(number % 100);
}

}  // namespace

Checked<Ok> nccl_call(const NcclFunctions& functions, std::string_view call, int status) {
  if (status == kSuccess) return Ok{};
  const char* const reason = functions.ncclGetErrorString(status);
  return make_diag(DiagCode::G080,
                   {{"call", call}, {"library", "NCCL"}, {"reason", reason ? reason : "?"}});
}

NcclRank::NcclRank(NcclRank&& other) noexcept
    : functions_(std::move(other.functions_)),
      handle_(std::exchange(other.handle_, nullptr)),
      is_aborted_(other.is_aborted_.load()) {}

NcclRank::~NcclRank() {
  if (handle_ != nullptr && !is_aborted_) functions_->ncclCommDestroy(handle_);
}

void NcclRank::abort() {
  if (!is_aborted_.exchange(true)) functions_->ncclCommAbort(handle_);
}

Checked<Ok> NcclRank::all_gather(const Elements& from, cuda::DeviceAddress to,
                                 CUstream stream) const {
  return call("ncclAllGather", functions_->ncclAllGather(at(from.address), at(to), count_of(from),
                                                         type_of(from.type), handle_, stream));
}

Checked<Ok> NcclRank::reduce_scatter(cuda::DeviceAddress from, const Elements& to,
                                     CUstream stream) const {
  return call("ncclReduceScatter",
              functions_->ncclReduceScatter(at(from), at(to.address), count_of(to),
                                            type_of(to.type), kSum, handle_, stream));
}

Checked<Ok> NcclRank::all_reduce(const Elements& data, CUstream stream) const {
  return call("ncclAllReduce",
              functions_->ncclAllReduce(at(data.address), at(data.address), count_of(data),
                                        type_of(data.type), kSum, handle_, stream));
}

Checked<Ok> NcclRank::exchange(const Elements& part, cuda::DeviceAddress to, int ranks,
                               CUstream stream) const {
  return group([&]() -> Checked<Ok> {
    const auto step = static_cast<std::uint64_t>(part.count * device::bytes_of(part.type));
    for (int peer = 0; peer < ranks; ++peer) {
      const auto offset = static_cast<std::uint64_t>(peer) * step;
      HP_REQUIRE_OK(
          call("ncclSend", functions_->ncclSend(at(part.address + offset), count_of(part),
                                                type_of(part.type), peer, handle_, stream)));
      HP_REQUIRE_OK(
          call("ncclRecv", functions_->ncclRecv(at(to + offset), count_of(part), type_of(part.type),
                                                peer, handle_, stream)));
    }
    return Ok{};
  });
}

Checked<Ok> NcclRank::exchange(const std::vector<Message>& sends,
                               const std::vector<Message>& receives, CUstream stream) const {
  return group([&]() -> Checked<Ok> {
    for (const auto& [peer, part] : sends) {
      HP_REQUIRE_OK(
          call("ncclSend", functions_->ncclSend(at(part.address), count_of(part),
                                                type_of(part.type), peer, handle_, stream)));
    }
    for (const auto& [peer, part] : receives) {
      HP_REQUIRE_OK(
          call("ncclRecv", functions_->ncclRecv(at(part.address), count_of(part),
                                                type_of(part.type), peer, handle_, stream)));
    }
    return Ok{};
  });
}

// Ends a started group in any case, because otherwise the thread would stay in it.
Checked<Ok> NcclRank::group(const std::function<Checked<Ok>()>& calls) const {
  HP_REQUIRE_OK(call("ncclGroupStart", functions_->ncclGroupStart()));
  const Checked<Ok> called = calls();
  const Checked<Ok> ended = call("ncclGroupEnd", functions_->ncclGroupEnd());
  return called.ok() ? ended : called;
}

Checked<Ok> order(const NcclCall& call, CUstream stream) {
  if (call.kind == NcclCall::Kind::AllGather) {
    return call.rank->all_gather(call.part, call.whole, stream);
  }
  return call.rank->exchange(call.sends, call.receives, stream);
}

Checked<Nccl> Nccl::open(const Search& search) {
  HP_TRY(const cuda::Library library, open_library(wanted_nccl(), search));
  HP_TRY(const NcclFunctions functions, find_nccl_functions(library));
  int number = 0;
  HP_REQUIRE_OK(nccl_call(functions, "ncclGetVersion", functions.ncclGetVersion(&number)));
  return Nccl(std::make_shared<const NcclFunctions>(functions), version_text(number),
              library.path());
}

Checked<std::vector<NcclRank>> Nccl::connect(int ranks) const {
  std::vector<int> gpus(static_cast<std::size_t>(ranks));
  std::iota(gpus.begin(), gpus.end(), 0);
  std::vector<NcclHandle> handles(gpus.size(), nullptr);
  HP_REQUIRE_OK(nccl_call(*functions_, "ncclCommInitAll",
                          functions_->ncclCommInitAll(handles.data(), ranks, gpus.data())));
  std::vector<NcclRank> all;
  all.reserve(handles.size());
  for (NcclHandle const handle : handles) all.emplace_back(functions_, handle);
  return all;
}

Checked<NcclId> Nccl::make_id() const {
  NcclId id;
  HP_REQUIRE_OK(nccl_call(*functions_, "ncclGetUniqueId", functions_->ncclGetUniqueId(&id)));
  return id;
}

Checked<NcclRank> Nccl::join(const NcclId& id, int rank, int ranks) const {
  NcclHandle handle = nullptr;
  HP_REQUIRE_OK(nccl_call(*functions_, "ncclCommInitRank",
                          functions_->ncclCommInitRank(&handle, ranks, id, rank)));
  return NcclRank(functions_, handle);
}

}  // namespace harpe::library
