#include "exec/group/segments.h"

#include <unistd.h>

#include <cstring>

namespace harpe {
namespace {

// How other processes of the host find a process's segment.
struct SegmentCard {
  std::int64_t process = 0;  // process id
  std::int64_t file = 0;
};

}  // namespace

Checked<Segments> Segments::make(std::int64_t bytes, transport::Exchange& exchange,
                                 const std::function<bool(int)>& is_near) {
  Segments segments;
  segments.bytes_ = bytes;
  segments.of_process_.resize(static_cast<std::size_t>(exchange.ranks()));
  HP_TRY(transport::SharedMemory own, transport::SharedMemory::make(bytes));
  const SegmentCard card{.process = ::getpid(), .file = own.region().file};
  segments.of_process_[static_cast<std::size_t>(exchange.rank())] = own.bytes();
  segments.shared_.push_back(std::move(own));
  HP_TRY(const auto cards, exchange.all_gather(std::as_bytes(std::span(&card, 1))));
  const Checked<Ok> opened = segments.open_others(cards, exchange.rank(), is_near);
  // No rank continues, and perhaps exits, before every rank has opened the segments it needs.
  HP_REQUIRE_OK(agree(exchange, opened.ok() ? std::nullopt : std::optional(opened.error())));
  return segments;
}

Checked<Ok> Segments::open_others(const std::vector<transport::Blob>& cards, int own,
                                  const std::function<bool(int)>& is_near) {
  for (std::size_t at = 0; at < cards.size(); ++at) {
    const int process = static_cast<int>(at);
    if (process == own || !is_near(process)) continue;
    SegmentCard other;
    if (cards[at].size() == sizeof(other)) std::memcpy(&other, cards[at].data(), sizeof(other));
    HP_TRY(transport::SharedMemory theirs,
           transport::SharedMemory::open(other.process, static_cast<int>(other.file), bytes_));
    of_process_[at] = theirs.bytes();
    shared_.push_back(std::move(theirs));
  }
  return Ok{};
}

}  // namespace harpe
