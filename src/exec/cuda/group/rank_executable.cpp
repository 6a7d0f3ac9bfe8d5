#include "exec/cuda/group/rank_executable.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "exec/actions/occupancy.h"
#include "exec/cuda/executor/checks.h"
#include "exec/cuda/executor/gpu_faults.h"
#include "exec/cuda/group/inboxes.h"
#include "exec/cuda/runtime/current_device.h"
#include "exec/cuda/target/check_tasks.h"
#include "exec/cuda/target/launch_target.h"
#include "launch/make_launches.h"
#include "plan/slots.h"
#include "support/check.h"
#include "support/round_up.h"
#include "sync/nodes.h"

namespace harpe::cuda {
namespace {

// Kernels need operands, and tensor maps addresses, with this alignment.
constexpr DeviceAddress kBoundAlignment = 16;

// Distance of the arenas between the two captures; kernels see the same alignment.
constexpr std::int64_t kShift = kSlotAlignment;

// FNV's odd factor, to hash the places of tensors into one number.
constexpr std::uint64_t kPlacesFactor = 0x100000001b3;

Diag refuse(const std::string& argument, const std::string& wanted, const std::string& found) {
  return make_diag(DiagCode::I311, {{"argument", argument}, {"wanted", wanted}, {"found", found}});
}

DeviceAddress address_of(const TensorView& tensor) {
  return reinterpret_cast<DeviceAddress>(tensor.data);
}

std::string print_numbers(std::span<const std::int64_t> numbers) {
  std::string text = "[";
  for (const std::int64_t number : numbers) {
    text += (text.size() == 1 ? "" : ", ") + std::to_string(number);
  }
  return text + "]";
}

std::string print_type(DType dtype, std::span<const std::int64_t> shape) {
  return std::string(print(dtype)) + " " + print_numbers(shape);
}

// A plan's launches and exchanges.
struct Planned {
  Blocks blocks;
  launch::LaunchPlan launches;
  launch::Exchanges exchanges;
};

Checked<Planned> plan_for(const GroupState& group, const Plan& plan) {
  HP_REQUIRE_OK(check_tasks(plan));
  HP_REQUIRE_OK(actions::check_buffers(plan.program));
  if (!sync::puts_of(plan).empty()) {
    return refuse("plan", "of ranks that reach each other's memory", "one with puts by proxy");
  }
  HP_TRY(Blocks blocks, Blocks::make(plan.program, plan.mesh, plan.form));
  const LaunchTarget target(group.target);
  launch::Exchanges exchanges = launch::exchanges_of(plan, blocks, target);
  HP_TRY(launch::LaunchPlan launches, launch::make_launches(plan, blocks, target));
  HP_REQUIRE_OK(group.given.prove(plan, launches));
  return Planned{.blocks = std::move(blocks),
                 .launches = std::move(launches),
                 .exchanges = std::move(exchanges)};
}

// Allocations that launches of other ranks access.
std::set<AllocId> named_by_others(const launch::LaunchPlan& launches, RankId rank) {
  std::set<AllocId> named;
  const auto add = [&](const std::vector<launch::Place>& places) {
    for (const launch::Place& place : places) named.insert(place.alloc);
  };
  for (const launch::Launch& launch : launches.launches) {
    if (launch.rank == rank) continue;
    for (const launch::Kernel& kernel : launch.kernels) {
      for (const launch::Arrival& arrival : kernel.arrivals) add(arrival.reads);
      for (const launch::FusedCopy& copy : kernel.fused_copies) add({copy.from, copy.to});
      for (const launch::Panel& panel : kernel.panels) {
        add(panel.reads);
        add(panel.stores);
        for (const launch::Addend& addend : panel.addends) add(addend.reads);
        for (const launch::Map& map : panel.maps) add(map.reads);
      }
    }
  }
  return named;
}

// Whether all ranks have this home, and other ranks' tasks or launches access it on each.
bool is_symmetric(const Prepared& prepared, const std::vector<std::vector<LocalHome>>& homes,
                  std::size_t home) {
  for (std::size_t rank = 0; rank < homes.size(); ++rank) {
    const LocalHome& each = homes[rank][home];
    if (!each.alloc.valid() || each.bytes() == 0) return false;
    if (!each.is_own) continue;
    const RankId owner(static_cast<std::int64_t>(rank));
    if (!named_by_others(prepared.launches, owner).contains(each.alloc)) return false;
  }
  return true;
}

// By rank.
std::vector<std::byte*> begins_of_inboxes(const Peers& peers) {
  std::vector<std::byte*> begins;
  for (int rank = 0; rank < peers.ranks(); ++rank) {
    begins.push_back(reinterpret_cast<std::byte*>(peers.signals(rank).inbox()));
  }
  return begins;
}

// Whether other allocations share the home's memory.
bool shares_memory(const Plan& plan, AllocId id) {
  const Alloc& home = plan.allocs[id.index()];
  return std::ranges::any_of(plan.allocs, [&](const Alloc& other) {
    return &other != &home && other.rank == home.rank && other.bytes > 0 &&
           other.offset < home.offset + home.bytes && home.offset < other.offset + other.bytes;
  });
}

}  // namespace

Checked<std::unique_ptr<CudaRankExecutable>> CudaRankExecutable::make(
    const Plan& plan, std::shared_ptr<GroupState> group) {
  HP_TRY(Planned planned, group->agreed(plan_for(*group, plan)));
  const Inboxes inboxes(plan, planned.launches);
  const auto open = [&](std::int64_t bytes, std::int32_t signals) -> Checked<Peers> {
    const std::int64_t needed = bytes + kShift;
    if (group->arena == nullptr || group->arena->own.bytes() < needed) {
      HP_TRY(group->arena, Arena::make(group->device, needed, group->exchange()));
    }
    return Peers::over(group->device, group->arena, signals, inboxes.bytes(), group->exchange());
  };
  HP_TRY(std::unique_ptr<Prepared> prepared,
         Prepared::make(plan, std::move(planned.blocks), std::move(planned.launches),
                        planned.exchanges, open));
  prepared->takes_turns = true;
  prepared->bases.apart = inboxes.places(prepared->plan, begins_of_inboxes(prepared->peers));
  prepared->libraries = {group->kernels};
  for (int rank = 0; rank < group->ranks(); ++rank) {
    add_library(*prepared, *group->kernels,
                {.file = "",
                 .folders = group->options.library_folders,
                 .toolkits = group->options.cuda_folders});
  }
  std::unique_ptr<CudaRankExecutable> made(new CudaRankExecutable(group, std::move(prepared)));
  HP_REQUIRE_OK(group->agreed(made->capture()));
  HP_REQUIRE_OK(made->agree_on_homes());
  made->lay_out_results();
  return made;
}

CudaRankExecutable::CudaRankExecutable(std::shared_ptr<GroupState> group,
                                       std::unique_ptr<Prepared> prepared)
    : group_(std::move(group)),
      tensors_(group_->tensors),
      prepared_(std::move(prepared)),
      homes_(local_homes(prepared_->plan, prepared_->blocks, RankId(group_->rank()))),
      largest_(homes_.size()),
      uses_(homes_.size()) {
  if (group_->board) number_ = group_->board->add(prepared_->plan.program.name);
  if (group_->board && tensors_) find_peer_homes();
  addresses_.resize(homes_.size() + peer_homes_.size());
  group_->live.push_back(this);
}

CudaRankExecutable::~CudaRankExecutable() {
  const Device device = group_->device;
  const CurrentDevice current(device);
  static_cast<void>(group_->wait_for_last());
  const bool is_touched = group_->check().has_value();
  std::erase(group_->live, this);
  bindings_.reset();
  program_.reset();
  // Peers that have not failed yet may still raise signals here.
  if (is_touched) {
    static_cast<void>(prepared_.release());
    static_cast<void>(std::make_unique<std::shared_ptr<Arena>>(tensors_).release());
  }
  prepared_.reset();
  group_.reset();
}

Checked<Ok> CudaRankExecutable::capture() {
  HP_TRY(CapturedGraph shifted, capture_at(kShift));
  HP_TRY(CapturedGraph graph, capture_at(0));
  range_ = movable_homes();
  CapturedTwice captured{.graph = std::move(graph), .shifted = std::move(shifted), .shift = kShift};
  HP_TRY(bindings_, Bindings::make(program_->origin(), std::move(captured), range_));
  program_->free_streams();
  return Ok{};
}

Checked<CapturedGraph> CudaRankExecutable::capture_at(std::int64_t shift) {
  program_.reset();
  prepared_->queues.clear();
  for (std::byte*& arena : prepared_->bases.arenas) arena += shift;
  Checked<std::vector<RankProgram>> programs = make_programs(*prepared_, group_->options);
  for (std::byte*& arena : prepared_->bases.arenas) arena -= shift;
  if (!programs.ok()) return programs.error();
  program_ = std::move(programs->front());
  return program_->capture_apart(group_->request.wait_limit);
}

AddressRange CudaRankExecutable::range_in_arena(AllocId home) const {
  const Alloc& alloc = prepared_->plan.allocs[home.index()];
  const auto begin = reinterpret_cast<DeviceAddress>(prepared_->bases.address(alloc));
  return {.begin = begin, .end = begin + static_cast<DeviceAddress>(alloc.bytes)};
}

void CudaRankExecutable::find_peer_homes() {
  std::vector<std::vector<LocalHome>> homes;
  for (int rank = 0; rank < group_->ranks(); ++rank) {
    homes.push_back(local_homes(prepared_->plan, prepared_->blocks, RankId(rank)));
  }
  for (const std::vector<LocalHome>& each : homes) {
    for (std::size_t home = 0; home < each.size(); ++home) {
      largest_[home] = std::max(largest_[home], each[home].bytes());
    }
  }
  for (std::size_t home = 0; home < homes_.size(); ++home) {
    if (!is_symmetric(*prepared_, homes, home)) continue;
    for (int rank = 0; rank < group_->ranks(); ++rank) {
      if (rank == group_->rank()) continue;
      const AllocId alloc = homes[static_cast<std::size_t>(rank)][home].alloc;
      peer_homes_.push_back({.home = home, .rank = rank, .alloc = alloc});
    }
  }
}

AddressRange CudaRankExecutable::movable_range(AllocId home) const {
  if (shares_memory(prepared_->plan, home)) return {};
  const AddressRange there = range_in_arena(home);
  const bool is_fixed = std::ranges::any_of(
      program_->launches(), [&](const PreparedLaunch& launch) { return launch.fixed.fix(there); });
  return is_fixed ? AddressRange{} : there;
}

std::vector<AddressRange> CudaRankExecutable::movable_homes() const {
  const std::set<AllocId> named = named_by_others(prepared_->launches, RankId(group_->rank()));
  const auto is_peers = [&](std::size_t home) {
    return std::ranges::find(peer_homes_, home, &PeerHome::home) != peer_homes_.end();
  };
  std::vector<AddressRange> ranges;
  for (std::size_t home = 0; home < homes_.size(); ++home) {
    const LocalHome& each = homes_[home];
    const bool is_there = each.alloc.valid() && each.bytes() > 0;
    const bool is_alone = is_there && each.is_own && !named.contains(each.alloc);
    ranges.push_back(is_alone || is_peers(home) ? movable_range(each.alloc) : AddressRange{});
  }
  for (const PeerHome& peer : peer_homes_) ranges.push_back(movable_range(peer.alloc));
  return ranges;
}

Checked<Ok> CudaRankExecutable::agree_on_homes() {
  bindable_.assign(homes_.size(), Bindable::None);
  for (std::size_t home = 0; home < homes_.size(); ++home) {
    if (range_[home].begin != 0) bindable_[home] = Bindable::Anywhere;
  }
  if (peer_homes_.empty()) return Ok{};  // so on all ranks
  std::vector<std::byte> movable(homes_.size(), std::byte{1});
  for (std::size_t at = 0; at < peer_homes_.size(); ++at) {
    const std::size_t home = peer_homes_[at].home;
    if (bindable_[home] != Bindable::None) bindable_[home] = Bindable::InHeap;
    const bool is_movable = range_[home].begin != 0 && range_[homes_.size() + at].begin != 0;
    if (!is_movable) movable[home] = std::byte{0};
  }
  HP_TRY(const auto all, group_->exchange().all_gather(movable));
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].size() != movable.size()) return make_diag(DiagCode::N015, {{"rank", rank}});
    for (std::size_t home = 0; home < homes_.size(); ++home) {
      const bool stays = all[rank][home] == std::byte{0};
      if (stays && bindable_[home] == Bindable::InHeap) bindable_[home] = Bindable::None;
    }
  }
  return Ok{};
}

