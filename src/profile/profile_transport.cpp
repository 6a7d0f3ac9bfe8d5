#include "profile/profile_transport.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "transport/make_provider.h"
#include "transport/proxy.h"
#include "transport/shared_memory.h"

namespace harpe {
namespace {

using transport::Blob;
using transport::Counters;
using transport::Endpoint;
using transport::Follows;
using transport::Guarantees;
using transport::Ordering;
using transport::Outcome;
using transport::Policy;
using transport::Provider;
using transport::Proxy;
using transport::Rendezvous;
using transport::SharedMemory;
using transport::Strategy;
using transport::Strength;
using transport::Transfer;
using Clock = std::chrono::steady_clock;

constexpr Fence kPolicies[] = {Fence::PerPut,  Fence::PerDestination, Fence::NicOrdered,
                               Fence::Batched, Fence::OneQuiet,       Fence::Immediate};
constexpr std::int64_t kLargest = 8 << 20;
constexpr std::int64_t kSmall = 8;   // bytes of a put whose transfer time does not matter
constexpr int kMany = 256;           // posts in a row; fewer than a ring has slots
constexpr std::int64_t kSignal = 0;  // offset of the signal for questions and answers, in region 1
constexpr std::int64_t kBurstSignal = 64;

// The failure of one measurement, or nothing.
using Did = Outcome<Ok>;

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

// This rank's side of the measurement of one policy. Rank 0 measures; the others answer.
class Bench {
 public:
  static Checked<std::unique_ptr<Bench>> make(const TransportProfileOptions& options,
                                              Rendezvous& rendezvous, Policy policy) {
    std::unique_ptr<Bench> bench(new Bench(options, rendezvous));
    for (const std::int64_t bytes : {2 * kLargest, std::int64_t{4096}}) {
      HP_TRY(SharedMemory memory, SharedMemory::make(bytes));
      bench->memory_.push_back(std::move(memory));
    }
    HP_TRY(std::unique_ptr<Provider> provider,
           transport::make_provider(options.provider, options.interface));
    const std::vector<transport::Region> regions = {bench->memory_[0].region(),
                                                    bench->memory_[1].region()};
    HP_TRY(bench->endpoint_,
           Endpoint::make(
               {.rank = options.meeting.rank, .ranks = options.meeting.ranks, .policy = policy},
               std::move(provider), regions, rendezvous));
    bench->proxy_ = std::make_unique<Proxy>(std::vector<Endpoint*>{bench->endpoint_.get()});
    return bench;
  }

  [[nodiscard]] const Endpoint& endpoint() const { return *endpoint_; }
  [[nodiscard]] bool measures() const { return rank_ == 0; }

  // The median time of a body that only rank 0 runs. All ranks call it.
  Checked<double> time(const std::function<Did()>& body) {
    HP_TRY(const int rounds, agree_on_rounds(measures(), body));
    return median_of(measures() ? rounds : 0, body);
  }

  // The times of two bodies that alternate, so that other load on the machines affects both.
  Checked<std::pair<double, double>> time_in_turns(const std::function<Did()>& first,
                                                   const std::function<Did()>& second) {
    std::vector<double> of_first, of_second;
    const auto in_turns = [&]() -> Did {
      const auto begin = Clock::now();
      HP_REQUIRE_OK(first());
      const auto between = Clock::now();
      HP_REQUIRE_OK(second());
      of_first.push_back(std::chrono::duration<double>(between - begin).count());
      of_second.push_back(std::chrono::duration<double>(Clock::now() - between).count());
      return Ok{};
    };
    HP_REQUIRE_OK(time(in_turns));
    if (of_first.empty()) return std::pair(0.0, 0.0);
    return std::pair(median(std::move(of_first)), median(std::move(of_second)));
  }

  // Half of the time of a question and its answer, where rank 1 answers.
  Checked<double> time_one_way(const std::function<Did(int to, std::uint32_t number)>& say) {
    const auto ask = [&]() -> Did {
      const std::uint32_t number = ++number_;
      HP_REQUIRE_OK(say(1, number));
      return endpoint_->wait({.region = 1, .offset = kSignal}, number, 1);
    };
    const auto answer = [&]() -> Did {
      const std::uint32_t number = ++number_;
      HP_REQUIRE_OK(endpoint_->wait({.region = 1, .offset = kSignal}, number, 0));
      return say(0, number);
    };
    const std::function<Did()> body = measures() ? std::function<Did()>(ask) : answer;
    const bool takes_part = rank_ <= 1;
    HP_TRY(const int rounds, agree_on_rounds(takes_part, body));
    HP_TRY(const double there_and_back, median_of(takes_part ? rounds : 0, body));
    return there_and_back / 2;
  }

