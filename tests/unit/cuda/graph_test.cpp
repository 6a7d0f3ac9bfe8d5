#include "exec/cuda/runtime/graph.h"

#include <gtest/gtest.h>

#include "tests/support/fake_driver.h"

namespace harpe::cuda {
namespace {

using testing_support::fake_gpu;
using testing_support::make_fake_driver;
using Calls = std::vector<std::string>;

class Graphs : public testing::Test {
 protected:
  Graphs() { fake_gpu().calls.clear(); }

  const Device device_ = Device::open(make_fake_driver(), DeviceId(0)).value();
  const Stream stream_ = Stream::create(device_).value();
};

TEST_F(Graphs, are_captured_run_and_destroyed_once) {
  {
    auto capture = GraphCapture::begin(device_, stream_);
    ASSERT_TRUE(capture.ok());
    GraphCapture moved = std::move(capture).value();
    auto graph = moved.end();
    ASSERT_TRUE(graph.ok());
    const Graph kept = std::move(graph).value();
    EXPECT_EQ(kept.nodes(), 3);
    EXPECT_TRUE(kept.launch(stream_).ok());
  }
  EXPECT_EQ(fake_gpu().calls,
            (Calls{"cuStreamBeginCapture", "cuStreamEndCapture", "cuGraphInstantiateWithFlags",
                   "cuGraphDestroy", "cuGraphLaunch", "cuGraphExecDestroy"}));
}

TEST_F(Graphs, whose_capture_is_given_up_free_the_stream) {
  {
    const auto capture = GraphCapture::begin(device_, stream_);
  }
  EXPECT_EQ(fake_gpu().calls,
            (Calls{"cuStreamBeginCapture", "cuStreamEndCapture", "cuGraphDestroy"}));
}

TEST_F(Graphs, whose_capture_went_wrong_are_refused) {
  fake_gpu().capture = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  auto capture = GraphCapture::begin(device_, stream_);
  ASSERT_TRUE(capture.ok());
  const auto graph = capture->end();
  ASSERT_FALSE(graph.ok());
  EXPECT_EQ(graph.error().code, DiagCode::G005);
  EXPECT_EQ(fake_gpu().calls, (Calls{"cuStreamBeginCapture", "cuStreamEndCapture"}));
}

}  // namespace
}  // namespace harpe::cuda