void CudaRankExecutable::lay_out_results() {
  result_offsets_.assign(homes_.size(), -1);
  for (std::size_t home = 0; home < homes_.size(); ++home) {
    if (homes_[home].role == Role::In || bindable_[home] != Bindable::InHeap) continue;
    result_offsets_[home] = result_bytes_;
    result_bytes_ += round_up(largest_[home], kTensorAlignment);
  }
}

Result<std::vector<std::shared_ptr<std::byte>>, LaunchFailure> CudaRankExecutable::take_results(
    void* stream) {
  std::vector<std::shared_ptr<std::byte>> results(homes_.size());
  if (result_bytes_ == 0 || group_->pieces == nullptr) return results;
  const CurrentDevice current(group_->device);
  HP_TRY(const std::shared_ptr<std::byte> piece,
         group_->take(result_bytes_, static_cast<CUstream>(stream)));
  for (std::size_t home = 0; piece != nullptr && home < homes_.size(); ++home) {
    if (result_offsets_[home] < 0) continue;
    results[home] = std::shared_ptr<std::byte>(piece, piece.get() + result_offsets_[home]);
  }
  return results;
}

bool CudaRankExecutable::has_failed() const { return page().has_fault() || page().is_stopped(); }

LaunchFailure CudaRankExecutable::explain() const {
  std::vector<RankReport> reports(static_cast<std::size_t>(group_->ranks()));
  reports[static_cast<std::size_t>(group_->rank())] = {
      .end = std::nullopt, .record = page().fault(), .is_poisoned = true};
  return make_failure(prepared_->plan, collect_gpu_faults(prepared_->plan, prepared_->blocks,
                                                          prepared_->launches, reports));
}