  Did put(int to, std::int64_t bytes) {
    HP_REQUIRE_OK(endpoint_->put(to, transfer_of(bytes)));
    return Ok{};
  }
  Did signal(int to, std::uint32_t value, std::int64_t word = kSignal) {
    HP_REQUIRE_OK(endpoint_->signal(to, {.word = {.region = 1, .offset = word}, .value = value}));
    return Ok{};
  }
  Did put_signal(int to, std::int64_t bytes, std::uint32_t value, Follows follows,
                 std::int64_t word = kSignal) {
    // A signal covers only its own put, so immediate data can carry it without a quiet.
    const bool is_weak = endpoint_->strategy().ordering == Ordering::Immediate;
    HP_REQUIRE_OK(endpoint_->put_signal(to, transfer_of(bytes),
                                        {.word = {.region = 1, .offset = word},
                                         .value = value,
                                         .strength = is_weak ? Strength::Weak : Strength::Strong,
                                         .follows = follows}));
    return Ok{};
  }
  Did quiet() { return endpoint_->quiet_all(); }

  Did burst(bool with_signals) {
    const std::uint32_t number = ++burst_;
    for (int at = 0; at < kBurstPuts; ++at) {
      for (int to = 1; to < ranks_; ++to) {
        const bool is_last = at + 1 == kBurstPuts && to + 1 == ranks_;
        const Follows follows = is_last                       ? Follows::Nothing
                                : (at + 1) % kBurstGroup == 0 ? Follows::Epoch
                                                              : Follows::Group;
        const std::int64_t word = kBurstSignal + 4 * (at % kBurstGroup);
        HP_REQUIRE_OK(with_signals ? put_signal(to, kBurstBytes, number, follows, word)
                                   : put(to, kBurstBytes));
      }
    }
    return quiet();
  }

  // A barrier of all ranks.
  Checked<Ok> meet() {
    HP_REQUIRE_OK(rendezvous_.all_gather({}));
    return Ok{};
  }

 private:
  Bench(const TransportProfileOptions& options, Rendezvous& rendezvous)
      : rendezvous_(rendezvous),
        rank_(options.meeting.rank),
        ranks_(options.meeting.ranks),
        budget_(options.quick ? 0.05 : 0.4),
        least_(options.quick ? 3 : 7) {}

  static Transfer transfer_of(std::int64_t bytes) {
    return {.source = {.region = 0, .offset = 0},
            .destination = {.region = 0, .offset = kLargest},
            .bytes = bytes};
  }

  // As many rounds as the budget allows, by three initial runs. Rank 0 decides.
  Checked<int> agree_on_rounds(bool takes_part, const std::function<Did()>& body) {
    constexpr int kFirst = 3;
    constexpr double kMostRounds = 2000;
    HP_TRY(const double once, median_of(takes_part ? kFirst : 0, body));
    int rounds = static_cast<int>(std::clamp(once > 0 ? budget_ / once : kMostRounds,
                                             static_cast<double>(least_), kMostRounds));
    HP_TRY(const std::vector<Blob> said,
           rendezvous_.all_gather(std::as_bytes(std::span(&rounds, 1))));
    if (said.front().size() == sizeof(rounds)) {
      std::memcpy(&rounds, said.front().data(), sizeof(rounds));
    }
    return rounds;
  }

  Checked<double> median_of(int rounds, const std::function<Did()>& body) {
    std::vector<double> times = {};
    for (int round = 0; round < rounds; ++round) {
      const auto begin = Clock::now();
      if (const Did did = body(); !did.ok()) return to_diag(did.error());
      times.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
    }
    return times.empty() ? 0 : median(std::move(times));
  }

