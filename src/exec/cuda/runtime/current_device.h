#pragma once

#include "exec/cuda/runtime/device.h"

namespace harpe::cuda {

// Makes a GPU current while this lives, and restores the calling thread's previous one.
class CurrentDevice {
 public:
  explicit CurrentDevice(const Device& device) : CurrentDevice(device.driver()) {
    if (before_ != device.context()) driver_.cuCtxSetCurrent(device.context());
  }
  // Makes none current; restores the previous one after changes.
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
