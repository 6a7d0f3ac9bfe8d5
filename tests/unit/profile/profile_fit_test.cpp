#include "profile/profile_fit.h"

#include <gtest/gtest.h>

#include "machine/rates.h"

namespace harpe {
namespace {

using Points = std::vector<std::pair<double, double>>;

TEST(ProfileFit, finds_the_line_that_points_lie_on) {
  Points points;
  for (const double bytes : {65536.0, 1048576.0, 33554432.0}) {
    points.emplace_back(bytes, 5e-6 + bytes / 390e9);
  }
  const CopyRate rate = fit_line(points);
  EXPECT_NEAR(rate.start, 5e-6, 1e-10);
  EXPECT_NEAR(rate.bandwidth, 390e9, 1e6);
}

TEST(ProfileFit, weighs_short_copies_as_much_as_long_ones) {
  // The long copy is a tenth too slow; a line through the short ones errs there by no more.
  const Points points = {{1e4, 1e-6 + 1e4 / 1e11}, {1e5, 1e-6 + 1e5 / 1e11}, {1e8, 1.1e8 / 1e11}};
  const CopyRate rate = fit_line(points);
  EXPECT_NEAR(rate.start, 1e-6, 0.05e-6);
  EXPECT_GT(rate.bandwidth, 0.85e11);
  EXPECT_LT(rate.bandwidth, 1e11);
}

TEST(ProfileFit, has_no_start_before_nothing_is_copied) {
  const CopyRate rate = fit_line(Points{{1e6, 1e-5}, {1e8, 1.01e-3}});
  EXPECT_EQ(rate.start, 0);
  EXPECT_NEAR(rate.bandwidth, 1e11, 1e9);
}

TEST(ProfileFit, keeps_four_digits) {
  EXPECT_DOUBLE_EQ(rounded(123456), 123500);
  EXPECT_DOUBLE_EQ(rounded(0.00123456), 0.001235);
  EXPECT_EQ(rounded(0), 0);
  EXPECT_DOUBLE_EQ(rounded_in(kGiga, 391.44e9), 391.4e9);
  EXPECT_EQ(rounded_time(0), Picoseconds(1));
}

Machine machine_with(const LeafRate& rate) {
  Machine machine;
  machine.processor.sms = 132;
  machine.processor.memory_bandwidth = 4e12;
  machine.rates = {rate};
  return machine;
}

LeafShape cube(double size) {
  return {.rows = size,
          .columns = size,
          .depth = size,
          .flops = 2 * size * size * size,
          .bytes = 6 * size * size};
}

TEST(ProfileFit, finds_a_rate_line_that_says_what_the_samples_do) {
  LeafRate truth;
  truth.leaf = "matmul";
  truth.dtype = "bf16";
  truth.peak = 800e12;
  truth.tile_rows = 128;
  truth.tile_columns = 256;
  truth.half_depth = 128;
  truth.start = from_microseconds(2);
  Machine machine = machine_with(truth);
  for (const double size : {256.0, 1024.0, 2048.0, 4096.0, 8192.0, 16384.0}) {
    LeafSample sample{.leaf = "matmul", .dtype = "bf16", .shape = cube(size), .causal = false};
    sample.time = leaf_time(machine, "matmul", "bf16", sample.shape, false);
    machine.samples.push_back(sample);
  }
  const RateGrid grid{.tile_rows = {64, 128, 256},
                      .tile_columns = {64, 128, 256},
                      .half_depths = {0, 64, 128, 256},
                      .starts = {1, 2, 4}};
  const LeafRate found = fit_rate(machine, machine.samples.front(), grid, 0.9);
  EXPECT_EQ(found.memory_share, 0.9);
  const Machine fitted = machine_with(found);
  for (const LeafSample& sample : machine.samples) {
    // The bound holds, and the fitted line is close.
    EXPECT_LE(leaf_bound(fitted, "matmul", "bf16", sample.shape.flops, sample.shape.bytes),
              sample.time);
    const double said = leaf_time(fitted, "matmul", "bf16", sample.shape, false).seconds();
    EXPECT_NEAR(said / sample.time.seconds(), 1, 0.1) << sample.shape.rows;
  }
}

TEST(ProfileFit, takes_the_peak_of_causal_samples_and_nothing_else_of_them) {
  Machine machine = machine_with({});
  LeafSample whole{.leaf = "attn_fwd", .dtype = "f32", .shape = cube(1024), .causal = false};
  whole.time = from_seconds(whole.shape.flops / 1e12);
  LeafSample causal = whole;
  causal.causal = true;
  causal.time = from_seconds(causal.shape.flops / 4e12);
  machine.samples = {whole, causal};
  const LeafRate found = fit_rate(machine, whole, {.tile_columns = {0}}, 1);
  EXPECT_NEAR(found.peak, 1.002 * 4e12, 4e9);
}

TEST(ProfileFit, lets_the_slowest_line_stand_in) {
  Machine machine;
  for (const auto& [dtype, peak] : {std::pair{"bf16", 800e12}, std::pair{"f32", 50e12}}) {
    LeafRate rate;
    rate.leaf = "matmul";
    rate.dtype = dtype;
    rate.peak = peak;
    machine.rates.push_back(rate);
  }
  const LeafRate other = stand_in(machine, "matmul", "as the slower");
  EXPECT_EQ(other.peak, 50e12);
  EXPECT_EQ(other.dtype, "*");
  EXPECT_EQ(other.from, (Provenance{Origin::Assumed, "as the slower"}));
}

}  // namespace
}  // namespace harpe
