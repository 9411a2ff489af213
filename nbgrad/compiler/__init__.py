"""From a graph to machine code: fuse nodes into loop nests, emit LLVM IR, compile and cache it."""
