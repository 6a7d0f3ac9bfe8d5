#pragma once

// Everything public is in harpe::v1, which programs that include these headers see as harpe. The
// library's own sources write v1 out, because they also have names of their own in harpe.

#ifdef HARPE_BUILDS_ITSELF
#define HARPE_INLINE
#else
#define HARPE_INLINE inline
#endif

// Marks a symbol that the shared object exports. All other symbols are hidden.
#define HARPE_API __attribute__((visibility("default")))
