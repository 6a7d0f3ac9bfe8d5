#include "cli/processes.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <random>
#include <thread>
#include <utility>

#include "support/limits.h"

namespace harpe::cli {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kLook{20};        // how often ended processes are polled
constexpr milliseconds kSettled{1500};   // grace of the others once rank 0 has reported
constexpr milliseconds kLastWords{500};  // between SIGTERM and SIGKILL

// The address at which the processes of one launch meet: a name on this machine that needs no file.
std::string meeting_place() {
  std::random_device device;
  return "unix:@harpe-" + std::to_string(::getpid()) + "-" + std::to_string(device());
}

// 128 random bits, which only these processes know.
std::string new_secret() {
  std::random_device device;
  std::string secret;
  for (int i = 0; i < 4; ++i) secret += std::to_string(device()) + "-";
  return secret;
}

// The address of a launch, and its secret.
struct MeetingPlace {
  std::string address = meeting_place();
  std::string secret = new_secret();
};

// In the child process: executes this program again, or exits.
[[noreturn]] void become(const LaunchRequest& request, int rank, const MeetingPlace& place,
                         pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // the parent has exited already
  const int each = request.ranks / request.hosts;
  const std::pair<const char*, std::string> variables[] = {
      {"RANK", std::to_string(rank)},
      {"LOCAL_RANK", std::to_string(rank % each)},
      {"WORLD_SIZE", std::to_string(request.ranks)},
      {"LOCAL_WORLD_SIZE", std::to_string(each)},
      {"HARPE_LAUNCH", "1"},
      {"HARPE_ADDRESS", place.address},
      {"HARPE_SECRET", place.secret}};
  constexpr int kReplace = 1;
  for (const auto& [name, value] : variables) ::setenv(name, value.c_str(), kReplace);
  std::vector<std::string> words = {"harpe"};
  words.insert(words.end(), request.arguments.begin(), request.arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  ::execv("/proc/self/exe", pointers.data());
  ::_exit(127);
}

// The running processes; the destructor kills them.
class Crew {
 public:
  Crew() = default;
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;
  ~Crew() {
    send(SIGKILL);
    for (const auto& [rank, id] : left_) ::waitpid(id, nullptr, 0);
  }

  Checked<Ok> start(const LaunchRequest& request) {
    const MeetingPlace place;
    const pid_t parent = ::getpid();
    for (int rank = 0; rank < request.ranks; ++rank) {
      const pid_t id = ::fork();
      if (id == 0) become(request, rank, place, parent);
      if (id < 0) return no_more(Limited::Processes, errno);
      left_.emplace_back(rank, id);
    }
    return Ok{};
  }

  [[nodiscard]] bool is_empty() const { return left_.empty(); }

  void send(int signal) const {
    for (const auto& [rank, id] : left_) ::kill(id, signal);
  }

  // The processes that have ended since the last call.
  std::vector<ProcessEnd> take_ended() {
    std::vector<ProcessEnd> ended;
    std::erase_if(left_, [&](const std::pair<int, pid_t>& process) {
      int status = 0;
      if (::waitpid(process.second, &status, WNOHANG) != process.second) return false;
      ProcessEnd end{.rank = process.first, .status = 0, .signal = std::nullopt};
      if (WIFSIGNALED(status)) {
        end.signal = WTERMSIG(status);
        end.status = 128 + *end.signal;
      } else {
        end.status = WEXITSTATUS(status);
      }
      ended.push_back(end);
      return true;
    });
    return ended;
  }

 private:
  std::vector<std::pair<int, pid_t>> left_;  // rank and process
};

}  // namespace

Checked<std::vector<ProcessEnd>> start_processes(const LaunchRequest& request) {
  Crew crew;
  HP_REQUIRE_OK(crew.start(request));
  std::vector<ProcessEnd> ends;
  std::optional<Clock::time_point> stop;  // set once a process has failed
  std::optional<Clock::time_point> kill;  // set once the others got SIGTERM
  while (!crew.is_empty()) {
    std::vector<ProcessEnd> ended = crew.take_ended();
    // Among processes that ended together, a killed one comes first, because others react to it.
    std::ranges::stable_sort(ended, {}, [](const ProcessEnd& end) { return !end.signal; });
    for (ProcessEnd& end : ended) {
      end.was_stopped = kill.has_value();
      if (end.status != 0 && !stop) stop = Clock::now() + request.grace;
      // Rank 0 exits by itself once it has received all reports.
      if (stop && end.rank == 0 && !end.signal) stop = std::min(*stop, Clock::now() + kSettled);
      ends.push_back(end);
    }
    if (stop && !kill && Clock::now() >= *stop) {
      crew.send(SIGTERM);
      kill = Clock::now() + kLastWords;
    } else if (kill && Clock::now() >= *kill) {
      crew.send(SIGKILL);
    }
    if (!crew.is_empty()) std::this_thread::sleep_for(kLook);
  }
  return ends;
}

}  // namespace harpe::cli
