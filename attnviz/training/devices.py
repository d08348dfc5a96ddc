"""What the device can compute, its name, and the memory in use."""

import resource

import torch


def computes_bfloat16(device: str) -> bool:
    """Does the device multiply in bfloat16? Where it only emulates bfloat16, fp32 is faster."""
    if device == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    return any(torch.cpu.get_capabilities().get(name) for name in ("avx512_bf16", "amx_bf16", "bf16"))  # x86, x86, ARM


def device_name(device: str) -> str:
    """The device in words, for the card."""
    return torch.cuda.get_device_name() if device == "cuda" else f"cpu, {torch.get_num_threads()} thread(s)"


def peak_memory_mb() -> int:
    """The most memory (MB) that the process has held; on a GPU that its tensors have held."""
    if torch.cuda.is_available():
        return torch.cuda.max_memory_allocated() // 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
