#include "plan/slots.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

namespace harpe {
namespace {

using Point =
    std::vector<std::int64_t>;  // logical position per flattened axis, index per opaque dim

Axis axis(const std::string& name, std::int64_t size) {
  return {
      .name = name, .size = {.first = size, .rest = {}}, .dynamic = false, .of = "", .align = 1};
}

Buffer buffer(const std::string& name, std::vector<Dim> dims) {
  return {.name = name,
          .dtype = DType::F32,
          .dtype_param = "",
          .dims = std::move(dims),
          .role = Role::In};
}

using Names = std::vector<std::string>;

// Q as in attention, K with an opaque inner extent, L with the sequence last, W without axes.
Program attention_like(std::int64_t batch, std::int64_t sequence, std::int64_t heads) {
  Program program{.name = "slots", .params = {}, .decls = {}, .nests = {}};
  program.decls = {axis("B", batch), axis("S", sequence), axis("Hkv", heads), axis("G", 2)};
  program.decls.emplace_back(buffer("Q", {"B", "S", Names{"Hkv", "G"}, std::int64_t{2}}));
  program.decls.emplace_back(buffer("K", {"S", std::int64_t{3}, "Hkv"}));
  program.decls.emplace_back(buffer("L", {"B", Names{"Hkv", "G"}, "S"}));
  program.decls.emplace_back(buffer("W", {std::int64_t{2}, std::int64_t{5}}));
  return program;
}

Digit digit(const std::string& name, std::int64_t extent) { return {name, extent}; }

Layout layout(const std::string& of, const std::string& function, const Names& digits) {
  Layout result{.axis = of, .map = {.function = function, .args = {}}};
  for (const std::string& name : digits) result.map.args.emplace_back(Name{name});
  return result;
}

struct Case {
  std::string name;
  Program program;
  NormalForm form;
};

std::vector<Case> make_cases() {
  const std::vector<Digit> zigzag = {digit("s0", 3), digit("sh", 2), {"s1", std::nullopt}};
  const std::vector<Digit> fine_zigzag = {digit("s0", 2), digit("sh", 2), digit("s1", 3)};
  const std::vector<Digit> plain = {digit("s0", 4), digit("s1", 2)};
  const std::vector<Digit> heads = {digit("h0", 2), {"h1", std::nullopt}};
  const auto make = [&](std::string name, std::int64_t sequence, std::int64_t head_count,
                        const std::vector<Digit>& split, std::vector<Layout> layouts) {
    Case result{
        .name = std::move(name), .program = attention_like(2, sequence, head_count), .form = {}};
    result.form.splits = {{.axis = "S", .digits = split}, {.axis = "Hkv", .digits = heads}};
    result.form.layouts = std::move(layouts);
    return result;
  };
  Layout table{.axis = "S", .map = {.function = "table", .args = {}}};
  for (const std::int64_t position : {5, 0, 3, 7, 1, 2, 6, 4})
    table.map.args.emplace_back(position);
  return {
      make("plain", 13, 3, plain, {}),
      make("plain with empty blocks", 5, 1, plain, {}),
      make("zigzag", 13, 3, zigzag, {layout("S", "zigzag", {"s0", "sh"})}),
      make("zigzag with empty blocks", 4, 3, zigzag, {layout("S", "zigzag", {"s0", "sh"})}),
      make("zigzag above digits", 17, 3, fine_zigzag, {layout("S", "zigzag", {"s0", "sh"})}),
      make("stripe of the major digit", 11, 3, plain, {layout("S", "stripe", {"s0"})}),
      make("stripe with empty blocks", 7, 2, fine_zigzag, {layout("S", "stripe", {"sh"})}),
      make("table", 13, 3, plain, {table}),
  };
}

Blocks make_blocks(const Case& c) {
  const Mesh mesh{.name = "one", .axes = {{.name = "gpu", .size = 1}}};
  Checked<Blocks> blocks = Blocks::make(c.program, mesh, c.form);
  if (!blocks.ok()) ADD_FAILURE() << render(blocks.error());
  return std::move(blocks).value();
}

// The textbook content of a slot: every element whose blocks lie in the boxes, in row-major order
// of logical positions. It does not use shapes, runs or strides.
class Model {
 public:
  Model(const Blocks& blocks, int buffer) : blocks_(blocks), table_(blocks.buffers()[at(buffer)]) {}

