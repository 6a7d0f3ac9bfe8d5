#include "support/diag.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "support/option_words.h"

namespace harpe {
namespace {

Diag unexpected() { return make_diag(DiagCode::T001, {{"expected", "`:`"}, {"found", "`=`"}}); }

// Names of arguments.
std::set<std::string> placeholders_of(std::string_view text) {
  std::set<std::string> names;
  for (std::size_t at = text.find('{'); at != std::string_view::npos; at = text.find('{', at + 1)) {
    const std::string_view name = text.substr(at + 1, text.find('}', at) - at - 1);
    if (!name.starts_with("option:")) names.emplace(name);
  }
  return names;
}

TEST(Diag, renders_its_code_and_message) {
  EXPECT_EQ(render_message(unexpected()), "expected `:`, found `=`");
  EXPECT_EQ(render(unexpected()), "error[T001]: expected `:`, found `=`");
}

TEST(Diag, renders_where_it_is) {
  Diag diag = unexpected();
  diag.where = SourcePosition{"a.cir", 3, 7};
  EXPECT_EQ(render(diag), "error[T001]: a.cir:3:7: expected `:`, found `=`");
  diag.where->file.clear();
  EXPECT_EQ(render(diag), "error[T001]: 3:7: expected `:`, found `=`");
}

TEST(Diag, renders_remedy_and_notes_after_the_message) {
  const Diag diag = with_note(with_note(make_diag(DiagCode::T004), "in step 3"), "in `ring`");
  EXPECT_EQ(render(diag),
            "error[T004]: string is not closed on its line; close it with `\"`\n"
            "  note: in step 3\n  note: in `ring`");
}

TEST(Diag, renders_what_users_and_files_say_so_that_it_can_be_shown) {
  Diag diag = make_diag(DiagCode::T001, {{"expected", "`:`"}, {"found", "`\x1b[2J\n\xff`"}});
  diag.where = SourcePosition{"a\x07.op", 3, 7};
  diag.notes = {"in parameter `\x1b`", "the compiler says\nerror: x\n"};
  EXPECT_EQ(render(diag),
            "error[T001]: a\\x07.op:3:7: expected `:`, found `\\x1b[2J\\n\\xff`\n"
            "  note: in parameter `\\x1b`\n"
            "  note: the compiler says\n    error: x");
}

TEST(Diag, shortens_what_is_long) {
  const std::string name(5000, 'a');
  const Diag diag =
      with_note(make_diag(DiagCode::T001, {{"expected", "x"}, {"found", name}}), name);
  EXPECT_LT(render(diag).size(), 600U);
  EXPECT_NE(render_message(diag).find("… 4,800 more characters …"), std::string::npos);
}

TEST(Diag, renders_numbers_as_they_are) {
  const Diag integer = make_diag(DiagCode::T003, {{"text", "x"}, {"bits", std::size_t{64}}});
  EXPECT_EQ(render_message(integer), "number `x` does not fit 64 bits");
  const Diag real = make_diag(DiagCode::T003, {{"text", 0.1}, {"bits", -1}});
  EXPECT_EQ(render_message(real), "number `0.1` does not fit -1 bits");
}

TEST(Diag, names_options_as_the_front_end_does) {
  const OptionWords shout = [](std::string_view name, std::string_view value) {
    return "<" + std::string(name) + ">" + std::string(value);
  };
  const Diag late = make_diag(DiagCode::S705, {{"work", "it"}, {"program", "p"}, {"seconds", 1}});
  EXPECT_EQ(render_remedy(late), "raise `budget` to look at the rest");
  EXPECT_TRUE(render(late, "warning", shout).starts_with("warning[S705]"));
  EXPECT_TRUE(render(late, "warning", shout).ends_with("raise `<budget>` to look at the rest"));

  const Diag bare =
      make_diag(DiagCode::U110, {{"verb", "run"}, {"option:what", "a mesh: `{option:mesh=N=S}`"}});
  EXPECT_EQ(render_message(bare), "`run` needs a mesh: `mesh=N=S`");
  EXPECT_EQ(render_message(bare, shout), "`run` needs a mesh: `<mesh>N=S`");
  EXPECT_EQ(fill_options("`{flag}` or `{option:a_b=c}`", shout), "`{flag}` or `<a_b>c`");
}

TEST(Diag, takes_no_option_from_what_users_write) {
  const Diag diag = make_diag(DiagCode::T001, {{"expected", "x"}, {"found", "{option:mesh}"}});
  EXPECT_EQ(render_message(diag), "expected x, found {option:mesh}");
}

// The first remedy with arguments, of any code.
TEST(Diag, fills_the_remedy_too) {
  const auto entry = std::ranges::find_if(
      all_diags(), [](const DiagInfo& each) { return !placeholders_of(each.remedy).empty(); });
  if (entry == all_diags().end()) GTEST_SKIP() << "no remedy has arguments";
  Diag diag = make_diag(entry->code);
  const std::set<std::string> names = placeholders_of(entry->message);
  for (const std::string& name : names) diag.args.emplace_back(name, "VALUE");
  const std::string rendered = render(diag);
  EXPECT_EQ(rendered.find('{'), std::string::npos) << rendered;
  EXPECT_NE(rendered.rfind("VALUE"), rendered.find("VALUE")) << rendered;
}

TEST(Diag, a_missing_argument_is_our_error) {
  EXPECT_THROW((void)render(make_diag(DiagCode::T001)), InternalError);
}

TEST(Diag, codes_are_found_by_name) {
  EXPECT_EQ(find_diag("T003"), DiagCode::T003);
  EXPECT_EQ(find_diag("T999"), std::nullopt);
  for (const DiagInfo& entry : all_diags()) {
    EXPECT_EQ(find_diag(entry.name), entry.code);
    EXPECT_EQ(info(entry.code).name, entry.name);
  }
}

bool is_capital(char letter) { return letter >= 'A' && letter <= 'Z'; }

TEST(DiagTable, every_message_is_written_in_the_house_style) {
  for (const DiagInfo& entry : all_diags()) {
    SCOPED_TRACE(entry.name);
    ASSERT_FALSE(entry.message.empty());
    // An initialism such as GPU keeps its capitals.
    EXPECT_FALSE(is_capital(entry.message[0]) && !is_capital(entry.message[1]));
    EXPECT_FALSE(entry.message.ends_with('.'));
    EXPECT_EQ(std::ranges::count(entry.message, '{'), std::ranges::count(entry.message, '}'));
    EXPECT_EQ(std::ranges::count(entry.message, '`') % 2, 0);
    EXPECT_TRUE(entry.meaning.ends_with('.')) << "the meaning is made of sentences";
    EXPECT_FALSE(entry.remedy.ends_with('.'));
  }
}

// The arguments of the message must suffice for the remedy.
TEST(DiagTable, a_remedy_has_no_argument_of_its_own) {
  for (const DiagInfo& entry : all_diags()) {
    const std::set<std::string> known = placeholders_of(entry.message);
    for (const std::string& name : placeholders_of(entry.remedy)) {
      EXPECT_TRUE(known.contains(name)) << entry.name << " " << name;
    }
  }
}

TEST(DiagTable, every_code_is_a_family_letter_and_three_digits) {
  std::set<std::string_view> names;
  for (const DiagInfo& entry : all_diags()) {
    SCOPED_TRACE(entry.name);
    EXPECT_TRUE(names.insert(entry.name).second);
    ASSERT_EQ(entry.name.size(), 4U);
    EXPECT_NE(std::string_view("TPMSFVIUXGN").find(entry.name.front()), std::string_view::npos);
    EXPECT_TRUE(
        std::ranges::all_of(entry.name.substr(1), [](char c) { return c >= '0' && c <= '9'; }));
  }
}

TEST(Nearest, finds_slips_of_the_hand) {
  const std::vector<std::string> words = {"relay", "direct", "inline", "bulk"};
  EXPECT_EQ(nearest("rely", words), "relay");
  EXPECT_EQ(nearest("dierct", words), "direct");
  EXPECT_EQ(nearest("relay", words), "relay");
  EXPECT_EQ(nearest("allgather", words), std::nullopt);
  EXPECT_EQ(nearest("x", std::vector<std::string>{}), std::nullopt);
}

TEST(Nearest, is_the_first_of_equally_near_ones) {
  const std::vector<std::string> words = {"cat", "bat", "hat"};
  EXPECT_EQ(nearest("rat", words), "cat");
}

TEST(Nearest, takes_the_one_that_a_beginning_means) {
  const std::vector<std::string> words = {"--seed", "--schedule", "--mesh", "--memory"};
  EXPECT_EQ(nearest("--sched", words), "--schedule");
  EXPECT_EQ(nearest("--me", words), "--mesh");  // several match; the nearest one wins
}

TEST(Nearest, takes_capitals_for_small_letters) {
  const std::vector<std::string> words = {"cpu", "cuda"};
  EXPECT_EQ(nearest("CUDA", words), "cuda");
}

TEST(Suggestion, is_a_question_or_nothing) {
  const std::vector<std::string> words = {"ring"};
  EXPECT_EQ(suggestion("rnig", words), " (did you mean `ring`?)");
  EXPECT_EQ(suggestion("ulysses", words), "");
}

}  // namespace
}  // namespace harpe
