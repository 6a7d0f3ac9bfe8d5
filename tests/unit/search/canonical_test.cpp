#include "search/canonical.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "ir/text.h"
#include "schedule/source_file.h"
#include "support/check.h"
#include "tests/unit/search/cases.h"

namespace harpe {
namespace {

// Every word of a text that is one of the names, with a letter in front.
std::string rename_all(const std::string& text, const std::set<std::string>& names) {
  std::string out;
  std::string word;
  const auto flush = [&] {
    out += names.contains(word) ? "z" + word : word;
    word.clear();
  };
  for (const char c : text) {
    const bool letter = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
    if (letter) {
      word += c;
      continue;
    }
    flush();
    out += c;
  }
  flush();
  return out;
}

NormalForm renamed(const NormalForm& form) {
  std::set<std::string> names = {form.name};
  for (const Split& split : form.splits) {
    for (const Digit& digit : split.digits) names.insert(digit.name);
  }
  for (const Refine& refine : form.refines) {
    for (const MeshAxis& part : refine.parts) names.insert(part.name);
  }
  const Checked<SourceFile> out = parse_source(rename_all(print(form), names), "renamed");
  HP_CHECK(out.ok(), out.ok() ? "" : render(out.error()));
  return std::get<NormalForm>(out->items.front());
}

std::unique_ptr<Case> ring_case() {
  return make_case({"attention", {"seq=64", "heads=8", "head_dim=8", "causal=true"}, "cp=8"});
}

TEST(CanonicalText, does_not_depend_on_names) {
  const auto one = ring_case();
  for (const char* schedule : {"ring", "zigzag_ring", "usp", "double_ring", "mercury_novel8"}) {
    const NormalForm form = named_form(*one, schedule);
    const NormalForm other = renamed(form);
    ASSERT_NE(print(form), print(other)) << schedule;
    EXPECT_EQ(canonical_text(one->program, form), canonical_text(one->program, other)) << schedule;
  }
}

TEST(CanonicalText, does_not_depend_on_the_order_of_homes) {
  const auto one = ring_case();
  NormalForm form = named_form(*one, "ring");
  const std::string text = canonical_text(one->program, form);
  std::ranges::reverse(form.places);
  ASSERT_NE(form.places.front().buffer, "q");
  EXPECT_EQ(canonical_text(one->program, form), text);
}

TEST(CanonicalText, depends_on_everything_else) {
  const auto one = ring_case();
  const NormalForm ring = named_form(*one, "ring");
  const std::string text = canonical_text(one->program, ring);
  const auto changed = [&](auto change) {
    NormalForm form = ring;
    change(form);
    return canonical_text(one->program, form);
  };
  const auto move = [](NormalForm& form) -> Move& {
    for (NestItem& item : form.nests.front().items) {
      if (auto* found = std::get_if<Move>(&item)) return *found;
    }
    HP_CHECK(false, "a ring moves something");
    return std::get<Move>(form.nests.front().items.front());
  };
  EXPECT_NE(text, changed([&](NormalForm& form) { move(form).depth = 3; }));
  EXPECT_NE(text, changed([&](NormalForm& form) { move(form).via = Via::Tma; }));
  EXPECT_NE(text, changed([&](NormalForm& form) { move(form).how = How::Direct; }));
  EXPECT_NE(text, changed([](NormalForm& form) {
              form.layouts.clear();
              form.places.pop_back();
            }));
  EXPECT_NE(text, changed([](NormalForm& form) {
              for (NestItem& item : form.nests.front().items) {
                if (auto* loop = std::get_if<For>(&item)) loop->reverse = true;
              }
            }));
  std::set<std::string> all = {text};
  for (const char* schedule : {"zigzag_ring", "allgather", "ulysses", "usp", "double_ring",
                               "hybrid", "q_rotation", "mercury_novel8", "tree"}) {
    EXPECT_TRUE(all.insert(canonical_text(one->program, named_form(*one, schedule))).second)
        << schedule;
  }
}

}  // namespace
}  // namespace harpe
