// Checks that no signal overtakes its data, between processes of this machine or between test
// hosts. Prints a line per policy. Status 0: no signal did (with --planted: every run was caught),
// 77: no test hosts here.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>

#include "tests/support/hasty_provider.h"
#include "tests/support/hosts.h"
#include "tests/support/order_stress.h"
#include "transport/fabric_provider.h"
#include "transport/shared_provider.h"

namespace harpe::transport::test {
namespace {

constexpr int kSkipped = 77;

struct Options {
  std::string provider = "shared";
  std::string policy = "all";
  int receivers = 1;
  int hosts = 0;  // 0: processes of this machine
  std::int64_t delay_us = 0;
  bool planted = false;
  bool unordered = false;
  std::string interface;
  StressOptions stress;
};

Checked<std::unique_ptr<Provider>> make(const Options& options) {
  std::unique_ptr<Provider> provider;
  if (options.provider == "shared") {
    provider = make_shared_provider();
  } else {
    HP_TRY(provider, make_fabric_provider({.provider = options.provider,
                                           .interface = options.interface,
                                           .ask_order = !options.unordered}));
  }
  if (!options.planted) return provider;
  return std::unique_ptr<Provider>(std::make_unique<HastyProvider>(
      std::move(provider), std::chrono::microseconds(3'000 + 2 * options.delay_us)));
}

void say(const Options& options, Policy policy, const StressFacts& facts) {
  const Counters& c = facts.counters;
  fmt::print(
      "{:<12} {:<10} {:>9} signals {:>7} early {:>8.2f} s   puts {} signals {} nic fences {} "
      "drains {} stalled {:.1f} ms\n",
      options.provider, print_policy(policy), facts.signals, facts.early, facts.seconds, c.puts,
      c.signals, c.nic_fences, c.quiets, static_cast<double>(c.stalled_ns) / 1e6);
  std::fflush(stdout);
}

// Runs the ranks of one process; rank 0 prints the result.
int run_ranks(const Options& options, Policy policy, const Meeting& meeting,
              const std::vector<int>& ranks) {
  const int count = options.receivers + 1;
  const GroupOptions group{
      .ranks = ranks,
      .endpoint = {.ranks = count, .policy = policy, .limit = std::chrono::seconds(20)},
      .meeting = meeting,
      .sizes = stress_sizes(options.stress, count),
      .make = [&] { return make(options); }};
  int status = 0;
  const bool is_set_up = run_group(group, [&](RankEnd& end) {
    const StressFacts facts = run_order_stress(end, count, options.stress);
    if (end.rank != 0) return;
    say(options, policy, facts);
    const bool is_good = options.planted ? facts.early > 0 : facts.early == 0;
    if (!is_good || facts.signals != options.receivers * options.stress.signals) status = 1;
  });
  return is_set_up ? status : 4;
}

int run_processes(const Options& options, Policy policy) {
  const Meeting meeting{.address = new_address(), .secret = "order"};
  std::vector<pid_t> processes;
  for (int rank = 0; rank <= options.receivers; ++rank) {
    const pid_t process = ::fork();
    if (process == 0) {
      const int status = run_ranks(options, policy, meeting, {rank});
      std::fflush(nullptr);
      std::_Exit(status);
    }
    processes.push_back(process);
  }
  int worst = 0;
  for (std::size_t left = processes.size(); left > 0; --left) {
    int status = 0;
    const pid_t ended = ::waitpid(-1, &status, 0);
    const int result = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
    worst = std::max(worst, result);
    // If a rank fails, the others are ended, since they would wait for it.
    for (const pid_t process : processes) {
      if (result > 1 && process != ended) ::kill(process, SIGTERM);
    }
  }
  return worst;
}

// Rank 0 alone on host 0, the receivers on the other hosts in turn.
int run_hosts(const Options& options, Policy policy) {
  const auto main = [&](int host) {
    std::vector<int> ranks;
    if (host == 0) ranks.push_back(0);
    for (int rank = 1; host != 0 && rank <= options.receivers; ++rank) {
      if ((rank - 1) % (options.hosts - 1) == host - 1) ranks.push_back(rank);
    }
    const Meeting meeting{.address = harpe::test::host_address(0, 29'400),
                          .interface = harpe::test::kHostInterface,
                          .secret = "order"};
    return run_ranks(options, policy, meeting, ranks);
  };
  const harpe::test::HostRun run =
      harpe::test::run_on_hosts({.count = options.hosts,
                                 .wire = {.delay = std::chrono::microseconds(options.delay_us)},
                                 .limit = std::chrono::seconds(600)},
                                main);
  if (run.skip) {
    fmt::print("skipped: {}\n", *run.skip);
    return kSkipped;
  }
  return *std::ranges::max_element(run.statuses);
}

int run_all(const Options& options) {
  Options here = options;
  if (options.hosts > 0) here.interface = "";  // the parent is on none of the test hosts
  const auto provider = make(here);
  if (!provider.ok()) {
    fmt::print("skipped: {}\n", render(provider.error()));
    return kSkipped;
  }
  const Guarantees given = (*provider)->given();
  fmt::print("{}: {}\n", options.provider, describe(given));
  int worst = 0;
  for (const Policy policy : std::initializer_list<Policy>{
           Fence::PerPut, Fence::PerDestination, Fence::NicOrdered, Fence::Batched, Fence::OneQuiet,
           Fence::Immediate, std::nullopt}) {
    if (options.policy != "all" && options.policy != print_policy(policy)) continue;
    if (!choose(policy, given, true, options.provider).ok()) {
      fmt::print("{:<12} {:<10} not given by this provider\n", options.provider,
                 print_policy(policy));
      continue;
    }
    std::fflush(nullptr);
    const int status =
        options.hosts > 0 ? run_hosts(options, policy) : run_processes(options, policy);
    if (status == kSkipped) return status;
    worst = std::max(worst, status);
  }
  return worst;
}

}  // namespace
}  // namespace harpe::transport::test

int main(int argc, char** argv) {
  harpe::transport::test::Options options;
  CLI::App app("order of puts and signals");
  app.add_option("--provider", options.provider,
                 "shared, or one of libfabric's; `tcp` is tcp;ofi_rxm");
  app.add_option("--policy", options.policy);
  app.add_option("--receivers", options.receivers);
  app.add_option("--signals", options.stress.signals, "to each receiver");
  app.add_option("--bytes", options.stress.bytes);
  app.add_option("--window", options.stress.window, "messages under way to a receiver");
  app.add_option("--hosts", options.hosts);
  app.add_option("--delay-us", options.delay_us, "one way");
  app.add_option("--interface", options.interface);
  app.add_flag("--planted", options.planted, "data is sent after its signal");
  app.add_flag("--unordered", options.unordered, "ask the provider for no order");
  CLI11_PARSE(app, argc, argv);
  if (options.provider == "tcp") options.provider = "tcp;ofi_rxm";
  if (options.hosts > 0) options.interface = harpe::test::kHostInterface;
  return harpe::transport::test::run_all(options);
}
