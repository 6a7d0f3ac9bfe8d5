#pragma once

#include "exec/cuda/runtime/device.h"

namespace harpe::cuda {

// Makes a GPU current while this lives: which one is current, the calling thread's business stays.
class CurrentDevice {
 public:
  explicit CurrentDevice(const Device& device) : CurrentDevice(device.driver()) {
    if (before_ != device.context()) driver_.cuCtxSetCurrent(device.context());
  }
  // None yet: any that is made current meanwhile.
  explicit CurrentDevice(const DriverApi& driver) : driver_(driver) {
    driver_.cuCtxGetCurrent(&before_);
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;
  ~CurrentDevice() { driver_.cuCtxSetCurrent(before_); }

 private:
  const DriverApi& driver_;
  CUcontext before_ = nullptr;
};

}  // namespace harpe::cuda
