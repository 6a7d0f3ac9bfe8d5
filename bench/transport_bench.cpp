// Compares signal policies over a wire with delay: one sender, and test hosts with several ranks
// each. A run sends all puts of a layer, with or without their signals, until they have all
// arrived. The two kinds of run alternate, so that other load on the machine affects both.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstring>
#include <thread>

#include "tests/support/hosts.h"
#include "tests/support/rank_group.h"
#include "transport/fabric_provider.h"

namespace harpe::transport {
namespace {

using test::RankEnd;

struct Options {
  std::string provider = "tcp;ofi_rxm";
  std::string policy = "all";
  int destinations = 12;
  int puts = 8;  // to each
  std::int64_t bytes = 4096;
  int hosts = 3;  // besides the sender's
  std::int64_t delay_us = 500;
  double gigabits = 0;  // of a host's outgoing link; 0: unlimited
  int runs = 31;
  bool unordered = false;
};

struct Quartiles {
  double low = 0, median = 0, high = 0;
};

Quartiles quartiles_of(std::vector<double> values) {
  std::ranges::sort(values);
  const auto at = [&](double part) {
    return values[static_cast<std::size_t>(part * static_cast<double>(values.size() - 1) + 0.5)];
  };
  return {.low = at(0.25), .median = at(0.5), .high = at(0.75)};
}

void require(bool ok, const TransportError& error) {
  if (ok) return;
  fmt::print(stderr, "{}\n", render(to_diag(error)));
  std::_Exit(3);
}

// Milliseconds of one layer. Tiles are sent round by round, in the order in which a kernel makes
// them.
double run_layer(RankEnd& end, const Options& options, bool signals, std::uint32_t epoch) {
  const auto begin = std::chrono::steady_clock::now();
  for (int tile = 0; tile < options.puts; ++tile) {
    for (int to = 1; to <= options.destinations; ++to) {
      const Transfer transfer{.source = {.offset = (to * options.puts + tile) * options.bytes},
                              .destination = {.offset = tile * options.bytes},
                              .bytes = options.bytes};
      const bool is_last = tile + 1 == options.puts;
      const Follows follows = !is_last                    ? Follows::Group
                              : to < options.destinations ? Follows::Epoch
                                                          : Follows::Nothing;
      const auto posted =
          signals
              ? end.endpoint->put_signal(
                    to, transfer,
                    {.word = {.region = 1, .offset = 4 * tile}, .value = epoch, .follows = follows})
              : end.endpoint->put(to, transfer);
      require(posted.ok(), posted.ok() ? TransportError{} : posted.error());
    }
  }
  const auto over = end.endpoint->quiet_all();
  require(over.ok(), over.ok() ? TransportError{} : over.error());
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
      .count();
}

void measure(RankEnd& end, const Options& options, Policy policy) {
  std::vector<double> puts;
  std::vector<double> both;
  for (int warm = 0; warm < 3; ++warm) {
    (void)run_layer(end, options, false, 0);
    (void)run_layer(end, options, true, static_cast<std::uint32_t>(warm) + 1);
  }
  const Counters before = end.endpoint->counters();
  for (int run = 0; run < options.runs; ++run) {
    puts.push_back(run_layer(end, options, false, 0));
    both.push_back(run_layer(end, options, true, static_cast<std::uint32_t>(run) + 4));
  }
  const Counters after = end.endpoint->counters();
  const Quartiles of_puts = quartiles_of(puts);
  const Quartiles of_both = quartiles_of(both);
  const auto per_run = [&](std::int64_t Counters::* count) {
    return static_cast<double>(after.*count - before.*count) / options.runs;
  };
  fmt::print(
      "{:<10} {:<18} {:7.2f} {:7.2f} {:7.2f}   {:7.2f} {:7.2f} {:7.2f}   {:6.1f} %  {:6.1f} "
      "{:6.1f} {:9.2f}\n",
      print_policy(policy), print(end.endpoint->strategy().ordering), of_puts.low, of_puts.median,
      of_puts.high, of_both.low, of_both.median, of_both.high,
      100 * of_puts.median / of_both.median, per_run(&Counters::quiets),
      per_run(&Counters::nic_fences), per_run(&Counters::stalled_ns) / 1e6);
  std::fflush(stdout);
}

int run_host(int host, const Options& options, Policy policy) {
  std::vector<int> ranks;
  if (host == 0) ranks.push_back(0);
  for (int rank = 1; host != 0 && rank <= options.destinations; ++rank) {
    if ((rank - 1) % options.hosts == host - 1) ranks.push_back(rank);
  }
  const auto size = static_cast<std::size_t>((options.destinations + 1) * options.puts);
  const bool is_set_up =
      test::run_group({.ranks = ranks,
                       .endpoint = {.ranks = options.destinations + 1, .policy = policy},
                       .meeting = {.address = harpe::test::host_address(0, 29'500),
                                   .interface = harpe::test::kHostInterface,
                                   .secret = "bench",
                                   .limit = std::chrono::seconds(300)},
                       .sizes = {size * static_cast<std::size_t>(options.bytes),
                                 static_cast<std::size_t>(4 * options.puts)},
                       .make =
                           [&] {
                             return make_fabric_provider({.provider = options.provider,
                                                          .interface = harpe::test::kHostInterface,
                                                          .ask_order = !options.unordered});
                           }},
                      [&](RankEnd& end) {
                        if (end.rank == 0) measure(end, options, policy);
                      });
  return is_set_up ? 0 : 4;
}

int run_all(const Options& options) {
  fmt::print("{}: {} destinations on {} hosts x {} puts of {} bytes, {} us one way, {} runs; ms\n",
             options.provider, options.destinations, options.hosts, options.puts, options.bytes,
             options.delay_us, options.runs);
  fmt::print("{:<10} {:<18} {:>7} {:>7} {:>7}   {:>7} {:>7} {:>7}   {:>8}  {:>6} {:>6} {:>9}\n",
             "policy", "ordering", "puts q1", "median", "q3", "both q1", "median", "q3", "share",
             "drains", "fences", "stalled");
  for (const Policy policy : std::initializer_list<Policy>{
           Fence::PerPut, Fence::PerDestination, Fence::NicOrdered, Fence::Batched, Fence::OneQuiet,
           Fence::Immediate, std::nullopt}) {
    if (options.policy != "all" && options.policy != print_policy(policy)) continue;
    std::fflush(nullptr);
    const harpe::test::HostRun run =
        harpe::test::run_on_hosts({.count = options.hosts + 1,
                                   .wire = {.delay = std::chrono::microseconds(options.delay_us),
                                            .bytes_per_second = options.gigabits * 1e9 / 8},
                                   .limit = std::chrono::seconds(300)},
                                  [&](int host) { return run_host(host, options, policy); });
    if (run.skip) {
      fmt::print("skipped: {}\n", *run.skip);
      return 77;
    }
    if (*std::ranges::max_element(run.statuses) != 0) return 1;
  }
  return 0;
}

}  // namespace
}  // namespace harpe::transport

int main(int argc, char** argv) {
  harpe::transport::Options options;
  CLI::App app("signal policies side by side");
  app.add_option("--provider", options.provider);
  app.add_option("--policy", options.policy);
  app.add_option("--destinations", options.destinations);
  app.add_option("--puts", options.puts, "to each destination");
  app.add_option("--bytes", options.bytes);
  app.add_option("--hosts", options.hosts, "besides the sender's");
  app.add_option("--delay-us", options.delay_us, "one way");
  app.add_option("--gigabits", options.gigabits, "of each host's way out");
  app.add_option("--runs", options.runs);
  app.add_flag("--unordered", options.unordered, "ask the provider for no order");
  CLI11_PARSE(app, argc, argv);
  return harpe::transport::run_all(options);
}
