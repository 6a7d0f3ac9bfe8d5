#pragma once

// Everything public is in harpe::v1, which programs that include these headers see as harpe. The
// library's own sources also have names of their own in harpe, so there v1 is written out.

#ifdef HARPE_BUILDS_ITSELF
#define HARPE_INLINE
#else
#define HARPE_INLINE inline
#endif

// What the shared object exports; all else is hidden.
#define HARPE_API __attribute__((visibility("default")))
