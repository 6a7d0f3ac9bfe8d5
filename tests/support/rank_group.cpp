#include "tests/support/rank_group.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace harpe::transport::test {
namespace {

// Makes one rank's endpoint. Returns what went wrong, if anything.
std::optional<Diag> join(RankEnd& end, const GroupOptions& options) {
  EndpointOptions endpoint = options.endpoint;
  endpoint.rank = end.rank;
  Meeting meeting = options.meeting;
  meeting.rank = end.rank;
  meeting.ranks = endpoint.ranks;
  auto rendezvous = Rendezvous::meet(meeting);
  if (!rendezvous.ok()) return rendezvous.error();
  end.rendezvous = std::move(rendezvous).value();
  std::vector<Region> regions;
  for (const std::size_t size : options.sizes) {
    auto memory = SharedMemory::make(static_cast<std::int64_t>(size));
    if (!memory.ok()) return memory.error();
    end.memory.push_back(std::move(memory).value());
    regions.push_back(end.memory.back().region());
  }
  auto provider = options.make();
  if (!provider.ok()) return provider.error();
  auto made = Endpoint::make(endpoint, std::move(provider).value(), regions, *end.rendezvous);
  if (!made.ok()) return made.error();
  end.endpoint = std::move(made).value();
  return std::nullopt;
}

}  // namespace

std::vector<Blob> RankEnd::gather(std::span<const std::byte> own) const {
  auto all = rendezvous->all_gather(own);
  if (all.ok()) return std::move(all).value();
  std::fprintf(stderr, "%s\n", render(all.error()).c_str());
  std::_Exit(3);
}

std::string new_address() {
  static std::atomic<int> count{0};
  return "unix:@harpe-transport-" + std::to_string(::getpid()) + "-" + std::to_string(++count);
}

bool run_group(const GroupOptions& options, const std::function<void(RankEnd&)>& run) {
  std::vector<RankEnd> ends(options.ranks.size());
  std::atomic<bool> all_joined{true};
  {
    std::vector<std::jthread> threads;
    for (std::size_t at = 0; at < ends.size(); ++at) {
      ends[at].rank = options.ranks[at];
      threads.emplace_back([&, at] {
        const std::optional<Diag> wrong = join(ends[at], options);
        if (!wrong) return;
        std::fprintf(stderr, "%s\n", render(*wrong).c_str());
        all_joined = false;
      });
    }
  }
  if (!all_joined) return false;
  std::vector<std::unique_ptr<Proxy>> proxies;
  std::vector<Endpoint*> endpoints;
  for (const RankEnd& end : ends) endpoints.push_back(end.endpoint.get());
  for (std::size_t at = 0; at < ends.size(); ++at) {
    if (at == 0 || !options.one_proxy) {
      proxies.push_back(
          std::make_unique<Proxy>(options.one_proxy ? endpoints : std::vector{endpoints[at]}));
    }
    ends[at].proxy = proxies.back().get();
  }
  std::vector<std::jthread> threads;
  for (RankEnd& end : ends) {
    threads.emplace_back([&] {
      run(end);
      end.meet();  // until then other ranks may still put into this one
    });
  }
  threads.clear();
  return true;
}

}  // namespace harpe::transport::test
