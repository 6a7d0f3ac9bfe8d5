#include "tests/support/rank_threads.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>

namespace harpe::transport::test {

void RankEnd::meet() const {
  const auto all = rendezvous->all_gather({});
  ASSERT_TRUE(all.ok()) << render(all.error());
}

std::string new_address() {
  static std::atomic<int> count{0};
  return "unix:@harpe-transport-" + std::to_string(::getpid()) + "-" + std::to_string(++count);
}

namespace {

void run_rank(RankEnd& end, EndpointOptions options, const std::string& address,
              const std::vector<std::size_t>& sizes, const MakeProvider& make) {
  options.rank = end.rank;
  auto rendezvous =
      Rendezvous::meet({.address = address, .rank = end.rank, .ranks = options.ranks});
  ASSERT_TRUE(rendezvous.ok()) << render(rendezvous.error());
  end.rendezvous = std::move(rendezvous).value();
  std::vector<Region> regions;
  for (const std::size_t size : sizes) {
    end.memory.emplace_back(size, std::byte{0});
    regions.push_back({.bytes = end.memory.back()});
  }
  auto provider = make();
  ASSERT_TRUE(provider.ok()) << render(provider.error());
  auto endpoint = Endpoint::make(options, std::move(provider).value(), regions, *end.rendezvous);
  ASSERT_TRUE(endpoint.ok()) << render(endpoint.error());
  end.endpoint = std::move(endpoint).value();
  end.proxy = std::make_unique<Proxy>(std::vector{end.endpoint.get()});
}

}  // namespace

void in_every_rank(const EndpointOptions& options, const std::vector<std::size_t>& sizes,
                   const MakeProvider& make, const std::function<void(RankEnd&)>& run) {
  const std::string address = new_address();
  std::vector<RankEnd> ends(static_cast<std::size_t>(options.ranks));
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < options.ranks; ++rank) {
    threads.emplace_back([&, rank] {
      RankEnd& end = ends[static_cast<std::size_t>(rank)];
      end.rank = rank;
      run_rank(end, options, address, sizes, make);
      if (!end.proxy) return;
      run(end);
      end.meet();
      end.proxy.reset();
      end.endpoint.reset();
    });
  }
}

}  // namespace harpe::transport::test
