#include "compile/target.h"

#include <gtest/gtest.h>

#include "ir/text.h"

namespace harpe {
namespace {

std::string refusal(const auto& result) {
  return result.ok() ? "accepted" : render(result.error());
}

std::string parameters(const std::vector<std::string>& words) {
  return refusal(bind_program(*load_template("attention"), words, {}));
}

TEST(MeshOption, names_axes_major_first) {
  const Checked<Mesh> mesh = parse_mesh_option("node=2,gpu=4");
  ASSERT_TRUE(mesh.ok()) << render(mesh.error());
  EXPECT_EQ(print(*mesh), "mesh node2_gpu4 = node:2, gpu:4\n");
}

TEST(MeshOption, refuses_what_is_no_mesh) {
  const auto mesh = [](std::string_view text) { return refusal(parse_mesh_option(text)); };
  EXPECT_EQ(mesh(""),
            "error[U112]: mesh `` is not of the form NAME=SIZE,NAME=SIZE: an axis is empty");
  EXPECT_EQ(mesh("cp=8,"),
            "error[U112]: mesh `cp=8,` is not of the form NAME=SIZE,NAME=SIZE: an axis is empty");
  EXPECT_EQ(mesh("8"),
            "error[U112]: mesh `8` is not of the form NAME=SIZE,NAME=SIZE: `8` has no `=`");
  EXPECT_EQ(mesh("2p=8"),
            "error[U112]: mesh `2p=8` is not of the form NAME=SIZE,NAME=SIZE: `2p` is not a name");
  EXPECT_EQ(
      mesh("cp=two"),
      "error[U112]: mesh `cp=two` is not of the form NAME=SIZE,NAME=SIZE: `two` is not a size");
  EXPECT_TRUE(mesh("cp=0").starts_with("error[M102]")) << mesh("cp=0");
  EXPECT_TRUE(mesh("cp=1000000000").starts_with("error[M102]")) << mesh("cp=1000000000");
  EXPECT_TRUE(mesh("cp=65536,tp=65536,pp=65536,dp=65536").starts_with("error[M102]"));
  EXPECT_TRUE(mesh("cp=2,cp=4").starts_with("error[M103]")) << mesh("cp=2,cp=4");
}

TEST(Parameters, are_refused_when_given_twice) {
  EXPECT_EQ(parameters({"seq=4", "seq=5"}),
            "error[U106]: parameter `seq` is given twice: `seq=4` and `seq=5`; keep one of them");
  EXPECT_EQ(parameters({"seq=4", "seq=4"}),
            "error[U106]: parameter `seq` is given twice: `seq=4` and `seq=4`; keep one of them");
}

TEST(Parameters, are_refused_when_unknown_with_the_known_ones) {
  const std::string text = parameters({"dropout=4"});
  EXPECT_TRUE(text.starts_with("error[P101]: program `attention` has no parameter `dropout`"))
      << text;
  EXPECT_NE(
      text.find(
          "note: parameters of `attention`: `batch`, `seq`, `kv_seq`, `heads`, "
          "`kv_heads`, `head_dim`, `v_head_dim`, `causal`, `window`, `prefix`, `packed`, `dtype`"),
      std::string::npos)
      << text;
}

TEST(Parameters, are_refused_when_they_have_no_value_or_two) {
  EXPECT_EQ(parameters({"causal"}), "error[U107]: `causal` is not of the form NAME=VALUE");
  EXPECT_EQ(parameters({"seq="}), "error[U107]: `seq=` is not of the form NAME=VALUE");
  EXPECT_EQ(parameters({"=4"}), "error[U107]: `=4` is not of the form NAME=VALUE");
  EXPECT_EQ(parameters({"seq=4k"}),
            "error[T001]: expected the end of the value, found `k`\n  note: in parameter `seq=4k`");
  EXPECT_EQ(parameters({"seq=99999999999999999999"}),
            "error[T003]: number `99999999999999999999` does not fit 64 bits\n"
            "  note: in parameter `seq=99999999999999999999`");
}

TEST(Target, is_known_by_its_ending) {
  EXPECT_EQ(kind_of("gemm"), TargetKind::Operator);
  EXPECT_EQ(kind_of("my.op"), TargetKind::OperatorFile);
  EXPECT_EQ(kind_of("a/b.plan"), TargetKind::PlanFile);
}

TEST(Target, suggests_the_nearest_operator) {
  const std::string text = refusal(load_template("atention"));
  EXPECT_EQ(text,
            "error[U108]: `atention` is not an operator (did you mean `attention`?); "
            "`harpe ops` lists the operators");
}

}  // namespace
}  // namespace harpe
