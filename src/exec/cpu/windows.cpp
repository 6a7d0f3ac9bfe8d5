#include "exec/cpu/windows.h"

#include <algorithm>
#include <cstring>

#include "support/check.h"
#include "support/round_up.h"

namespace harpe::cpu {
namespace {

constexpr std::int64_t kCacheLine = 64;  // a cache line; kernels' vector loads need no more
constexpr std::int64_t kPage = 4096;     // signals and windows are registered separately

}  // namespace

Checked<Windows> Windows::make(const Plan& plan, const processes::Partition& partition,
                               const WindowSizes& sizes, transport::Exchange* exchange) {
  Windows windows(partition, sizes);
  windows.arena_bytes_ = harpe::arena_bytes(plan);
  windows.window_bytes_ = round_up(windows.arena_bytes_, kCacheLine) +
                          round_up(sizes.numbers, kCacheLine) + round_up(sizes.bounce, kCacheLine);
  windows.signals_bytes_ =
      round_up(sizes.signals * static_cast<std::int64_t>(sizeof(std::uint32_t)), kPage);
  windows.segments_.resize(static_cast<std::size_t>(partition.processes));
  if (exchange == nullptr) {
    windows.mapped_.push_back(Mapping::memory(partition.ranks_each * windows.window_bytes_));
    windows.segments_[0] = windows.mapped_.back().data();
  } else {
    HP_REQUIRE_OK(windows.share(*exchange));
  }
  windows.place();
  const std::span<std::byte> own = windows.own();
  std::memset(own.data(), 0xff, own.size());
  return windows;
}

Checked<Ok> Windows::share(transport::Exchange& exchange) {
  const std::int64_t bytes = signals_bytes_ + partition_.ranks_each * window_bytes_;
  HP_TRY(shared_,
         Segments::make(bytes, exchange, [&](int process) { return partition_.is_near(process); }));
  for (int process = 0; process < partition_.processes; ++process) {
    std::byte*& segment = segments_[static_cast<std::size_t>(process)];
    if (partition_.is_near(process)) {
      segment = shared_.of(process).data();
      continue;
    }
    mapped_.push_back(partition_.process == 0 ? Mapping::memory(bytes) : Mapping::addresses(bytes));
    segment = mapped_.back().data();
  }
  return Ok{};
}

void Windows::place() {
  const std::int64_t ranks = partition_.processes * partition_.ranks_each;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    const auto process = static_cast<std::size_t>(rank / partition_.ranks_each);
    std::byte* const window =
        segments_[process] + signals_bytes_ + rank % partition_.ranks_each * window_bytes_;
    bases_.arenas.push_back(window);
    numbers_.push_back(window + round_up(arena_bytes_, kCacheLine));
  }
}

std::vector<std::byte*> Windows::bounces() const {
  std::vector<std::byte*> bounces = numbers_;
  for (std::byte*& at : bounces) at += round_up(sizes_.numbers, kCacheLine);
  return bounces;
}

std::span<std::byte> Windows::windows_of(int process) const {
  return {segments_[static_cast<std::size_t>(process)] + signals_bytes_,
          static_cast<std::size_t>(partition_.ranks_each * window_bytes_)};
}

std::span<std::uint32_t> Windows::signals_of(int process) const {
  HP_CHECK(partition_.is_near(process), "words of this host");
  return {reinterpret_cast<std::uint32_t*>(segments_[static_cast<std::size_t>(process)]),
          static_cast<std::size_t>(signals_bytes_) / sizeof(std::uint32_t)};
}

std::optional<WindowPlace> Windows::find(const std::byte* address) const {
  for (int process = 0; process < partition_.processes; ++process) {
    const std::span<std::byte> windows = windows_of(process);
    const std::ptrdiff_t offset = address - windows.data();
    if (offset >= 0 && offset < std::ssize(windows)) return WindowPlace{process, offset};
  }
  return std::nullopt;
}

void Windows::poison(const Plan& plan) const {
  for (const Alloc& alloc : plan.allocs) {
    if (!partition_.is_own(alloc.rank)) continue;
    const Buffer* buffer = find_buffer(plan.program, alloc.buffer);
    HP_CHECK(buffer != nullptr, "buffer of `" + alloc.name + "`");
    if (alloc.level == Level::Home && buffer->role == Role::In) continue;
    std::memset(bases_.address(alloc), 0xff, static_cast<std::size_t>(alloc.bytes));
  }
}

void Windows::clear_numbers() const {
  for (std::size_t rank = 0; rank < numbers_.size(); ++rank) {
    if (!partition_.is_own(RankId(static_cast<std::int64_t>(rank)))) continue;
    std::memset(numbers_[rank], 0, static_cast<std::size_t>(sizes_.numbers));
  }
}

}  // namespace harpe::cpu
