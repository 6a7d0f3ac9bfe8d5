#include "exec/cuda/library/team.h"

#include "support/threads.h"

namespace harpe::library {
namespace {

constexpr std::int64_t kTeamWorkspaceBytes = std::int64_t{64} << 20;

Checked<Ok> open_libraries(Member& member, const Search& search) {
  HP_TRY(cuda::DeviceMemory workspace,
         cuda::DeviceMemory::allocate(member.device, kTeamWorkspaceBytes));
  member.products.emplace(
      CublasLt::open(search, {.address = workspace.address(), .bytes = kTeamWorkspaceBytes}));
  member.workspace = std::move(workspace);
  member.attention.emplace(Cudnn::open(search));
  return Ok{};
}

template <class Library>
std::string text_of(const char* name, const std::optional<Result<Library, Missing>>& library) {
  if (library->ok()) return std::string(", ") + name + " " + (*library)->version();
  return std::string(", no ") + name + " (" + library->error().reason + ")";
}

}  // namespace

Checked<std::shared_ptr<Team>> Team::open(const TeamRequest& request) {
  HP_TRY(const std::shared_ptr<const cuda::DriverApi> driver, cuda::open_driver());
  HP_TRY(const int gpus, cuda::count_devices(*driver));
  if (gpus < request.ranks) {
    return make_diag(DiagCode::G070, {{"ranks", request.ranks}, {"gpus", gpus}});
  }
  HP_TRY(const cuda::Nvrtc compiler, cuda::Nvrtc::open(request.nvrtc, request.cuda_folders));
  const Search search{
      .file = "", .folders = request.library_folders, .toolkits = request.cuda_folders};
  HP_TRY(const Nccl nccl, Nccl::open(search));
  const std::shared_ptr<Team> team(new Team);
  team->nccl_version_ = nccl.version();
  team->members_.reserve(static_cast<std::size_t>(request.ranks));
  for (int rank = 0; rank < request.ranks; ++rank) {
    HP_TRY(cuda::Device device, cuda::Device::open(driver, cuda::DeviceId(rank)));
    HP_TRY(cuda::Stream stream, cuda::Stream::create(device));
    Member& member = team->members_.emplace_back(rank, std::move(device), std::move(stream));
    member.kernels =
        std::make_unique<cuda::KernelLibrary>(member.device, compiler, request.kernel_cache);
    HP_REQUIRE_OK(open_libraries(member, search));
  }
  HP_TRY(std::vector<NcclRank> ends, nccl.connect(request.ranks));
  for (int rank = 0; rank < request.ranks; ++rank) {
    team->member(rank).nccl.emplace(std::move(ends[static_cast<std::size_t>(rank)]));
  }
  return team;
}

std::string Team::describe() const {
  const Member& first = members_.front();
  return "NCCL " + nccl_version_ + text_of("cuBLASLt", first.products) +
         text_of("cuDNN", first.attention);
}

Checked<Ok> Team::for_all(const std::function<Checked<Ok>(Member&)>& body) {
  std::vector<Checked<Ok>> results(members_.size(), Ok{});
  run_in_threads(members_.size(), [&](std::size_t rank) {
    const auto current = members_[rank].device.make_current();
    results[rank] =
        current.ok() ? body(members_[rank]) : Checked<Ok>(cuda::to_diag(current.error()));
  });
  for (Checked<Ok>& result : results) HP_REQUIRE_OK(std::move(result));
  return Ok{};
}

}  // namespace harpe::library
