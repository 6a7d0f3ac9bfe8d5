#include "machine/machine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <limits>

namespace harpe {
namespace machine_test {

// A machine of two lines plus `more`.
std::string text_with(const std::string& more) {
  return "machine m {\n"
         "  processor p sms=4 memory=1gib bandwidth=100gbs from assumed \"t\"\n"
         "  level link switch size=2 bandwidth=10gbs from assumed \"t\"\n" +
         more +
         "  transport tma at link bandwidth=9gbs from assumed \"t\"\n"
         "  rate * * from assumed \"t\"\n}\n";
}

Machine parsed(std::string_view text) {
  Checked<Machine> machine = parse_machine(text, "m.machine");
  EXPECT_TRUE(machine.ok()) << (machine.ok() ? "" : render(machine.error()));
  return machine.ok() ? std::move(machine).value() : Machine{};
}

Machine preset(std::string_view name) {
  const MachinePreset* const found = find_machine_preset(name);
  EXPECT_NE(found, nullptr) << name;
  return found == nullptr ? Machine{} : parsed(found->text);
}

TEST(Machine, presets_read_back_as_they_are_printed) {
  for (const MachinePreset& shipped : all_machine_presets()) {
    const Machine machine = parsed(shipped.text);
    EXPECT_EQ(machine.name, shipped.name);
    EXPECT_FALSE(machine.summary.empty()) << shipped.name;
    const std::string text = print(machine);
    const Machine again = parsed(text);
    EXPECT_EQ(again, machine) << shipped.name;
    EXPECT_EQ(print(again), text) << shipped.name;
  }
}

TEST(Machine, measured_preset_is_canonical) {
  const Machine machine = preset("h200x8");
  EXPECT_EQ(print(machine), find_machine_preset("h200x8")->text);
}

TEST(Machine, the_example_of_its_page_reads_and_is_canonical) {
  std::ifstream file(HARPE_SOURCE_DIR "/docs/machine.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  const std::size_t begin = page.find("machine mine {");
  ASSERT_NE(begin, std::string::npos);
  const std::string example = page.substr(begin, page.find("```", begin) - begin);
  const Machine machine = parsed(example);
  EXPECT_EQ(machine.processors(), 8);
  EXPECT_EQ(print(machine), example);
}

TEST(Machine, presets_have_the_processors_of_their_names) {
  EXPECT_EQ(preset("h200x8").processors(), 8);
  EXPECT_EQ(preset("h200x8x2").processors(), 16);
  EXPECT_EQ(preset("h200x8x128").processors(), 1024);
  EXPECT_EQ(preset("h200x8x16x8").processors(), 1024);
  EXPECT_EQ(preset("h200x8x16x8").levels.size(), 3U);
}

TEST(Machine, every_line_of_every_preset_says_where_it_is_from) {
  for (const MachinePreset& shipped : all_machine_presets()) {
    const std::string text = print(parsed(shipped.text));
    EXPECT_EQ(text.find("\"\""), std::string::npos) << shipped.name;
  }
}

TEST(Machine, states_how_far_its_predictions_are_from_measured_times) {
  const Machine machine = parsed(text_with(
      "  error gemm_rs plans=35 median=0.073 nine_of_ten=0.18 from measured \"bench\"\n"));
  ASSERT_EQ(machine.errors.size(), 1U);
  EXPECT_EQ(parsed(print(machine)), machine);
  const PredictionError* const error = find_error(machine, "gemm_rs");
  ASSERT_NE(error, nullptr);
  EXPECT_EQ(error->plans, 35);
  EXPECT_EQ(error->nine_of_ten, 0.18);
  EXPECT_EQ(find_error(machine, "moe"), nullptr);
  // No prediction depends on these lines.
  EXPECT_EQ(fingerprint(machine), fingerprint(parsed(text_with(""))));
}

TEST(Machine, no_other_machine_inherits_the_errors_of_predictions) {
  EXPECT_FALSE(preset("h200x8").errors.empty());
  EXPECT_TRUE(preset("h200x8x16").errors.empty());
}

// Figures that no unit divides evenly parse back bit by bit.
TEST(Machine, odd_figures_read_back_exactly) {
  Machine machine = parsed(text_with(""));
  const double odd = 1e9 / 3;
  machine.processor.memory_bandwidth = odd;
  machine.processor.memory_bytes = 12345678.5;
  machine.processor.kernel_start = Picoseconds(1234567);
  machine.processor.event = Picoseconds(1);
  machine.levels.front().bandwidth = 0.1 + 0.2;
  machine.levels.front().messages_per_second = 1e300;
  machine.rates.front().peak = std::numeric_limits<double>::denorm_min();
  machine.rates.front().half_depth = 1e-7;
  machine.rates.front().tile_columns = 0;
  EXPECT_EQ(parsed(print(machine)), machine) << print(machine);
}

TEST(Machine, reads_every_unit) {
  const Machine machine = parsed(
      text_with("  transport ce at link start=2ms bandwidth=1.5tbs from published \"a\"\n"
                "  transport sm at link start=250ns bandwidth=3mbs sms=2 from measured \"b\"\n"
                "  collective all_to_all at link ranks=2 bytes=3kib time=1s from assumed \"c\"\n"));
  EXPECT_EQ(machine.transports[0].start, from_microseconds(2000));
  EXPECT_EQ(machine.transports[0].bandwidth, 1.5e12);
  EXPECT_EQ(machine.transports[0].from, (Provenance{Origin::Published, "a"}));
  EXPECT_EQ(machine.transports[1].start, Picoseconds(250000));
  EXPECT_EQ(machine.transports[1].sms, 2);
  EXPECT_EQ(machine.collectives[0].bytes, 3072);
  EXPECT_EQ(machine.collectives[0].time, from_seconds(1));
}

TEST(Machine, reads_how_kernels_convert_and_hold_tiles) {
  const Machine machine = parsed(
      text_with("  transport nccl at link bandwidth=9gbs unrounded=1 converting=2gbs from assumed "
                "\"a\"\n"
                "  rate matmul bf16 peak=1tflops tile_rows=64 held_rows=128 few_rows=32 "
                "few_start=3us from assumed \"b\"\n"));
  EXPECT_EQ(machine.transports[0].unrounded, 1);
  EXPECT_EQ(machine.transports[0].converting, 2e9);
  const auto rate = std::ranges::find(machine.rates, "matmul", &LeafRate::leaf);
  ASSERT_NE(rate, machine.rates.end());
  EXPECT_EQ(rate->held_rows, 128);
  EXPECT_EQ(rate->few_rows, 32);
  EXPECT_EQ(rate->few_start, from_microseconds(3));
  EXPECT_EQ(machine.processor.execution_start, Picoseconds());
  EXPECT_EQ(parsed(print(machine)), machine);
}

TEST(Machine, reads_what_nics_and_proxies_take) {
  const Machine machine = parsed(text_with(
      "  level net switch size=4 bandwidth=10gbs proxy_word=1us proxy_count=2us proxy_peer=8us "
      "nic_fence=3us nic_drain=4us gpu_post=5us from assumed \"a\"\n"
      "  transport proxy at net bandwidth=9gbs from assumed \"a\"\n"
      "  transport ibgda at net bandwidth=9gbs from assumed \"a\"\n"
      "  completion at net groups=2 time=6us from assumed \"b\"\n"
      "  completion at net groups=2 outstanding=64 time=7us behind=0.5 nic_drain=9us from assumed "
      "\"c\"\n"));
  const MachineLevel& level = machine.levels.back();
  EXPECT_EQ(level.proxy_word, from_microseconds(1));
  EXPECT_EQ(level.proxy_count, from_microseconds(2));
  EXPECT_EQ(level.proxy_peer, from_microseconds(8));
  EXPECT_EQ(level.nic_fence, from_microseconds(3));
  EXPECT_EQ(level.nic_drain, from_microseconds(4));
  EXPECT_EQ(level.gpu_post, from_microseconds(5));
  ASSERT_EQ(machine.completions.size(), 2U);
  EXPECT_EQ(machine.completions[1].outstanding, 64);
  EXPECT_EQ(machine.completions[1].time, from_microseconds(7));
  EXPECT_EQ(machine.completions[1].behind, 0.5);
  EXPECT_EQ(machine.completions[0].nic_drain, Picoseconds());
  EXPECT_EQ(machine.completions[1].nic_drain, from_microseconds(9));
  EXPECT_EQ(parsed(print(machine)), machine);
}

TEST(Machine, one_like_another_has_its_lines_but_those_it_writes) {
  const Machine base = preset("h200x8");
  const Machine machine = parsed(
      "machine mine like h200x8 {\n"
      "  transport ce at nvlink start=9us bandwidth=100gbs from assumed \"slower\"\n"
      "  level rail rail size=3 bandwidth=50gbs from assumed \"t\"\n"
      "  transport proxy at rail bandwidth=49gbs from assumed \"t\"\n}\n");
  EXPECT_EQ(machine.name, "mine");
  EXPECT_EQ(machine.summary, "");
  EXPECT_EQ(machine.transports.size(), base.transports.size() + 1);
  EXPECT_EQ(machine.transports.front().bandwidth, 100e9);
  EXPECT_EQ(machine.processors(), 24);
  ASSERT_EQ(machine.samples.size(), base.samples.size());
  EXPECT_EQ(machine.samples.front().time, base.samples.front().time);
}

TEST(Machine, one_like_another_says_which_lines_are_not_its_own) {
  const Machine machine = parsed(
      "machine mine like h200x8x4 {\n"
      "  level rail rail size=8 bandwidth=20gbs from assumed \"own\"\n"
      "  transport proxy at rail bandwidth=19gbs from assumed \"own\"\n}\n");
  EXPECT_EQ(
      list_inherited(machine),
      "processor h200, all at nvlink, ibgda at rail, nccl at rail, rates, samples of h200x8x4");
  EXPECT_EQ(machine.levels[1].from, (Provenance{Origin::Assumed, "own"}));
  EXPECT_EQ(machine.levels[0].from.of, "h200x8x4");
  const std::string text = print(machine);
  EXPECT_NE(
      text.find("at rail start=1.5us bandwidth=46gbs sms=4 from assumed \"posts from a kernel: "
                "no FIFO to a proxy\" of h200x8x4\n"),
      std::string::npos)
      << text;
  EXPECT_EQ(parsed(text), machine);  // the whole machine prints the same
  EXPECT_EQ(list_inherited(preset("h200x8")), "");
}

TEST(Machine, fingerprint_is_of_figures_and_not_of_where_they_are_from) {
  const Machine machine = preset("h200x8");
  Machine told = machine;
  told.summary = "another";
  told.samples.front().from.note = "elsewhere";
  EXPECT_EQ(fingerprint(told), fingerprint(machine));
  EXPECT_EQ(fingerprint(machine).size(), 32U);
  Machine changed = machine;
  changed.samples.front().time += Picoseconds(1);
  EXPECT_NE(fingerprint(changed), fingerprint(machine));
}

}  // namespace machine_test
}  // namespace harpe
