/* Whether this processor, and the system, let this process multiply as `tiles.h` does. */
#include "tiles.h"

#ifdef TILES
#include <sys/syscall.h>
#include <unistd.h>
#endif

/* To be asked before the first product: the system permits tiles to a process that asks for them. */
__attribute__((visibility("default"))) int multiplies_matrices(void) {
#if defined(TILES)
    const long request_permission = 0x1023, tile_data = 18; /* of asm/prctl.h, and the number of the tiles' state */
    return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
#elif defined(MATRICES)
    return 1;
#else
    return 0;
#endif
}
