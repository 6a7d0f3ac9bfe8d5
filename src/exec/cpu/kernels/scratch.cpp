#include "exec/cpu/kernels/scratch.h"

#include <array>
#include <memory>
#include <new>

namespace harpe {
namespace {

constexpr std::align_val_t kAlignment{64};

struct Release {
  void operator()(std::byte* memory) const { ::operator delete(memory, kAlignment); }
};

struct Block {
  std::unique_ptr<std::byte, Release> memory;
  std::size_t bytes = 0;
};

}  // namespace

void* scratch(Scratch purpose, std::size_t bytes) {
  thread_local std::array<Block, static_cast<std::size_t>(Scratch::Labels) + 1> blocks;
  Block& block = blocks[static_cast<std::size_t>(purpose)];
  if (block.bytes < bytes) {
    block.memory.reset();  // freed first, so that old and new memory never coexist
    block.bytes = 0;
    block.memory.reset(static_cast<std::byte*>(::operator new(bytes, kAlignment)));
    block.bytes = bytes;
  }
  return block.memory.get();
}

}  // namespace harpe