  // Sorted by the row-major order of the buffer's dimensions.
  [[nodiscard]] std::vector<Point> points(const Box& box) const {
    std::vector<Point> result = {{}};
    std::size_t first_digit = 0;
    for (const DimTable& dim : table_.dims) {
      if (dim.axes.empty()) result = extended(result, iota(dim.opaque));
      for (const int a : dim.axes) {
        result = extended(result, positions(a, box, first_digit));
        first_digit += blocks_.axes()[at(a)].digits.size();
      }
    }
    return result;
  }

  // The fewest rectangles that make a box. Neighbours in logical order are neighbours in the slot
  // exactly if both are in it, so a run is a maximal sequence of consecutive positions.
  [[nodiscard]] std::size_t fewest(const Box& box) const {
    std::size_t product = 1;
    std::size_t first_digit = 0;
    for (const int a : table_.axes) {
      const std::vector<std::int64_t> along = positions(a, box, first_digit);
      std::size_t runs = 0;
      for (std::size_t i = 0; i < along.size(); ++i) {
        runs += i == 0 || along[i] != along[i - 1] + 1 ? 1U : 0U;
      }
      product *= runs;
      first_digit += blocks_.axes()[at(a)].digits.size();
    }
    return product;
  }

  [[nodiscard]] Box whole(const Region& region) const {
    Box box;
    for (std::size_t i = 0; i < region.size(); ++i) {
      const std::int32_t extent = blocks_.digits()[at(table_.digits[i])].extent;
      box.push_back(region[i] == kAll ? Range{0, extent} : Range{region[i], region[i] + 1});
    }
    return box;
  }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  static std::vector<std::int64_t> iota(std::int64_t n) {
    std::vector<std::int64_t> result;
    for (std::int64_t i = 0; i < n; ++i) result.push_back(i);
    return result;
  }
  static std::vector<Point> extended(const std::vector<Point>& points,
                                     const std::vector<std::int64_t>& values) {
    std::vector<Point> result;
    for (const Point& point : points) {
      for (const std::int64_t value : values) {
        result.push_back(point);
        result.back().push_back(value);
      }
    }
    return result;
  }

  // Logical positions along one axis whose block's digits lie in the box.
  [[nodiscard]] std::vector<std::int64_t> positions(int a, const Box& box,
                                                    std::size_t first_digit) const {
    const AxisTable& table = blocks_.axes()[at(a)];
    std::vector<std::int64_t> result;
    for (std::int64_t position = 0; position < table.size; ++position) {
      int owners = 0;
      for (std::int64_t block = 0; block < table.blocks; ++block) {
        const Interval interval = blocks_.interval(a, block);
        if (position < interval.begin || position >= interval.end) continue;
        ++owners;
        if (has(table, block, box, first_digit)) result.push_back(position);
      }
      EXPECT_EQ(owners, 1) << "position " << position << " of axis " << table.name;
    }
    return result;
  }

  [[nodiscard]] bool has(const AxisTable& table, std::int64_t block, const Box& box,
                         std::size_t first_digit) const {
    for (std::size_t i = table.digits.size(); i-- > 0;) {
      const std::int32_t extent = blocks_.digits()[at(table.digits[i])].extent;
      const std::int64_t value = block % extent;
      block /= extent;
      if (value < box[first_digit + i].lo || value >= box[first_digit + i].hi) return false;
    }
    return true;
  }