// Failed kernels may have left counters in their memory, so everything is made anew.
Checked<Ok> CudaRankExecutable::reset() {
  bindings_.reset();
  program_.reset();
  HP_REQUIRE_OK(page().clear());
  return capture();
}

Result<Ok, LaunchFailure> CudaRankExecutable::launch(std::span<const TensorView> tensors,
                                                     void* stream) {
  if (const auto& failure = group_->check()) return *failure;
  if (auto placed = place(tensors); !placed.ok()) return LaunchFailure(placed.error());
  const CurrentDevice current(group_->device);
  auto* const ordered_in = static_cast<CUstream>(stream);
  const auto capture = find_capture(group_->device.driver(), ordered_in);
  if (!capture.ok()) return LaunchFailure(to_diag(capture.error()));
  if (*capture) {
    if (auto apart = check_apart(tensors); !apart.ok()) return LaunchFailure(apart.error());
    HP_REQUIRE_OK(group_->begin(number_, places_));
    const Result<Ok, CudaError> added = add_to_capture(tensors, ordered_in);
    return added.ok() ? Result<Ok, LaunchFailure>(Ok{}) : LaunchFailure(to_diag(added.error()));
  }
  auto graph = find_graph(tensors);
  if (!graph.ok()) return LaunchFailure(graph.error());
  HP_REQUIRE_OK(group_->begin(number_, places_));
  const Result<Ok, CudaError> ordered = order(tensors, **graph, ordered_in);
  if (!ordered.ok()) return LaunchFailure(to_diag(ordered.error()));
  ++counts_.launches;
  return Ok{};
}

