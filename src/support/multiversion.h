#pragma once

// HP_CLONES before a function compiles it for several x86-64 levels, one of which is chosen at
// start-up. On other processors there is one version, and under sanitizers too, because their
// runtime is not ready when the choice is made. Functions that it calls must be inlined
// ([[gnu::always_inline]]) to be compiled for the same level.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define HP_CLONES
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HP_CLONES
#endif

#ifndef HP_CLONES
#if defined(__x86_64__) && defined(__gnu_linux__)
#define HP_CLONES [[gnu::target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")]]
#else
#define HP_CLONES
#endif
#endif
