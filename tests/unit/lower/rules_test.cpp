// The rules of commir.md 4 to 7, one line each. A normal form that keeps the rule lowers and is
// proved; the same form with one change is refused by that rule's code. Routes (8) have
// routes_test.cpp. What only a plan can break (7.3, 10.3) is in tests/unit/verify/fences_test.cpp
// and residency_test.cpp.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/lower/fixture.h"

namespace harpe::test {
namespace rules_test {

struct Rule {
  std::string section;
  std::string title;
  Source kept;
  std::string from;  // the text to replace
  std::string to;
  std::string code;
};

Source ring(const std::string& stage = "stage a over x relay by src depth 2 via ce signal event") {
  return gemm(48, 48, 16, "x:4",
              "  split M = m0:4 * m1:_\n  split N = n0:4 * n1:_\n"
              "  place a[m0@x]\n  place b[n0@x]\n  place c[n0@x]\n"
              "  nest mm {\n    par n0 on x\n    for m0 skew x\n    " +
                  stage + "\n    leaf\n  }\n");
}

Source scatter(const std::string& drain, const std::string& home = "[m0@x]") {
  return gemm(48, 16, 48, "x:4",
              "  split M = m0:4 * m1:_\n  split K = k0:4 * k1:_\n"
              "  place a[k0@x]\n  place b[k0@x]\n  place c" +
                  home + "\n  nest mm {\n    par k0 on x\n    for m0 skew x + 1\n    " + drain +
                  "\n    leaf\n  }\n");
}

Source grid() {
  return gemm(16, 16, 16, "x:2, y:2",
              "  split M = m0:2 * m1:_\n  split N = n0:2 * n1:_\n"
              "  place a[m0@x]\n  place b[n0@y]\n  place c[m0@x, n0@y]\n"
              "  nest mm {\n    par m0 on x\n    par n0 on y\n    leaf\n  }\n");
}

Source aligned() {
  return gemm(16, 16, 16, "x:4",
              "  split M = m0:4 * m1:_\n  place a[]\n  place b[]\n  place c[m0@x]\n"
              "  nest mm {\n    par m0 on x\n    leaf\n  }\n");
}

Source gather_attention() {
  return attention(
      16, 16, false, "x:4",
      "  split Sq = q0:4 * q1:_\n  split Skv = k0:4 * k1:_\n"
      "  place q[q0@x]\n  place k[k0@x]\n  place v[k0@x]\n  place o[q0@x]\n"
      "  place l[q0@x]\n"
      "  nest fwd {\n    par q0 on x\n    stage k over x bulk\n    stage v over x bulk\n"
      "    leaf\n  }\n");
}

Source zigzag() {
  return gemm(48, 16, 16, "x:4",
              "  split M = m0:4 * mh:2 * m1:_\n  layout M zigzag(m0, mh)\n  place a[m0@x]\n"
              "  place b[]\n  place c[m0@x]\n  nest mm {\n    par m0 on x\n    leaf\n  }\n");
}

Source fused() {
  Source source = ring("stage a over x direct by dst depth 3 via ce signal event");
  source.form.insert(source.form.rfind('}'), "  fuse all = mm persistent\n");
  return source;
}

const std::string kRelayDrain = "drain c over x relay by src depth 2 via ce signal event";
const std::string kOneShotDrain = "drain c over x one_shot by src via sm signal counter";
const std::string kInlineDrain = "drain c over x inline via sm signal flag";
const std::string kPush = "stage a over x direct by src depth 3 via proxy signal flag fence dest";

std::vector<Rule> rules() {
  return {
      {"3", "a digit has one name", ring(), "n0:4 * n1:_", "n0:4 * m1:_", "F103"},
      {"3", "an axis is split once", grid(), "split N =", "split M =", "F102"},
      {"4.1", "a digit is bound once", ring(), "for m0 skew x", "for n0 skew x", "F201"},
      {"4.1", "a bound digit is the nest's", ring(), "for m0 skew x", "for z0 skew x", "F202"},
      {"4.1", "a mesh axis spreads one digit", grid(), "par n0 on y", "par n0 on x", "F204"},
      {"4.1", "a digit fits its mesh axes", ring(), "n0:4", "n0:2", "F111"},
      {"4.1", "a skew follows what is outside", ring(), "skew x", "skew n1", "F206"},
      {"4.2", "operands are local", ring(), "    stage a", "    // stage a", "F214"},
      {"4.2", "a home uses a mesh axis once", grid(), "c[m0@x, n0@y]", "c[m0@x, n0@x]", "F112"},
      {"4.2", "a home has digits of its buffer", grid(), "a[m0@x]", "a[n0@x]", "F110"},
      {"4.3", "contributions meet", scatter(kRelayDrain), "    drain", "    // drain", "F207"},
      {"4.3", "homes are reached", aligned(), "par m0 on x", "for m0", "F208"},
      {"D3", "drains are over disjoint axes", scatter(kRelayDrain), "    leaf",
       "    drain c over x direct\n    leaf", "F225"},
      {"D3", "stages are over disjoint axes", ring(), "    for m0",
       "    stage a over x bulk\n    for m0", "F225"},
      {"D3", "a move names an axis once", scatter(kRelayDrain), "drain c over x",
       "drain c over (x, x)", "F225"},
      {"4.4", "a relay rotates", ring(), "for m0 skew x", "for m0", "F209"},
      {"4.4", "a relay runs forwards", ring(), "for m0 skew x", "for m0 skew x rev", "F209"},
      {"4.4", "a relay has two slots", ring(), "depth 2", "depth 1", "F210"},
      {"4.4", "a travelling sum has one home", scatter(kRelayDrain), "c[m0@x]", "c[]", "F217"},
      {"4.4", "a one-shot ends everywhere", scatter(kOneShotDrain, "[]"), "c[]", "c[m0@x]", "F227"},
      {"4.4", "a one-shot adds up", ring("stage a over x direct by src"), "direct by",
       "one_shot by", "F227"},
      {"4.4", "inline operands need a kernel", gather_attention(), "stage k over x bulk",
       "stage k over x inline", "F301"},
      {"4.4", "inline results need a kernel",
       attention(16, 16, false, "x:4",
                 "  split Skv = k0:4 * k1:_\n  split H = h0:4\n  place q[]\n  place k[k0@x]\n"
                 "  place v[k0@x]\n  place o[h0@x]\n  place l[h0@x]\n"
                 "  nest fwd {\n    par k0 on x\n    drain o over x bulk via ce\n"
                 "    drain l over x bulk via ce\n    leaf\n  }\n"),
       "bulk via ce", "inline via sm", "F240"},
      {"4.4", "inline results are not rounded on the way", scatter(kInlineDrain), "inline via",
       "inline wire bf16 via", "F241"},
      {"4.5", "there is a slot", ring("stage a over x direct by dst depth 2"), "depth 2", "depth 0",
       "F222"},
      {"4.5", "a grain is a digit of what moves", ring("stage a over x direct by dst grain m1"),
       "grain m1", "grain n1", "F218"},
      {"4.6", "a zigzag has two halves", zigzag(), "mh:2", "mh:3", "F109"},
      {"5", "parts are of the statement's monoid", scatter("", "[] partial sum@x"), "partial sum",
       "partial max", "F242"},
      {"5", "parts are of a divided sum", scatter("", "[] partial sum@x"), "par k0 on x", "for k0",
       "F242"},
      {"5", "a fusion holds nests", fused(), "= mm", "= other", "F244"},
      {"7.4", "a fence is for what can be overtaken", ring(kPush), "via proxy", "via ce", "F245"},
      {"7.4", "NICs are driven by the source", ring(kPush), "by src", "by dst", "F245"},
      {"7.4", "signals are the transport's", ring(), "signal event", "signal counter", "F245"},
      {"9", "a wire is floating", ring("stage a over x direct wire f16"), "wire f16", "wire i8",
       "F226"},
      {"9", "replicas add up in one order",
       gemm(16, 16, 48, "x:2",
            "  split K = k0:2 * k1:_\n  place a[]\n  place b[]\n  place c[]\n"
            "  nest mm {\n    for k0\n    leaf\n  }\n"),
       "for k0", "for k0 skew x", "F223"},
  };
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  EXPECT_NE(text.find(from), std::string::npos) << from;
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

TEST(Rules, are_kept_by_one_form_and_broken_by_its_neighbour) {
  for (const Rule& rule : rules()) {
    SCOPED_TRACE(rule.section + " " + rule.title);
    (void)expect_plan(rule.kept);
    Source broken = rule.kept;
    broken.form = replaced(broken.form, rule.from, rule.to);
    EXPECT_EQ(refusal(broken).substr(0, 11), "error[" + rule.code + "]");
  }
}

}  // namespace rules_test
}  // namespace harpe::test
