"""Arrays in the memory of GPUs: streams, pools, DLPack, and which driver is in use."""
