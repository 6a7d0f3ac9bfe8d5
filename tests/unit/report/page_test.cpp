#include "report/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <set>

#include "tests/support/sample_page.h"

namespace harpe {
namespace {

using testing::HasSubstr;
using testing::Not;

std::size_t count(const std::string& text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

constexpr std::array kSections = {"front",    "taxes",    "timeline",    "path",
                                  "roofline", "memory",   "utilisation", "candidates",
                                  "refused",  "schedule", "plan"};

TEST(ReportPage, has_every_section_once_with_a_link_to_it) {
  const std::string text = print_html(sample_page(8, 8));
  for (const std::string id : kSections) {
    EXPECT_EQ(count(text, "<section id=\"" + id + "\""), 1U) << id;
    EXPECT_EQ(count(text, "href=\"#" + id + "\""), 1U) << id;
  }
}

TEST(ReportPage, leaves_out_sections_without_values) {
  ReportPage page;
  page.title = "gemm on tp=2";
  const std::string text = print_html(page);
  EXPECT_THAT(text, HasSubstr("<h1>gemm on tp=2</h1>"));
  EXPECT_EQ(count(text, "<section"), 0U);
  EXPECT_EQ(count(text, "<nav"), 0U);
}

TEST(ReportPage, is_one_value_one_text) {
  EXPECT_EQ(print_html(sample_page(4, 4)), print_html(sample_page(4, 4)));
}

// Every opening tag, except void ones, has its closing tag in order.
TEST(ReportPage, nests_its_elements) {
  const std::set<std::string> kVoid = {"meta", "circle", "line", "rect", "path", "!doctype"};
  for (const ReportPage& page : {sample_page(8, 8), hostile_page()}) {
    std::string text = print_html(page);
    for (const std::string_view raw : {"style", "script"}) {  // hold other languages
      const std::string open = "<" + std::string(raw);
      const std::string close = "</" + std::string(raw) + ">";
      for (std::size_t at = text.find(open); at != std::string::npos; at = text.find(open, at)) {
        text.erase(at, text.find(close, at) + close.size() - at);
      }
    }
    std::vector<std::string> stack;
    for (std::size_t at = text.find('<'); at != std::string::npos; at = text.find('<', at + 1)) {
      const bool closes = text[at + 1] == '/';
      const std::size_t begin = at + (closes ? 2 : 1);
      const std::string name = text.substr(begin, text.find_first_of(" >/", begin) - begin);
      if (kVoid.contains(name)) continue;
      if (!closes) {
        stack.push_back(name);
        continue;
      }
      ASSERT_FALSE(stack.empty()) << name;
      ASSERT_EQ(stack.back(), name) << text.substr(at - 80, 160);
      stack.pop_back();
    }
    EXPECT_TRUE(stack.empty());
  }
}

TEST(ReportPage, escapes_every_text) {
  const std::string text = print_html(hostile_page());
  EXPECT_THAT(text, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(text, Not(HasSubstr("<b>&amp; ]]>")));
  EXPECT_THAT(text, Not(HasSubstr("\x01")));
  // The page's own scripts: the data and the code.
  EXPECT_EQ(count(text, "<script"), 2U);
  EXPECT_EQ(count(text, "</script>"), 2U);
}

TEST(ReportPage, asks_for_nothing_from_elsewhere) {
  const std::string text = print_html(sample_page(8, 8));
  for (const std::string_view link : {"src=", "@import", "url(", "https://"}) {
    EXPECT_THAT(text, Not(HasSubstr(std::string(link)))) << link;
  }
  EXPECT_EQ(count(text, "http://"), count(text, "http://www.w3.org/2000/svg"));
}

TEST(ReportPage, of_eight_ranks_with_thousands_of_tasks_stays_small) {
  const std::string text = print_html(sample_page(8, 340));
  EXPECT_LT(text.size(), 2'000'000U);
  EXPECT_THAT(text, Not(HasSubstr("ranks are drawn")));
}

TEST(ReportPage, draws_the_first_ranks_where_there_are_too_many_tasks) {
  const std::string text = print_html(sample_page(64, 64));
  EXPECT_LT(text.size(), 2'000'000U);
  EXPECT_THAT(text, HasSubstr("The first 32 of 64 ranks are drawn."));
}

TEST(ReportPage, has_no_row_for_a_queue_that_does_nothing) {
  ReportPage page = sample_page(2, 3);
  page.timeline->queues.push_back({1, "proxy"});
  EXPECT_THAT(print_html(page), Not(HasSubstr(">proxy</text>")));
}

TEST(ReportPage, survives_values_at_their_ends) {
  ReportPage page = sample_page(2, 3);
  page.timeline->total = Picoseconds();
  for (PageTask& task : page.timeline->tasks) task.ready = task.begin = task.end = Picoseconds();
  page.critical_path = {{Spending::Compute, Picoseconds(), Picoseconds(), TaskId(0), "none"}};
  for (PageCandidate& candidate : page.candidates) {
    candidate.time = Picoseconds();
    candidate.memory_bytes = 0;
  }
  page.memory->peak_bytes = 0;
  page.memory->points = {{Picoseconds(), 0}};
  page.memory->total = Picoseconds();
  page.taxes.assign(2, PageTaxes());
  const std::string text = print_html(page);
  EXPECT_THAT(text, Not(HasSubstr("nan")));
  EXPECT_THAT(text, Not(HasSubstr("inf%")));
  EXPECT_EQ(count(text, "<section id=\"timeline\""), 0U);
}

}  // namespace
}  // namespace harpe
