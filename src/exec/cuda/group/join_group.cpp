#include "exec/cuda/group/join_group.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>

#include "exec/cuda/group/rank_executable.h"
#include "exec/cuda/runtime/current_device.h"
#include "plan/text.h"
#include "support/hash.h"

namespace harpe::cuda {
namespace {

class CudaGroup final : public RankGroup {
 public:
  explicit CudaGroup(std::shared_ptr<GroupState> state) : state_(std::move(state)) {}
  CudaGroup(const CudaGroup&) = delete;
  CudaGroup& operator=(const CudaGroup&) = delete;
  ~CudaGroup() override {
    const Device device = state_->device;
    const CurrentDevice current(device);
    static_cast<void>(state_->wait_for_last());
    state_.reset();
  }

  [[nodiscard]] Checked<std::unique_ptr<RankExecutable>> make(const Plan& plan) override {
    const CurrentDevice current(state_->device);
    HP_REQUIRE_OK(state_->agreed(check_ranks(plan)));
    HP_REQUIRE_OK(transport::compare(state_->exchange(), hash_text(print_plan(plan))));
    HP_TRY(std::unique_ptr<CudaRankExecutable> made, CudaRankExecutable::make(plan, state_));
    return std::unique_ptr<RankExecutable>(std::move(made));
  }

  [[nodiscard]] std::optional<LaunchFailure> check() override { return state_->check(); }

  [[nodiscard]] Checked<Ok> reset() override {
    const CurrentDevice current(state_->device);
    const Result<Ok, CudaError> over = state_->wait_for_last();
    // Signals are cleared once no rank raises any; no rank raises one before all are clear.
    HP_REQUIRE_OK(state_->agreed(over.ok() ? Checked<Ok>(Ok{}) : to_diag(over.error())));
    if (state_->board) state_->board->clear();
    if (state_->pieces) state_->pieces->catch_up();
    const auto reset_all = [&]() -> Checked<Ok> {
      for (CudaRankExecutable* const executable : state_->live) {
        HP_REQUIRE_OK(executable->reset());
      }
      return Ok{};
    };
    HP_REQUIRE_OK(state_->agreed(reset_all()));
    state_->failure.reset();
    return Ok{};
  }

  [[nodiscard]] GroupCounts counts() const override {
    GroupCounts counts{.heap_bytes = state_->arena == nullptr ? 0 : state_->arena->own.bytes(),
                       .tensor_bytes = state_->heap->taken(),
                       .executables = std::ssize(state_->live)};
    if (state_->pieces) counts.tensor_bytes += state_->pieces->held();
    if (state_->tensors) counts.heap_bytes += state_->tensors->own.bytes();
    for (const CudaRankExecutable* const each : state_->live) {
      counts.heap_bytes += each->signal_bytes();
    }
    return counts;
  }

  [[nodiscard]] Checked<std::shared_ptr<std::byte>> allocate(std::int64_t bytes) override {
    const DeviceAddress begin = state_->tensors ? state_->tensors->own.address() : 0;
    return allocate_tensor(state_->heap, state_->tensors, reinterpret_cast<std::byte*>(begin),
                           bytes);
  }

 private:
  [[nodiscard]] Checked<Ok> check_ranks(const Plan& plan) const {
    if (plan.mesh.ranks() == state_->ranks()) return Ok{};
    return make_diag(DiagCode::I311,
                     {{"argument", "plan"},
                      {"wanted", "for the group's " + std::to_string(state_->ranks()) + " ranks"},
                      {"found", "for " + std::to_string(plan.mesh.ranks())}});
  }

