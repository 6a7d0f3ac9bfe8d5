#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "machine/machine.h"

namespace harpe {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr std::string_view kProcessor =
    "processor p sms=4 memory=1gib bandwidth=100gbs from assumed \"t\"\n";
constexpr std::string_view kRate = "rate * * from assumed \"t\"\n";
constexpr std::string_view kLevel = "level link switch size=2 bandwidth=10gbs from assumed \"t\"\n";
constexpr std::string_view kCrossing = "transport sm at link bandwidth=9gbs from assumed \"t\"\n";

std::string refusal_of(const std::string& lines) {
  const Checked<Machine> machine = parse_machine("machine m {\n" + lines + "}\n", "m.machine");
  return machine.ok() ? "accepted" : render(machine.error());
}

std::string whole_with(const std::string& more) {
  return refusal_of(std::string(kProcessor) + std::string(kLevel) + more + std::string(kCrossing) +
                    std::string(kRate));
}

TEST(MachineRefusals, the_frame_is_accepted) { EXPECT_EQ(whole_with(""), "accepted"); }

TEST(MachineRefusals, missing_lines) {
  EXPECT_THAT(refusal_of(std::string(kRate)),
              StartsWith("error[M110]: m.machine:1:1: machine `m` has no line `processor`"));
  EXPECT_THAT(refusal_of(std::string(kProcessor)), HasSubstr("has no line `rate * *`"));
}

TEST(MachineRefusals, missing_figure) {
  EXPECT_THAT(whole_with("transport ce at link start=1us from assumed \"t\"\n"),
              StartsWith("error[M111]: m.machine:4:32: `transport ce at link` does not state "
                         "`bandwidth`"));
}

TEST(MachineRefusals, lines_and_figures_twice) {
  EXPECT_THAT(whole_with(std::string(kProcessor)),
              HasSubstr("M112]: m.machine:4:1: machine `m` has two lines `processor p`"));
  EXPECT_THAT(whole_with("level link ring size=2 bandwidth=1gbs from assumed \"t\"\n"),
              HasSubstr("has two lines `level link`"));
  const std::string sample =
      "collective all_gather at link ranks=2 bytes=1kib time=1us from assumed \"t\"\n";
  EXPECT_THAT(whole_with(sample + sample),
              HasSubstr("two lines `collective all_gather at link ranks=2 bytes=1kib`"));
  EXPECT_THAT(whole_with("rate a b peak=1tflops peak=2tflops from assumed \"t\"\n"),
              HasSubstr("T006]"));
}

TEST(MachineRefusals, figures_out_of_range) {
  EXPECT_THAT(whole_with("rate a b memory_share=1.5 from assumed \"t\"\n"),
              HasSubstr("`memory_share` is 1.5, but must be above 0 and at most 1"));
  EXPECT_THAT(whole_with("transport ce at link bandwidth=0gbs from assumed \"t\"\n"),
              HasSubstr("`bandwidth` is 0gbs, but must be above 0"));
  EXPECT_THAT(whole_with("rate a b start=-1us from assumed \"t\"\n"),
              HasSubstr("`start` is -1us, but must be 0 or more"));
  EXPECT_THAT(whole_with("level far switch size=0 bandwidth=1gbs from assumed \"t\"\n"),
              HasSubstr("`size` is 0, but must be above 0"));
  EXPECT_THAT(whole_with("rate a b start=1e7s from assumed \"t\"\n"), HasSubstr("T003]"));
}

TEST(MachineRefusals, levels_that_are_not_there) {
  EXPECT_THAT(whole_with("transport ce at lnk bandwidth=1gbs from assumed \"t\"\n"),
              HasSubstr("`transport ce at lnk` is at level `lnk`, which machine `m` lacks (did you "
                        "mean `link`?)"));
  EXPECT_THAT(
      whole_with("collective all_gather at x ranks=2 bytes=1b time=1us from assumed \"t\"\n"),
      HasSubstr("M114]"));
}

TEST(MachineRefusals, too_many_processors) {
  EXPECT_THAT(whole_with("level far switch size=65536 bandwidth=1gbs from assumed \"t\"\n"),
              HasSubstr("machine `m` has 131072 processors, more than 65536"));
  EXPECT_THAT(
      whole_with("level far switch size=9000000000000000000 bandwidth=1gbs from assumed \"t\"\n"),
      HasSubstr("M115]"));
}

TEST(MachineRefusals, units_of_another_kind) {
  EXPECT_THAT(whole_with("transport ce at link bandwidth=1us from assumed \"t\"\n"),
              HasSubstr("`bandwidth` is in `us`, but must be a bandwidth in gbs, tbs, mbs or bs"));
  EXPECT_THAT(whole_with("transport ce at link start=1 bandwidth=1gbs from assumed \"t\"\n"),
              HasSubstr("M116]"));
  EXPECT_THAT(whole_with("transport ce at link start=1, from assumed \"t\"\n"),
              HasSubstr("`start` is in `no unit`"));
}

TEST(MachineRefusals, words_outside_the_grammar) {
  EXPECT_THAT(whole_with("level far swich size=2 bandwidth=1gbs from assumed \"t\"\n"),
              HasSubstr("unknown kind of level `swich` (did you mean `switch`?)"));
  EXPECT_THAT(whole_with("transport bus at link bandwidth=1gbs from assumed \"t\"\n"),
              HasSubstr("unknown transport `bus`"));
  EXPECT_THAT(whole_with("rate a b speed=1 from assumed \"t\"\n"),
              HasSubstr("unknown figure `speed`"));
  EXPECT_THAT(whole_with("rate a b from hearsay \"t\"\n"), HasSubstr("unknown origin `hearsay`"));
  EXPECT_THAT(whole_with("rate a b\n"), HasSubstr("expected `from`, found `transport`"));
  EXPECT_THAT(whole_with("speed 1\n"), HasSubstr("expected `about`, `processor`"));
  EXPECT_THAT(refusal_of(std::string(kProcessor) + kRate.data() + "} machine n {"),
              HasSubstr("the end of the file after one machine"));
}

TEST(MachineRefusals, figures_that_give_no_time) {
  EXPECT_THAT(whole_with("rate a b peak=1tflops tile_rows=0 from assumed \"t\"\n"),
              HasSubstr("`tile_rows` is 0, but must be above 0"));
  EXPECT_EQ(whole_with("rate a b peak=1tflops tile_columns=0 from assumed \"t\"\n"), "accepted");
  EXPECT_THAT(whole_with("transport ce at link bandwidth=1e300tbs from assumed \"t\"\n"),
              HasSubstr("`bandwidth` is infgbs, but must be above 0"));
}

// A line on which no time can depend is probably a mistake.
TEST(MachineRefusals, lines_that_nothing_uses) {
  const auto unused = [](const std::string& lines) {
    const std::string refusal = whole_with(lines);
    const std::string head = "error[M122]: m.machine:1:1: machine `m` has ";
    EXPECT_THAT(refusal, StartsWith(head));
    return refusal.substr(std::min(head.size(), refusal.size()));
  };
  EXPECT_THAT(unused("level lnik switch size=2 bandwidth=1gbs from assumed \"t\"\n"),
              StartsWith("`level lnik switch`, which nothing uses: no transport crosses it; "
                         "transports are at `link` (did you mean `link`?)"));
  EXPECT_EQ(whole_with("level one switch size=1 bandwidth=1gbs from assumed \"t\"\n"), "accepted");
  const std::string far =
      "level far switch size=2 bandwidth=1gbs proxy_post=1us from assumed \"t\"\n";
  EXPECT_THAT(
      unused(far + "transport ibgda at far bandwidth=1gbs from assumed \"t\"\n"),
      StartsWith("`proxy_post` of `level far switch`, which nothing uses: it is of `proxy`, "
                 "and transports at `far` are `ibgda`"));
  EXPECT_EQ(whole_with(far + "transport proxy at far bandwidth=1gbs from assumed \"t\"\n"),
            "accepted");
  EXPECT_THAT(unused("level far switch size=2 bandwidth=1gbs gpu_post=1us nic_fence=1us from "
                     "assumed \"t\"\ntransport proxy at far bandwidth=1gbs from assumed \"t\"\n"),
              StartsWith("`gpu_post` of `level far switch`, which nothing uses: it is of `ibgda`"));
  EXPECT_THAT(unused("transport ce at link bandwidth=1gbs unrounded=1 from assumed \"t\"\n"),
              StartsWith("`unrounded` of `transport ce at link`"));
  EXPECT_THAT(unused("transport ce at link bandwidth=1gbs converting=1gbs from assumed \"t\"\n"),
              StartsWith("`converting` of `transport ce at link`"));
  EXPECT_THAT(
      unused("completion at link groups=2 time=1us from assumed \"t\"\n"),
      StartsWith("`completion at link groups=2 outstanding=1`, which nothing uses: only puts "
                 "are drained, and transports at `link` are `sm`"));
  EXPECT_THAT(
      unused("transport proxy at link bandwidth=1gbs from assumed \"t\"\n"
             "completion at link groups=2 nic_drain=1us from assumed \"t\"\n"),
      StartsWith("`nic_drain` of `completion at link groups=2 outstanding=1`, which nothing "
                 "uses: it is beyond that of the level, and `level link switch` has none"));
  EXPECT_THAT(unused("collective all_gather at link ranks=1 bytes=1kib time=1us from assumed "
                     "\"t\"\n"),
              StartsWith("`collective all_gather at link ranks=1 bytes=1kib`"));
  EXPECT_THAT(unused("sample matmul bf16 rows=8 time=1us from assumed \"t\"\n"),
              HasSubstr("it has neither `flops` nor `bytes`"));
}

TEST(MachineRefusals, a_level_beside_those_of_the_machine_that_it_is_like) {
  const std::string level = "level ib switch size=4 bandwidth=40gbs from assumed \"t\"\n";
  const Checked<Machine> orphan =
      parse_machine("machine m like h200x8x2 {\n" + level + "}", "m.machine");
  ASSERT_FALSE(orphan.ok());
  EXPECT_THAT(render(orphan.error()),
              HasSubstr("`level ib switch`, which nothing uses: no transport crosses it; "
                        "transports are at `nvlink`, `rail`"));
  EXPECT_TRUE(parse_machine("machine m like h200x8x2 {\n" + level +
                                "transport proxy at ib bandwidth=39gbs from assumed \"t\"\n}",
                            "m.machine")
                  .ok());
}

TEST(MachineRefusals, like_a_machine_that_is_not_shipped) {
  const Checked<Machine> machine = parse_machine("machine m like h200x9 { }", "m.machine");
  ASSERT_FALSE(machine.ok());
  EXPECT_THAT(render(machine.error()), HasSubstr("error[M120]: m.machine:1:16: machine `m` is like "
                                                 "`h200x9`, which is not shipped (did you mean "
                                                 "`h200x8`?); shipped: `h200x8`"));
}

// Invalid values that a text cannot express.
TEST(MachineRefusals, values_that_no_text_holds) {
  Machine machine;
  machine.name = "two words";
  EXPECT_THAT(render(check_machine(machine).error()),
              HasSubstr("`name` is `two words`, but must be a word"));
  machine.name = "m";
  machine.processor.name = "p";
  machine.processor.memory_bytes = 1;
  machine.processor.memory_bandwidth = 1;
  LeafRate& rate = machine.rates.emplace_back();
  rate.leaf = rate.dtype = "*";
  EXPECT_TRUE(check_machine(machine).ok());
  machine.rates.front().from.note = "a \" quote";
  EXPECT_THAT(render(check_machine(machine).error()), HasSubstr("one line without a quote"));
  machine.rates.front().from.note = "";
  LeafSample& sample = machine.samples.emplace_back();
  sample.leaf = "*";
  sample.dtype = "bf16";
  sample.time = Picoseconds(1);
  sample.shape.bytes = 1;
  EXPECT_THAT(render(check_machine(machine).error()), HasSubstr("`leaf` is `*`"));
}

}  // namespace
}  // namespace harpe