  Rendezvous& rendezvous_;
  int rank_;
  int ranks_;
  double budget_;  // seconds per figure
  int least_;      // least rounds per figure
  std::uint32_t number_ = 0;
  std::uint32_t burst_ = 0;
  std::vector<SharedMemory> memory_;
  std::unique_ptr<Endpoint> endpoint_;
  std::unique_ptr<Proxy> proxy_;
};

// The time of one of many in a row: the difference between twice as many and that many.
Checked<double> time_of_each(Bench& bench, const std::function<Did()>& one) {
  const auto many = [&](int count) {
    return bench.time([&bench, &one, count]() -> Did {
      for (int i = 0; i < count; ++i) {
        if (Did did = one(); !did.ok()) return did;
      }
      return bench.quiet();
    });
  };
  HP_TRY(const double some, many(kMany));
  HP_TRY(const double twice, many(2 * kMany));
  return std::max(0.0, twice - some) / kMany;
}

Checked<double> time_of_puts(Bench& bench, int count, std::int64_t bytes) {
  return bench.time([&bench, count, bytes]() -> Did {
    for (int i = 0; i < count; ++i) {
      if (Did did = bench.put(1, bytes); !did.ok()) return did;
    }
    return bench.quiet();
  });
}

Checked<Ok> measure_parts(TransportFigures& figures, const TransportProfileOptions& options,
                          Rendezvous& rendezvous) {
  HP_TRY(const std::unique_ptr<Bench> bench, Bench::make(options, rendezvous, std::nullopt));
  figures.given = bench->endpoint().provider().given();
  figures.provider = bench->endpoint().provider().name();
  HP_TRY(figures.flag, bench->time_one_way([&](int to, std::uint32_t number) {
    return bench->signal(to, number);
  }));
  HP_TRY(figures.one_way, bench->time_one_way([&](int to, std::uint32_t number) {
    return bench->put_signal(to, kBurstBytes, number, Follows::Nothing);
  }));
  HP_TRY(figures.post, time_of_each(*bench, [&] { return bench->put(1, kSmall); }));
  std::uint32_t number = 0;
  HP_TRY(figures.signal,
         time_of_each(*bench, [&] { return bench->signal(1, ++number, kBurstSignal); }));
  HP_TRY(figures.quiet, time_of_puts(*bench, 1, kBurstBytes));
  HP_TRY(figures.quiet_of_many, time_of_puts(*bench, kOutstanding, kBurstBytes));
  const std::int64_t largest = options.quick ? kLargest / 8 : kLargest;
  for (std::int64_t bytes = 1 << 14; bytes <= largest; bytes *= 8) {
    HP_TRY(const double seconds, time_of_puts(*bench, 1, bytes));
    figures.sizes.emplace_back(static_cast<double>(bytes), seconds);
  }
  return bench->meet();
}

Checked<PolicyFigures> measure_policy(Fence policy, const Guarantees& given,
                                      const TransportProfileOptions& options,
                                      Rendezvous& rendezvous) {
  PolicyFigures figures{.policy = policy, .refusal = {}};
  const Checked<Strategy> strategy = transport::choose(policy, given, true, options.provider);
  if (!strategy.ok()) {
    figures.refusal = strategy.error();
    return figures;
  }
  figures.ordering = strategy->ordering;
  HP_TRY(const std::unique_ptr<Bench> bench, Bench::make(options, rendezvous, policy));
  HP_TRY(figures.one_way, bench->time_one_way([&](int to, std::uint32_t number) {
    return bench->put_signal(to, kBurstBytes, number, Follows::Nothing);
  }));
  const Counters before = bench->endpoint().counters();
  std::int64_t bursts = 0;
  HP_TRY(const auto times, bench->time_in_turns([&] { return bench->burst(false); },
                                                [&] {
                                                  ++bursts;
                                                  return bench->burst(true);
                                                }));
  figures.puts = times.first;
  figures.both = times.second;
  const Counters after = bench->endpoint().counters();
  if (bursts > 0) {
    figures.quiets =
        static_cast<double>(after.quiets - before.quiets) / static_cast<double>(bursts);
  }
  HP_REQUIRE_OK(bench->meet());
  return figures;
}

}  // namespace

Checked<TransportFigures> measure_transport(const TransportProfileOptions& options) {
  const auto say = [&](const std::string& stage) {
    if (options.progress) options.progress(stage);
  };
  say("waiting for the others");
  HP_TRY(const std::unique_ptr<Rendezvous> rendezvous, Rendezvous::meet(options.meeting));
  TransportFigures figures;
  figures.ranks = options.meeting.ranks;
  say("measuring posts, words and drains");
  HP_REQUIRE_OK(measure_parts(figures, options, *rendezvous));
  for (const Fence policy : kPolicies) {
    say("measuring policy " + std::string(print(policy)));
    HP_TRY(PolicyFigures of_policy, measure_policy(policy, figures.given, options, *rendezvous));
    figures.policies.push_back(std::move(of_policy));
  }
  return figures;
}

}  // namespace harpe
