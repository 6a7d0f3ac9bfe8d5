#include "harpe/group.h"

#include <utility>

#include "library/boundary.h"
#include "library/group_state.h"
#include "run/groups.h"
#include "transport/local_exchange.h"
#include "transport/rendezvous.h"

namespace harpe::library {
namespace {

// Adapts a caller's exchange to the library's interface.
class GivenExchange final : public transport::Exchange {
 public:
  explicit GivenExchange(std::shared_ptr<v1::Exchange> given) : given_(std::move(given)) {}

  [[nodiscard]] int rank() const override { return given_->rank(); }
  [[nodiscard]] int ranks() const override { return given_->ranks(); }
  [[nodiscard]] harpe::Checked<std::vector<transport::Blob>> all_gather(
      std::span<const std::byte> own) override {
    v1::Checked<std::vector<v1::Exchange::Bytes>> all =
        given_->all_gather({own.begin(), own.end()});
    if (!all.ok()) return refuse(all.error().message);
    if (std::ssize(*all) == ranks()) return *std::move(all);
    return refuse("it gave back what " + std::to_string(all->size()) + " of " +
                  std::to_string(ranks()) + " ranks gave");
  }

 private:
  [[nodiscard]] Diag refuse(const std::string& reason) const {
    return make_diag(DiagCode::N010,
                     {{"rank", rank()}, {"address", "the given exchange"}, {"reason", reason}});
  }

  std::shared_ptr<v1::Exchange> given_;
};

// Adapts the library's exchange to the public interface.
class OwnExchange final : public v1::Exchange {
 public:
  explicit OwnExchange(std::shared_ptr<transport::Exchange> own) : own_(std::move(own)) {}

  [[nodiscard]] int rank() const override { return own_->rank(); }
  [[nodiscard]] int ranks() const override { return own_->ranks(); }
  [[nodiscard]] v1::Checked<std::vector<Bytes>> all_gather(const Bytes& own) override {
    harpe::Checked<std::vector<transport::Blob>> all = own_->all_gather(own);
    if (!all.ok()) return to_error(all.error());
    return std::move(all).value();
  }

 private:
  std::shared_ptr<transport::Exchange> own_;
};

Diag refuse(const std::string& argument, const std::string& wanted, const std::string& found) {
  return make_diag(DiagCode::I311, {{"argument", argument}, {"wanted", wanted}, {"found", found}});
}

harpe::Checked<Ok> check_meeting(const v1::Meeting& meeting) {
  if (meeting.ranks < 1) return refuse("ranks", "at least 1", std::to_string(meeting.ranks));
  if (meeting.rank < 0 || meeting.rank >= meeting.ranks) {
    return refuse("rank", "from 0 to " + std::to_string(meeting.ranks - 1),
                  std::to_string(meeting.rank));
  }
  return check_time("limit", meeting.limit);
}

harpe::Checked<Ok> check_options(const v1::GroupOptions& options) {
  if (options.exchange == nullptr) return refuse("exchange", "how ranks meet", "null");
  const int rank = options.exchange->rank();
  const int ranks = options.exchange->ranks();
  if (rank < 0 || rank >= ranks) {
    return refuse("exchange", "of a rank below its number of ranks",
                  "of rank " + std::to_string(rank) + " of " + std::to_string(ranks));
  }
  if (options.gpu && *options.gpu < 0) {
    return refuse("gpu", "at least 0", std::to_string(*options.gpu));
  }
  if (options.heap_bytes < 0) {
    return refuse("heap_bytes", "at least 0", std::to_string(options.heap_bytes));
  }
  if (options.tensor_bytes < 0) {
    return refuse("tensor_bytes", "at least 0", std::to_string(options.tensor_bytes));
  }
  if (options.result_bytes < 0) {
    return refuse("result_bytes", "at least 0", std::to_string(options.result_bytes));
  }
  return check_time("wait_limit", options.wait_limit);
}

harpe::Checked<v1::Group> join(const v1::GroupOptions& options) {
  HP_REQUIRE_OK(check_options(options));
  auto state = std::make_shared<v1::Group::State>();
  state->exchange = options.exchange;
  state->is_on_gpu = options.gpu.has_value();
  const GroupRequest request{.exchange = std::make_shared<GivenExchange>(options.exchange),
                             .heap_bytes = options.heap_bytes,
                             .tensor_bytes = options.tensor_bytes,
                             .result_bytes = options.result_bytes,
                             .wait_limit = options.wait_limit,
                             .uses_libraries = options.cpu_kernels == v1::CpuKernels::Libraries,
                             .compiling = options.compiling,
                             .waiting = options.waiting};
  const CudaPlaces places{.nvrtc = {},
                          .cuda_folders = options.library_folders,
                          .library_folders = options.library_folders,
                          .kernel_cache = options.kernel_cache};
  HP_TRY(state->group, join_group(request, {.gpu = options.gpu, .places = places}));
  return v1::Group(std::move(state));
}

}  // namespace

v1::Error to_error(const LaunchFailure& failure) {
  if (const auto* const diag = std::get_if<Diag>(&failure)) return to_error(*diag);
  const auto& fault = std::get<ExecutionFault>(failure);
  return to_error(fault.report, fault.plan);
}

}  // namespace harpe::library

namespace harpe::v1 {

Exchange::~Exchange() = default;

std::vector<std::shared_ptr<Exchange>> local_exchanges(int ranks, std::chrono::milliseconds limit) {
  std::vector<std::shared_ptr<Exchange>> exchanges;
  if (ranks < 1) return exchanges;
  for (auto& own : transport::make_local_exchanges(ranks, limit)) {
    exchanges.push_back(std::make_shared<library::OwnExchange>(std::move(own)));
  }
  return exchanges;
}

Checked<std::shared_ptr<Exchange>> meet(const Meeting& meeting) {
  using Met = std::shared_ptr<Exchange>;
  return library::enter<Met>({}, [&](library::Call&) -> harpe::Checked<Met> {
    HP_REQUIRE_OK(library::check_meeting(meeting));
    HP_TRY(std::shared_ptr<transport::Exchange> own,
           transport::Rendezvous::meet({.address = meeting.address,
                                        .secret = meeting.secret,
                                        .rank = meeting.rank,
                                        .ranks = meeting.ranks,
                                        .limit = meeting.limit}));
    return Met(std::make_shared<library::OwnExchange>(std::move(own)));
  });
}

Checked<Group> Group::join(const GroupOptions& options) {
  return library::enter<Group>({}, [&](library::Call&) { return library::join(options); });
}

int Group::rank() const { return state_->exchange->rank(); }
int Group::ranks() const { return state_->exchange->ranks(); }

Checked<Done> Group::check() const {
  const std::optional<LaunchFailure> failure = state_->group->check();
  if (!failure) return Done{};
  return library::to_error(*failure);
}

Checked<Done> Group::reset() const {
  return library::enter<Done>({}, [&](library::Call&) -> harpe::Checked<Done> {
    HP_REQUIRE_OK(state_->group->reset());
    return Done{};
  });
}

GroupStatus Group::status() const {
  const GroupCounts counts = state_->group->counts();
  return {.heap_bytes = counts.heap_bytes,
          .tensor_bytes = counts.tensor_bytes,
          .executables = counts.executables};
}

Checked<std::shared_ptr<std::byte>> Group::allocate(std::int64_t bytes) const {
  return library::enter<std::shared_ptr<std::byte>>(
      {}, [&](library::Call&) { return state_->group->allocate(bytes); });
}

}  // namespace harpe::v1
