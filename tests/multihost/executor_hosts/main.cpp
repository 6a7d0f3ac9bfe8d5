// `harpe run` with one process per test host: right over a network with a delay, and right when one
// host's link becomes a hundred times slower. When a cable is pulled, all end within the limit of a
// wait plus 2 s, and the report names the lost rank. Status 77: no test hosts here.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "tests/support/hosts.h"

namespace harpe::test {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr int kHosts = 4;
constexpr int kVictim = 2;
constexpr int kWait = 1'500;            // milliseconds
constexpr int kGrace = 2'000;           // beyond the wait
constexpr milliseconds kBefore{2'500};  // until the network changes

struct Trial {
  const char* name = "";
  std::vector<std::string> words;
  std::function<void(Wire&)> meddle;
  bool is_cut = false;
};

std::string said_by(const std::string& folder, int host) {
  std::ifstream stream(folder + "/host" + std::to_string(host));
  return {std::istreambuf_iterator<char>(stream), {}};
}

// Replaces this process by harpe, the only process of its host.
int run_host(const std::string& harpe, const Trial& trial, const std::string& folder, int host) {
  const std::string said = folder + "/host" + std::to_string(host);
  if (std::freopen(said.c_str(), "w", stdout) == nullptr) return 4;
  ::dup2(STDOUT_FILENO, STDERR_FILENO);
  const std::pair<const char*, std::string> variables[] = {
      {"RANK", std::to_string(host)},
      {"WORLD_SIZE", std::to_string(kHosts)},
      {"LOCAL_RANK", "0"},
      {"LOCAL_WORLD_SIZE", "1"},
      {"HARPE_ADDRESS", host_address(0, 29'650)},
      {"HARPE_INTERFACE", kHostInterface},
      {"HARPE_SECRET", "of these hosts"}};
  for (const auto& [name, value] : variables) ::setenv(name, value.c_str(), 1);
  std::vector<std::string> words = {"harpe", "run"};
  words.insert(words.end(), trial.words.begin(), trial.words.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  ::execv(harpe.c_str(), pointers.data());
  return 5;
}

bool expect(bool condition, const Trial& trial, const std::string& folder) {
  if (condition) return true;
  std::printf("%s: not as it should be\n", trial.name);
  for (int host = 0; host < kHosts; ++host) {
    std::printf("host %d said:\n%s\n", host, said_by(folder, host).c_str());
  }
  return false;
}

bool judge(const Trial& trial, const HostRun& run, milliseconds took, const std::string& folder) {
  bool is_right = true;
  for (int host = 0; host < kHosts; ++host) {
    const int status = run.statuses[static_cast<std::size_t>(host)];
    if (trial.is_cut) {
      is_right = is_right && (status == 3 || (host == kVictim && status == 1));
    } else {
      is_right = is_right && status == 0;
    }
  }
  if (trial.is_cut) {
    const std::string lost = "rank " + std::to_string(kVictim) + " answers no more: ";
    is_right = is_right && said_by(folder, 0).find(lost) != std::string::npos;
    is_right = is_right && took < kBefore + milliseconds(kWait + kGrace);
  }
  std::printf("%s: %lld ms\n", trial.name, static_cast<long long>(took.count()));
  std::fflush(stdout);  // else each host's forked copy prints it again
  return expect(is_right, trial, folder);
}

int run_trials(const std::string& harpe) {
  const std::vector<std::string> ring = {
      "attention",   "batch=1",   "seq=256", "heads=4", "head_dim=16",
      "causal=true", "dtype=f32", "--mesh",  "cp=4",    "--schedule",
      "ring",        "--seed",    "3",       "--wait",  std::to_string(kWait)};
  const auto with = [&](std::initializer_list<const char*> more) {
    std::vector<std::string> words = ring;
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  const auto cut = [](Wire& wire) {
    std::this_thread::sleep_for(kBefore);
    wire.cut(kVictim);
  };
  const Trial trials[] = {{.name = "right", .words = with({"--iters", "5", "--check"})},
                          {.name = "a link a hundred times as slow",
                           .words = with({"--iters", "40", "--check"}),
                           .meddle = [](Wire& wire) { wire.slow(kVictim, 100); }},
                          {.name = "a host that is cut off",
                           .words = with({"--iters", "100000"}),
                           .meddle = cut,
                           .is_cut = true}};
  char pattern[] = "/tmp/harpe-hosts-XXXXXX";
  const std::string folder = ::mkdtemp(pattern);
  bool is_right = true;
  for (const Trial& trial : trials) {
    const auto start = Clock::now();
    const HostRun run = run_on_hosts(
        {.count = kHosts,
         .wire = {.delay = std::chrono::microseconds(100)},
         .limit = std::chrono::seconds(60)},
        [&](int host) { return run_host(harpe, trial, folder, host); }, trial.meddle);
    if (run.skip) {
      std::printf("skipped: %s\n", run.skip->c_str());
      return 77;
    }
    const auto took = std::chrono::duration_cast<milliseconds>(Clock::now() - start);
    is_right = judge(trial, run, took, folder) && is_right;
  }
  return is_right ? 0 : 1;
}

}  // namespace
}  // namespace harpe::test

int main(int count, char** arguments) {
  if (count != 2) {
    std::printf("executor_hosts HARPE\n");
    return 2;
  }
  return harpe::test::run_trials(arguments[1]);
}
