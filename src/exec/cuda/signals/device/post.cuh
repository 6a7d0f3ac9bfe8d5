#pragma once

#include "exec/cuda/device/wait.cuh"
#include "exec/cuda/signals/device/post_args.h"

// Posting of descriptors by kernels: what earlier work of the stream did, or the thread acquired,
// is visible to the proxy that reads them and to the rank that they are for.
namespace harpe::device {

// One thread's access to a ring: slots and their count in host memory, the rest on this GPU.
class RingAccess {
 public:
  HP_DEVICE RingAccess(const WaitContext& context, std::uint32_t name)
      : context_(context), name_(name) {}

  HP_DEVICE std::uint64_t take(std::uint64_t* head) { return add_relaxed_gpu(head, 1); }
  HP_DEVICE std::uint64_t load_known(const std::uint64_t* known) { return load_acquire_gpu(known); }
  HP_DEVICE void store_known(std::uint64_t* known, std::uint64_t taken) {
    store_release_gpu(known, taken);
  }
  HP_DEVICE std::uint64_t load_taken(const std::uint64_t* taken) {
    return load_acquire_system(taken);
  }
  HP_DEVICE void store(std::uint64_t* word, std::uint64_t value) {
    store_relaxed_system(word, value);
  }
  HP_DEVICE void publish(std::uint64_t* word, std::uint64_t value) {
    fence_system();
    store_release_system(word, value);
  }

  // As a wait for a signal: bounded, and ended by poison or when the host makes the rank give up.
  HP_DEVICE bool keep_waiting(std::uint64_t ticket, std::uint64_t taken) {
    const std::uint64_t now = global_timer();
    if (start_ == 0) start_ = now;
    const WordPair poison = load_relaxed_system_pair(context_.poison);
    if (poison.first != 0) return false;
    if (poison.second != 0 || now - start_ > context_.limit_ns) {
      const FlagWait wait{.flag = nullptr, .arrivals = 1, .name = name_};
      const std::uint32_t state = poison.second != 0 ? kGivenUp : kExpired;
      record_fault(context_, wait, static_cast<std::uint32_t>(ticket),
                   static_cast<std::uint32_t>(taken), now - start_, state);
      return false;
    }
    pause(200);
    return true;
  }

 private:
  const WaitContext& context_;
  std::uint32_t name_;
  std::uint64_t start_ = 0;
};

// False if there was no space in time.
HP_DEVICE bool post_one(const WaitContext& context, const Post& post) {
  std::uint64_t words[transport::kDescriptorWords] = {};
  for (int at = 0; at <= transport::kBytesWord; ++at) words[at] = post.words[at];
  words[0] |= std::uint64_t{current_epoch(context)} << transport::kValueAt;
  RingAccess access(context, post.name);
  return enqueue(post.ring, words, access);
}

// A poisoned rank posts nothing: the waiting ranks' own limits end their waits.
HP_DEVICE void post_all(const PostArgs& args) {
  const int lane = static_cast<int>(threadIdx.x);
  if (lane >= args.count || load_relaxed_system(args.context.poison) != 0) return;
  post_one(args.context, args.posts[lane]);
}

}  // namespace harpe::device