Checked<Ok> CudaRankExecutable::place(std::span<const TensorView> tensors) {
  if (tensors.size() != homes_.size()) {
    return refuse("tensors", std::to_string(homes_.size()), std::to_string(tensors.size()));
  }
  for (std::size_t at = 0; at < range_.size(); ++at) addresses_[at] = range_[at].begin;
  places_ = 0;
  for (std::size_t home = 0; home < homes_.size(); ++home) {
    HP_REQUIRE_OK(place(home, tensors[home]));
  }
  return Ok{};
}

Checked<Ok> CudaRankExecutable::place(std::size_t home, const TensorView& tensor) {
  const LocalHome& wanted = homes_[home];
  const std::span shape(tensor.shape.data(), tensor.axes);
  if (tensor.dtype != wanted.dtype || !std::ranges::equal(shape, wanted.shape)) {
    return refuse(wanted.buffer, print_type(wanted.dtype, wanted.shape),
                  print_type(tensor.dtype, shape));
  }
  Use& use = uses_[home];
  use.is_copied = false;
  if (wanted.bytes() == 0) return Ok{};
  if (tensor.data == nullptr) return refuse(wanted.buffer, "a tensor in memory", "none");
  if (bind(home, tensor)) return Ok{};
  const auto copy = HomeCopy::of(tensor);
  if (!copy) {
    return refuse(wanted.buffer, "slices of rows, each in one piece",
                  "strides " + print_numbers(std::span(tensor.strides.data(), tensor.axes)));
  }
  use = {.is_copied = true, .copy = *copy};
  return Ok{};
}

