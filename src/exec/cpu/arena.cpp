#include "exec/cpu/arena.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "support/check.h"

namespace harpe::cpu {
namespace {

constexpr std::align_val_t kAlignment{64};  // a cache line; no vector load of a kernel wants more

}  // namespace

void Arenas::Free::operator()(std::byte* memory) const { ::operator delete[](memory, kAlignment); }

Arenas::Arenas(const Plan& plan) : bytes_(arena_bytes(plan)) {
  const std::int64_t ranks = plan.mesh.ranks();
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    const auto size = static_cast<std::size_t>(bytes_);
    memory_.emplace_back(static_cast<std::byte*>(::operator new[](size, kAlignment)));
    std::memset(memory_.back().get(), 0xff, size);
    bases_.arenas.push_back(memory_.back().get());
  }
}

void Arenas::poison(const Plan& plan) const {
  for (const Alloc& alloc : plan.allocs) {
    const Buffer* buffer = find_buffer(plan.program, alloc.buffer);
    HP_CHECK(buffer != nullptr, "buffer of `" + alloc.name + "`");
    const bool given = buffer->role == Role::In || buffer->role == Role::InOut;
    if (alloc.level == Level::Home && given) continue;
    std::memset(bases_.address(alloc), 0xff, static_cast<std::size_t>(alloc.bytes));
  }
}

Numbers::Numbers(const Plan& plan, std::int64_t bytes_per_rank) {
  const std::int64_t of_rank = bytes_per_rank / static_cast<std::int64_t>(sizeof(std::int32_t));
  count_ = of_rank * plan.mesh.ranks();
  memory_ = std::make_unique<std::int32_t[]>(static_cast<std::size_t>(count_));
  for (std::int64_t rank = 0; rank < plan.mesh.ranks(); ++rank) {
    of_ranks_.push_back(reinterpret_cast<std::byte*>(memory_.get() + rank * of_rank));
  }
}

void Numbers::clear() const { std::fill_n(memory_.get(), count_, 0); }

}  // namespace harpe::cpu
