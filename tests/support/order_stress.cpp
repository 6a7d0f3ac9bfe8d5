#include "tests/support/order_stress.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace harpe::transport::test {
namespace {

// Ends this process and thereby the whole run, so that no rank waits for a failed one.
template <class T>
void require(const Outcome<T>& outcome) {
  if (outcome.ok()) return;
  std::fprintf(stderr, "%s\n", render(to_diag(outcome.error())).c_str());
  std::_Exit(3);
}

Place slot_word(std::int64_t slot) { return {.region = 1, .offset = 4 * slot}; }
Place done_word(const StressOptions& options, int receiver) {
  return slot_word(options.window + receiver);
}

void fill(RankEnd& end, std::int64_t offset, std::int64_t bytes, std::int64_t number) {
  for (std::int64_t at = 0; at < bytes; at += 8) {
    end.at<std::int64_t>(0, offset + at) = number;
  }
}

// True if a message has arrived completely. Volatile: the network writes what this thread reads.
bool is_there(RankEnd& end, std::int64_t offset, std::int64_t bytes, std::int64_t number) {
  for (std::int64_t at = 0; at < bytes; at += 8) {
    const volatile std::int64_t& word = end.at<std::int64_t>(0, offset + at);
    if (word != number) return false;
  }
  return true;
}

void send_one(RankEnd& end, int receiver, std::int64_t number, Follows follows,
              const StressOptions& options) {
  const std::int64_t slot = number % options.window;
  const std::int64_t source = (receiver * options.window + slot) * options.bytes;
  const std::int64_t half = options.bytes / 2;
  fill(end, source, options.bytes, number);
  require(end.endpoint->put(receiver, {.source = {.region = 0, .offset = source},
                                       .destination = {.region = 0, .offset = slot * options.bytes},
                                       .bytes = half}));
  require(end.endpoint->put_signal(
      receiver,
      {.source = {.region = 0, .offset = source + half},
       .destination = {.region = 0, .offset = slot * options.bytes + half},
       .bytes = half},
      {.word = slot_word(slot), .value = static_cast<std::uint32_t>(number), .follows = follows}));
}

void send_all(RankEnd& end, int ranks, const StressOptions& options) {
  for (std::int64_t first = 1; first <= options.signals; first += options.group) {
    const std::int64_t last = std::min(first + options.group - 1, options.signals);
    for (int receiver = 1; receiver < ranks && last > options.window; ++receiver) {
      require(end.endpoint->wait(done_word(options, receiver),
                                 static_cast<std::uint32_t>(last - options.window), receiver));
    }
    for (std::int64_t number = first; number <= last; ++number) {
      for (int receiver = 1; receiver < ranks; ++receiver) {
        const Follows follows = number < last          ? Follows::Group
                                : receiver + 1 < ranks ? Follows::Epoch
                                                       : Follows::Nothing;
        send_one(end, receiver, number, follows, options);
      }
    }
  }
  require(end.endpoint->quiet_all());
}

std::int64_t receive_all(RankEnd& end, const StressOptions& options) {
  std::int64_t early = 0;
  for (std::int64_t number = 1; number <= options.signals; ++number) {
    const std::int64_t slot = number % options.window;
    require(end.endpoint->wait(slot_word(slot), static_cast<std::uint32_t>(number), 0));
    if (!is_there(end, slot * options.bytes, options.bytes, number)) ++early;
    if (number % (options.group / 2) != 0 && number != options.signals) continue;
    require(end.endpoint->signal(
        0, {.word = done_word(options, end.rank), .value = static_cast<std::uint32_t>(number)}));
  }
  return early;
}

}  // namespace

std::vector<std::size_t> stress_sizes(const StressOptions& options, int ranks) {
  return {static_cast<std::size_t>(ranks * options.window * options.bytes),
          static_cast<std::size_t>(4 * (options.window + ranks))};
}

StressFacts run_order_stress(RankEnd& end, int ranks, const StressOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  StressFacts own;
  if (end.rank == 0) {
    send_all(end, ranks, options);
    own.counters = end.endpoint->counters();
  } else {
    own.early = receive_all(end, options);
    own.signals = options.signals;
  }
  own.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  StressFacts all;
  for (const Blob& blob : end.gather(std::as_bytes(std::span(&own, 1)))) {
    StressFacts one;
    std::memcpy(&one, blob.data(), sizeof(one));
    all.signals += one.signals;
    all.early += one.early;
    all.seconds = std::max(all.seconds, one.seconds);
    all.counters += one.counters;
  }
  return all;
}

}  // namespace harpe::transport::test
