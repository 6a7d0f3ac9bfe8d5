#pragma once

#include <functional>
#include <string>
#include <utility>

#include "plan/plan.h"
#include "verify/model.h"

namespace harpe::verifier {

// Names tasks, slots and blocks in findings.
class Words {
 public:
  // Names the steps of a launch plan.
  using NameTask = std::function<std::string(std::int64_t)>;

  Words(const Plan& plan, const Model& model, NameTask name_task = {})
      : plan_(plan), model_(model), name_task_(std::move(name_task)) {}

  [[nodiscard]] const Model& model() const { return model_; }
  [[nodiscard]] std::string task(TaskId id) const;  // "task 24 (compute fwd.0 on rank 3)"
  [[nodiscard]] std::string task(std::int64_t id) const { return task(TaskId(id)); }
  [[nodiscard]] std::string alloc(std::int64_t id) const;  // "`fwd.K.st0.1` of rank 4"
  [[nodiscard]] std::string block(int buffer, std::int64_t block) const;    // "`K` [k0=5]"
  [[nodiscard]] std::string iteration(int nest, std::int64_t block) const;  // "iteration [k0=5]"
  [[nodiscard]] std::string statement(int statement) const;                 // "fwd.0"
  [[nodiscard]] std::string cut(const Cut& cut) const;  // "iterations with e1=2"
  [[nodiscard]] RankId rank_of(std::int64_t task) const;

 private:
  [[nodiscard]] std::string point(const Radix& radix, std::int64_t block) const;

  const Plan& plan_;
  const Model& model_;
  NameTask name_task_;
};

// "1 contribution", "3 contributions".
[[nodiscard]] std::string count_of(std::int64_t count, const std::string& noun);

// A write mode as findings name it: "init".
[[nodiscard]] const char* mode_word(WriteMode mode);

}  // namespace harpe::verifier