  std::shared_ptr<GroupState> state_;
};

// What a rank sends to the others about its GPU.
struct Card {
  std::array<int, 3> gpu{};  // its PCI address in the host
  int multiprocessors = 0;
  std::int64_t heap_bytes = 0;
  std::int64_t tensor_bytes = 0;
  std::int64_t result_bytes = 0;
};

Checked<Card> make_card(const Device& device, const GroupRequest& request) {
  const DriverApi& driver = device.driver();
  Card card{.multiprocessors = device.facts().multiprocessors,
            .heap_bytes = request.heap_bytes,
            .tensor_bytes = request.tensor_bytes,
            .result_bytes = request.result_bytes};
  constexpr std::array kPlace = {CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID,
                                 CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID};
  CUdevice handle = 0;
  HP_REQUIRE_OK(
      driver_call(driver, "cuDeviceGet", driver.cuDeviceGet(&handle, device.facts().id.value)));
  for (std::size_t i = 0; i < kPlace.size(); ++i) {
    HP_REQUIRE_OK(driver_call(driver, "cuDeviceGetAttribute",
                              driver.cuDeviceGetAttribute(&card.gpu[i], kPlace[i], handle)));
  }
  return card;
}

// Whether ranks share GPUs. Errors: G070 too many share one.
Checked<bool> find_sharing(const std::vector<Card>& cards) {
  std::map<std::array<int, 3>, std::int64_t> ranks;
  for (const Card& card : cards) ++ranks[card.gpu];
  std::int64_t most = 0;
  for (const auto& [gpu, count] : ranks) most = std::max(most, count);
  if (most > GpuPart::kMost) {
    return make_diag(DiagCode::G070, {{"ranks", cards.size()}, {"gpus", ranks.size()}});
  }
  return most > 1;
}

CudaOptions executor_options(const GroupRequest& request, const CudaGroupOptions& options) {
  return {.kernel_cache = options.kernel_cache,
          .nvrtc = options.nvrtc,
          .cuda_folders = options.cuda_folders,
          .collectives = CollectiveEngine::Pull,
          .library_folders = options.library_folders,
          .wait_limit = request.wait_limit,
          .drop_signal_of = options.drop_signal_of};
}

Checked<GroupState> open_state(const GroupRequest& request, const CudaGroupOptions& options,
                               const std::shared_ptr<const DriverApi>& driver) {
  HP_TRY(Device device, Device::open(driver, DeviceId(options.gpu)));
  HP_TRY(const Nvrtc compiler, Nvrtc::open(options.nvrtc, options.cuda_folders));
  HP_TRY(Event last, Event::create_untimed(device));
  HP_TRY(Event other, Event::create_untimed(device));
  auto kernels = std::make_shared<KernelLibrary>(device, compiler, options.kernel_cache,
                                                 device_headers(), request.compiling);
  return GroupState{.request = request,
                    .given = options,
                    .options = executor_options(request, options),
                    .device = std::move(device),
                    .kernels = std::move(kernels),
                    .target = {.takes_turns = true, .collectives = CollectiveEngine::Pull},
                    .last = std::move(last),
                    .other = std::move(other)};
}

// Makes these equal on all ranks: the target of launches, the first arena, and memory for tensors.
Checked<Ok> meet(GroupState& state) {
  HP_TRY(const Card own, state.agreed(make_card(state.device, state.request)));
  HP_TRY(const auto blobs, state.exchange().all_gather(std::as_bytes(std::span(&own, 1))));
  std::vector<Card> cards(blobs.size());
  for (std::size_t rank = 0; rank < blobs.size(); ++rank) {
    if (blobs[rank].size() != sizeof(Card)) return make_diag(DiagCode::N015, {{"rank", rank}});
    std::memcpy(&cards[rank], blobs[rank].data(), sizeof(Card));
  }
  HP_TRY(state.target.shares_gpus, find_sharing(cards));
  state.target.multiprocessors =
      std::ranges::min(cards, {}, &Card::multiprocessors).multiprocessors;
  Checked<GroupBoard> board = GroupBoard::make(state.exchange());
  if (board.ok()) state.board.emplace(std::move(board).value());
  const std::int64_t heap = std::ranges::max(cards, {}, &Card::heap_bytes).heap_bytes;
  if (heap > 0) {
    HP_TRY(state.arena, Arena::make(state.device, heap, state.exchange()));
  }
  const std::int64_t tensors = std::ranges::max(cards, {}, &Card::tensor_bytes).tensor_bytes;
  state.heap = std::make_shared<TensorHeap>(tensors);
  const std::int64_t results = std::ranges::max(cards, {}, &Card::result_bytes).result_bytes;
  if (tensors + results > 0) {
    HP_TRY(state.tensors, Arena::make(state.device, tensors + results, state.exchange()));
  }
  if (results > 0 && state.board) {
    HP_TRY(state.pieces, AgreedPieces::make(results, state.exchange()));
  }
  return Ok{};
}

}  // namespace

Checked<std::unique_ptr<RankGroup>> join_group(const GroupRequest& request,
                                               const CudaGroupOptions& options) {
  const Checked<std::shared_ptr<const DriverApi>> driver =
      options.driver != nullptr ? options.driver : open_driver();
  std::optional<CurrentDevice> kept;
  if (driver.ok()) kept.emplace(**driver);
  Checked<GroupState> opened =
      driver.ok() ? open_state(request, options, *driver) : Checked<GroupState>(driver.error());
  HP_REQUIRE_OK(transport::agree(*request.exchange,
                                 opened.ok() ? std::nullopt : std::optional(opened.error())));
  auto state = std::make_shared<GroupState>(std::move(opened).value());
  HP_REQUIRE_OK(meet(*state));
  return std::unique_ptr<RankGroup>(std::make_unique<CudaGroup>(std::move(state)));
}

}  // namespace harpe::cuda
