#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/property/launches/described.h"
#include "tests/property/launches/launch_facts.h"

// Faults against the rules of signals that travel in data.
namespace harpe::test {
namespace {

using launch::Kernel;
using launch::Launch;
using launch::LaunchPlan;
using launch::Panel;
using launch::SignalId;

Described in_data(Described described) {
  carry_in_data(described.launches);
  return described;
}

// Rank 0 stores its sum at rank 1 in launch 1 and raises signal 3, which launch 4 waits for. Rank 1
// stores in launch 4 and raises signal 1.
Described in_words() {
  return describe("gemm_ar", {"m=8", "n=8192", "k=8192"}, "tp=2", "one_shot");
}
Described one_shot() { return in_data(in_words()); }

// Likewise with different rows per rank. Entry and Exit are kernels, so more kernels may follow.
Described scattered_rows() {
  Described d = describe("gemm_rs", {"m=1024", "n=512", "k=1024"}, "tp=2", "push");
  for (Launch& launch : d.launches.launches) launch.bounds_epoch = false;
  return d;
}

constexpr std::int32_t kSignal = 3;

Kernel& sender(LaunchPlan& m) { return m.launches[1].kernels[0]; }
Kernel& reader(LaunchPlan& m) { return m.launches[4].kernels[0]; }
std::vector<launch::Addend>& addends(LaunchPlan& m) { return reader(m).panels[2].addends; }

struct Fault {
  std::string name;
  std::function<void(LaunchPlan&)> plant;
  std::string problem;  // of signal 3
};

void expect_found(const std::vector<Fault>& faults) {
  const Described base = one_shot();
  for (const Fault& fault : faults) {
    Described d = base;
    fault.plant(d.launches);
    EXPECT_EQ(finding(d), "error[V730]: signal 3 of rank 1 cannot be in data: " + fault.problem +
                              "; remove `in data` from the signal, so that it has a cell in the "
                              "page of its rank")
        << fault.name;
  }
}

TEST(InDataFaults, start_from_what_verifies) {
  EXPECT_TRUE(one_shot().launches.signals[kSignal].is_in_data);
  EXPECT_EQ(finding(one_shot()), "verified");
  EXPECT_EQ(finding(in_data(describe("gemm_ar", {"m=8"}, "tp=4", "one_shot"))), "verified");
  EXPECT_EQ(finding(in_data(describe("gemm_ar_norm", {"m=8"}, "tp=3", "one_shot"))), "verified");
  EXPECT_EQ(finding(in_data(describe("decode", {}, "cp=2", "bulk"))), "verified");
  EXPECT_EQ(finding(in_data(scattered_rows())), "verified");
}

TEST(InDataFaults, signals_that_are_no_flags) {
  expect_found({
      {"two arrivals", [](LaunchPlan& m) { m.signals[kSignal].arrivals = 2; },
       "it is no flag of a sync"},
      {"a credit", [](LaunchPlan& m) { m.signals[kSignal].kind = launch::SignalKind::Credit; },
       "it is no flag of a sync"},
      {"posted", [](LaunchPlan& m) { m.signals[kSignal].is_posted = true; }, "a proxy raises it"},
      {"a counter", [](LaunchPlan& m) { sender(m).fused_stores[0].adds = 1; },
       "launch 1 adds to it as to a counter"},
  });
}

// No other plan writes to these elements. The next execution may write once the rank signals that
// it has begun that execution.
TEST(InDataFaults, plans_that_take_turns) {
  Described d =
      describe("gemm_ar", {"m=8", "n=8192", "k=8192"}, "tp=2", "one_shot", {.takes_turns = true});
  EXPECT_TRUE(std::ranges::any_of(d.launches.signals, &launch::Signal::is_in_data));
  EXPECT_EQ(finding(d), "verified");
  for (Launch& launch : d.launches.launches) {
    launch.bounds_epoch = false;
    if (!launch.begins_epoch) launch.awaits.clear();
  }
  EXPECT_EQ(finding(d),
            "error[V402]: panel 0 of launch 1 in the next execution overwrites `c` in "
            "`mm.c.in0.from1.0` of rank 1, and nothing orders it after panel 2 of launch 4, which "
            "reads it");
}

TEST(InDataFaults, what_raises_them) {
  const auto silence = [](LaunchPlan& m) {
    sender(m).fused_stores.clear();
    for (Panel& panel : sender(m).panels) panel.fused_store = {};
  };
  expect_found({
      {"nothing", silence, "no fused store raises it"},
      {"the launch",
       [=](LaunchPlan& m) {
         silence(m);
         m.launches[1].raises.push_back({.signal = SignalId(kSignal)});
       },
       "launch 1 raises it, and not one of its fused stores"},
      {"a fused copy",
       [](LaunchPlan& m) {
         const launch::Place place = sender(m).arrivals[0].reads[0];
         sender(m).fused_copies.push_back(
             {.from = place, .to = place, .raises = SignalId(kSignal)});
         sender(m).copy_blocks = 1;
       },
       "launch 1 raises it by a fused copy"},
      {"two fused stores",
       [](LaunchPlan& m) {
         sender(m).fused_stores.push_back({.signal = SignalId(kSignal)});
         sender(m).panels[1].fused_store = 1;
       },
       "launch 1 raises it once more"},
      {"panels that add", [](LaunchPlan& m) { sender(m).panels[0].adds = true; },
       "launch 1 adds its panels to what is there"},
  });
}

TEST(InDataFaults, what_awaits_them) {
  expect_found({
      {"nothing", [](LaunchPlan& m) { addends(m)[0].when = {}; }, "no addend waits for it"},
      {"the launch", [](LaunchPlan& m) { m.launches[4].awaits.emplace_back(kSignal); },
       "launch 4 awaits it before its first kernel"},
      {"a collective", [](LaunchPlan& m) { m.launches[4].all_pulled = SignalId(kSignal); },
       "launch 4 awaits it for a collective"},
      {"an arrival", [](LaunchPlan& m) { reader(m).arrivals[0].when = SignalId(kSignal); },
       "launch 4 awaits it for an arrival"},
      {"two kernels",
       [](LaunchPlan& m) {
         Kernel second = reader(m);
         second.fused_stores.clear();
         for (Panel& panel : second.panels) panel.fused_store = {};
         m.launches[4].kernels.push_back(std::move(second));
       },
       "launch 4 awaits it, and so does another kernel"},
  });
}

TEST(InDataFaults, elements_that_are_not_one_store_s_and_one_read_s) {
  expect_found({
      {"an addend that reads another place",
       [](LaunchPlan& m) { std::swap(addends(m)[0].when, addends(m)[1].when); },
       "panel 2 of launch 4 reads `c` in `mm.c.in0.from0.0` of rank 1, which its fused store does "
       "not store"},
      {"an addend that reads a half",
       [](LaunchPlan& m) { addends(m)[0].reads[0].span[1].end /= 2; },
       "panel 0 of launch 1 stores `c` [N.piece=1] in `mm.c.in0.from1.0` of rank 1, and no addend "
       "that waits reads it"},
      {"an addend twice", [](LaunchPlan& m) { addends(m).push_back(addends(m)[0]); },
       "panel 2 of launch 4 reads `c` in `mm.c.in0.from1.0` of rank 1 once more"},
      {"an addend more that does not wait",
       [](LaunchPlan& m) { addends(m).push_back({.reads = addends(m)[0].reads, .when = {}}); },
       "panel 2 of launch 4 reads `c` in `mm.c.in0.from1.0` of rank 1 too"},
      {"another panel's store",
       [](LaunchPlan& m) { sender(m).panels[1].stores = sender(m).panels[0].stores; },
       "panel 1 of launch 1 stores `c` in `mm.c.in0.from1.0` of rank 1 too"},
      {"the same panel twice",
       [](LaunchPlan& m) { sender(m).panels.push_back(sender(m).panels[0]); },
       "panel 3 of launch 1 stores `c` in `mm.c.in0.from1.0` of rank 1, which another panel "
       "stores"},
      {"a store on the rank itself",
       [](LaunchPlan& m) { std::swap(sender(m).panels[0].stores, sender(m).panels[1].stores); },
       "panel 0 of launch 1 stores `c` in `mm.c.in0.from0.0` of rank 0, which is not on the rank "
       "that waits"},
      {"a store in a home",
       [](LaunchPlan& m) { sender(m).panels[0].stores = reader(m).panels[2].stores; },
       "panel 0 of launch 1 stores `c` in `c.home` of rank 1, which is the caller's"},
  });
}

TEST(InDataFaults, a_slot_that_other_rows_are_stored_in) {
  Described d = in_data(scattered_rows());
  sender(d.launches).panels[1].stores[0].alloc = sender(d.launches).panels[0].stores[0].alloc;
  EXPECT_EQ(finding(d),
            "error[V730]: signal 3 of rank 1 cannot be in data: panel 1 of launch 1 stores `c` "
            "[m0=0] in `mm.c.in0.from1.0` of rank 1, a slot that holds other blocks of the signal; "
            "remove `in data` from the signal, so that it has a cell in the page of its rank");
}

// Rank 1 adds rank 0's elements before it stores at rank 0. A signal word for these elements shows
// that rank 0 has begun this execution, and so has read rank 1's stores of the previous one.
// Signals in data do not give this order.
TEST(InDataFaults, an_entry_that_only_the_signal_stands_for) {
  Described d = scattered_rows();
  std::vector<Kernel>& kernels = d.launches.launches[4].kernels;
  Kernel adds = kernels[0];
  adds.panels.erase(adds.panels.begin());
  adds.fused_stores.clear();
  adds.arrivals.erase(adds.arrivals.begin());
  adds.panels[0].meets = {0};
  kernels[0].panels.pop_back();
  kernels[0].arrivals.pop_back();
  kernels.insert(kernels.begin(), std::move(adds));
  Described without_entry = d;
  without_entry.launches.launches[4].awaits.clear();
  EXPECT_EQ(finding(without_entry), "verified");

  d.launches.signals[kSignal].is_in_data = true;
  without_entry.launches.signals[kSignal].is_in_data = true;
  EXPECT_EQ(finding(d), "verified");
  EXPECT_EQ(finding(without_entry),
            "error[V402]: panel 0 of launch 4, kernel 1 in the next execution overwrites `c` "
            "[m0=0] in `mm.c.in0.from1.0` of rank 0, and nothing orders it after panel 1 of launch "
            "1, which reads it");
}

// The kernel with one panel and one arrival, limited to these rows.
Kernel of_rows(Kernel kernel, std::size_t at, Interval rows) {
  kernel.panels = {kernel.panels[at]};
  kernel.arrivals = {kernel.arrivals[at]};
  kernel.fused_stores.clear();
  Panel& panel = kernel.panels[0];
  panel.meets = {0};
  panel.fused_store = {};
  panel.stores[0].span[0] = rows;
  for (launch::Addend& addend : panel.addends) addend = {.reads = addend.reads, .when = {}};
  for (launch::Addend& addend : panel.addends) addend.reads[0].span[0] = rows;
  kernel.arrivals[0].reads[0].span[0] = rows;
  return kernel;
}

// Rank 0 stores half of its rows in an earlier kernel, without a signal. Rank 1 adds them in a
// kernel behind the one that waits for the other half.
TEST(InDataFaults, rows_that_only_the_signal_of_others_stands_for) {
  constexpr Interval kFirst = {.begin = 512, .end = 768};
  constexpr Interval kSecond = {.begin = 768, .end = 1024};
  Described d = scattered_rows();
  std::vector<Kernel>& sending = d.launches.launches[1].kernels;
  sending.insert(sending.begin(), of_rows(sending[0], 0, kFirst));
  sending[1].panels[0].stores[0].span[0] = kSecond;
  sending[1].arrivals[0].reads[0].span[0] = kSecond;
  std::vector<Kernel>& adding = d.launches.launches[4].kernels;
  adding.push_back(of_rows(adding[0], 1, kFirst));
  adding[0].panels[1].stores[0].span[0] = kSecond;
  adding[0].panels[1].addends[0].reads[0].span[0] = kSecond;
  adding[0].arrivals[1].reads[0].span[0] = kSecond;
  EXPECT_EQ(finding(d), "verified");
  d.launches.signals[kSignal].is_in_data = true;
  EXPECT_EQ(finding(d),
            "error[V401]: panel 0 of launch 4, kernel 1 reads `c` [m0=1, M.piece=0] in "
            "`mm.c.in0.from1.0` of rank 1, and nothing orders it after panel 0 of launch 1, which "
            "writes it");
}

TEST(InDataFaults, a_store_before_the_reader_of_the_last_execution) {
  Described d = one_shot();
  d.launches.launches[1].awaits.clear();
  EXPECT_EQ(
      finding(d),
      "error[V402]: panel 0 of launch 1 in the next execution overwrites `c` in `mm.c.in0.from1.0` "
      "of rank 1, and nothing orders it after panel 2 of launch 4, which reads it");
}

}  // namespace
}  // namespace harpe::test
