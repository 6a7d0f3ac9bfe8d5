#include "measure/agreement.h"

#include <gtest/gtest.h>

#include "measure/statistics.h"

namespace harpe {
namespace agreement_test {

using Values = std::vector<double>;

TEST(Regret, is_what_the_first_by_prediction_lose_to_the_fastest) {
  const Values predicted = {3, 1, 2, 4};
  const Values measured = {10, 15, 12, 30};
  EXPECT_DOUBLE_EQ(regret(predicted, measured, 1), 0.5);
  EXPECT_DOUBLE_EQ(regret(predicted, measured, 2), 0.2);
  EXPECT_DOUBLE_EQ(regret(predicted, measured, 3), 0);
  EXPECT_DOUBLE_EQ(regret(predicted, measured, 8), 0);
  // Of equal predictions the first one counts.
  EXPECT_DOUBLE_EQ(regret(Values{1, 1}, Values{20, 10}, 1), 1);
}

TEST(Agreement, has_the_worst_regret_of_its_questions) {
  const std::vector<TimePair> pairs = {{.predicted_us = 1, .measured_us = 12, .question = "a"},
                                       {.predicted_us = 2, .measured_us = 10, .question = "a"},
                                       {.predicted_us = 3, .measured_us = 1, .question = "b"},
                                       {.predicted_us = 4, .measured_us = 2, .question = "b"},
                                       {.predicted_us = 5, .measured_us = 1, .question = "c"}};
  const Agreement all = agreement_of("all", true, pairs);
  EXPECT_EQ(all.count, 5);
  EXPECT_DOUBLE_EQ(*all.regret_1, 0.2);
  EXPECT_DOUBLE_EQ(*all.regret_8, 0);
  const Agreement alone = agreement_of("c", true, {pairs.back()});
  EXPECT_FALSE(alone.regret_1.has_value()) << "nothing competes with it";
  EXPECT_DOUBLE_EQ(alone.mean_ratio, 5);
  EXPECT_DOUBLE_EQ(alone.median_error, 4);
}

}  // namespace agreement_test
}  // namespace harpe
