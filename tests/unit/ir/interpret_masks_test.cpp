// The reference of attention under data masks: each case equals one without such a mask.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "ir/instantiate.h"
#include "ir/interpret.h"
#include "tests/unit/ir/text_support.h"

namespace harpe::ir_test {
namespace {

constexpr std::int64_t kBatch = 2;
constexpr std::int64_t kHeads = 4;  // query heads, two to a KV head
constexpr std::int64_t kDim = 3;

std::string text_of(std::int64_t queries, std::int64_t keys, const std::string& more,
                    const std::string& masks, const std::string& whole) {
  return "program p { axis B = 2 axis Sq = " + std::to_string(queries) +
         " axis Skv = " + std::to_string(keys) + " axis H = 2 axis G = 2 axis D = 3" + more +
         " buffer q : f64[B, Sq, (H, G), D] in buffer k : f64[B, Skv, H, D] in"
         " buffer v : f64[B, Skv, H, D] in buffer o : f64[B, Sq, (H, G), D] out"
         " buffer l : f64[B, (H, G), Sq] out nest n over (B, H, G, Sq, Skv) whole (D" +
         whole + ") { (o, l) lse= attn_fwd(q, k, v)" + masks + " } }";
}

TensorMap random_inputs(std::int64_t queries, std::int64_t keys) {
  return {{"q", random_tensor(DType::F64, {kBatch, queries, kHeads, kDim}, 1, "q")},
          {"k", random_tensor(DType::F64, {kBatch, keys, 2, kDim}, 1, "k")},
          {"v", random_tensor(DType::F64, {kBatch, keys, 2, kDim}, 1, "v")}};
}

HostTensor integers(std::vector<std::int64_t> shape, const std::vector<std::int64_t>& values) {
  HostTensor tensor = make_tensor(DType::I32, std::move(shape));
  for (std::size_t i = 0; i < values.size(); ++i) {
    store(tensor, static_cast<std::int64_t>(i), static_cast<double>(values[i]));
  }
  return tensor;
}

// Positions [begin, end) of one batch entry.
HostTensor cut(const HostTensor& tensor, std::int64_t entry, std::int64_t begin, std::int64_t end) {
  const std::int64_t width = tensor.shape[2] * tensor.shape[3];
  HostTensor out =
      make_tensor(tensor.dtype, {kBatch, end - begin, tensor.shape[2], tensor.shape[3]});
  for (std::int64_t b = 0; b < kBatch; ++b) {
    for (std::int64_t i = 0; i < (end - begin) * width; ++i) {
      const std::int64_t from = (entry * tensor.shape[1] + begin) * width + i;
      store(out, b * (end - begin) * width + i, load(tensor, from));
    }
  }
  return out;
}

Meaning meaning_of(const std::string& text, const TensorMap& inputs) {
  const Checked<Program> program = instantiate(program_of(text), {});
  EXPECT_TRUE(program.ok()) << render(program.error());
  Checked<Meaning> meaning = interpret(*program, inputs, std::nullopt, 2);
  EXPECT_TRUE(meaning.ok()) << render(meaning.error());
  return std::move(meaning).value();
}

// Queries [begin, end) of `entry` have the results of `alone`, where they are entry 0.
void expect_same(const Meaning& all, std::int64_t entry, std::int64_t begin, std::int64_t end,
                 const Meaning& alone) {
  const HostTensor& o = all.outputs.at("o");
  const HostTensor& l = all.outputs.at("l");
  const std::int64_t width = kHeads * kDim;
  for (std::int64_t i = 0; i < (end - begin) * width; ++i) {
    EXPECT_NEAR(load(o, (entry * o.shape[1] + begin) * width + i), load(alone.outputs.at("o"), i),
                1e-14);
  }
  for (std::int64_t head = 0; head < kHeads; ++head) {
    for (std::int64_t i = 0; i < end - begin; ++i) {
      EXPECT_NEAR(load(l, (entry * kHeads + head) * l.shape[2] + begin + i),
                  load(alone.outputs.at("l"), head * (end - begin) + i), 1e-14);
    }
  }
}

TEST(MaskedByData, documents_are_sequences_of_their_own) {
  const std::string buffers = " axis S = 9 buffer seg : i32[B, S] in";
  for (const std::string mask : {"", "causal(Sq, Skv)", "window(Sq, Skv, 2)"}) {
    const std::string masks = " where doc(Sq, Skv, seg)" + (mask.empty() ? "" : " and " + mask);
    TensorMap inputs = random_inputs(9, 9);
    inputs["seg"] = integers({2, 9}, {5, 5, 5, 5, 6, 8, 8, 8, 8, 1, 1, 1, 1, 1, 1, 1, 1, 2});
    const Meaning all = meaning_of(text_of(9, 9, buffers, masks, ", S"), inputs);
    const std::vector<std::vector<std::int64_t>> borders = {{0, 4, 5, 9}, {0, 8, 9}};
    for (std::int64_t entry = 0; entry < kBatch; ++entry) {
      const std::vector<std::int64_t>& ends = borders[static_cast<std::size_t>(entry)];
      for (std::size_t i = 1; i < ends.size(); ++i) {
        const std::int64_t length = ends[i] - ends[i - 1];
        TensorMap one;
        for (const char* name : {"q", "k", "v"}) {
          one[name] = cut(inputs.at(name), entry, ends[i - 1], ends[i]);
        }
        const Meaning alone =
            meaning_of(text_of(length, length, "", mask.empty() ? "" : " where " + mask, ""), one);
        expect_same(all, entry, ends[i - 1], ends[i], alone);
      }
    }
  }
}

TEST(MaskedByData, documents_need_not_be_in_one_piece) {
  TensorMap inputs = random_inputs(4, 4);
  inputs["seg"] = integers({2, 4}, {1, 2, 1, 2, 3, 3, 3, 3});
  for (std::int64_t key : {1, 3}) {  // of the other document: no query of the first sees them
    store(inputs.at("k"), key * 2 * kDim, std::numeric_limits<double>::quiet_NaN());
    store(inputs.at("v"), key * 2 * kDim, std::numeric_limits<double>::quiet_NaN());
  }
  const Meaning meaning = meaning_of(
      text_of(4, 4, " axis S = 4 buffer seg : i32[B, S] in", " where doc(Sq, Skv, seg)", ", S"),
      inputs);
  for (std::int64_t query = 0; query < 4; ++query) {
    EXPECT_EQ(std::isnan(load(meaning.outputs.at("o"), query * kHeads * kDim)), query % 2 == 1);
  }
}

TEST(MaskedByData, a_length_cuts_the_keys_and_none_leaves_nothing) {
  TensorMap inputs = random_inputs(3, 7);
  inputs["len"] = integers({2}, {4, 0});
  const Meaning all =
      meaning_of(text_of(3, 7, " buffer len : i32[B] in", " where length(Skv, len)", ""), inputs);
  TensorMap one = inputs;
  one.erase("len");
  one["k"] = cut(inputs.at("k"), 0, 0, 4);
  one["v"] = cut(inputs.at("v"), 0, 0, 4);
  expect_same(all, 0, 0, 3, meaning_of(text_of(3, 4, "", "", ""), one));
  for (std::int64_t i = 0; i < 3 * kHeads * kDim; ++i) {
    EXPECT_EQ(load(all.outputs.at("o"), 3 * kHeads * kDim + i), 0);
  }
  for (std::int64_t i = 0; i < 3 * kHeads; ++i) {
    EXPECT_EQ(load(all.outputs.at("l"), 3 * kHeads + i), -std::numeric_limits<double>::infinity());
  }
}

TEST(MaskedByData, pages_hold_their_keys_wherever_they_lie) {
  // Four pages of two slots. Entry 0 has keys 0 1 on page 2, 2 3 on page 0, 4 5 on page 3, not page
  // 1, and uses five keys. The second page of entry 1 is absent.
  TensorMap inputs = random_inputs(2, 8);
  inputs["pages"] = integers({2, 4}, {2, 0, 3, -1, 0, -1, 1, 2});
  inputs["len"] = integers({2}, {5, 7});
  const Meaning all =
      meaning_of(text_of(2, 8, " axis Np = 4 buffer pages : i32[B, Np] in buffer len : i32[B] in",
                         " where paged(Skv, 2, pages) and length(Skv, len)", ", Np"),
                 inputs);
  const std::vector<std::vector<std::int64_t>> slots = {{4, 5, 0, 1, 6}, {0, 1, 2, 3, 4}};
  for (std::int64_t entry = 0; entry < kBatch; ++entry) {
    TensorMap one;
    one["q"] = cut(inputs.at("q"), entry, 0, 2);
    for (const char* name : {"k", "v"}) {
      one[name] = cut(inputs.at(name), entry, 0, 5);
      for (std::int64_t i = 0; i < 5; ++i) {
        const std::int64_t slot =
            slots[static_cast<std::size_t>(entry)][static_cast<std::size_t>(i)];
        for (std::int64_t d = 0; d < 2 * kDim; ++d) {
          store(one[name], i * 2 * kDim + d,
                load(inputs.at(name), (entry * 8 + slot) * 2 * kDim + d));
        }
      }
    }
    expect_same(all, entry, 0, 2, meaning_of(text_of(2, 5, "", "", ""), one));
  }
}

TEST(MaskedByData, pools_of_pages_are_caches_of_sequences) {
  // Five pages of two slots; page 3 is the first of both entries. Entry 1 uses three keys, and its
  // last page number is invalid. Unused slots are NaN.
  const std::vector<std::vector<std::int64_t>> slots = {{6, 7, 0, 1, 8, 9}, {6, 7, 4}};
  TensorMap inputs = random_inputs(2, 10);
  for (const char* name : {"k", "v"}) {
    const HostTensor whole = std::move(inputs[name]);
    inputs[name] = make_tensor(DType::F64, {10, 2, kDim});
    for (std::int64_t i = 0; i < 10 * 2 * kDim; ++i) {
      const bool is_used = i / (2 * kDim) != 2 && i / (2 * kDim) != 5;
      store(inputs[name], i, is_used ? load(whole, i) : std::numeric_limits<double>::quiet_NaN());
    }
  }
  inputs["tab"] = integers({2, 3}, {3, 0, 4, 3, 2, 77});
  inputs["len"] = integers({2}, {6, 3});
  std::string text =
      text_of(2, 10, " axis Np = 3 buffer tab : i32[B, Np] in buffer len : i32[B] in",
              " where paged(Skv, 2, tab) and length(Skv, len)", ", Np");
  for (const std::string name : {"k", "v"}) {
    text.replace(text.find(name + " : f64[B, "), name.size() + 10, name + " : f64[");
  }
  const Meaning all = meaning_of(text, inputs);
  for (std::int64_t entry = 0; entry < kBatch; ++entry) {
    const std::vector<std::int64_t>& own = slots[static_cast<std::size_t>(entry)];
    TensorMap one = {{"q", cut(inputs.at("q"), entry, 0, 2)}};
    for (const char* name : {"k", "v"}) {
      one[name] = make_tensor(DType::F64, {kBatch, std::ssize(own), 2, kDim});
      for (std::int64_t i = 0; i < std::ssize(own) * 2 * kDim; ++i) {
        const std::int64_t slot = own[static_cast<std::size_t>(i / (2 * kDim))];
        store(one[name], i, load(inputs.at(name), slot * 2 * kDim + i % (2 * kDim)));
      }
    }
    expect_same(all, entry, 0, 2, meaning_of(text_of(2, std::ssize(own), "", "", ""), one));
  }
}

TEST(MaskedByData, refuses_data_outside_its_meaning) {
  const Checked<Program> program = instantiate(
      program_of(text_of(3, 7, " buffer len : i32[B] in", " where length(Skv, len)", "")), {});
  TensorMap inputs = random_inputs(3, 7);
  inputs["len"] = integers({2}, {4, 8});
  const Checked<Meaning> meaning = interpret(*program, inputs, std::nullopt, 1);
  ASSERT_FALSE(meaning.ok());
  EXPECT_EQ(render(meaning.error()),
            "error[P220]: `len` holds 8 at [1], and mask `length` takes 0 to 7");
}

}  // namespace
}  // namespace harpe::ir_test