  const Blocks& blocks_;
  const BufferTable& table_;
};

// The place in the slot of every element of the rectangles; an element met twice fails the test.
std::map<Point, std::int64_t> walk(const Blocks& blocks, int buffer, const SlotShape& shape,
                                   std::span<const Box> boxes) {
  const BufferTable& table = blocks.buffers()[static_cast<std::size_t>(buffer)];
  std::map<Point, std::int64_t> result;
  std::int64_t last_offset = -1;
  for (const SlotBox& box : rectangles(blocks, buffer, shape, boxes)) {
    EXPECT_GT(box.offset, last_offset);
    last_offset = box.offset;
    std::vector<std::pair<Point, std::int64_t>> elements = {{{}, box.offset}};
    std::size_t axis = 0;
    const auto extend = [&](std::int64_t length, std::int64_t first, std::int64_t stride) {
      std::vector<std::pair<Point, std::int64_t>> longer;
      for (const auto& [point, local] : elements) {
        for (std::int64_t i = 0; i < length; ++i) {
          longer.emplace_back(point, local + i * stride);
          longer.back().first.push_back(first + i);
        }
      }
      elements = std::move(longer);
    };
    for (std::size_t dim = 0; dim < table.dims.size(); ++dim) {
      if (table.dims[dim].axes.empty()) {
        extend(table.dims[dim].opaque, 0, shape.opaque_strides[dim]);
      } else {
        EXPECT_EQ(shape.opaque_strides[dim], 0);
      }
      for (std::size_t i = 0; i < table.dims[dim].axes.size(); ++i, ++axis) {
        EXPECT_GT(box.lengths[axis], 0);
        extend(box.lengths[axis], box.logical[axis], shape.strides[axis]);
      }
    }
    for (const auto& [point, local] : elements) {
      EXPECT_TRUE(result.emplace(point, local).second) << "an element in two rectangles";
    }
  }
  return result;
}

std::vector<std::vector<bool>> all_patterns(std::size_t digits) {
  std::vector<std::vector<bool>> patterns;
  for (std::size_t bits = 0; bits < std::size_t{1} << digits; ++bits) {
    std::vector<bool> holds;
    for (std::size_t i = 0; i < digits; ++i) holds.push_back((bits >> i & 1U) != 0);
    patterns.push_back(std::move(holds));
  }
  return patterns;
}

// Calls visit(holds, region) for each pattern and each of its distinct regions.
template <class Visit>
void for_each_slot(const Blocks& blocks, int buffer, const Visit& visit) {
  const BufferTable& table = blocks.buffers()[static_cast<std::size_t>(buffer)];
  for (const std::vector<bool>& holds : all_patterns(table.digits.size())) {
    std::set<Region> seen;
    for (BlockId block = 0; block < table.blocks; ++block) {
      const Region region = slot_region(blocks, buffer, holds, block);
      if (seen.insert(region).second) visit(holds, region);
    }
  }
}

TEST(Slots, place_every_element_of_a_region_once_in_logical_row_major_order) {
  for (const Case& c : make_cases()) {
    SCOPED_TRACE(c.name);
    const Blocks blocks = make_blocks(c);
    for (int buffer = 0; buffer < static_cast<int>(blocks.buffers().size()); ++buffer) {
      const Model model(blocks, buffer);
      for_each_slot(blocks, buffer, [&](const std::vector<bool>&, const Region& region) {
        const Box whole = model.whole(region);
        const std::vector<Point> expected = model.points(whole);
        const SlotShape shape = slot_shape(blocks, buffer, region);
        ASSERT_EQ(shape.elements, static_cast<std::int64_t>(expected.size()));
        const auto found = walk(blocks, buffer, shape, std::span(&whole, 1));
        ASSERT_EQ(found.size(), expected.size());
        for (std::size_t local = 0; local < expected.size(); ++local) {
          const auto element = found.find(expected[local]);
          ASSERT_NE(element, found.end());
          ASSERT_EQ(element->second, static_cast<std::int64_t>(local));
        }
        EXPECT_TRUE(is_contiguous(blocks, buffer, shape, std::span(&whole, 1)));
      });
    }
  }
}

TEST(Slots, are_sized_by_the_largest_region_they_can_hold) {
  for (const Case& c : make_cases()) {
    SCOPED_TRACE(c.name);
    const Blocks blocks = make_blocks(c);
    for (int buffer = 0; buffer < static_cast<int>(blocks.buffers().size()); ++buffer) {
      std::map<std::vector<bool>, std::int64_t> largest;
      for_each_slot(blocks, buffer, [&](const std::vector<bool>& holds, const Region& region) {
        std::int64_t elements = 0;
        const auto& digits = blocks.buffers()[static_cast<std::size_t>(buffer)].digits;
        for (const BlockId block : blocks.blocks_in(digits, region)) {
          elements += blocks.elements(buffer, block);
        }
        largest[holds] = std::max(largest[holds], elements);
      });
      for (const auto& [holds, elements] : largest) {
        EXPECT_EQ(max_elements(blocks, buffer, holds), elements);
      }
    }
  }
}

// Two disjoint boxes: random ranges within the region, cut at one digit, sometimes with a gap.
std::vector<Box> random_boxes(const Box& whole, std::mt19937& random) {
  const auto pick = [&](std::int32_t lo, std::int32_t hi) {
    return std::uniform_int_distribution<std::int32_t>(lo, hi)(random);
  };
  Box box = whole;
  for (Range& range : box) {
    const std::int32_t lo = pick(range.lo, range.hi - 1);
    range = {lo, pick(lo + 1, range.hi)};
  }
  for (std::size_t i = 0; i < box.size(); ++i) {
    if (box[i].hi - box[i].lo < 2 || pick(0, 1) == 0) continue;
    Box other = box;
    other[i].lo = pick(box[i].lo + 1, box[i].hi - 1);
    box[i].hi = pick(box[i].lo + 1, other[i].lo);
    return {other, box};
  }
  return {box};
}

TEST(Slots, cut_any_set_of_blocks_into_rectangles_that_cover_it_exactly) {
  std::mt19937 random(7);
  for (const Case& c : make_cases()) {
    SCOPED_TRACE(c.name);
    const Blocks blocks = make_blocks(c);
    for (int buffer = 0; buffer < static_cast<int>(blocks.buffers().size()); ++buffer) {
      const Model model(blocks, buffer);
      for_each_slot(blocks, buffer, [&](const std::vector<bool>&, const Region& region) {
        const Box whole = model.whole(region);
        std::map<Point, std::int64_t> place;
        for (const Point& point : model.points(whole)) {
          place.emplace(point, static_cast<std::int64_t>(place.size()));
        }
        const SlotShape shape = slot_shape(blocks, buffer, region);
        const std::vector<Box> boxes = random_boxes(whole, random);
        std::set<std::int64_t> locals;
        std::map<Point, std::int64_t> expected;
        for (const Box& box : boxes) {
          for (const Point& point : model.points(box)) {
            expected.emplace(point, place.at(point));
            locals.insert(place.at(point));
          }
        }
        ASSERT_EQ(walk(blocks, buffer, shape, boxes), expected);
        const std::span first(boxes.data(), 1);
        ASSERT_EQ(rectangles(blocks, buffer, shape, first).size(), model.fewest(boxes[0]));
        const bool one_run = locals.empty() || *locals.rbegin() - *locals.begin() + 1 ==
                                                   static_cast<std::int64_t>(locals.size());
        ASSERT_EQ(is_contiguous(blocks, buffer, shape, boxes), one_run);
      });
    }
  }
}

// Rank 1's home of Q, for a sequence of 13 over 3 ranks.
struct Home {
  Blocks blocks;
  SlotShape shape;
  Box box;
};

Home home_of_rank_one(std::int64_t digits_per_rank, const std::vector<Layout>& layouts) {
  Case c{.name = "home", .program = attention_like(2, 13, 3), .form = {}};
  c.form.splits = {{.axis = "S", .digits = {digit("s0", 3), digit("sh", digits_per_rank)}}};
  c.form.layouts = layouts;
  c.form.places = {{.buffer = "Q", .at = {{.digit = "s0", .axes = {"cp"}}}, .partial = {}}};
  const Mesh mesh{.name = "one", .axes = {{.name = "cp", .size = 3}}};
  Checked<Blocks> made = Blocks::make(c.program, mesh, c.form);
  if (!made.ok()) ADD_FAILURE() << render(made.error());
  Blocks blocks = std::move(made).value();
  const Region region = blocks.home(0, RankId(1));
  SlotShape shape = slot_shape(blocks, 0, region);
  Box box = Model(blocks, 0).whole(region);
  return {std::move(blocks), std::move(shape), std::move(box)};
}

TEST(Slots, see_a_home_under_the_default_layout_as_one_rectangle) {
  const Home home = home_of_rank_one(2, {});
  const std::vector<SlotBox> cut = rectangles(home.blocks, 0, home.shape, std::span(&home.box, 1));
  ASSERT_EQ(cut.size(), 1U);
  EXPECT_EQ(cut[0].offset, 0);
  // 13 positions in 6 blocks start at 0 2 4 6 8 10; rank 1 has blocks 2 and 3.
  EXPECT_EQ(cut[0].lengths, (std::vector<std::int64_t>{2, 4, 3, 2}));
  EXPECT_EQ(cut[0].logical, (std::vector<std::int64_t>{0, 4, 0, 0}));
}

TEST(Slots, see_a_zigzag_home_as_two_rectangles_one_after_the_other) {
  const Home home = home_of_rank_one(2, {layout("S", "zigzag", {"s0", "sh"})});
  const std::vector<SlotBox> cut = rectangles(home.blocks, 0, home.shape, std::span(&home.box, 1));
  ASSERT_EQ(cut.size(), 2U);
  // Logical blocks 1 and 4: positions 2..3 and 8..9, side by side in the slot.
  EXPECT_EQ(cut[0].logical[1], 2);
  EXPECT_EQ(cut[1].logical[1], 8);
  EXPECT_EQ(cut[0].lengths[1], 2);
  EXPECT_EQ(cut[0].offset, 0);
  EXPECT_EQ(cut[1].offset, 2 * home.shape.strides[1]);
  EXPECT_TRUE(is_contiguous(home.blocks, 0, home.shape, std::span(&home.box, 1)));
}

TEST(Slots, join_single_blocks_listed_in_any_order) {
  const Home home = home_of_rank_one(4, {});
  std::vector<Box> singles;
  for (const std::int32_t value : {2, 0, 3, 1}) {
    Box single = home.box;
    single[2] = {value, value + 1};
    singles.push_back(single);
  }
  EXPECT_EQ(rectangles(home.blocks, 0, home.shape, singles).size(), 1U);
}

TEST(Slots, refuse_a_box_the_slot_does_not_hold) {
  const Home home = home_of_rank_one(2, {});
  Box other = home.box;
  other[1] = {2, 3};  // another rank's digit
  EXPECT_THROW((void)rectangles(home.blocks, 0, home.shape, std::span(&other, 1)), InternalError);
}

TEST(Slots, size_a_large_buffer_without_visiting_its_blocks) {
  Program program{.name = "large", .params = {}, .decls = {}, .nests = {}};
  NormalForm form;
  std::vector<Dim> dims;
  for (const std::string name : {"A", "B", "C"}) {
    program.decls.emplace_back(axis(name, 100'003));
    form.splits.push_back({.axis = name, .digits = {digit(name + "0", 32), digit(name + "1", 8)}});
    dims.emplace_back(name);
  }
  program.decls.emplace_back(buffer("X", dims));
  const Mesh mesh{.name = "one", .axes = {{.name = "gpu", .size = 1}}};
  const Checked<Blocks> blocks = Blocks::make(program, mesh, form);
  ASSERT_TRUE(blocks.ok());
  // 100003 in 32 parts: the longest has 3126. In 256 parts: 391.
  EXPECT_EQ(max_elements(*blocks, 0, {false, true, true, true, false, false}),
            std::int64_t{3126} * 100'003 * 391);
}

}  // namespace
}  // namespace harpe