// Binds the graph to the tensor, and to the tensors of other ranks at the same place.
bool CudaRankExecutable::bind(std::size_t home, const TensorView& tensor) {
  const DeviceAddress address = address_of(tensor);
  const bool is_aligned = address % kBoundAlignment == 0;
  if (bindable_[home] == Bindable::None || !is_aligned || !is_dense(tensor)) return false;
  if (bindable_[home] == Bindable::InHeap) {
    const DeviceAddress offset = address - tensors_->own.address();
    const auto end = offset + static_cast<DeviceAddress>(homes_[home].bytes());
    const auto bytes = static_cast<DeviceAddress>(tensors_->own.bytes());
    if (offset >= bytes || end > bytes) return false;
    for (std::size_t at = 0; at < peer_homes_.size(); ++at) {
      if (peer_homes_[at].home != home) continue;
      addresses_[homes_.size() + at] = tensors_->of_all[peer_homes_[at].rank] + offset;
    }
    places_ = (places_ + (DeviceAddress{home + 1} << 48U | offset)) * kPlacesFactor;
  }
  addresses_[home] = address;
  return true;
}

// While kernels write results, they still read tensors that are inputs.
Checked<Ok> CudaRankExecutable::check_apart(std::span<const TensorView> tensors) const {
  for (std::size_t one = 0; one < homes_.size(); ++one) {
    if (homes_[one].role == Role::In || uses_[one].is_copied || homes_[one].bytes() == 0) continue;
    const DeviceAddress begin = address_of(tensors[one]);
    for (std::size_t other = 0; other < homes_.size(); ++other) {
      if (other == one || uses_[other].is_copied || homes_[other].bytes() == 0) continue;
      const DeviceAddress its = address_of(tensors[other]);
      const bool meet = its < begin + static_cast<DeviceAddress>(homes_[one].bytes()) &&
                        begin < its + static_cast<DeviceAddress>(homes_[other].bytes());
      if (!meet) continue;
      return refuse(homes_[one].buffer, "apart from the other tensors",
                    "in memory of `" + homes_[other].buffer + "`");
    }
  }
  return Ok{};
}

Checked<const Graph*> CudaRankExecutable::find_graph(std::span<const TensorView> tensors) {
  if (const Graph* const known = bindings_->find(addresses_)) return known;
  HP_REQUIRE_OK(check_apart(tensors));
  return bindings_->add(addresses_);
}

Result<Ok, CudaError> CudaRankExecutable::order(std::span<const TensorView> tensors,
                                                const Graph& graph, CUstream stream) {
  HP_REQUIRE_OK(group_->order_behind_last(stream));
  HP_REQUIRE_OK(order_copies(tensors, CopyDirection::ToImage, stream));
  HP_REQUIRE_OK(graph.launch(stream));
  HP_REQUIRE_OK(order_copies(tensors, CopyDirection::ToTensor, stream));
  return group_->note_last(stream);
}

Result<Ok, CudaError> CudaRankExecutable::add_to_capture(std::span<const TensorView> tensors,
                                                         CUstream stream) {
  const std::int64_t copied = counts_.copied_bytes;
  HP_REQUIRE_OK(order_copies(tensors, CopyDirection::ToImage, stream));
  HP_REQUIRE_OK(bindings_->add_to_capture(addresses_, stream));
  HP_REQUIRE_OK(order_copies(tensors, CopyDirection::ToTensor, stream));
  counts_.copied_bytes = copied;  // counts only launches
  return Ok{};
}

Result<Ok, CudaError> CudaRankExecutable::order_copies(std::span<const TensorView> tensors,
                                                       CopyDirection direction, CUstream stream) {
  const Role other = direction == CopyDirection::ToImage ? Role::Out : Role::In;
  for (std::size_t home = 0; home < homes_.size(); ++home) {
    if (!uses_[home].is_copied || homes_[home].role == other) continue;
    HP_REQUIRE_OK(order_copy(group_->device.driver(), uses_[home].copy, address_of(tensors[home]),
                             range_in_arena(homes_[home].alloc).begin, direction, stream));
    counts_.copied_bytes += homes_[home].bytes();
  }
  return Ok{};
}

}  // namespace harpe::cuda
